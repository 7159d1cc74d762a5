"""Why suites stand where they stand: one sentence per cause, with the judge's reason and what may have done it.

A criterion that is no longer met lowers scores and moves cost and turns, too. These are not counted again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from zelda_ci.domain import comparison as findings
from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import Delta, Verdict, criterion_of
from zelda_ci.domain.details import CriterionJudgement
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.report.builders.anchors import cited_fragment, suite_address
from zelda_ci.report.builders.comparison import MAX_CRITERION_LENGTH, changed_files, fallen, finding
from zelda_ci.report.builders.phrases import TOOL, change_words, join, key, line, listed, name, quoted, tool_words
from zelda_ci.report.builders.run import correctness_problem, run_problem
from zelda_ci.report.builders.standings import SuiteStanding, SuiteVerdict, is_firm
from zelda_ci.report.builders.steering import attribution_line
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.model import NO_FILES, Cell, Line, Problem, plain
from zelda_ci.report.text import sentence, visible

MAX_BOXES = 3
MAX_REASON_LENGTH = 320
EXPLAINED = {SuiteVerdict.WORSE, SuiteVerdict.PERHAPS_WORSE, SuiteVerdict.UNCLEAR, SuiteVerdict.ACCEPTED}
FALLEN = (Verdict.REGRESSED, Verdict.CHANGED, Verdict.INCONCLUSIVE)
# What says nothing of a criterion, and is told beside any.
OF_TRIALS = findings.NotJudged | findings.NotRun | findings.EndedAtLimit
# What failed commands say better than the numbers that follow from them.
OF_COMMANDS = {Measure.FUNCTIONAL_CORRECTNESS, Measure.TESTS}
MAX_SOURCES = 2
_Delta = TypeVar("_Delta", bound=Delta)


@dataclass(frozen=True)
class Cause:
    """One thing that is not as it should be."""

    suite: SuiteStanding
    words: Line
    """Without the suite's name."""
    why: Line = ()
    """The judge's reason with what it cites, or what to do."""
    is_red: bool = False
    """Whether the check is red for it."""
    criterion: str = ""
    """Its text, where it is one."""
    files: tuple[str, ...] = ()
    """Those to blame in place of what steers: they broke something before any session."""

    @property
    def note(self) -> Line:
        """Who has accepted it, and why."""
        accepted = (it.acceptance for it in self.suite.accepted if criterion_of(it.reason) == self.criterion)
        found = next(accepted, None) if self.criterion and not self.is_red else None
        if found is None:
            return ()
        link = line(" ({})", Cell("comment", url=found.url)) if found.url else ()
        because = sentence(found.because, MAX_REASON_LENGTH)
        return line("Noted: accepted by {} because {}{}.", key(f"@{found.by}"), because, link)

    @property
    def sentence(self) -> str:
        return " ".join(filter(None, map(plain, (self.words, self.why, self.note))))


def causes(report: CiReport, suites: Sequence[SuiteStanding]) -> list[list[Cause]]:
    """The causes of each suite that has any, the worst first."""
    told = (list(_of_suite(report, each)) for each in suites if each.is_bad or each.standing in EXPLAINED)
    return [found for found in told if found]


def boxes(report: CiReport, found: Sequence[Sequence[Cause]]) -> tuple[tuple[tuple[Line, ...], ...], str]:
    """The first causes as boxes, one of each suite before a second of any; and how many more there are."""
    ranked = sorted((turn, place) for place, each in enumerate(found) for turn in range(len(each)))
    chosen = sorted(ranked[:MAX_BOXES], key=lambda it: it[1])
    shown = []
    for turn, place in chosen:
        cause, suite = found[place][turn], found[place][turn].suite
        lines = [line("{}: {}", name(suite.suite), cause.words), cause.why, cause.note]
        # What may have done it stands with the first cause of its suite.
        if turn == 0 and suite.standing in EXPLAINED and not cause.files:
            lines.append(join(_sources(report, suite), " "))
        *others, last = filter(None, lines)
        address = suite_address(report, suite.suite)
        url, words = (address, "Report") if address else (report.links.transcripts, "Transcripts")
        shown.append((*others, line("{} {}", last, Cell(words, url=url)) if url else last))
    more, among = len(ranked) - len(chosen), len(found) - len({place for _, place in chosen})
    which = f" in {numbers.format_count(among, 'further suite')}" if among else ""
    return tuple(shown), f"and {numbers.format_count(more, 'more cause')}{which}" if more else ""


