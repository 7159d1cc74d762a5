"""A run counts once, in however many formats, folders and summaries it is told of."""

import json
from functools import partial
from itertools import product

import pytest

from tests.unit.test_output import fixtures
from zelda_ci.domain.details import TestSummary
from zelda_ci.test_output.reading import contradictions

TESTS = {"adds 1 + 2": "passed", "holds": "passed", "divides": "failed", "later": "pending"}
WANTED = (2, 1, 1)
read = partial(fixtures.read, exit_code=1)


def counted(summary: TestSummary) -> tuple[int, int, int]:
    assert not summary.unclear
    return summary.passed, summary.failed + summary.errored, summary.skipped


def junit(tests: dict[str, str] = TESTS) -> str:
    inner = {"passed": "", "failed": "<failure/>", "pending": "<skipped/>"}
    cases = "".join(
        f"<testcase classname='a.test.ts' name='sums &gt; {name}'>{inner[tests[name]]}</testcase>" for name in tests
    )
    return f"<testsuites name='vitest tests'><testsuite name='a.test.ts'>{cases}</testsuite></testsuites>"


def jest(tests: dict[str, str] = TESTS) -> str:
    kinds = list(tests.values())
    results = [{"fullName": f"sums {name}", "title": name, "status": tests[name]} for name in tests]
    counts = {f"num{kind.title()}Tests": kinds.count(kind) for kind in ("passed", "failed", "pending")}
    return json.dumps(
        {"numTotalTests": len(tests), **counts, "testResults": [{"name": "a", "assertionResults": results}]}
    )


def mocha() -> str:
    kinds = {kind: [{"fullTitle": f"sums {name}"} for name in TESTS if TESTS[name] == kind] for kind in TESTS.values()}
    stats = {"passes": 2, "failures": 1, "pending": 1}
    return json.dumps({"stats": stats, "passes": kinds["passed"], "failures": kinds["failed"]})


def playwright() -> str:
    return json.dumps({"stats": {"expected": 2, "unexpected": 1, "flaky": 0, "skipped": 1}, "errors": []})


VITEST = " RUN  v3.0.0 /project\n\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed | 1 skipped (4)\n   Duration  1.0s\n"


@pytest.mark.parametrize("other", [jest, mocha, playwright])
@pytest.mark.parametrize("folder", ["", "reports/", "out/json/"])
def test_reports_of_one_run_in_two_formats_count_once(other, folder: str) -> None:
    assert counted(read("", ("junit.xml", junit()), (f"{folder}results.json", other()))) == WANTED
    assert counted(read("", (f"{folder}results.json", other()), ("junit.xml", junit()))) == WANTED


def test_reports_of_one_run_in_two_formats_count_once_in_each_of_several_packages() -> None:
    other = {"subtracts": "passed", "writes": "failed"}
    reports = [(f"{name}/junit.xml", junit(tests)) for name, tests in {"a": TESTS, "b": other}.items()]
    assert counted(read("", *reports, ("results.json", jest(TESTS | other)))) == (3, 2, 1)
    assert counted(read("", *reports, ("b/results.json", jest(other)))) == (3, 2, 1)
    assert counted(read("", *reports, ("all.xml", junit(TESTS | other)))) == (3, 2, 1)


def test_runs_with_equal_numbers_and_other_tests_both_count() -> None:
    others = {f"{name} twice": kind for name, kind in TESTS.items()}
    assert counted(read("", ("junit.xml", junit()), ("results.json", jest(others)))) == (4, 2, 2)
    assert counted(read("", ("a/junit.xml", junit()), ("b/junit.xml", junit(others)))) == (4, 2, 2)


@pytest.mark.parametrize("printed", [
    f"{jest()}\n{junit()}\n", f"{junit()}\n{jest()}\n", f"{junit()}\n{VITEST}", f"{VITEST}{jest()}\n{junit()}\n",
])  # fmt: skip
def test_what_a_runner_prints_in_several_formats_counts_once(printed: str) -> None:
    assert counted(read(printed)) == WANTED


