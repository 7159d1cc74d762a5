"""What build and tests showed, and what to do where a run has a problem."""

import re
from collections.abc import Iterator

from zelda_ci.domain import numbers
from zelda_ci.domain.details import CommandResult, CorrectnessDetails, CriterionVerdict, TestSummary
from zelda_ci.domain.measures import METRICS, Metric, own_measure
from zelda_ci.domain.outcome import Outcome, correctness_outcome, failed_criteria
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.errors import explanations
from zelda_ci.report.model import ENDINGS, Cell, Problem, Row, RunFiles, Tone, first
from zelda_ci.report.text import sentence

PASS, FAIL = Cell("PASS", Tone.GOOD), Cell("FAIL", Tone.BAD)
ADVICE = {
    "build": "Read what the build printed, then the patch: see whether the tested commit builds with buildCommand.",
    "tests": "Read what the tests printed, then the patch: see whether they pass on the tested commit.",
    "coverage": "See in the patch what is not tested, or whether the command still writes its coverage report.",
}
TIMED_OUT = "See at the end of its output what it waited for (a watch mode never ends), or raise commandTimeoutSeconds."


def command_words(command: CommandResult) -> str:
    """`timed out` or `exit code 1`."""
    return "timed out" if command.exit_code is None else f"exit code {command.exit_code}"


def command_cells(command: CommandResult) -> tuple[Cell, ...]:
    """How a command ended where that was not well, how long it took, and the command."""
    how = [Cell(command_words(command), Tone.BAD)] * (command.exit_code != 0)
    return (*how, Cell(numbers.duration(command.seconds)), Cell(sentence(command.command, 200), Tone.DIM))


def correctness_rows(run: RunResult) -> Iterator[Row]:
    """Build, tests, coverage, as far as they are configured."""
    details = run.details(CorrectnessDetails)
    if details is None:
        return
    if details.build:
        yield Row("Build", (PASS if details.build.exit_code == 0 else FAIL, *command_cells(details.build)))
    if details.test:
        yield Row("Tests", (PASS if _tests_passed(details) else FAIL, *command_cells(details.test)))
        if details.tests and details.tests.recognised:
            yield _counts(details.tests)
    elif "tests" in details.parts:
        yield Row("Tests", (Cell("not run", Tone.WARN),))
    if details.coverage or "coverage" in details.parts:
        yield Row("Coverage", tuple(_coverage(details)))
    yield from (Row("Note", (Cell(sentence(note), Tone.WARN),)) for note in details.notes)


def _counts(tests: TestSummary) -> Row:
    bad = ((tests.failed, "failed", Tone.BAD), (tests.errored, "errored", Tone.BAD))
    doubtful = ((tests.skipped, "skipped", Tone.WARN), (tests.flaky, "flaky", Tone.WARN))
    cells = [Cell(f"{numbers.whole(tests.passed)} passed", Tone.GOOD if tests.passed else Tone.WARN)]
    cells += [Cell(f"{numbers.whole(number)} {word}", tone) for number, word, tone in (*bad, *doubtful) if number]
    if any(runner.unit == "packages" for runner in tests.runners):
        cells.append(Cell("packages are counted, not tests", Tone.WARN))
    names = [Cell(name, Tone.BAD) for name in tests.failures]
    unlisted = max(tests.failed + tests.errored - len(names), 0) if names else 0
    return Row("Counts", tuple(cells), first(names, 10, unlisted=unlisted))


def _coverage(details: CorrectnessDetails) -> Iterator[Cell]:
    covered, threshold = details.coverage, details.coverage_threshold
    if covered is None or covered.lines is None:
        yield Cell("not known" if details.test else "not measured", Tone.BAD)
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
        yield Cell(covered.format, Tone.DIM)


def _tests_passed(details: CorrectnessDetails) -> bool:
    """Whether the test command succeeded and its numbers say so too."""
    tests = details.tests or TestSummary()
    succeeded = details.test is not None and details.test.exit_code == 0
    return succeeded and (not tests.recognised or (tests.ran > 0 and not tests.failed + tests.errored))


