"""pytest, unittest, nose2 and Django."""

from cases import Case, Runner, counts
from python_sources import (
    CALCULATOR,
    COVERED,
    DJANGO_PROJECT,
    EXPECTED,
    FLAKY,
    IMITATING,
    INNER,
    MIXED,
    NESTED,
    PASSING,
    TEARDOWN,
    UNIT,
    UNIT_BROKEN,
    UNIT_IMITATING,
    UNIT_PASSING,
    UNIT_SKIPPING,
    UNIT_SUBTESTS,
)

PYTEST = Runner("pytest", "pytest --version", pip=("pytest", "pytest-xdist", "pytest-rerunfailures", "pytest-cov"))
UNITTEST = Runner("unittest", "python3 --version")
NOSE2 = Runner("nose2", "pip show nose2 | grep Version", pip=("nose2",))
DJANGO = Runner("django", "python3 -m django --version", pip=("django", "tblib"))

FAILED_TWO = ["test_sums.py::test_multiplies", "test_sums.py::test_divides"]
ALL_THREE = [*FAILED_TWO, "test_sums.py::test_reads"]


def pytest_case(name: str, source: str, arguments: str, expect: dict[str, object], *reports: str) -> Case:
    return Case(PYTEST, name, {"test_sums.py": source}, f"pytest {arguments}", expect, reports)


def pytest_counts(*numbers: int, flaky: int = 0, **more: object) -> dict[str, object]:
    passed, failed, errored, skipped = (*numbers, 0, 0, 0)[:4]
    return counts("pytest", passed, failed, errored, skipped, flaky, **more)


