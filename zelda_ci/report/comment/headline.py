"""The first line of the comment, and the sentences below it: which suites, why this colour, and what else to know."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import BaselineState
from zelda_ci.domain.comparison import (
    BUDGET_ENDED,
    CriterionDelta,
    MeasureDelta,
    NotLoaded,
    NotRun,
    Regression,
    Verdict,
)
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.builders.gate import EXCUSES, failure_words
from zelda_ci.report.builders.phrases import (
    capital,
    change_words,
    joined,
    key,
    line,
    listed,
    name,
    names,
    passed,
    verb,
)
from zelda_ci.report.builders.standings import SuiteStanding, SuiteVerdict, of, tested, untested_words
from zelda_ci.report.comment.effect import brief, ineffective, sentences
from zelda_ci.report.model import Line
from zelda_ci.report.text import sentence
from zelda_ci.report.told import CiReport, RuleChange

V = SuiteVerdict
MISSING = {
    BaselineState.NONE_YET: "nothing to compare with yet",
    BaselineState.EXPIRED: "the baseline has expired",
    BaselineState.NOT_PERMITTED: "no permission to read the baseline",
    BaselineState.INVALID: "the baseline cannot be used",
    BaselineState.UNREACHABLE: "the baseline could not be fetched",
    BaselineState.FOUND: "not compared",
}
MEASURED = "The suites are measured: none has criteria or commands, and nothing could pass or fail."
TESTED = "The suites are measured: none has criteria. Your tests pass, which does not say that the tasks are done."


def measured(runs: Iterable[RunResult]) -> str:
    """What is known where no suite has criteria."""
    return TESTED if Outcome.PASSED in map(correctness_outcome, runs) else MEASURED


# What the first line says of the gravest verdict, in this order.
FIRST = {
    V.WORSE: "worse in {share}",
    V.NOT_TESTED: "{share} {untested}",
    V.PERHAPS_WORSE: "perhaps worse in {share}",
    V.UNCLEAR: "not enough evidence in {share}",
    V.ACCEPTED: "worse in {share}, accepted",
    V.BETTER: "better in {share}",
    V.PERHAPS_BETTER: "perhaps better in {share}",
}
MAX_KEYS = 4


def headline(report: CiReport, suites: Sequence[SuiteStanding]) -> str:
    """The verdict in a few words: suites are counted, and nothing else."""
    if report.is_cut_short:
        missing = of(suites, V.NOT_RUN, V.CUT_SHORT)
        if not suites:
            return "cancelled before anything had run"
        return f"cancelled before {f'{_share(missing, suites)} were done' if missing else 'the results were compared'}"
    here = tested(suites)
    if not here:
        return "nothing was run"
    is_alone = report.comparison is None or all(each.is_new for each in here)
    parts = _alone(report, here) if is_alone else _compared(report, here)
    return ", ".join([*brief(report), *parts, *_weakened(report, suites)])


def lead(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """The next sentences, the most important first."""
    if report.is_cut_short:
        yield line("Nothing was compared, and nothing is claimed of any suite.")
        return
    first, *more = [*sentences(report)] or [()]
    yield from [first] if first else []
    yield from _colour(report, suites)
    if suites and all(each.ran and each.ran.outcome is Outcome.MEASURED for each in suites):
        yield line(measured(report.batch.runs))
    yield from _changes(report, suites)
    yield from _criteria(suites)
    yield from _open_gates(report, suites)
    if report.comparison is None and report.baseline.state is not BaselineState.OFF and report.baseline.sentence:
        yield line("{}", capital(report.baseline.sentence))
    yield from more


def _alone(report: CiReport, here: Sequence[SuiteStanding]) -> Iterator[str]:
    """Without a comparison."""
    measured = of(here, V.MEASURED)
    if len(measured) == len(here):
        yield f"{numbers.format_count(len(here), 'suite')} measured"
    else:
        passing = [each for each in of(here, V.PASSES, V.NEW) if not each.reasons]
        yield f"{_share(passing, here)} {verb(passing, 'passes', 'pass')}"
        if measured:
            yield f"{numbers.whole(len(measured))} measured"
    if broken := of(here, V.NOT_TESTED):
        yield f"{numbers.whole(len(broken))} {untested_words(broken)}"
    if report.comparison:
        yield "all new"
    elif missing := MISSING.get(report.baseline.state):
        yield missing


def _compared(report: CiReport, here: Sequence[SuiteStanding]) -> Iterator[str]:
    """What changed first, then what else a reader has to do something about."""
    first = next((word for word in FIRST if of(here, word)), None)
    if _worse_together(report) and first is not V.WORSE:
        yield f"worse over all {numbers.format_count(len(here), 'suite')} together"
        first = None
    elif first is None:
        calm = numbers.format_count(sum(not each.is_new for each in here), "suite")
        # Nobody has looked at a change that no session had.
        yield f"{calm} without it" if ineffective(report) else f"no change found in {calm}"
    else:
        found = of(here, first)
        yield FIRST[first].format(share=_share(found, here), untested=untested_words(found))
    if first is not V.NOT_TESTED and (broken := of(here, V.NOT_TESTED)):
        yield f"{numbers.whole(len(broken))} {untested_words(broken)}"
    if first in (V.WORSE, None) and (perhaps := of(here, V.PERHAPS_WORSE)):
        yield f"perhaps worse in {numbers.whole(len(perhaps))}"
    told = (V.WORSE, V.PERHAPS_WORSE, V.NOT_TESTED, V.NEW_FAILS)
    if failing := [each for each in here if each.fails_by_itself and each.standing not in told]:
        as_before = " as before" * all(each.standing is V.FAILS for each in failing)
        yield f"{numbers.whole(len(failing))} {verb(failing, 'fails', 'fail')}{as_before}"
    if new := of(here, V.NEW_FAILS):
        yield f"{numbers.whole(len(new))} new {verb(new, 'suite fails', 'suites fail')}"
    if on_base := of(here, V.ON_BASE):
        yield f"{numbers.whole(len(on_base))} {verb(on_base, 'fails', 'fail')} on the base, too"


def _weakened(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[str]:
    """What would have been found before, and is not looked for any more."""
    gone = of(suites, V.REMOVED)
    if count := len(gone) + len(_further_removed(report, gone)):
        failed = count == 1 and any(_failed_before(report, each.suite) for each in gone)
        yield f"{numbers.whole(count)} removed{' that failed' if failed else ''}"
    if any(change.loosens for change in report.changes.rules):
        yield "gate loosened"


def _worse_together(report: CiReport) -> bool:
    return any(isinstance(it, Regression) and it.suite is None for it in report.gate.reasons)


def _share(part: Sequence[object], whole: Sequence[object]) -> str:
    return f"{numbers.whole(len(part))} of {numbers.format_count(len(whole), 'suite')}"


def _names(suites: Sequence[SuiteStanding]) -> Line:
    return names(each.suite for each in suites)


def _colour(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """Why the check is red or green, where the words above could make one think otherwise or wonder."""
    if report.is_red:
        yield from _red(report, suites)
    elif worse := of(suites, V.WORSE):
        yield _green(worse)
    elif of(suites, V.PERHAPS_WORSE, V.UNCLEAR):
        once = any(each.single for each in of(suites, V.PERHAPS_WORSE))
        single = ", and one session on a side proves no change" * once
        yield line(f"The check is green: nothing is proven to be worse{single}.")
    elif of(suites, V.ACCEPTED):
        logins = dict.fromkeys(f"@{each.acceptance.by}" for each in report.gate.accepted)
        yield line("The check is green: what is worse was accepted by {}.", listed([key(login) for login in logins]))
    elif because := {each.because for each in report.gate.uncounted}:
        yield line(f"The check is green: {EXCUSES[next(it for it in EXCUSES if it in because)]}")
    elif of(suites, V.FAILS, V.NEW_FAILS) and not _open(suites):
        yield line("The check is green: {} does not ask for this.", key("gate.failOn"))


def _red(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    expected = [each for each in of(suites, V.WORSE) if each.reasons] + of(suites, V.NOT_TESTED)
    expected += of(suites, V.FAILS) if report.comparison is None else []
    others = [*_other_reasons(report, suites, {each.suite for each in expected})]
    if expected:
        because = line(", and because {}", joined(others, ", and because ")) if others else ()
        yield line("The check is red for this{}.", because)
    elif others:
        nothing_worse = report.comparison is not None and not _worse_together(report) and not of(suites, V.WORSE)
        although = "although nothing is proven to be worse:" if nothing_worse else "because"
        yield line(f"The check is red {although} {{}}.", joined(others, ", and "))


def _other_reasons(report: CiReport, suites: Sequence[SuiteStanding], expected: set[str]) -> Iterator[Line]:
    """Why the check is red beside what the first words already say."""
    together = [it.delta for it in report.gate.reasons if isinstance(it, Regression) and it.suite is None]
    if any(isinstance(reason, NotLoaded) for reason in report.gate.reasons):
        yield line("a settings file or plugin is not loaded")
    if measures := [change_words(delta) for delta in together if isinstance(delta, MeasureDelta)]:
        yield line(f"over all suites together {' and '.join(measures)}")
    if failing := [each for each in suites if each.fails_by_itself and each.suite not in expected]:
        alone = "" if report.comparison is None else ", which must hold whatever the base does"
        yield line(f"{{}} {failure_words([each.reasons for each in failing])}{alone}", _names(failing))
    unpaid = [each for each in suites if any(isinstance(it, NotRun) for it in each.reasons)]
    if unpaid and not expected & {each.suite for each in unpaid}:
        yield line("{} before all sessions of {} had run", report.batch.ended or BUDGET_ENDED, _names(unpaid))


def _green(worse: Sequence[SuiteStanding]) -> Line:
    """Worse and green: either nobody asks, or it does not count."""
    green = "The check is green all the same: "
    if not any(each.fail_on for each in worse):
        return line(f"{green}{{}} is empty, so nothing turns it red.", key("gate.failOn"))
    if any("regression" in (each.fail_on or ()) for each in worse):
        return line(f"{green}the sides differ in more than the files that steer.")
    return line(f"{green}{{}} does not ask for regressions.", key("gate.failOn"))


def _open(suites: Sequence[SuiteStanding]) -> list[SuiteStanding]:
    """Suites whose gate asks for nothing."""
    return [each for each in tested(suites) if each.fail_on is not None and not each.fail_on]


def _open_gates(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """That the gate asks for nothing, where the colour of the check has not been explained by that."""
    found = _open(suites)
    if found and (report.is_red or not of(suites, V.WORSE)):
        which = () if len(found) == len(tested(suites)) else line(" for {}", _names(found))
        yield line("Nothing turns the check red{}: {} is empty.", which, key("gate.failOn"))


def _changes(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """What is gone or changed of that by which the pull request is tested."""
    gone = of(suites, V.REMOVED)
    files = [key(file) for file in _further_removed(report, gone)]
    failed = [each for each in gone if _failed_before(report, each.suite)]
    which = "which failed before" if len(failed) == len(gone) else "of which some failed before"
    removed = [line("{}{}", _names(gone), f", {which}" if failed else "")] if gone else []
    if files:
        removed.append(line(f"the {verb(files, 'suite', 'suites')} {{}}", listed(files, MAX_KEYS)))
    told = joined(removed, ", and ")
    if removed and not report.changes.removed_suites:
        yield line("No longer there: {}.", told)
        removed = []
    rules = report.changes.rules
    kinds = {"loosens {}": [it for it in rules if it.loosens], "changes {}": [it for it in rules if not it.loosens]}
    changed = [line(words, _keys(changes)) for words, changes in kinds.items() if changes]
    clauses = [line("removes {}", told)] if removed else []
    if changed:
        clauses.append(line("{}{}, which counts once it is merged", "it " if clauses else "", listed(changed)))
    if clauses:
        yield line("This pull request {}.", joined(clauses, "; "))


def _further_removed(report: CiReport, gone: Sequence[SuiteStanding]) -> list[str]:
    """Files of removed suites of which the baseline has no results."""
    known = {str(PurePosixPath(report.project) / each.compared.file) for each in gone if each.compared}
    return [file for file in report.changes.removed_suites if file not in known]


def _failed_before(report: CiReport, suite: str) -> bool:
    """Whether a suite that is gone failed in at least half of its stored sessions."""
    runs = [run for run in report.baseline_batch.runs if run.suite == suite] if report.baseline_batch else []
    failed = sum(run_outcome(run) is Outcome.FAILED for run in runs)
    return bool(runs) and 2 * failed >= len(runs)


def _criteria(suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """Suites that ask for something else than before."""
    found = [line("{} ({})", name(each.suite), words) for each in suites if (words := _other_criteria(each))]
    if found:
        yield line("The criteria are not the same as before in {}.", listed(found, noun="suite"))


def _other_criteria(each: SuiteStanding) -> str:
    """Like `1 removed, which failed before, 2 new`; empty where they are the same."""
    compared = each.compared
    if compared is None or compared.verdict in {Verdict.NEW, Verdict.REMOVED} or not compared.candidate:
        return ""
    gone = [delta for delta in compared.criteria if delta.verdict is Verdict.REMOVED]
    new = [delta for delta in compared.criteria if delta.verdict is Verdict.NEW]
    return ", ".join([*_gone(gone), *([f"{numbers.whole(len(new))} new"] if new else [])])


def _gone(removed: Sequence[CriterionDelta]) -> Iterator[str]:
    if removed:
        failed = sum(1 for delta in removed if delta.baseline and 2 * passed(delta.baseline) < delta.baseline.trials)
        which = "which" if len(removed) == 1 else f"of which {numbers.whole(failed)}"
        yield f"{numbers.whole(len(removed))} removed{f', {which} failed before' if failed else ''}"


def _keys(changes: Sequence[RuleChange]) -> Line:
    return listed([line("{} ({})", key(it.key), sentence(it.place, 80)) for it in changes], MAX_KEYS)
