"""A suite's page: its sessions, its criteria with every verdict, build and tests, tools, and its numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.details import (
    CriterionJudgement,
    CriterionVerdict,
    FulfillmentDetails,
    ToolUsageDetails,
)
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.test_run import CorrectnessDetails
from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.anchors import PageAnchors, PageLink, SessionCitations, citations
from zelda_ci.report.builders.comparison import (
    NOT_THERE,
    SHOWN_ONCE,
    figure_table,
    measure_table,
    notes,
    passes,
    remarks,
    verdict,
)
from zelda_ci.report.builders.correctness import FAIL, PASS
from zelda_ci.report.builders.judged import IGNORED
from zelda_ci.report.builders.judged import VERDICTS as CRITERION_VERDICTS
from zelda_ci.report.builders.run import run_facts
from zelda_ci.report.builders.standings import SuiteStanding
from zelda_ci.report.comment.table import TONES, outcome_cell, standing_words, trial_table
from zelda_ci.report.html.texts import FoldedText, plain
from zelda_ci.report.model import Cell, Table, Tone
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.words import OUTCOMES

MAX_PROMPT_LENGTH = 20_000


@dataclass(frozen=True, eq=False)
class SuiteSession:
    """One session of a suite."""

    run: RunResult
    side: Side
    anchor: str
    title: str
    with_texts: bool = True
    """Whether the report has what citations lead to."""

    @property
    def link(self) -> PageLink:
        """To its page."""
        return PageLink(self.title, self.anchor)

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        return run_outcome(self.run)

    @property
    def verdict(self) -> Cell:
        """The same in a word."""
        return OUTCOMES[self.outcome].verdict

    @property
    def facts(self) -> tuple[Cell, ...]:
        """The numbers that everybody asks for."""
        return run_facts(self.run)

    @cached_property
    def cited(self) -> SessionCitations:
        """What is cited of it; without texts, nothing leads anywhere."""
        return citations(self.run, self.anchor) if self.with_texts else SessionCitations()

    def verdict_of(self, one: CriterionJudgement) -> Cell:
        """A judge's verdict on a criterion, as it counts here."""
        is_ignored = self.run.config.undecided == "ignore" and one.verdict is CriterionVerdict.UNDECIDED
        return IGNORED if is_ignored else CRITERION_VERDICTS[one.verdict]


class SuiteSessions:
    """The sessions of one suite on both sides; without a standing, only the base's are known."""

    def __init__(
        self,
        name: str,
        head: Sequence[RunResult],
        base: Sequence[RunResult],
        standing: SuiteStanding | None,
        anchors: PageAnchors,
        *,
        with_texts: bool = True,
    ) -> None:
        self.name, self.standing, self.with_texts = name, standing, with_texts
        self.compared = standing.compared if standing else None
        self.anchor, self.sides = anchors.suite(name), anchors.sides(name)
        self.link = PageLink(visible(name, 80), self.anchor)
        self.base, self.head = (
            [
                SuiteSession(run, side, anchors.session(run, side), f"{word} {run.trial}", with_texts)
                for run in runs
                for word in [side.value if head and base else "trial"]
            ]
            for side, runs in ((Side.BASE, base), (Side.HEAD, head))
        )
        self.all = [*self.base, *self.head]
        # Those that speak for the suite: of one that only the base has, the base's.
        self.runs = tuple(head or base)
        self.config = self.runs[0].config
        self.tags = [visible(tag, 40) for tag in self.config.tags]

    @cached_property
    def pair(self) -> tuple[SuiteSession, SuiteSession, str] | None:
        """The two that tell most, and why: one of the base that did not fail, and one of the head that did.

        Nothing where a side has none, or without the texts of sessions.
        """
        base, head = ([one for one in side if one.outcome < Outcome.BROKEN] for side in (self.base, self.head))
        if not base or not head or not self.with_texts:
            return None
        best, worst = min(base, key=lambda one: one.outcome), max(head, key=lambda one: one.outcome)
        why = "The first session of the head with the worst outcome, and the first of the base with the best."
        if worst.outcome <= best.outcome:
            best, worst, why = base[0], head[0], "The first session of each side."
        return best, worst, why if len(base) + len(head) > 2 else ""

    @property
    def verdict(self) -> Cell:
        """In the comment's words, or how the sessions went where those say nothing."""
        if self.standing is None:
            return outcome_cell(self.runs)
        return Cell(standing_words(self.standing), TONES.get(self.standing.standing, Tone.NEUTRAL))