LABELS = (
    "",
    "packages/web test: ",
    "[0] ",
    "@acme/web#test: ",
    "[0] packages/web test: ",
    "packages/web test: web-1  | ",
)
AROUND = {
    "pnpm": ("Scope: 2 of 3 workspace projects\n", "packages/web test: Failed\nSummary: 1 fails, 2 passes\n"),
    "turbo": ("", " Tasks:    2 successful, 3 total\nCached:    0 cached, 3 total\nFailed:    web#test\n"),
    "TeamCity": (
        "##teamcity[testStarted name='a']\n##teamcity[testFailed name='a' message='x']\n##teamcity[testFinished name='a']\n",
        "##teamcity[buildStatus text='Tests failed: 1, passed: 2, ignored: 1']\nTests failed: 1, passed: 2, ignored: 1\n",
    ),
}


@pytest.mark.parametrize(("tool", "label"), [*product(AROUND, LABELS)])
def test_what_a_tool_adds_up_around_a_runner_is_no_run_and_labels_inside_of_each_other_are_removed(tool, label) -> None:
    before, after = AROUND[tool]
    assert counted(read(before + "".join(f"{label}{line}\n" for line in VITEST.split("\n")) + after)) == WANTED


ROOT = "platform linux -- Python 3.11.7\nrootdir: {}\n"
START = "============ test session starts ============\n"
INNER = START + ROOT.format("/tmp/pytest-of-me/pytest-0/test_x0")
ENDS = {
    "failing": "collected 1 item\n\nt.py F  [100%]\n\n==== FAILURES ====\nE  assert 0\n==== 1 failed in 0.01s ====\n",
    "passing": "collected 3 items\n\nt.py ...  [100%]\n\n==== 3 passed in 0.01s ====\n",
    "broken": "collected 0 items / 1 error\n\n!!!! Interrupted: 1 error during collection !!!!\n==== 1 error in 0.05s ====\n",
    "empty": "collected 0 items\n\n==== no tests ran in 0.01s ====\n",
    "crashed": "collected 1 item\nINTERNALERROR> ValueError\n\n==== no tests ran in 0.01s ====\n",
    "killed": "collected 4 items\n\nt.py ",
}
CAPTURED = "==== PASSES ====\n____ test_a ____\n---- Captured stdout call ----\n{}==== short test summary info ====\nPASSED t.py::test_a\n"
OUTER = START + ROOT.format("/project") + "collected 5 items\n\n"
CLOSE = "==== 5 passed in 1.00s ====\n"
SESSIONS = {
    "not captured": OUTER + "tests/test_p.py {0}.....  [100%]\n\n" + CLOSE,
    "not captured, twice": OUTER + "tests/test_p.py .{0}...{0}.\n\n" + CLOSE,
    "not captured, verbose": OUTER + "tests/test_p.py::test_a {0}PASSED\ntests/test_p.py::test_b PASSED\n\n" + CLOSE,
    "not captured, quiet": "{0}.....  [100%]\n5 passed in 1.00s\n",
    "captured": OUTER + "tests/test_p.py .....  [100%]\n\n" + CAPTURED.format("{0}") + CLOSE,
    "captured, twice": OUTER + "tests/test_p.py .....  [100%]\n\n" + CAPTURED.format("{0}{0}") + CLOSE,
    "captured, quiet": ".....  [100%]\n" + CAPTURED.format("{0}") + "5 passed in 1.00s\n",
}  # fmt: skip


@pytest.mark.parametrize(("session", "inner"), [*product(SESSIONS, ENDS)])
def test_pytest_inside_of_pytest_is_part_of_the_test_that_started_it(session: str, inner: str) -> None:
    summary = read(SESSIONS[session].format(INNER + ENDS[inner]), exit_code=0)
    assert (counted(summary), contradictions(summary, 0)) == ((5, 0, 0), ())


@pytest.mark.parametrize("inner", ENDS)
def test_a_failing_session_around_others_stays_red(inner: str) -> None:
    failing = OUTER + "tests/test_p.py {0}....F\n\n==== FAILURES ====\n==== 1 failed, 4 passed in 1.00s ====\n"
    assert counted(read(failing.format(INNER + ENDS[inner]))) == (4, 1, 0)
