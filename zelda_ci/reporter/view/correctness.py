"""What build and tests showed, and what to do where they did not pass."""

from collections.abc import Iterator

from pydantic import ValidationError

from zelda_ci.domain.correctness import CorrectnessDetails
from zelda_ci.domain.evaluation import Metric
from zelda_ci.domain.run import CommandResult, RunResult
from zelda_ci.domain.test_run import RunnerCounts, TestSummary
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Problem, Row, RunFiles, Section, Tone

MOST_NAMES = 10
LAST_LINES = 10

PASS = Cell("PASS", Tone.GOOD)
FAIL = Cell("FAIL", Tone.BAD)

ADVICE = {
    "build": "Read what the build printed, then the patch: see whether the tested commit builds with buildCommand.",
    "tests": "Read what the tests printed, then the patch: see whether they pass on the tested commit.",
    "coverage": "See in the patch what is not tested, or whether the command still writes its coverage report.",
}

TIMED_OUT = "See at the end of its output what it waited for (a watch mode never ends), or raise commandTimeoutSeconds."


def correctness(run: RunResult) -> CorrectnessDetails | None:
    """The evaluator's numbers; a file of another Zelda may hold others, and then they are not shown."""
    result = run.evaluations.get(Metric.FUNCTIONAL_CORRECTNESS)
    try:
        return CorrectnessDetails.model_validate(result.details) if result and result.details else None
    except ValidationError:
        return None


def correctness_section(run: RunResult) -> tuple[Section, ...]:
    """Build, tests, coverage, as far as they are configured."""
    found = correctness(run)
    rows = tuple(_rows(found)) if found else ()
    return (Section("Correctness", rows),) if rows else ()


def ending(found: CorrectnessDetails) -> str:
    """What did not pass, in a few words."""
    match _culprit(found):
        case "build":
            return "the build timed out" if found.build and found.build.timed_out else "the build failed"
        case "tests":
            return "the tests timed out" if found.test and found.test.timed_out else "the tests failed"
        case _:
            known = found.coverage is not None and found.coverage.lines is not None
            return "coverage is too low" if known else "coverage is not known"


def correctness_problem(run: RunResult, files: RunFiles) -> Problem | None:
    """Why a run whose session completed did not pass; nothing where it did."""
    result, found = run.evaluations.get(Metric.FUNCTIONAL_CORRECTNESS), correctness(run)
    if result is None or result.details.get("passed") is not False:
        return None
    if found is None:
        return Problem(sentence(result.reasoning), "Read the result's details.", files.result)
    culprit = _culprit(found)
    why = sentence(" ".join(found.shortfalls) or "Build and tests did not pass.")
    places = {"build": files.build_log, "tests": files.test_log, "coverage": files.patch}
    look = places[culprit] or files.result
    command = {"build": found.build, "tests": found.test, "coverage": None}[culprit]
    advice = TIMED_OUT if command and command.timed_out else ADVICE[culprit]
    return Problem(why, advice, look and visible(look, len(look)), last_lines(command))


def last_lines(command: CommandResult | None) -> tuple[str, ...]:
    """The end of what a command printed."""
    if command is None:
        return ()
    lines = [line.rstrip() for line in command.output[-20_000:].splitlines()]
    return tuple(visible(line) for line in lines if line)[-LAST_LINES:]


def failed_steps(run: RunResult) -> tuple[str, ...]:
    """Steps whose command failed: setup, build, test."""
    found = correctness(run)
    commands = {"setup": run.setup, "build": found and found.build, "test": found and found.test}
    return tuple(step for step, command in commands.items() if command and command.exit_code != 0)


def _culprit(found: CorrectnessDetails) -> str:
    if found.build and found.build.exit_code != 0:
        return "build"
    return "coverage" if found.test and _tests_passed(found) else "tests"


def _tests_passed(found: CorrectnessDetails) -> bool:
    """Whether the test command succeeded and its numbers say so too."""
    tests = found.tests or TestSummary()
    succeeded = found.test is not None and found.test.exit_code == 0
    return succeeded and (not tests.recognised or (tests.ran > 0 and not tests.failed + tests.errored))