def _culprit(details: CorrectnessDetails) -> tuple[str, CommandResult | None]:
    """What did not pass, with its command."""
    if details.build and details.build.exit_code != 0:
        return "build", details.build
    return ("coverage", None) if details.test and _tests_passed(details) else ("tests", details.test)


def command_ending(details: CorrectnessDetails | None) -> str:
    """What did not pass, in a few words."""
    if details is None:
        return "did not pass"
    name, command = _culprit(details)
    if name == "coverage":
        has_lines = details.coverage is not None and details.coverage.lines is not None
        return "coverage is too low" if has_lines else "coverage is not known"
    return f"the {name} {'timed out' if command and command.timed_out else 'failed'}"


def run_problem(run: RunResult, files: RunFiles) -> Problem | None:
    """What keeps a run from having passed; nothing where it has."""
    problem, failed = failure_problem(run, files), failed_criteria(run)
    if problem or not failed:
        return problem
    more = f", and {numbers.format_count(len(failed) - 1, 'more', 'more')}" if len(failed) > 1 else ""
    undecided = " (undecided)" * (failed[0].verdict is CriterionVerdict.UNDECIDED)
    criterion = sentence(failed[0].criterion, 200)
    why = f"Not met: {criterion.removesuffix('.') if undecided or more else criterion}{undecided}{more}"
    by_judge = "Check the judge's reasoning against what the session changed."
    advice = "Look at what the check cites." if failed[0].by == "check" else by_judge
    return Problem(why, advice, files.patch or files.transcript)


def failure_problem(run: RunResult, files: RunFiles) -> Problem | None:
    """The same, but for criteria that are not met."""
    broken = {result.metric: result for result in run.evaluations.values() if result.failed}
    if run.status is not SessionStatus.COMPLETED:
        return _of_session(run, files)
    if not broken:
        return correctness_problem(run, files)
    advice, how = "The session itself is complete and saved; run the suite again once the cause is fixed.", "evaluated"
    if any(METRICS[metric].judged for metric in broken):
        advice = f"The session is complete and saved: `zelda rejudge {run.run_id}` once the cause is gone."
        how = "judged completely"
    names = ", ".join(own_measure(metric).heading for metric in broken)
    why = f"{names} could not be {how}: {sentence(next(iter(broken.values())).reasoning)}"
    log = (files.test_log or files.build_log) if Metric.FUNCTIONAL_CORRECTNESS in broken else None
    return Problem(why, advice, log or files.result)


def _of_session(run: RunResult, files: RunFiles) -> Problem:
    started = "session" in run.phase_seconds or run.evaluations
    look = (files.transcript if started else files.setup_log if run.setup else None) or files.result
    output = _last_lines(run.setup) if run.setup and run.setup.exit_code != 0 else ()
    code, why, hint = run.status.name, f"The session {ENDINGS[run.status]}; no reason was recorded.", ""
    if run.failure:
        code, why, hint = run.failure.code, sentence(run.failure.message), sentence(run.failure.hint or "")
    known = explanations().get(code, explanations()["SESSION_FAILED"])
    # Links are for the page.
    return Problem(why, hint or re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", known.action), look, output)


def correctness_problem(run: RunResult, files: RunFiles) -> Problem | None:
    """Why a run whose session completed did not pass build, tests or coverage; nothing where it did."""
    details = run.details(CorrectnessDetails)
    if correctness_outcome(run) is not Outcome.FAILED or (details and details.passed):
        return None
    if details is None:
        # Another Zelda wrote them.
        reasoning = run.evaluations[Metric.FUNCTIONAL_CORRECTNESS].reasoning
        return Problem(sentence(reasoning), "Read the result's details.", files.result)
    culprit, command = _culprit(details)
    why = sentence(" ".join(details.shortfalls) or "Build and tests did not pass.")
    look = {"build": files.build_log, "tests": files.test_log, "coverage": files.patch}[culprit]
    advice = TIMED_OUT if command and command.timed_out else ADVICE[culprit]
    return Problem(why, advice, look or files.result, _last_lines(command) if command else ())


def _last_lines(command: CommandResult) -> tuple[str, ...]:
    """The last ten lines that a command printed."""
    lines = [line.rstrip() for line in command.output[-20_000:].splitlines()]
    return tuple(line for line in lines if line)[-10:]
