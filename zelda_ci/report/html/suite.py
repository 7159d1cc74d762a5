"""A suite's page: its sessions, its criteria with every verdict, build and tests, tools, and its numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zelda_ci.domain.comparison import CriterionDelta, SuiteComparison, Verdict
from zelda_ci.domain.details import (
    CriterionJudgement,
    CriterionVerdict,
    FulfillmentDetails,
    RuleVerdict,
    ToolRemark,
    ToolUsageDetails,
)
from zelda_ci.domain.outcome import run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.test_run import CommandResult, CorrectnessDetails
from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.anchors import PageAnchors, PageLink, SessionCitations, citations, quoted
from zelda_ci.report.builders.comparison import NOT_THERE, SHOWN_ONCE, measure_table, notes, passes, remarks, verdict
from zelda_ci.report.builders.correctness import FAIL, PASS
from zelda_ci.report.builders.figures import figure_table
from zelda_ci.report.builders.judged import IGNORED
from zelda_ci.report.builders.judged import VERDICTS as CRITERION_VERDICTS
from zelda_ci.report.builders.run import VERDICTS, run_facts
from zelda_ci.report.builders.standings import SuiteStanding
from zelda_ci.report.comment.table import TONES, outcome_cell, standing_words, trial_table
from zelda_ci.report.html.model import CriterionView, FoldedText, JudgedView
from zelda_ci.report.html.texts import plain
from zelda_ci.report.model import Cell, Table, Tone
from zelda_ci.report.text import sentence, visible

MAX_REASONING_LENGTH = 2_000
MAX_PROMPT_LENGTH = 20_000
LAST_OUTPUT = "The last lines; all of it is in {name} of the run {run}."


@dataclass(frozen=True)
class SuiteSession:
    """One session of a suite."""

    run: RunResult
    side: Side
    anchor: str
    title: str

    @property
    def link(self) -> PageLink:
        """To its page."""
        return PageLink(self.title, self.anchor)

    @property
    def verdict(self) -> Cell:
        """How it ended."""
        return VERDICTS[run_outcome(self.run)]

    @property
    def facts(self) -> tuple[Cell, ...]:
        """The numbers that everybody asks for."""
        return run_facts(self.run)

    def judged(self, one: CriterionJudgement, cited: SessionCitations) -> JudgedView:
        """A judge's word on it, with links to what it cites."""
        is_ignored = self.run.config.undecided == "ignore" and one.verdict is CriterionVerdict.UNDECIDED
        return JudgedView(
            session=self.link,
            verdict=IGNORED if is_ignored else CRITERION_VERDICTS[one.verdict],
            reasoning=sentence(one.reasoning, MAX_REASONING_LENGTH),
            votes=", ".join(f"{count} {visible(name)}" for name, count in (one.split or {}).items()),
            places=tuple((cited.link(place), quoted(place)) for place in one.evidence),
        )


@dataclass(frozen=True)
class SuiteSessions:
    """The sessions of one suite on both sides."""

    name: str
    head: tuple[RunResult, ...]
    base: tuple[RunResult, ...]
    standing: SuiteStanding | None
    """What the comment says of it; absent where nothing is known of the suite but the base's sessions."""
    anchors: PageAnchors
    with_texts: bool = True
    """Whether the report has what citations lead to."""

    @property
    def all(self) -> tuple[SuiteSession, ...]:
        """Every session, those of the base first."""
        return (*self.of(Side.BASE), *self.of(Side.HEAD))

    def of(self, side: Side) -> tuple[SuiteSession, ...]:
        """Those of one side."""
        runs = self.base if side is Side.BASE else self.head
        word = side.value if self.base and self.head else "trial"
        return tuple(SuiteSession(run, side, self.anchors.session(run, side), f"{word} {run.trial}") for run in runs)

    @property
    def compared(self) -> SuiteComparison | None:
        """Absent where nothing was compared."""
        return self.standing.compared if self.standing else None

    @property
    def verdict(self) -> Cell:
        """In the comment's words, or how the sessions went where those say nothing."""
        if self.standing is None:
            return outcome_cell(self.head or self.base)
        return Cell(standing_words(self.standing), TONES.get(self.standing.standing, Tone.NEUTRAL))

    @property
    def link(self) -> PageLink:
        """To its page."""
        return PageLink(visible(self.name, 80), self.anchors.suite(self.name))

    @property
    def tags(self) -> tuple[str, ...]:
        """Those of its newest session."""
        return tuple(visible(tag, 40) for tag in (self.head or self.base)[0].config.tags)

    def cited(self, session: SuiteSession) -> SessionCitations:
        """What is cited of a session; without texts, nothing leads anywhere."""
        return citations(session.run, session.anchor) if self.with_texts else SessionCitations(frozenset())


def suite_page(suite: SuiteSessions, sides: PageLink | None) -> dict[str, Any]:
    """Everything about it, for its template."""
    newest = (suite.head or suite.base)[0]
    config, compared = newest.config, suite.compared
    facts = [Cell(visible(config.file), Tone.DIM)]
    if config.description:
        facts.append(Cell(sentence(config.description, 300)))
    return {
        "suite": suite,
        "anchor": suite.anchors.suite(suite.name),
        "name": visible(suite.name, 120),
        "facts": tuple(facts),
        "remarks": tuple(remarks(compared)) if compared else (),
        "tags": suite.tags,
        "prompt": plain(config.prompt, limit=MAX_PROMPT_LENGTH),
        "criteria": tuple(criterion_views(suite)),
        "tables": tuple(_tables(suite)),
        "commands": tuple(_commands(suite)),
        "tools": tuple(_tools(suite)),
        "sides": sides,
    }


