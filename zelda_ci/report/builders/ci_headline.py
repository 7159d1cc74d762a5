"""The first line of the comment, and the sentences below it: which suites, why this colour, and what else to know."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import BaselineState, CiReport, RuleChange
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
from zelda_ci.report.builders.ci_effect import brief, ineffective, sentences
from zelda_ci.report.builders.gate import EXCUSES, failure_words
from zelda_ci.report.builders.phrases import base, change_words, joined, key, name, names, passed, text
from zelda_ci.report.builders.standings import SuiteStanding, SuiteVerdict, of, tested, untested_words
from zelda_ci.report.model import Line
from zelda_ci.report.text import sentence

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
    return TESTED if any(correctness_outcome(run.evaluations) is Outcome.PASSED for run in runs) else MEASURED


IN_SUITES = {
    SuiteVerdict.WORSE: "worse",
    SuiteVerdict.PERHAPS_WORSE: "perhaps worse",
    SuiteVerdict.UNCLEAR: "not enough evidence",
    SuiteVerdict.ACCEPTED: "worse",
    SuiteVerdict.BETTER: "better",
    SuiteVerdict.PERHAPS_BETTER: "perhaps better",
}
FIRST = (
    SuiteVerdict.WORSE,
    SuiteVerdict.NOT_TESTED,
    SuiteVerdict.PERHAPS_WORSE,
    SuiteVerdict.UNCLEAR,
    SuiteVerdict.ACCEPTED,
    SuiteVerdict.BETTER,
    SuiteVerdict.PERHAPS_BETTER,
)
BAD_NEWS = (
    SuiteVerdict.WORSE,
    SuiteVerdict.NOT_TESTED,
    SuiteVerdict.PERHAPS_WORSE,
    SuiteVerdict.FAILS,
    SuiteVerdict.NEW_FAILS,
    SuiteVerdict.UNCLEAR,
    SuiteVerdict.ACCEPTED,
    SuiteVerdict.ON_BASE,
)
GOOD_NEWS = (SuiteVerdict.BETTER, SuiteVerdict.PERHAPS_BETTER, SuiteVerdict.NEW)
MAX_KEYS = 4
# Suites of which it is said that their criteria are others.
MAX_CHANGED = 3


def headline(report: CiReport, suites: Sequence[SuiteStanding]) -> str:
    """The verdict in a few words: suites are counted, and nothing else."""
    if report.is_cut_short:
        return _ended_early(suites)
    here = tested(suites)
    if not here:
        return "nothing was run"
    is_alone = report.comparison is None or all(each.is_new for each in here)
    parts = _alone(report, here) if is_alone else _compared(report, here)
    return ", ".join([*brief(report), *parts, *_weakened(report, suites)])


def lead(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """The next sentences, a paragraph each."""
    if report.is_cut_short:
        yield from _unfinished(suites)
        return
    if idle := [*sentences(report)]:
        yield joined(idle, " ")
    first = [*_suites(report, suites, BAD_NEWS), *_colour(report, suites), *_suites(report, suites, GOOD_NEWS)]
    if all(each.ran and each.ran.outcome is Outcome.MEASURED for each in suites) and suites:
        first.append((text(measured(report.batch.runs)),))
    if first:
        yield joined(first, " ")
    if facts := [*_changes(report, suites), *_open_gates(report, suites)]:
        yield joined(facts, " ")
    if report.comparison is None and report.baseline.state is not BaselineState.OFF and report.baseline.sentence:
        yield (text(capital(sentence(report.baseline.sentence))),)


def capital(words: str) -> str:
    """As a sentence of its own."""
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"


def _ended_early(suites: Sequence[SuiteStanding]) -> str:
    missing = len(of(suites, SuiteVerdict.NOT_RUN, SuiteVerdict.CUT_SHORT))
    if not suites:
        return "cancelled before anything had run"
    if not missing:
        return "cancelled before the results were compared"
    return f"cancelled before {_share(missing, len(suites))} were done"


def _unfinished(suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    groups = (
        (SuiteVerdict.CUT_SHORT, "Cut short"),
        (SuiteVerdict.NOT_RUN, "Not run"),
        (SuiteVerdict.RAN, "Ran to the end"),
    )
    lines = [
        (text(f"{label}: "), *names(found), text(".")) for word, label in groups if (found := _names(suites, word))
    ]
    yield joined([*lines, (text("Nothing was compared, and nothing is claimed of any suite."),)], " ")


def _alone(report: CiReport, here: Sequence[SuiteStanding]) -> Iterator[str]:
    """Without a comparison."""
    measured = of(here, SuiteVerdict.MEASURED)
    passing = [each for each in of(here, SuiteVerdict.PASSES, SuiteVerdict.NEW) if not each.reasons]
    if len(measured) == len(here):
        yield f"{numbers.format_count(len(here), 'suite')} measured"
    else:
        verb = "passes" if len(passing) == 1 else "pass"
        yield f"{_share(len(passing), len(here))} {verb}"
        yield from (f"{numbers.whole(len(measured))} measured" for _ in measured[:1])
    if broken := of(here, SuiteVerdict.NOT_TESTED):
        yield f"{numbers.whole(len(broken))} {untested_words(broken)}"
    if report.comparison:
        yield "all new"
    elif missing := MISSING.get(report.baseline.state):
        yield missing


def _compared(report: CiReport, here: Sequence[SuiteStanding]) -> Iterator[str]:
    """What changed first, then what else a reader has to do something about."""
    first = next((word for word in FIRST if of(here, word)), None)
    together = any(isinstance(it, Regression) and it.suite is None for it in report.gate.reasons)
    if together and first is not SuiteVerdict.WORSE:
        yield f"worse over all {numbers.format_count(len(here), 'suite')} together"
        first = None
    elif first is None:
        calm = numbers.format_count(len([each for each in here if not each.is_new]), "suite")
        # Nobody has looked at a change that no session had.
        yield f"{calm} without it" if ineffective(report) else f"no change found in {calm}"
    else:
        yield _first(first, of(here, first), len(here))
    yield from _second(here, first)


def _weakened(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[str]:
    """What would have been found before, and is not looked for any more."""
    gone = of(suites, SuiteVerdict.REMOVED)
    if count := len(gone) + len(_further_removed(report, gone)):
        failed = any(_failed_before(report, each.suite) for each in gone)
        yield f"{numbers.whole(count)} removed{' that failed' if failed and count == 1 else ''}"
    if any(change.loosens for change in report.changes.rules):
        yield "gate loosened"


def _first(word: SuiteVerdict, found: Sequence[SuiteStanding], total: int) -> str:
    count = len(found)
    if word is SuiteVerdict.NOT_TESTED:
        return f"{_share(count, total)} {untested_words(found)}"
    accepted = ", accepted" if word is SuiteVerdict.ACCEPTED else ""
    return f"{IN_SUITES[word]} in {_share(count, total)}{accepted}"


def _second(here: Sequence[SuiteStanding], first: SuiteVerdict | None) -> Iterator[str]:
    if first is not SuiteVerdict.NOT_TESTED and (broken := of(here, SuiteVerdict.NOT_TESTED)):
        yield f"{numbers.whole(len(broken))} {untested_words(broken)}"
    if first in (SuiteVerdict.WORSE, None) and (perhaps := of(here, SuiteVerdict.PERHAPS_WORSE)):
        yield f"perhaps worse in {numbers.whole(len(perhaps))}"
    told = (SuiteVerdict.WORSE, SuiteVerdict.PERHAPS_WORSE, SuiteVerdict.NOT_TESTED, SuiteVerdict.NEW_FAILS)
    failing = [each for each in here if each.fails_by_itself and each.standing not in told]
    if failing:
        as_before = " as before" * all(each.standing is SuiteVerdict.FAILS for each in failing)
        yield f"{numbers.whole(len(failing))} {'fails' if len(failing) == 1 else 'fail'}{as_before}"
    if new := of(here, SuiteVerdict.NEW_FAILS):
        yield f"{numbers.whole(len(new))} new {'suite fails' if len(new) == 1 else 'suites fail'}"
    if on_base := of(here, SuiteVerdict.ON_BASE):
        yield f"{numbers.whole(len(on_base))} {'fails' if len(on_base) == 1 else 'fail'} on the base, too"


def _share(count: int, total: int) -> str:
    return f"{numbers.whole(count)} of {numbers.format_count(total, 'suite')}"


def _names(suites: Sequence[SuiteStanding], *wanted: SuiteVerdict) -> list[str]:
    return [each.suite for each in of(suites, *wanted)]


def _suites(report: CiReport, suites: Sequence[SuiteStanding], wanted: Iterable[SuiteVerdict]) -> Iterator[Line]:
    """Which suites the first line means."""
    verbs = _verbs(report, suites)
    clauses = []
    for word in wanted:
        one, many, ending = verbs[word]
        if found := _names(suites, word):
            clauses.append((*names(found), text(f" {one if len(found) == 1 else many}"), *ending))
    calm = len(of(suites, SuiteVerdict.AS_BEFORE))
    others = len(suites) - calm - len(of(suites, SuiteVerdict.REMOVED))
    if calm and others and SuiteVerdict.AS_BEFORE not in wanted and SuiteVerdict.BETTER in wanted:
        are = "the other one is" if calm == 1 else f"the other {numbers.whole(calm)} are"
        clauses.append((text(f"{are} as before" if clauses else capital(f"{are} as before").rstrip(".")),))
    if clauses:
        yield (*joined(clauses, "; "), text("."))
    seen = of(suites, SuiteVerdict.PERHAPS_WORSE) or of(suites, SuiteVerdict.PERHAPS_BETTER)
    if any(each.single and each.standing in wanted for each in seen):
        yield (text("Seen once on a side, which proves no change."),)


def _verbs(report: CiReport, suites: Sequence[SuiteStanding]) -> dict[SuiteVerdict, tuple[str, str, Line]]:
    """Singular, plural and what follows."""
    than: Line = (text("on "), base(report)) if report.baseline.branch else (base(report),)
    as_before: Line = (text(" as before"),) if report.comparison else ()
    by = dict.fromkeys(each.acceptance.by for each in report.gate.accepted)
    accepted = joined([(key(f"@{login}"),) for login in by], ", ")
    untested = untested_words(of(suites, SuiteVerdict.NOT_TESTED))
    return {
        SuiteVerdict.WORSE: ("is worse than ", "are worse than ", than),
        SuiteVerdict.NOT_TESTED: (untested, untested, ()),
        SuiteVerdict.PERHAPS_WORSE: ("is perhaps worse than ", "are perhaps worse than ", than),
        SuiteVerdict.FAILS: ("fails", "fail", as_before),
        SuiteVerdict.NEW_FAILS: ("is new and fails", "are new and fail", ()),
        SuiteVerdict.UNCLEAR: ("shows too little to tell", "show too little to tell", ()),
        SuiteVerdict.ACCEPTED: ("is worse, accepted by ", "are worse, accepted by ", accepted),
        SuiteVerdict.ON_BASE: ("fails, and fails on the base, too", "fail, and fail on the base, too", ()),
        SuiteVerdict.BETTER: ("is better", "are better", ()),
        SuiteVerdict.PERHAPS_BETTER: ("is perhaps better", "are perhaps better", ()),
        SuiteVerdict.NEW: ("is new", "are new", ()),
    }


def _colour(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """Why the check is red or green, where the words above could make one think otherwise or wonder."""
    if report.is_red:
        yield from _red(report, suites)
    elif worse := of(suites, SuiteVerdict.WORSE):
        yield from _green(worse)
    elif of(suites, SuiteVerdict.PERHAPS_WORSE, SuiteVerdict.UNCLEAR):
        yield (text("The check is green: nothing is proven to be worse."),)
    elif of(suites, SuiteVerdict.ACCEPTED):
        yield (text("The check is green for that."),)
    elif because := {each.because for each in report.gate.uncounted}:
        yield (text(f"The check is green: {EXCUSES[next(it for it in EXCUSES if it in because)]}"),)
    elif of(suites, SuiteVerdict.FAILS, SuiteVerdict.NEW_FAILS) and not _open(suites):
        yield (text("The check is green: "), key("gate.failOn"), text(" does not ask for this."))


def _red(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    expected = [each for each in of(suites, SuiteVerdict.WORSE) if each.reasons] + of(suites, SuiteVerdict.NOT_TESTED)
    expected += of(suites, SuiteVerdict.FAILS) if report.comparison is None else []
    others = list(_other_reasons(report, suites, {each.suite for each in expected}))
    if not others:
        yield from [(text("The check is red for this."),)] * bool(expected)
    elif expected:
        yield (text("The check is red for this, and because "), *joined(others, ", and because "), text("."))
    else:
        together = any(isinstance(it, Regression) and it.suite is None for it in report.gate.reasons)
        nothing_worse = report.comparison is not None and not together and not of(suites, SuiteVerdict.WORSE)
        although = " although nothing is proven to be worse: " if nothing_worse else " because "
        yield (text(f"The check is red{although}"), *joined(others, ", and "), text("."))


def _other_reasons(report: CiReport, suites: Sequence[SuiteStanding], expected: set[str]) -> Iterator[Line]:
    """Why the check is red beside what the first words already say."""
    together = [it.delta for it in report.gate.reasons if isinstance(it, Regression) and it.suite is None]
    if any(isinstance(reason, NotLoaded) for reason in report.gate.reasons):
        yield (text("a settings file is not loaded"),)
    measures = [change_words(delta) for delta in together if isinstance(delta, MeasureDelta)]
    if measures:
        yield (text(f"over all suites together {' and '.join(measures)}"),)
    failing = [each for each in suites if each.fails_by_itself and each.suite not in expected]
    if failing:
        alone = "" if report.comparison is None else ", which must hold whatever the base does"
        yield (
            *names([each.suite for each in failing]),
            text(f" {failure_words([each.reasons for each in failing])}{alone}"),
        )
    unpaid = [each.suite for each in suites if any(isinstance(it, NotRun) for it in each.reasons)]
    if unpaid and not expected & set(unpaid):
        yield (text(f"{report.batch.ended or BUDGET_ENDED} before all sessions of "), *names(unpaid), text(" had run"))


def _green(worse: Sequence[SuiteStanding]) -> Iterator[Line]:
    """Worse and green: either nobody asks, or it does not count."""
    green = text("The check is green all the same: ")
    if not any(each.fail_on for each in worse):
        yield (green, key("gate.failOn"), text(" is empty, so nothing turns it red."))
    elif any("regression" in (each.fail_on or ()) for each in worse):
        yield (green, text("the sides differ in more than the files that steer."))
    else:
        yield (green, key("gate.failOn"), text(" does not ask for regressions."))


def _open(suites: Sequence[SuiteStanding]) -> list[str]:
    """Suites whose gate asks for nothing."""
    return [each.suite for each in tested(suites) if each.fail_on is not None and not each.fail_on]


def _open_gates(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """That the gate asks for nothing, where the colour of the check has not been explained by that."""
    found = _open(suites)
    if found and (report.is_red or not of(suites, SuiteVerdict.WORSE)):
        which = () if len(found) == len(tested(suites)) else (text(" for "), *names(found))
        yield (text("Nothing turns the check red"), *which, text(": "), key("gate.failOn"), text(" is empty."))


def _changes(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """What the pull request changes of that by which it is tested."""
    yield from _removed(report, suites)
    yield from _criteria(suites)
    loosened = [change for change in report.changes.rules if change.loosens]
    others = [change for change in report.changes.rules if not change.loosens]
    later = ", which counts once it is merged."
    if loosened:
        yield (text("This pull request loosens "), *_keys(loosened), text(later))
    if others:
        yield (text("It also changes " if loosened else "This pull request changes "), *_keys(others), text(later))


def _removed(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    gone = of(suites, SuiteVerdict.REMOVED)
    by_us = _further_removed(report, gone)
    failed = [each.suite for each in gone if _failed_before(report, each.suite)]
    if gone:
        is_known = bool(report.changes.removed_suites)
        subject = "This pull request removes " if is_known else "No longer there: "
        which = "which failed before" if len(gone) == len(failed) else "of which some failed before"
        yield (text(subject), *names([each.suite for each in gone]), text(f", {which}." if failed else "."))
    if by_us:
        noun = "suite" if len(by_us) == 1 else "suites"
        yield (text(f"This pull request removes the {noun} "), *_paths(by_us), text("."))


def _further_removed(report: CiReport, gone: Sequence[SuiteStanding]) -> list[str]:
    """Files of removed suites of which the baseline has no results."""
    known = {str(PurePosixPath(report.project) / each.compared.file) for each in gone if each.compared}
    return [file for file in report.changes.removed_suites if file not in known]


def _paths(files: Sequence[str]) -> Line:
    shown = joined([(key(file),) for file in files[:MAX_KEYS]], ", ")
    more = len(files) - MAX_KEYS
    return (*shown, text(f" and {numbers.whole(more)} more")) if more > 0 else shown


def _failed_before(report: CiReport, suite: str) -> bool:
    """Whether a suite that is gone failed in at least half of its stored sessions."""
    runs = [run for run in report.baseline_batch.runs if run.suite == suite] if report.baseline_batch else []
    failed = sum(run_outcome(run) is Outcome.FAILED for run in runs)
    return bool(runs) and 2 * failed >= len(runs)


def _criteria(suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """Suites that ask for something else than before: the first, and how many more."""
    changed = [*_other_criteria(suites)]
    yield from changed[:MAX_CHANGED]
    more = len(changed) - MAX_CHANGED
    if more > 0:
        yield (text(f"The same holds for {numbers.format_count(more, 'more suite')}."),)


def _other_criteria(suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    for each in suites:
        compared = each.compared
        if compared is None or compared.verdict in {Verdict.NEW, Verdict.REMOVED} or not compared.candidate:
            continue
        gone = [delta for delta in compared.criteria if delta.verdict is Verdict.REMOVED]
        new = [delta for delta in compared.criteria if delta.verdict is Verdict.NEW]
        if words := [*_gone(gone), *([f"{numbers.whole(len(new))} new"] if new else [])]:
            yield (
                text("The criteria of "),
                name(each.suite),
                text(f" are not the same as before: {', '.join(words)}."),
            )


def _gone(removed: Sequence[CriterionDelta]) -> Iterator[str]:
    if removed:
        failed = sum(1 for delta in removed if delta.baseline and 2 * passed(delta.baseline) < delta.baseline.trials)
        which = "it failed before" if len(removed) == 1 else f"{numbers.whole(failed)} of them failed before"
        yield f"{numbers.whole(len(removed))} removed{f' ({which})' if failed else ''}"


def _keys(changes: Sequence[RuleChange]) -> Line:
    shown = joined([(key(it.key), text(f" ({sentence(it.place, 80)})")) for it in changes[:MAX_KEYS]], ", ")
    more = len(changes) - MAX_KEYS
    return (*shown, text(f" and {numbers.whole(more)} more")) if more > 0 else shown
