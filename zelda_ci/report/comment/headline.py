"""The first line of the comment, and the sentences below it: which suites, why this colour, and what else to know."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from posixpath import dirname

from zelda_ci.domain import comparison as findings
from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import BaselineState, MeasureDelta, Uncounted, Verdict
from zelda_ci.domain.details import ToolUsageDetails
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestEntry, SteeringChange
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.builders.anchors import base_runs
from zelda_ci.report.builders.comparison import BECAUSE, finding, gate_sentence
from zelda_ci.report.builders.phrases import capital, change_words, join, key, line, listed, measured, name, verb
from zelda_ci.report.builders.standings import SuiteStanding, SuiteVerdict, of, tested, untested_words
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.model import Cell, Line
from zelda_ci.report.text import visible

_Key = tuple[ItemKind, str, str]


def ineffective(report: CiReport) -> list[tuple[str, str]]:
    """What the pull request changes and no session of the head had, in brief and as a sentence; refused files first."""
    refused = [reason for reason in report.gate.reasons if isinstance(reason, findings.NotLoaded)]
    found = [(f"{visible(it.file, 80)} is not loaded", f"{gate_sentence(it)}.") for it in refused]
    known, not_loaded = {it.file for it in refused}, _not_loaded(report)
    for entry in not_loaded:
        if entry.file not in known:
            named, where = visible(entry.file, 80), ""
            if entry.name != entry.file:
                kind = {ItemKind.MCP_SERVER: "MCP server", ItemKind.AGENT: "sub-agent"}.get(entry.kind, entry.kind)
                named, where = f"the {kind} {visible(entry.name, 60)}", f" ({named})"
            why = (entry.reason or "no reason is known").rstrip(".")
            words = f"{named[:1].upper()}{named[1:]}{where} is not loaded: {why}."
            found.append((f"{named} is not loaded", words))
    known |= {entry.file for entry in not_loaded}
    for change in report.changes.steering:
        # A note of the run says that the checkout lacks a changed submodule or file of Git LFS.
        noted = re.compile(rf"[:,] {re.escape(change.path)}(?=, | \(| and |\. )")
        if change.path not in known and any(map(noted.search, report.batch.notes)):
            brief = f"{visible(change.path, 80)} is not checked out"
            found.append((brief, f"{brief}, so no session had it."))
    return found


def _not_loaded(report: CiReport) -> list[ManifestEntry]:
    """What no session of the head had, although a session of the base had it, or the pull request changes it."""
    here, before = _missing(report.batch.runs), _missing(base_runs(report))
    always = [(key, entry) for key, entry in here[0].items() if all(key in it for it in here)] if here else []
    new = [entry for key, entry in always if not any(key in it for it in before)]
    if steering := report.changes.steering:
        return [entry for entry in new if any(_concerns(change, entry) for change in steering)]
    return new if before else []


def _missing(runs: Iterable[RunResult]) -> list[dict[_Key, ManifestEntry]]:
    """What each of the sessions that count did not load."""
    counted = (run.details(ToolUsageDetails) for run in runs if run.status.is_valid)
    return [{(it.kind, it.name, it.file): it for it in details.not_loaded} for details in counted if details]


def _concerns(change: SteeringChange, entry: ManifestEntry) -> bool:
    own = f"{dirname(entry.file)}/" if entry.kind is ItemKind.SKILL else entry.file
    return change.path == entry.file or f"{entry.file}/".startswith(f"{change.path}/") or change.path.startswith(own)


# --- the first line ----------------------------------------------------------------------------------------------

V = SuiteVerdict
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
        undone = f"{_share(missing, suites)} {verb(missing, 'was', 'were')} done"
        return f"cancelled before {undone if missing else 'the results were compared'}"
    here = tested(suites)
    too_large = ["too much is always in context"] if any(it.kind == "context" for it in report.gate.reasons) else []
    if not here:
        return ", ".join(("no session ran" if report.context_size else "nothing was run", *too_large))
    missed = ineffective(report)
    parts = [f"{missed[0][0]}{f' and {len(missed) - 1} more' if len(missed) > 1 else ''}"] if missed else []
    is_alone = report.comparison is None or all(each.is_new for each in here)
    parts += _alone(report, here) if is_alone else _compared(report, here)
    parts += too_large
    if gone := len(of(suites, V.REMOVED)) + len(_further_removed(report, suites)):
        failed = gone == 1 and any(_failed_before(report, each.suite) for each in of(suites, V.REMOVED))
        parts.append(f"{numbers.whole(gone)} removed{' that failed' * failed}")
    if any(change.loosens for change in report.changes.rules):
        parts.append("gate loosened")
    return ", ".join(parts)


def _alone(report: CiReport, here: Sequence[SuiteStanding]) -> Iterator[str]:
    only_measured = of(here, V.MEASURED)
    if len(only_measured) == len(here):
        yield f"{numbers.format_count(len(here), 'suite')} measured"
    else:
        passing = [each for each in of(here, V.PASSES, V.NEW) if not each.reasons]
        yield f"{_share(passing, here)} {verb(passing, 'passes', 'pass')}"
        if only_measured:
            yield f"{numbers.whole(len(only_measured))} measured"
    if broken := of(here, V.NOT_TESTED):
        yield f"{numbers.whole(len(broken))} {untested_words(broken)}"
    if report.comparison:
        yield "all new"
    elif report.baseline.state is not BaselineState.OFF:
        none_yet = report.baseline.state is BaselineState.NONE_YET
        yield "nothing to compare with yet" if none_yet else "not compared"


def _compared(report: CiReport, here: Sequence[SuiteStanding]) -> Iterator[str]:
    """What changed first, then what else a reader has to do something about."""
    first = next((word for word in FIRST if of(here, word)), None)
    is_worse = any(isinstance(it, findings.Regression) and it.suite is None for it in report.gate.reasons)
    if is_worse and first is not V.WORSE:
        yield f"worse over all {numbers.format_count(len(here), 'suite')} together"
        first = None
    elif first:
        found = of(here, first)
        yield FIRST[first].format(share=_share(found, here), untested=untested_words(found))
    else:
        calm = numbers.format_count(sum(not each.is_new for each in here), "suite")
        # Nobody has looked at a change that no session had.
        yield f"{calm} without it" if ineffective(report) else f"no change found in {calm}"
    failing = [each for each in here if each.fails_by_itself]
    failing = [each for each in failing if each.standing not in (V.WORSE, V.PERHAPS_WORSE, V.NOT_TESTED, V.NEW_FAILS)]
    as_before = " as before" * all(each.standing is V.FAILS for each in failing)
    broken, new = of(here, V.NOT_TESTED), of(here, V.NEW_FAILS)
    perhaps, on_base = of(here, V.PERHAPS_WORSE), of(here, V.ON_BASE)
    others = (
        (broken if first is not V.NOT_TESTED else [], "{} " + untested_words(broken)),
        (perhaps if first in (V.WORSE, None) else [], "perhaps worse in {}"),
        (failing, f"{{}} {verb(failing, 'fails', 'fail')}{as_before}"),
        (new, f"{{}} new {verb(new, 'suite fails', 'suites fail')}"),
        (on_base, f"{{}} {verb(on_base, 'fails', 'fail')} on the base, too"),
    )
    yield from (words.format(numbers.whole(len(found))) for found, words in others if found)


def _share(part: Sequence[object], whole: Sequence[object]) -> str:
    return f"{numbers.whole(len(part))} of {numbers.format_count(len(whole), 'suite')}"


def _names(suites: Sequence[SuiteStanding]) -> Line:
    return listed([name(each.suite) for each in suites])


def _further_removed(report: CiReport, suites: Sequence[SuiteStanding]) -> list[str]:
    """Files of removed suites of which the baseline has no results."""
    known = {str(PurePosixPath(report.project) / it.compared.file) for it in of(suites, V.REMOVED) if it.compared}
    return [file for file in report.changes.removed_suites if file not in known]


def _failed_before(report: CiReport, suite: str) -> bool:
    """Whether a suite that is gone failed in at least half of its stored sessions."""
    runs = [run for run in report.baseline_batch.runs if run.suite == suite] if report.baseline_batch else []
    return bool(runs) and 2 * sum(run_outcome(run) is Outcome.FAILED for run in runs) >= len(runs)


# --- the sentences below ----------------------------------------------------------------------------------------


def lead(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """The next sentences, the most important first."""
    if report.is_cut_short:
        yield line("Nothing was compared, and nothing is claimed of any suite.")
        return
    without_effect = [line("{}", sentence) for _, sentence in ineffective(report)[:3]]
    yield from without_effect[:1]
    yield from _red(report, suites) if report.is_red else _green(report, suites)
    yield from _open_gates(suites)
    if suites and all(each.outcome is Outcome.MEASURED for each in suites):
        yield line(measured(report.batch.runs))
    yield from _weakened(report, suites)
    if report.comparison is None and report.baseline.state is not BaselineState.OFF and report.baseline.sentence:
        yield line("{}", capital(report.baseline.sentence))
    yield from without_effect[1:]


def _red(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """Why the check is red: for what the first line says, and for what it does not."""
    reasons = report.gate.reasons
    expected = [each for each in of(suites, V.WORSE) if each.reasons] + of(suites, V.NOT_TESTED)
    expected += of(suites, V.FAILS) if report.comparison is None else []
    others = [line("a settings file or plugin is not loaded")] * any(it.kind == "notLoaded" for it in reasons)
    others += [finding(it) for it in reasons if it.kind == "context"]
    together = [it.delta for it in reasons if isinstance(it, findings.Regression) and it.suite is None]
    if measures := [change_words(delta) for delta in together if isinstance(delta, MeasureDelta)]:
        others.append(line(f"over all suites together {' and '.join(measures)}"))
    if failing := [each for each in suites if each.fails_by_itself and each not in expected]:
        alone = "" if report.comparison is None else ", whatever the base does"
        verbs = verb(failing, "fails by itself", "fail by themselves")
        others.append(line(f"{{}} {verbs}{alone}", _names(failing)))
    unpaid = [each for each in suites if any(it.kind == "budget" for it in each.reasons)]
    if unpaid and not any(each in expected for each in unpaid):
        ended = report.batch.ended or findings.BUDGET_ENDED
        others.append(line("{} before all sessions of {} had run", ended, _names(unpaid)))
    because = [*[line("for this")] * bool(expected), *(line("because {}", other) for other in others)]
    # On a laptop there is no check, and the verdict says as much.
    if others or (expected and report.tested):
        yield line("The check is red {}.", join(because, ", and "))


def _green(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """Why the check is green, where the first line could make one think otherwise, or wonder."""
    if worse := of(suites, V.WORSE):
        if any("regression" in (each.fail_on or ()) for each in worse):
            yield line("The check is green: the sides differ in more than the files that steer.")
        elif any(each.fail_on for each in worse):
            yield line("The check is green: {} does not ask for regressions.", key("gate.failOn"))
    elif perhaps := of(suites, V.PERHAPS_WORSE, V.UNCLEAR):
        single = ", and one session on a side proves no change" * bool(of(perhaps, V.PERHAPS_WORSE))
        yield line(f"The check is green: nothing is proven to be worse{single}.")
    elif of(suites, V.ACCEPTED):
        logins = dict.fromkeys(f"@{each.acceptance.by}" for each in report.gate.accepted)
        yield line("The check is green: what is worse was accepted by {}.", listed([key(login) for login in logins]))
    elif because := {each.because for each in report.gate.uncounted}:
        verbs = {Uncounted.NO_BASE: "has", Uncounted.NOT_PROVEN: "is", Uncounted.ON_BASE: ""}
        words = [f"{verbs[each]} {BECAUSE[each]}".strip() for each in verbs if each in because]
        yield line(f"The check is green: what does not pass {' or '.join(words)}.")
    elif of(suites, V.FAILS, V.NEW_FAILS) and not [*_open_gates(suites)]:
        yield line("The check is green: {} does not ask for this.", key("gate.failOn"))


def _open_gates(suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """That the gate of a suite asks for nothing."""
    here = tested(suites)
    if found := [each for each in here if each.fail_on is not None and not each.fail_on]:
        which = () if len(found) == len(here) else line(" for {}", _names(found))
        yield line("Nothing turns the check red{}: {} is empty.", which, key("gate.failOn"))


def _weakened(report: CiReport, suites: Sequence[SuiteStanding]) -> Iterator[Line]:
    """What is gone or changed of that by which the pull request is tested."""
    removed: list[Cell | Line] = [
        line("{} (failed before)" if _failed_before(report, each.suite) else "{}", name(each.suite))
        for each in of(suites, V.REMOVED)
    ]
    removed += map(key, _further_removed(report, suites))
    clauses = []
    if removed and report.changes.removed_suites:
        clauses.append(line(f"removes the {verb(removed, 'suite', 'suites')} {{}}", listed(removed, MAX_KEYS)))
    elif removed:
        yield line("No longer there: {}.", listed(removed, MAX_KEYS))
    rules = sorted(report.changes.rules, key=lambda rule: not rule.loosens)
    keys = [line(f"{'loosens' if it.loosens else 'changes'} {{}} ({{}})", key(it.key), it.place) for it in rules]
    if keys:
        clauses.append(line("{}, which counts once it is merged", listed(keys, MAX_KEYS)))
    if clauses:
        yield line("This pull request {}.", join(clauses, "; "))
    changed = [line("{} ({})", name(each.suite), words) for each in suites if (words := _other_criteria(each))]
    if changed:
        yield line("The criteria are not the same as before in {}.", listed(changed, noun="suite"))


def _other_criteria(each: SuiteStanding) -> str:
    """Like `2 removed, 1 of them failed before, 2 new`; empty where they are the same."""
    compared = each.compared
    if compared is None or compared.verdict in {Verdict.NEW, Verdict.REMOVED} or not compared.candidate:
        return ""
    gone, new = ([it for it in compared.criteria if it.verdict is word] for word in (Verdict.REMOVED, Verdict.NEW))
    failed = sum(it.baseline is not None and it.baseline.mean < 50 for it in gone)
    counts = {"removed": len(gone), "of them failed before": failed, "new": len(new)}
    return ", ".join(f"{numbers.whole(count)} {words}" for words, count in counts.items() if count)
