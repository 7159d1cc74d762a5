"""A suite with its sessions: its criteria with every verdict, build and tests, tools, and its numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.details import (
    CorrectnessDetails,
    CriterionJudgement,
    CriterionVerdict,
    FulfillmentDetails,
    ToolUsageDetails,
)
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.anchors import PageAnchors, SessionCitations
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
from zelda_ci.report.builders.standings import SuiteStanding
from zelda_ci.report.comment.table import TONES, outcome_cell, standing_words, trial_table
from zelda_ci.report.html.texts import Span, plain
from zelda_ci.report.model import Cell, Table, Tone
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.words import OUTCOMES

WORST_FIRST = (Tone.BAD, Tone.WARN, Tone.NEUTRAL, Tone.DIM, Tone.GOOD)


@dataclass(frozen=True, eq=False)
class SuiteSession:
    """One session of a suite."""

    run: RunResult
    side: Side
    anchor: str
    text: str
    """What links to its page say."""
    cited: SessionCitations

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        return run_outcome(self.run)

    @property
    def verdict(self) -> Cell:
        """The same in a word."""
        return OUTCOMES[self.outcome].verdict

    @property
    def criteria(self) -> Sequence[CriterionJudgement]:
        """What was judged of it, in the suite's order."""
        details = self.run.details(FulfillmentDetails)
        return details.criteria if details else ()

    @property
    def worst_criteria(self) -> Sequence[CriterionJudgement]:
        """The same, what failed first."""
        return sorted(self.criteria, key=lambda one: WORST_FIRST.index(self.verdict_of(one).tone))

    def verdict_of(self, one: CriterionJudgement) -> Cell:
        """A judge's verdict on a criterion, as it counts here."""
        is_ignored = self.run.config.undecided == "ignore" and one.verdict is CriterionVerdict.UNDECIDED
        return IGNORED if is_ignored else CRITERION_VERDICTS[one.verdict]


class CriterionSummary(NamedTuple):
    """A criterion and every session's verdict on it."""

    text: str
    verdict: Cell
    numbers: str
    """How often it passed, on both sides."""
    judged: Sequence[tuple[SuiteSession, CriterionJudgement]]
    is_grave: bool


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
        self.anchor, self.sides = f"suite-{anchors.suites[name]}", f"sides-{anchors.suites[name]}"
        self.text = visible(name, 80)

        def sessions(side: Side, runs: Sequence[RunResult]) -> Iterator[SuiteSession]:
            word = side.value if head and base else "trial"
            for run in runs:
                anchor = anchors.sessions[side, run.run_id]
                # Without texts, nothing leads anywhere.
                cited = SessionCitations(run if with_texts else None, anchor)
                yield SuiteSession(run, side, anchor, f"{word} {run.trial}", cited)

        self.base, self.head = [*sessions(Side.BASE, base)], [*sessions(Side.HEAD, head)]
        self.all = [*self.base, *self.head]
        # Those that speak for the suite: of one that only the base has, the base's.
        self.runs = tuple(head or base)
        self.config = self.runs[0].config
        self.tags = [visible(tag, 40) for tag in self.config.tags]
        self.remarks = [*remarks(self.compared)] if self.compared else []

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

    @property
    def criteria(self) -> Iterator[CriterionSummary]:
        """Each criterion with what every session's judge said of it, in the suite's order."""
        by_text: dict[str, list[tuple[SuiteSession, CriterionJudgement]]] = {}
        for session in self.all:
            for one in session.criteria:
                by_text.setdefault(one.criterion, []).append((session, one))
        deltas = {delta.criterion: delta for delta in self.compared.criteria} if self.compared else {}
        for text, judged in by_text.items():
            cells = [session.verdict_of(one) for session, one in judged]
            tones = [cell.tone for cell in cells]
            if delta := deltas.get(text):
                sides = [cell.text for cell in (passes(delta.baseline), passes(delta.candidate)) if cell != NOT_THERE]
                counts = "; ".join((" → ".join(sides), *(note.text for note in notes(delta, SHOWN_ONCE))))
                is_grave = delta.verdict in {Verdict.REGRESSED, Verdict.CHANGED} or Tone.BAD in tones
                yield CriterionSummary(text, verdict(delta.verdict), counts, judged, is_grave)
            else:
                tone = next((tone for tone in (Tone.BAD, Tone.WARN) if tone in tones), Tone.GOOD)
                summary = Cell(f"{tones.count(Tone.GOOD)} of {len(cells)}", tone) if len(cells) > 1 else cells[0]
                yield CriterionSummary(text, summary, "", judged, tone is Tone.BAD)

    @property
    def commands(self) -> list[tuple[str, Cell, list[Span], str]]:
        """What build and tests of each session printed at last, what failed first: title, ending, lines, and more."""
        found = []
        for session in self.all:
            details = session.run.details(CorrectnessDetails)
            steps = {"setup": session.run.setup, "build": details and details.build, "test": details and details.test}
            for step, command in steps.items():
                if command and (command.output.strip() or command.exit_code != 0):
                    ending = PASS if command.exit_code == 0 else FAIL
                    ending = Cell("timed out", Tone.BAD) if command.timed_out else ending
                    where = f"The last lines; all of it is in {step}.log of the run {session.run.run_id}."
                    title = f"{session.text}, {step}: {sentence(command.command, 160)}"
                    found.append((title, ending, plain(command.output), where))
        return sorted(found, key=lambda command: command[1] == PASS)

    @property
    def tools(self) -> Iterator[tuple[str, Cell, list[tuple[SuiteSession, str]]]]:
        """Tools and rules with what was said of them, and in which sessions; the worst first."""
        found: dict[tuple[int, str], list[tuple[SuiteSession, str]]] = {}
        for session in self.all:
            if details := session.run.details(ToolUsageDetails):
                said = [(kind, it.tool, it.reasoning) for kind in KINDS for it in getattr(details, kind, ())]
                said += [(rule.verdict.value, rule.rule, rule.reasoning) for rule in details.rules]
                for kind, name, reasoning in said:
                    if kind in KINDS:
                        key = [*KINDS].index(kind), visible(name, 120)
                        found.setdefault(key, []).append((session, reasoning))
        return ((name, [*KINDS.values()][rank], sessions) for (rank, name), sessions in sorted(found.items()))

    @property
    def tables(self) -> Iterator[tuple[str, Table]]:
        """Its numbers, under captions."""
        if self.compared:
            yield "Metrics", measure_table(self.compared.measures, frozenset({*SHOWN_ONCE, *self.compared.reasons}))
        caption = "Sessions of the head" if self.base else "Sessions"
        yield caption, trial_table(tuple(session.run for session in self.head))
        yield "Sessions of the base", trial_table(tuple(session.run for session in self.base))
        if self.compared:
            yield "Counts", figure_table(self.compared.figures)


# What is said of a tool or a rule, as it stands in the details; the worst first.
KINDS = {
    "missed": Cell("missed", Tone.BAD),
    "broken": Cell("broken", Tone.BAD),
    "misused": Cell("misused", Tone.BAD),
    "instructions_ignored": Cell("instructions ignored", Tone.WARN),
    "used_well": Cell("used well", Tone.GOOD),
    "followed": Cell("followed", Tone.GOOD),
}