def _of_suite(report: CiReport, suite: SuiteStanding) -> Iterator[Cause]:
    if suite.standing is SuiteVerdict.NOT_TESTED:
        # Each problem once, however many sessions have it.
        problems: dict[str, Problem] = {}
        for run in suite.runs:
            if run_outcome(run) >= Outcome.INCOMPLETE and (problem := run_problem(run, NO_FILES)):
                problems.setdefault(problem.sentence, problem)
        for problem in [*problems.values()][:3]:
            yield Cause(suite, line("{}", problem.sentence), line("{}", problem.advice), is_red=True)
        if not problems:
            yield Cause(suite, line("no session of it could be counted."), is_red=True)
        return
    found = [*_criteria(report, suite), *_commands(report, suite)]
    known = {cause.criterion for cause in found} - {""}
    found += _failing(report, suite, known)
    yield from found or _measures(suite)
    # What somebody has taken for what it is, and the comparison does not show.
    for criterion in dict.fromkeys(criterion_of(each.reason) for each in suite.accepted):
        if criterion and criterion not in known:
            words = line("{} is not met.", quoted(criterion, MAX_CRITERION_LENGTH))
            yield Cause(suite, words, criterion=criterion)


def _criteria(report: CiReport, suite: SuiteStanding) -> Iterator[Cause]:
    """Criteria that are met less often than before; where one surely is, no others that only may be."""
    compared = suite.compared
    if compared is None or suite.standing not in EXPLAINED:
        return
    if compared.reasons:
        yield Cause(suite, line("cannot be compared: {}.", "; ".join(compared.reasons)))
        return
    red = {criterion_of(reason) for reason in suite.reasons}
    for delta in _firmest(delta for delta in compared.criteria if delta.effect == "worse"):
        words = line("{}.", fallen(delta, report.baseline.branch))
        why = _judged(report, suite, delta.candidate_judgement)
        yield Cause(suite, words, why, is_red=delta.criterion in red, criterion=delta.criterion)


def _firmest(deltas: Iterable[_Delta]) -> list[_Delta]:
    """Those with the firmest verdict of all that fell."""
    worse = [delta for delta in deltas if delta.verdict in FALLEN]
    firmest = min((FALLEN.index(delta.verdict) for delta in worse), default=0)
    return [delta for delta in worse if delta.verdict is FALLEN[firmest]]


def _judged(report: CiReport, suite: SuiteStanding, judgement: CriterionJudgement | None) -> Line:
    """The judge's reason, and where to look it up: an untouched file in the tested commit, all else in the report."""
    if judgement is None:
        return ()
    places, changes = [], [run.changes for run in suite.runs]
    for cited in judgement.evidence[:MAX_SOURCES]:
        # A file that a session may have written has another text in the commit, or is not there.
        touched = not changes or any(it is None or it.truncated or cited.path in it.files for it in changes)
        if cited.kind == "file" and cited.first_line and not touched:
            url = _address(report, cited.path, cited.first_line, cited.last_line or cited.first_line)
        else:
            fragment = cited_fragment(report, suite.suite, cited) if report.links.report else ""
            url = f"{report.links.report}{fragment}" if fragment else None
        places.append(Cell(visible(cited.where, 100), url=url))
    reason = sentence(judgement.reasoning, MAX_REASON_LENGTH)
    return line("{} ({})", reason, join(places, ", ")) if places else line("{}", reason)


def _failing(report: CiReport, suite: SuiteStanding, known: set[str]) -> Iterator[Cause]:
    """What the gate found without a comparison, that included which is not proven."""
    uncounted = (each.reason for each in suite.uncounted if each.because is not findings.Uncounted.ON_BASE)
    for reason in (*suite.reasons, *uncounted):
        words, is_red = line("{}.", finding(reason)), reason in suite.reasons
        if isinstance(reason, findings.CriterionFailed) and reason.criterion not in known:
            judged = (it for run in reversed(suite.valid) for it in failed_criteria(run))
            newest = next((it for it in judged if it.criterion == reason.criterion), None)
            yield Cause(suite, words, _judged(report, suite, newest), is_red=is_red, criterion=reason.criterion)
        elif isinstance(reason, OF_TRIALS) or (isinstance(reason, findings.BelowMinimum) and not known):
            yield Cause(suite, words, is_red=is_red)