def suite_page(suite: SuiteSessions) -> dict[str, Any]:
    """Everything about it, for its template."""
    config, compared = suite.config, suite.compared
    return {
        "suite": suite,
        "facts": (
            Cell(config.file, Tone.DIM),
            *([Cell(sentence(config.description, 300))] if config.description else ()),
        ),
        "remarks": tuple(remarks(compared)) if compared else (),
        "prompt": plain(config.prompt, limit=MAX_PROMPT_LENGTH),
        "criteria": tuple(criterion_views(suite)),
        "tables": tuple(_tables(suite)),
        "commands": sorted(_commands(suite), key=lambda command: command[1] == PASS),
        "tools": tuple(_tools(suite)),
    }


def _tables(suite: SuiteSessions) -> Iterator[tuple[str, Table]]:
    if suite.compared:
        shown = frozenset({*SHOWN_ONCE, *suite.compared.reasons})
        yield "Metrics", measure_table(suite.compared.measures, shown)
    word = "Sessions of the head" if suite.base else "Sessions"
    yield word, trial_table(tuple(session.run for session in suite.head))
    yield "Sessions of the base", trial_table(tuple(session.run for session in suite.base))
    if suite.compared:
        yield "Counts", figure_table(suite.compared.figures)


class CriterionView(NamedTuple):
    """A criterion and every session's verdict on it."""

    text: str
    verdict: Cell
    numbers: str
    """How often it passed, on both sides."""
    judged: list[tuple[SuiteSession, CriterionJudgement]]
    is_grave: bool


def criterion_views(suite: SuiteSessions) -> Iterator[CriterionView]:
    """Each criterion with what every session's judge said of it, in the suite's order."""
    by_text: dict[str, list[tuple[SuiteSession, CriterionJudgement]]] = {}
    for session in suite.all:
        found = session.run.details(FulfillmentDetails)
        for one in found.criteria if found else ():
            by_text.setdefault(one.criterion, []).append((session, one))
    deltas = {delta.criterion: delta for delta in suite.compared.criteria} if suite.compared else {}
    for text, judged in by_text.items():
        cells = [session.verdict_of(one) for session, one in judged]
        tones = [cell.tone for cell in cells]
        if delta := deltas.get(text):
            sides = [cell.text for cell in (passes(delta.baseline), passes(delta.candidate)) if cell != NOT_THERE]
            counts = "; ".join((" → ".join(sides), *(note.text for note in notes(delta, SHOWN_ONCE))))
            is_grave = delta.verdict in {Verdict.REGRESSED, Verdict.CHANGED} or Tone.BAD in tones
            yield CriterionView(text, verdict(delta.verdict), counts, judged, is_grave)
        else:
            tone = Tone.BAD if Tone.BAD in tones else Tone.WARN if Tone.WARN in tones else Tone.GOOD
            summary = Cell(f"{tones.count(Tone.GOOD)} of {len(cells)}", tone) if len(cells) > 1 else cells[0]
            yield CriterionView(text, summary, "", judged, tone is Tone.BAD)


def _commands(suite: SuiteSessions) -> Iterator[tuple[str, Cell, FoldedText, str]]:
    """Of each session what build and tests printed at last."""
    for session in suite.all:
        found = session.run.details(CorrectnessDetails)
        steps = {"setup": session.run.setup, "build": found and found.build, "test": found and found.test}
        for step, command in steps.items():
            if command and (command.output.strip() or command.exit_code != 0):
                ending = Cell("timed out", Tone.BAD) if command.timed_out else PASS if command.exit_code == 0 else FAIL
                where = f"The last lines; all of it is in {step}.log of the run {session.run.run_id}."
                title = f"{session.title}, {step}: {sentence(command.command, 160)}"
                yield title, ending, plain(command.output), where


# What is said of a tool or a rule, as it stands in the details; the worst first.
KINDS = {
    "missed": Cell("missed", Tone.BAD),
    "broken": Cell("broken", Tone.BAD),
    "misused": Cell("misused", Tone.BAD),
    "instructions_ignored": Cell("instructions ignored", Tone.WARN),
    "used_well": Cell("used well", Tone.GOOD),
    "followed": Cell("followed", Tone.GOOD),
}


def _tools(suite: SuiteSessions) -> Iterator[tuple[str, Cell, list[tuple[PageLink, str]]]]:
    """Tools and rules with what was said of them, and in which sessions."""
    found: dict[tuple[int, str], list[tuple[PageLink, str]]] = {}
    for session in suite.all:
        if details := session.run.details(ToolUsageDetails):
            said = [(kind, it.tool, it.reasoning) for kind in KINDS for it in getattr(details, kind, ())]
            said += [(rule.verdict.value, rule.rule, rule.reasoning) for rule in details.rules]
            for kind, name, reasoning in said:
                if kind in KINDS:
                    key = [*KINDS].index(kind), visible(name, 120)
                    found.setdefault(key, []).append((session.link, sentence(reasoning, 2_000)))
    for (rank, name), sessions in sorted(found.items()):
        yield name, [*KINDS.values()][rank], sessions