def _tables(suite: SuiteSessions) -> Iterator[tuple[str, Table]]:
    if suite.compared:
        shown = frozenset({*SHOWN_ONCE, *suite.compared.reasons})
        yield "Metrics", measure_table(suite.compared.measures, shown)
    yield ("Sessions of the head" if suite.base else "Sessions"), trial_table(suite.head)
    if suite.base:
        yield "Sessions of the base", trial_table(suite.base)
    if suite.compared and suite.compared.figures:
        yield "Counts", figure_table(suite.compared.figures)


# --- criteria ---------------------------------------------------------------------------------------------------


def criterion_views(suite: SuiteSessions) -> Iterator[CriterionView]:
    """Each criterion with what every session's judge said of it, in the suite's order."""
    by_text: dict[str, list[JudgedView]] = {}
    for session in suite.all:
        found, cited = session.run.details(FulfillmentDetails), suite.cited(session)
        for one in found.criteria if found else ():
            by_text.setdefault(one.criterion, []).append(session.judged(one, cited))
    deltas = {delta.criterion: delta for delta in suite.compared.criteria} if suite.compared else {}
    for number, (text, views) in enumerate(by_text.items(), start=1):
        yield _criterion(suite, number, text, tuple(views), deltas.get(text))


def _criterion(
    suite: SuiteSessions, number: int, text: str, views: tuple[JudgedView, ...], delta: CriterionDelta | None
) -> CriterionView:
    tones = [view.verdict.tone for view in views]
    anchor = f"{suite.anchors.suite(suite.name)}-criterion-{number}"
    if delta:
        sides = [cell.text for cell in (passes(delta.baseline), passes(delta.candidate)) if cell != NOT_THERE]
        counts = "; ".join((" → ".join(sides), *(note.text for note in notes(delta, SHOWN_ONCE))))
        is_grave = delta.verdict in {Verdict.REGRESSED, Verdict.CHANGED} or Tone.BAD in tones
        return CriterionView(number, sentence(text, 600), verdict(delta.verdict), counts, views, is_grave, anchor)
    tone = Tone.BAD if Tone.BAD in tones else Tone.WARN if Tone.WARN in tones else Tone.GOOD
    summary = views[0].verdict if len(views) == 1 else Cell(f"{tones.count(Tone.GOOD)} of {len(views)}", tone)
    return CriterionView(number, sentence(text, 600), summary, "", views, tone is Tone.BAD, anchor)


# --- commands and tools -----------------------------------------------------------------------------------------


def _commands(suite: SuiteSessions) -> Iterator[tuple[str, Cell, FoldedText, str]]:
    """Of each session what build and tests printed at last; those that failed first."""
    outputs = []
    for session in suite.all:
        found = session.run.details(CorrectnessDetails)
        steps = {"setup": session.run.setup, "build": found and found.build, "test": found and found.test}
        for step, command in steps.items():
            if command and (command.output.strip() or command.exit_code != 0):
                outputs.append((command.exit_code == 0, _output(session, step, command)))
    return (output for _, output in sorted(outputs, key=lambda found: found[0]))


def _output(session: SuiteSession, step: str, command: CommandResult) -> tuple[str, Cell, FoldedText, str]:
    ending = PASS if command.exit_code == 0 else Cell("timed out", Tone.BAD) if command.timed_out else FAIL
    where = LAST_OUTPUT.format(name=f"{step}.log", run=visible(session.run.run_id))
    title = f"{session.title}, {step}: {sentence(command.command, 160)}"
    return title, ending, plain(command.output), where


# What is said of a tool, as it stands in the details; the worst first.
KINDS: Mapping[str, Cell] = {
    "missed": Cell("missed", Tone.BAD),
    "misused": Cell("misused", Tone.BAD),
    "instructions_ignored": Cell("instructions ignored", Tone.WARN),
    "used_well": Cell("used well", Tone.GOOD),
}
RULES: Mapping[RuleVerdict, Cell] = {
    RuleVerdict.BROKEN: Cell("broken", Tone.BAD),
    RuleVerdict.FOLLOWED: Cell("followed", Tone.GOOD),
}


def _tools(suite: SuiteSessions) -> Iterator[tuple[str, Cell, tuple[tuple[PageLink, str], ...]]]:
    """Tools and rules with what was said of them, and in which sessions."""
    found: dict[tuple[int, str, Cell], list[tuple[PageLink, str]]] = {}
    for session in suite.all:
        details = session.run.details(ToolUsageDetails)
        for rank, name, kind, reasoning in _said(details):
            said = session.link, sentence(reasoning, MAX_REASONING_LENGTH)
            found.setdefault((rank, name, kind), []).append(said)
    for (_, name, kind), sessions in sorted(found.items(), key=lambda item: (item[0][0], item[0][1])):
        yield name, kind, tuple(sessions)


def _said(details: ToolUsageDetails | None) -> Iterator[tuple[int, str, Cell, str]]:
    if details is None:
        return
    for rank, (name, kind) in enumerate(KINDS.items()):
        remarks_of: Sequence[ToolRemark] = getattr(details, name)
        yield from ((rank, visible(remark.tool, 80), kind, remark.reasoning) for remark in remarks_of)
    for rule in details.rules:
        if kind_of := RULES.get(rule.verdict):
            rank = 0 if kind_of.tone is Tone.BAD else len(KINDS)
            yield rank, visible(rule.rule, 120), kind_of, rule.reasoning