def _commands(report: CiReport, suite: SuiteStanding) -> Iterator[Cause]:
    """Build, tests and coverage that fall short, in the words of the newest session in which they did.

    What failed before any session is blamed on the files that steer nothing: where none of them is changed, it is the
    task of the suite.
    """
    failed = next((reason for reason in suite.reasons if isinstance(reason, findings.CommandsFailed)), None)
    measures = suite.compared.measures if suite.compared else ()
    lower = [it for it in measures if it.measure in OF_COMMANDS and it.verdict is Verdict.REGRESSED]
    if failed is None and not lower:
        return
    problems = (correctness_problem(run, NO_FILES) for run in reversed(suite.valid))
    problem = next(filter(None, problems), None)
    words = problem.sentence.rstrip(".") if problem else "build, tests or coverage fall short"
    often = f" in {failed.trials} of {failed.of} sessions" if failed and failed.of > 1 else ""
    before = f" ({change_words(lower[0])})" if lower and not problem else ""
    early = report.batch.failing_before.get(suite.suite)
    files = report.changes.others if early else ()
    why: Line = ()
    if early and files:
        why = line(
            "It fails on this commit before any session: {}. What breaks it is among {}, which this pull request "
            "changes and which steer nothing.",
            early.rstrip("."),
            listed([key(file) for file in files], 4, "file"),
        )
    is_red = failed is not None or _gates(suite, *lower)
    yield Cause(suite, line(f"{{}}{often}{before}.", words), why, is_red=is_red, files=files)


def _measures(suite: SuiteStanding) -> Iterator[Cause]:
    """Numbers that are worse by themselves: scores, or else what sessions use."""
    compared = suite.compared
    if compared is None or suite.standing not in EXPLAINED or compared.reasons:
        return
    worse = [it for it in compared.measures if it.effect != "better"]
    scores = _firmest(it for it in worse if is_firm(it))
    shown = scores or [it for it in worse if it.verdict is Verdict.REGRESSED]
    words = []
    for delta in shown:
        reasons = f"{MEASURES[delta.measure].label} cannot be compared: {'; '.join(delta.reasons)}"
        chance = ", which may be chance" * (delta.verdict is not Verdict.REGRESSED)
        words.append(reasons if delta.change is None else f"{change_words(delta)}{chance}")
    if shown:
        yield Cause(suite, line("{}.", "; ".join(words)), is_red=_gates(suite, *shown))


def _gates(suite: SuiteStanding, *deltas: Delta) -> bool:
    return any(isinstance(reason, findings.Regression) and reason.delta in deltas for reason in suite.reasons)


# --- what may have done it, and where it can be looked up ------------------------------------------------------------


def _sources(report: CiReport, suite: SuiteStanding) -> Iterator[Line]:
    """Tools that were used before and are not now, or are missed now; then the part of the change that was found.

    Where nobody has searched for it, the files of the pull request that the suite may feel.
    """
    if suite.compared:
        delta = suite.compared.tools
        gone = [it.tool for it in delta.no_longer_used if TOOL.fullmatch(it.tool) or it.tool.startswith("mcp__")]
        missed = [it.tool for it in delta.newly_missed if it.tool not in gone]
        for words, tools in (("It no longer used {}.", gone), ("It did not use {}, although it should have.", missed)):
            called = ((kind, Cell(visible(tool, 80), bold=True)) for kind, tool in map(tool_words, tools))
            if shown := [line(f"{kind} {{}}", tool) for kind, tool in called]:
                yield line(words, listed(shown, MAX_SOURCES, "tool"))
    searched = [attribution_line(it) for it in report.attributions if it.suite == suite.suite]
    yield from searched
    files = [
        Cell(place, url=None if change.is_gone else _address(report, change.path, change.line, change.line))
        for change in steering_of(report, suite)
        for place in changed_files([change])
    ]
    # On a laptop all that changed stands above.
    if files and report.tested and not searched:
        yield line("This pull request changes {}.", listed(files, MAX_SOURCES, "file"))


def steering_of(report: CiReport, suite: SuiteStanding) -> Sequence[SteeringChange]:
    """Files of the pull request that the suite may feel, those of a tool that it no longer used first."""
    delta = suite.compared.tools if suite.compared else None
    named = {tool_words(it.tool)[1] for it in (*delta.no_longer_used, *delta.newly_missed)} if delta else set()
    found = [change for change in report.changes.steering if change.concerns(suite.suite)]
    return sorted(found, key=lambda change: not named & {*change.path.removesuffix(".md").split("/")})


def _address(report: CiReport, path: str, first: int | None, last: int | None) -> str | None:
    """Of lines of a file as it was tested; what leads out of the commit's tree is no file of it."""
    files = report.links.files
    lines = f"#L{first}{f'-L{last}' if last != first else ''}" if first else ""
    is_inside = not {"", ".", ".."} & set(path.split("/"))
    return f"{files}/{quote(path, errors='replace')}{lines}" if files and is_inside else None
