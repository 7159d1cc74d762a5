"""pytest, unittest, nose2 and Django."""

from cases import Case, Runner, counts, text

PYTEST = Runner("pytest", "pytest --version", pip=("pytest", "pytest-xdist", "pytest-rerunfailures", "pytest-cov"))
UNITTEST = Runner("unittest", "python3 --version")
NOSE2 = Runner("nose2", "pip show nose2 | grep Version", pip=("nose2",))
DJANGO = Runner("django", "python3 -m django --version", pip=("django", "tblib"))

MIXED = text("""
    import pytest

    def test_adds():
        assert 1 + 1 == 2

    def test_rejects_5_failed_logins():
        assert True

    def test_subtracts():
        assert 3 - 1 == 2

    def test_multiplies():
        assert 2 * 2 == 5

    def test_divides():
        assert 4 / 2 == 3

    @pytest.fixture
    def broken():
        raise RuntimeError("no database")

    def test_reads(broken):
        assert True

    @pytest.mark.skip(reason="later")
    def test_writes():
        assert False
""")
IMITATING = text("""
    import sys

    def test_prints_a_summary():
        print("========= 7 failed, 2 passed in 0.12s =========")
        print("FAILED (failures=3)")
        print("Tests:       9 failed, 1 passed, 10 total")

    def test_fails_loudly():
        print("=================== 40 passed in 1.00s ===================")
        print("1 failed, 50 passed in 2.00s")
        assert 12 == 13
""")
PASSING = text("""
    import pytest

    @pytest.mark.parametrize("name", ["5 failed", "3 errors in 0.2s", "ok"])
    def test_name(name):
        assert name

    def test_last():
        assert True
""")
EXPECTED = text("""
    import pytest

    @pytest.mark.xfail
    def test_known_bug():
        assert False

    @pytest.mark.xfail
    def test_fixed_bug():
        assert True

    def test_plain():
        assert True
""")
TEARDOWN = text("""
    import pytest

    @pytest.fixture
    def leaky():
        yield
        raise RuntimeError("cannot clean up")

    def test_uses_it(leaky):
        assert True

    def test_other():
        assert True
""")
FLAKY = text("""
    from pathlib import Path

    def test_steady():
        assert True

    def test_second_time_lucky():
        marker = Path("tried")
        if not marker.exists():
            marker.touch()
            assert False, "first try"

    def test_never():
        assert False
""")
NESTED = text("""
    import subprocess
    import sys

    def test_runs_pytest_inside():
        done = subprocess.run([sys.executable, "-m", "pytest", "inner_cases.py"], capture_output=True, text=True)
        print(done.stdout)
        assert done.returncode == 0
""")
INNER = text("""
    def test_one():
        assert False

    def test_two():
        assert True
""")
UNIT = text("""
    import unittest

    class Sums(unittest.TestCase):
        def test_adds(self):
            self.assertEqual(1 + 1, 2)

        def test_rejects_5_failed_logins(self):
            pass

        def test_multiplies(self):
            self.assertEqual(2 * 2, 5)

        def test_crashes(self):
            raise RuntimeError("no database")

        @unittest.skip("later")
        def test_writes(self):
            pass

        @unittest.expectedFailure
        def test_known_bug(self):
            self.fail()

        @unittest.expectedFailure
        def test_fixed_bug(self):
            pass

    if __name__ == "__main__":
        unittest.main()
""")
UNIT_PASSING = text("""
    import unittest

    class Sums(unittest.TestCase):
        def test_adds(self):
            self.assertEqual(1 + 1, 2)

        def test_subtracts(self):
            self.assertEqual(1 - 1, 0)
""")
UNIT_SKIPPING = text("""
    import unittest

    class Sums(unittest.TestCase):
        def test_adds(self):
            self.assertEqual(1 + 1, 2)

        @unittest.skip("later")
        def test_one(self):
            pass

        @unittest.skip("FAILED (failures=4)")
        def test_two(self):
            pass
""")
UNIT_IMITATING = text("""
    import sys
    import unittest

    class Loud(unittest.TestCase):
        def test_prints(self):
            print("Ran 99 tests in 0.001s", file=sys.stderr)
            print("", file=sys.stderr)
            print("FAILED (failures=12, errors=3)", file=sys.stderr)

        def test_prints_ok(self):
            print("Ran 7 tests in 0.100s\\n\\nOK", file=sys.stderr)
            self.fail("on purpose")
""")
UNIT_SUBTESTS = text("""
    import unittest

    class Many(unittest.TestCase):
        def test_numbers(self):
            for number in range(4):
                with self.subTest(number=number):
                    self.assertEqual(number % 2, 0)

        def test_plain(self):
            pass
""")
UNIT_BROKEN = text("""
    import unittest

    class Broken(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            raise RuntimeError("no database")

        def test_never_runs(self):
            pass

    class Fine(unittest.TestCase):
        def test_runs(self):
            pass
""")
SETTINGS = text("""
    SECRET_KEY = "x"
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    INSTALLED_APPS = ["shop"]
    USE_TZ = True
""")
MANAGE = text("""
    import os
    import sys
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
""")
SHOP = text("""
    import unittest
    from django.test import TestCase

    class Orders(TestCase):
        def test_adds(self):
            self.assertEqual(1 + 1, 2)

        def test_ships(self):
            self.assertEqual(1, 2)

        def test_crashes(self):
            raise RuntimeError("no stock")

        @unittest.skip("later")
        def test_returns(self):
            pass

    class Carts(TestCase):
        def test_rejects_5_failed_logins(self):
            self.assertTrue(True)
""")
DJANGO_PROJECT = {"settings.py": SETTINGS, "manage.py": MANAGE, "shop/__init__.py": "", "shop/tests.py": SHOP}
CALCULATOR = text("""
    def add(a, b):
        if a > 100:
            return None
        return a + b

    def unused():
        first = 1
        second = 2
        return first + second
""")
COVERED = text("""
    from calculator import add

    def test_add():
        assert add(1, 2) == 3
""")
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
        PYTEST, "nested", {"test_outer.py": NESTED, "inner_cases.py": INNER}, "pytest",
        pytest_counts(0, 1, failures=["test_outer.py::test_runs_pytest_inside"]),
    ),
    Case(
        PYTEST, "twice", {"a/test_a.py": PASSING, "b/test_b.py": MIXED}, "pytest a; pytest b",
        {"runners": [pytest_counts(4), pytest_counts(3, 2, 1, 1)]},
    ),
    Case(
        PYTEST, "twice-quiet", {"a/test_a.py": PASSING, "b/test_b.py": MIXED}, "pytest -q a; pytest -q b",
        {"runners": [pytest_counts(4), pytest_counts(3, 2, 1, 1)]},
    ),
    pytest_case(
        "junit", MIXED, "-qq --junitxml=report.xml", counts("JUnit XML", 3, 2, 1, 1, failures=[
            "test_sums::test_multiplies", "test_sums::test_divides", "test_sums::test_reads"]), "report.xml",
    ),
    Case(
        PYTEST, "coverage", {"calculator.py": CALCULATOR, "test_calc.py": COVERED},
        "pytest --cov=calculator --cov-branch --cov-report=xml --cov-report=json --cov-report=lcov",
        pytest_counts(1, coverage={"format": "coverage.py JSON", "lines": 50.0, "branches": 50.0}),
        ("coverage.*",),
    ),
    Case(
        PYTEST, "coverage-xml", {"calculator.py": CALCULATOR, "test_calc.py": COVERED},
        "pytest --cov=calculator --cov-branch --cov-report=xml",
        pytest_counts(1, coverage={"format": "Cobertura XML", "lines": 50.0, "branches": 50.0}), ("coverage.xml",),
    ),
    Case(
        PYTEST, "coverage-branch-text", {"calculator.py": CALCULATOR, "test_calc.py": COVERED},
        "pytest --cov=calculator --cov-branch", pytest_counts(1, coverage={"format": "coverage.py text", "lines": 50.0}),
    ),
    Case(
        PYTEST, "coverage-text", {"calculator.py": CALCULATOR, "test_calc.py": COVERED}, "pytest --cov=calculator",
        pytest_counts(1, coverage={"format": "coverage.py text", "lines": 50.0}),
    ),
    Case(UNITTEST, "mixed", {"test_sums.py": UNIT}, "python3 -m unittest",
         counts("unittest", 2, 2, 1, 2, failures=["test_crashes (test_sums.Sums.test_crashes)",
                                                  "test_multiplies (test_sums.Sums.test_multiplies)",
                                                  "test_fixed_bug (test_sums.Sums.test_fixed_bug)"])),
    Case(UNITTEST, "verbose", {"test_sums.py": UNIT}, "python3 -m unittest -v", counts("unittest", 2, 2, 1, 2)),
    Case(UNITTEST, "passing", {"test_sums.py": UNIT_PASSING}, "python3 -m unittest", counts("unittest", 2)),
    Case(UNITTEST, "skipping", {"test_sums.py": UNIT_SKIPPING}, "python3 -m unittest -v", counts("unittest", 1, skipped=2)),
    Case(UNITTEST, "none", {"test_sums.py": "x = 1\n"}, "python3 -m unittest", counts("unittest", 0)),
    Case(UNITTEST, "imitating", {"test_loud.py": UNIT_IMITATING}, "python3 -m unittest", counts("unittest", 1, 1)),
    Case(UNITTEST, "subtests", {"test_many.py": UNIT_SUBTESTS}, "python3 -m unittest",
         counts("unittest", 1, 1, failures=["test_numbers (test_many.Many.test_numbers) (number=1)",
                                            "test_numbers (test_many.Many.test_numbers) (number=3)"])),
    Case(UNITTEST, "broken-class", {"test_broken.py": UNIT_BROKEN}, "python3 -m unittest", counts("unittest", 1, 0, 1)),
    Case(UNITTEST, "import-error", {"test_gone.py": "import nowhere\n"}, "python3 -m unittest",
         counts("unittest", 0, 0, 1, failures=["test_gone (unittest.loader._FailedTest.test_gone)"])),
    Case(UNITTEST, "twice", {"a/test_sums.py": UNIT, "b/test_sums.py": UNIT_PASSING},
         "(cd a && python3 -m unittest); (cd b && python3 -m unittest)",
         {"runners": [counts("unittest", 2, 2, 1, 2), counts("unittest", 2)]}),
    Case(NOSE2, "mixed", {"test_sums.py": UNIT}, "nose2", counts("unittest", 2, 2, 1, 2)),
    Case(NOSE2, "passing", {"test_sums.py": UNIT_PASSING}, "nose2 -v", counts("unittest", 2)),
    Case(NOSE2, "junit", {"test_sums.py": UNIT}, "nose2 --plugin nose2.plugins.junitxml --junit-xml",
         # nose2 writes an unexpected success as skipped
         counts("JUnit XML", 2, 1, 1, 3), ("nose2-junit.xml",)),
    Case(DJANGO, "mixed", DJANGO_PROJECT, "python3 manage.py test", counts("Django", 2, 1, 1, 1)),
    Case(DJANGO, "parallel", DJANGO_PROJECT, "python3 manage.py test --parallel 2", counts("Django", 2, 1, 1, 1)),
    Case(DJANGO, "passing", DJANGO_PROJECT, "python3 manage.py test shop.tests.Carts -v 2", counts("Django", 1)),
    Case(DJANGO, "none", {**DJANGO_PROJECT, "shop/tests.py": ""}, "python3 manage.py test", counts("Django", 0)),
)  # fmt: skip