CASES = (
    pytest_case("mixed", MIXED, "", pytest_counts(3, 2, 1, 1, failures=ALL_THREE)),
    pytest_case("quiet", MIXED, "-q", pytest_counts(3, 2, 1, 1, failures=ALL_THREE)),
    pytest_case("very-quiet", MIXED, "-qq", {"unrecognised": True}),
    pytest_case("verbose", MIXED, "-v", pytest_counts(3, 2, 1, 1, failures=ALL_THREE)),
    pytest_case("colour", MIXED, "--color=yes", pytest_counts(3, 2, 1, 1, failures=ALL_THREE)),
    pytest_case("no-short-summary", MIXED, "-r N", pytest_counts(3, 2, 1, 1)),
    pytest_case("no-traceback", MIXED, "--tb=no -q", pytest_counts(3, 2, 1, 1, failures=ALL_THREE)),
    pytest_case("stop-early", MIXED, "-x", pytest_counts(3, 1, failures=FAILED_TWO[:1])),
    pytest_case("parallel", MIXED, "-n 2", pytest_counts(3, 2, 1, 1)),
    pytest_case("selected", MIXED, "-k adds", pytest_counts(1)),
    pytest_case("imitating-captured", IMITATING, "", pytest_counts(1, 1, failures=["test_sums.py::test_fails_loudly"])),
    pytest_case("imitating-printed", IMITATING, "-s", pytest_counts(1, 1)),
    pytest_case("imitating-quiet", IMITATING, "-q -s", pytest_counts(1, 1)),
    pytest_case("passing", PASSING, "-v", pytest_counts(4)),
    pytest_case("expected-failures", EXPECTED, "", pytest_counts(2, 0, 0, 1)),
    pytest_case("teardown-error", TEARDOWN, "", pytest_counts(2, 0, 1)),
    pytest_case("reruns", FLAKY, "--reruns 2", pytest_counts(2, 1, flaky=1, failures=["test_sums.py::test_never"])),
    pytest_case("reruns-verbose", FLAKY, "-v --reruns 2", pytest_counts(2, 1, flaky=1)),
    pytest_case("no-tests", "x = 1\n", "", pytest_counts(0)),
    pytest_case("no-tests-quiet", "x = 1\n", "-q", pytest_counts(0)),
    pytest_case("collection-error", "import nowhere\n", "", pytest_counts(0, 0, 1, failures=["test_sums.py"])),
    Case(
        PYTEST,
        "nested",
        {"test_outer.py": NESTED, "inner_cases.py": INNER},
        "pytest",
        pytest_counts(0, 1, failures=["test_outer.py::test_runs_pytest_inside"]),
    ),
    Case(
        PYTEST,
        "twice",
        {"a/test_a.py": PASSING, "b/test_b.py": MIXED},
        "pytest a; pytest b",
        {"runners": [pytest_counts(4), pytest_counts(3, 2, 1, 1)]},
    ),
    Case(
        PYTEST,
        "twice-quiet",
        {"a/test_a.py": PASSING, "b/test_b.py": MIXED},
        "pytest -q a; pytest -q b",
        {"runners": [pytest_counts(4), pytest_counts(3, 2, 1, 1)]},
    ),
    pytest_case(
        "junit",
        MIXED,
        "-qq --junitxml=report.xml",
        counts(
            "JUnit XML",
            3,
            2,
            1,
            1,
            failures=["test_sums::test_multiplies", "test_sums::test_divides", "test_sums::test_reads"],
        ),
        "report.xml",
    ),
    Case(
        PYTEST,
        "coverage",
        {"calculator.py": CALCULATOR, "test_calc.py": COVERED},
        "pytest --cov=calculator --cov-branch --cov-report=xml --cov-report=json --cov-report=lcov",
        pytest_counts(1, coverage={"format": "coverage.py JSON", "lines": 50.0, "branches": 50.0}),
        ("coverage.*",),
    ),
    Case(
        PYTEST,
        "coverage-xml",
        {"calculator.py": CALCULATOR, "test_calc.py": COVERED},
        "pytest --cov=calculator --cov-branch --cov-report=xml",
        pytest_counts(1, coverage={"format": "Cobertura XML", "lines": 50.0, "branches": 50.0}),
        ("coverage.xml",),
    ),
    Case(
        PYTEST,
        "coverage-branch-text",
        {"calculator.py": CALCULATOR, "test_calc.py": COVERED},
        "pytest --cov=calculator --cov-branch",
        pytest_counts(1, coverage={"format": "coverage.py text", "lines": 50.0}),
    ),
    Case(
        PYTEST,
        "coverage-text",
        {"calculator.py": CALCULATOR, "test_calc.py": COVERED},
        "pytest --cov=calculator",
        pytest_counts(1, coverage={"format": "coverage.py text", "lines": 50.0}),
    ),
    Case(
        UNITTEST,
        "mixed",
        {"test_sums.py": UNIT},
        "python3 -m unittest",
        counts(
            "unittest",
            2,
            2,
            1,
            2,
            failures=[
                "test_crashes (test_sums.Sums.test_crashes)",
                "test_multiplies (test_sums.Sums.test_multiplies)",
                "test_fixed_bug (test_sums.Sums.test_fixed_bug)",
            ],
        ),
    ),
    Case(UNITTEST, "verbose", {"test_sums.py": UNIT}, "python3 -m unittest -v", counts("unittest", 2, 2, 1, 2)),
    Case(UNITTEST, "passing", {"test_sums.py": UNIT_PASSING}, "python3 -m unittest", counts("unittest", 2)),
    Case(
        UNITTEST,
        "skipping",
        {"test_sums.py": UNIT_SKIPPING},
        "python3 -m unittest -v",
        counts("unittest", 1, skipped=2),
    ),
    Case(UNITTEST, "none", {"test_sums.py": "x = 1\n"}, "python3 -m unittest", counts("unittest", 0)),
    Case(UNITTEST, "imitating", {"test_loud.py": UNIT_IMITATING}, "python3 -m unittest", counts("unittest", 1, 1)),
    Case(
        UNITTEST,
        "subtests",
        {"test_many.py": UNIT_SUBTESTS},
        "python3 -m unittest",
        counts(
            "unittest",
            1,
            1,
            failures=[
                "test_numbers (test_many.Many.test_numbers) (number=1)",
                "test_numbers (test_many.Many.test_numbers) (number=3)",
            ],
        ),
    ),
    Case(UNITTEST, "broken-class", {"test_broken.py": UNIT_BROKEN}, "python3 -m unittest", counts("unittest", 1, 0, 1)),
    Case(
        UNITTEST,
        "import-error",
        {"test_gone.py": "import nowhere\n"},
        "python3 -m unittest",
        counts("unittest", 0, 0, 1, failures=["test_gone (unittest.loader._FailedTest.test_gone)"]),
    ),
    Case(
        UNITTEST,
        "twice",
        {"a/test_sums.py": UNIT, "b/test_sums.py": UNIT_PASSING},
        "(cd a && python3 -m unittest); (cd b && python3 -m unittest)",
        {"runners": [counts("unittest", 2, 2, 1, 2), counts("unittest", 2)]},
    ),
    Case(NOSE2, "mixed", {"test_sums.py": UNIT}, "nose2", counts("unittest", 2, 2, 1, 2)),
    Case(NOSE2, "passing", {"test_sums.py": UNIT_PASSING}, "nose2 -v", counts("unittest", 2)),
    Case(
        NOSE2,
        "junit",
        {"test_sums.py": UNIT},
        "nose2 --plugin nose2.plugins.junitxml --junit-xml",
        # nose2 writes an unexpected success as skipped
        counts("JUnit XML", 2, 1, 1, 3),
        ("nose2-junit.xml",),
    ),
    Case(DJANGO, "mixed", DJANGO_PROJECT, "python3 manage.py test", counts("Django", 2, 1, 1, 1)),
    Case(DJANGO, "parallel", DJANGO_PROJECT, "python3 manage.py test --parallel 2", counts("Django", 2, 1, 1, 1)),
    Case(DJANGO, "passing", DJANGO_PROJECT, "python3 manage.py test shop.tests.Carts -v 2", counts("Django", 1)),
    Case(DJANGO, "none", {**DJANGO_PROJECT, "shop/tests.py": ""}, "python3 manage.py test", counts("Django", 0)),
)