def _rows(found: CorrectnessDetails) -> Iterator[Row]:
    if found.build:
        yield _command_row("Build", found.build, passed=found.build.exit_code == 0)
    if found.test:
        yield _command_row("Tests", found.test, passed=_tests_passed(found))
        if found.tests and found.tests.recognised:
            yield Row("Counts", tuple(_counts(found.tests)), tuple(_names(found.tests)))
            yield Row("Format", tuple(_formats(found.tests)), tuple(_runners(found.tests)))
    elif "tests" in found.parts:
        yield Row("Tests", (Cell("not run", Tone.WARN),))
    if found.coverage or "coverage" in found.parts:
        yield Row("Coverage", tuple(_coverage(found)))
    for note in found.notes:
        yield Row("Note", (Cell(sentence(note), Tone.WARN),))


def _command_row(label: str, command: CommandResult, *, passed: bool) -> Row:
    cells = [PASS if passed else FAIL]
    if command.timed_out:
        cells.append(Cell("timed out", Tone.BAD))
    elif command.exit_code:
        cells.append(Cell(f"exit code {command.exit_code}", Tone.BAD))
    shown = Cell(sentence(command.command, 200), Tone.DIM)
    return Row(label, (*cells, Cell(numbers.duration(command.seconds)), shown))


def _counts(tests: TestSummary | RunnerCounts) -> Iterator[Cell]:
    yield Cell(f"{numbers.whole(tests.passed)} passed", Tone.GOOD if tests.passed else Tone.WARN)
    for number, word, tone in (
        (tests.failed, "failed", Tone.BAD),
        (tests.errored, "errored", Tone.BAD),
        (tests.skipped, "skipped", Tone.WARN),
        (tests.flaky, "flaky", Tone.WARN),
    ):
        if number:
            yield Cell(f"{numbers.whole(number)} {word}", tone)


def _names(tests: TestSummary) -> Iterator[Cell]:
    for name in tests.failures[:MOST_NAMES]:
        yield Cell(visible(name, 300), Tone.BAD)
    lost = tests.failed + tests.errored
    if tests.failures and lost > (shown := min(len(tests.failures), MOST_NAMES)):
        yield Cell(f"and {numbers.whole(lost - shown)} more", Tone.DIM)


def _formats(tests: TestSummary) -> Iterator[Cell]:
    sources = {"report": "report file", "stream": "stream in the output", "summary": "closing summary"}
    for form in tests.formats:
        source = next(runner.source for runner in tests.runners if runner.format == form)
        yield Cell(f"{visible(form, 60)} ({sources[source]})", Tone.DIM)
    if any(runner.unit == "packages" for runner in tests.runners):
        yield Cell("packages are counted, not tests", Tone.WARN)


def _runners(tests: TestSummary) -> Iterator[Cell]:
    """Each by itself where there are several."""
    if len(tests.runners) > 1:
        for runner in tests.runners[:MOST_NAMES]:
            name = visible(f"{runner.format} {runner.label or ''}".rstrip(), 100)
            yield Cell(f"{name}: {', '.join(cell.text for cell in _counts(runner))}", Tone.DIM)
    if (more := len(tests.runners) - MOST_NAMES) > 0:
        yield Cell(f"and {numbers.whole(more)} more", Tone.DIM)


def _coverage(found: CorrectnessDetails) -> Iterator[Cell]:
    covered, threshold = found.coverage, found.coverage_threshold
    if covered is None or covered.lines is None:
        yield Cell("not known" if found.test else "not measured", Tone.BAD)
        if covered and covered.note:
            yield Cell(sentence(covered.note), Tone.DIM)
        return
    yield Cell(f"{covered.lines:g}% of lines")
    if covered.branches is not None:
        yield Cell(f"{covered.branches:g}% of branches", Tone.DIM)
    if threshold is not None:
        met = covered.lines >= threshold
        yield Cell(f"threshold {threshold:g}% {'met' if met else 'missed'}", Tone.GOOD if met else Tone.BAD)
    if covered.format:
        yield Cell(visible(covered.format, 100), Tone.DIM)
