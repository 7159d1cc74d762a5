"""The HTML report: what its pages show, and how they are written session by session."""

import base64
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from zelda_ci import __version__
from zelda_ci.domain.comparison import MeasureDelta, Verdict
from zelda_ci.domain.details import CorrectnessDetails, CriterionJudgement, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.measures import MEASURES, Measure, values
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionImage, SessionTranscript, media_type_of
from zelda_ci.domain.trials import Side
from zelda_ci.files.atomic import write_whole
from zelda_ci.imports import one_at_a_time
from zelda_ci.report.builders import comparison as words
from zelda_ci.report.builders.anchors import PageAnchors, SessionCitations, anchors_of, base_runs
from zelda_ci.report.builders.routing import routing_tables
from zelda_ci.report.builders.run import FAIL, PASS, criterion_verdict, hidden_findings, run_problem, run_sections
from zelda_ci.report.builders.standings import ORDER, SuiteStanding, standings
from zelda_ci.report.builders.steering import attribution_section
from zelda_ci.report.builders.summary import tested_name
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.causes import EXPLAINED, Cause, causes
from zelda_ci.report.comment.headline import headline, lead
from zelda_ci.report.comment.table import SHOWN, TONES, means, outcome_cell, standing_words, trial_table
from zelda_ci.report.comment.view import basis
from zelda_ci.report.html.conversation import MAX_SHOWN_LENGTH, ShownConversation, Span, patched_files, side_rows, spans
from zelda_ci.report.model import NO_FILES, OUTCOMES, Cell, Section, Table, Tone, plain
from zelda_ci.report.text import sentence, visible, written

WORST_FIRST = (Tone.BAD, Tone.WARN, Tone.NEUTRAL, Tone.DIM, Tone.GOOD)
MAX_CHOICES = 40


@dataclass(frozen=True, eq=False)
class SuiteSession:
    run: RunResult
    side: Side
    anchor: str
    text: str
    """What links to its page say."""
    cited: SessionCitations

    @property
    def outcome(self) -> Outcome:
        return run_outcome(self.run)

    @property
    def verdict(self) -> Cell:
        """The outcome in a word."""
        return OUTCOMES[self.outcome].verdict

    @property
    def criteria(self) -> Sequence[CriterionJudgement]:
        """What was judged of it, in the suite's order."""
        details = self.run.details(FulfillmentDetails)
        return details.criteria if details else ()


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
        self.remarks = [*words.remarks(self.compared)] if self.compared else []

    @cached_property
    def pair(self) -> tuple[SuiteSession, SuiteSession, str] | None:
        """The two that tell most, and why: a base that passed, a head that failed; nothing without their texts."""
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
    def criteria(self) -> Iterator[tuple[str, Cell, str, list[tuple[SuiteSession, CriterionJudgement]], bool]]:
        """Each criterion: its text, its verdict, how often it passed, what each judge said, and whether it is grave."""
        by_text: dict[str, list[tuple[SuiteSession, CriterionJudgement]]] = {}
        for session in self.all:
            for one in session.criteria:
                by_text.setdefault(one.criterion, []).append((session, one))
        deltas = {delta.criterion: delta for delta in self.compared.criteria} if self.compared else {}
        for text, judged in by_text.items():
            cells = [criterion_verdict(session.run, one) for session, one in judged]
            tones = [cell.tone for cell in cells]
            if delta := deltas.get(text):
                both = map(words.passes, (delta.baseline, delta.candidate))
                sides = [cell.text for cell in both if cell != words.NOT_THERE]
                counts = "; ".join((" → ".join(sides), *(note.text for note in words.notes(delta, words.SHOWN_ONCE))))
                is_grave = delta.verdict in {Verdict.REGRESSED, Verdict.CHANGED} or Tone.BAD in tones
                yield text, words.verdict(delta.verdict), counts, judged, is_grave
            else:
                tone = next((tone for tone in (Tone.BAD, Tone.WARN) if tone in tones), Tone.GOOD)
                summary = Cell(f"{tones.count(Tone.GOOD)} of {len(cells)}", tone) if len(cells) > 1 else cells[0]
                yield text, summary, "", judged, tone is Tone.BAD

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
                    found.append((title, ending, spans(command.output), where))
        return sorted(found, key=lambda command: command[1] == PASS)

    @property
    def tools(self) -> Iterator[tuple[str, Cell, list[tuple[SuiteSession, str]]]]:
        """Tools and rules with what was said of them, and in which sessions; the worst first."""
        # By how they stand in the details.
        kinds = dict.fromkeys(("missed", "broken", "misused"), Tone.BAD) | {"instructions_ignored": Tone.WARN}
        kinds |= dict.fromkeys(("used_well", "followed"), Tone.GOOD)
        found: dict[tuple[int, str], list[tuple[SuiteSession, str]]] = {}
        for session in self.all:
            if details := session.run.details(ToolUsageDetails):
                said = [(kind, it.tool, it.reasoning) for kind in kinds for it in getattr(details, kind, ())]
                said += [(rule.verdict.value, rule.rule, rule.reasoning) for rule in details.rules]
                for kind, name, reasoning in said:
                    if kind in kinds:
                        found.setdefault(([*kinds].index(kind), visible(name, 120)), []).append((session, reasoning))
        cells = [Cell(kind.replace("_", " "), tone) for kind, tone in kinds.items()]
        return ((name, cells[rank], sessions) for (rank, name), sessions in sorted(found.items()))

    @property
    def tables(self) -> Iterator[tuple[str, Table]]:
        if self.compared:
            reasons = frozenset({*words.SHOWN_ONCE, *self.compared.reasons})
            yield "Metrics", words.measure_table(self.compared.measures, reasons)
        yield "Sessions of the head" if self.base else "Sessions", trial_table([each.run for each in self.head])
        yield "Sessions of the base", trial_table([each.run for each in self.base])
        if self.compared:
            yield "Counts", words.figure_table(self.compared.figures)


def sessions_of(report: CiReport, *, with_texts: bool) -> list[SuiteSessions]:
    """Every suite of a report with its sessions, what a reader has to know of first."""
    anchors, known = anchors_of(report), {each.suite: each for each in standings(report)}
    sides: dict[str, tuple[list[RunResult], list[RunResult]]] = {}
    for place, runs in enumerate((report.batch.runs, base_runs(report))):
        # Stored runs come with the newest first.
        for run in sorted(runs, key=lambda run: run.trial):
            sides.setdefault(run.suite, ([], []))[place].append(run)

    def rank(name: str) -> tuple[int, datetime, str]:
        standing = known.get(name)
        place = ORDER.index(standing.standing) + len(ORDER) * (not standing.is_bad) if standing else 2 * len(ORDER)
        return place, min(run.started_at for runs in sides[name] for run in runs), name

    return [
        SuiteSessions(name, *sides[name], known.get(name), anchors, with_texts=with_texts)
        for name in sorted(sides, key=rank)
    ]


# --- the overview ------------------------------------------------------------------------------------------------


def overview_page(report: CiReport, suites: Sequence[SuiteSessions]) -> dict[str, Any]:
    """The first page of a report, for its template."""
    known_measures = {it for suite in suites for session in suite.all for it in values(session.run.evaluations)}
    columns = [measure for measure in SHOWN if measure in known_measures]
    comparison, known = report.comparison, standings(report)
    # A check that is green over something worse is not all well.
    doubtful = any(suite.is_bad or suite.standing in EXPLAINED or suite.accepted for suite in known)
    tone = Tone.BAD if report.is_red else Tone.WARN if doubtful else Tone.GOOD
    known_commit = f"commit {report.tested[:7]}" if report.tested else ""
    tested = next((tested_name(run.source) for run in report.batch.runs if run.source), known_commit)
    subject = []
    if tested:
        subject.append(f"Tested: {tested}, {report.batch.started_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC.")
    if changed := ", ".join(words.changed_files(report.changes.steering)):
        subject.append(f"Changed files that steer Claude Code: {changed}.")
    return {
        # Tells apart the reports of several projects.
        "title": sentence(f"{report.subject}: {report.title}" if report.subject else report.title, 100),
        "state": tested,
        "verdict": replace(OUTCOMES[report.outcome].verdict, tone=tone),
        "headline": Cell(headline(report, known), tone),
        "lead": (*subject, *map(plain, (*lead(report, known), *basis(report)))),
        "remarks": (*map(sentence, report.notes), *words.uncounted_sentences(report.gate)),
        "worst": list(islice(_worst(report, known, suites), 12)),
        "columns": [MEASURES[measure].column for measure in columns],
        "lines": [(suite, [_number(suite, measure) for measure in columns]) for suite in suites],
        "verdicts": Counter(suite.verdict.text for suite in suites).most_common(MAX_CHOICES),
        "tags": Counter(tag for suite in suites for tag in suite.tags).most_common(MAX_CHOICES),
        "overall": words.measure_table(comparison.overall, frozenset()) if comparison and len(suites) > 1 else None,
        "sections": (Section("How sure this is", tuple(words.certainty(comparison))),) if comparison else (),
        "attributions": [*map(attribution_section, report.attributions)],
        "routing": [*routing_tables(report.batch.runs, base_runs(report))],
        "has_base": any(suite.base for suite in suites),
        "made": f"zelda {__version__}, {report.batch.finished_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    }


def _worst(
    report: CiReport, known: Sequence[SuiteStanding], suites: Sequence[SuiteSessions]
) -> Iterator[tuple[Cell, str, str]]:
    """What to look at first, with anchor and place: causes as in the comment, failed sessions, what passes hide."""
    by_name = {suite.name: suite for suite in suites}
    told = [cause for of_suite in causes(report, known) for cause in of_suite]
    for cause in told:
        cell = Cell(f"{visible(cause.suite.suite, 80)}: {cause.sentence}", Tone.BAD if cause.is_red else Tone.WARN)
        yield cell, *_place(cause, by_name.get(cause.suite.suite))
    hiding = []
    for suite in suites:
        bad = [session for session in suite.head if session.outcome > Outcome.PASSED]
        if bad and suite.name not in {cause.suite.suite for cause in told}:
            worst = OUTCOMES[max(session.outcome for session in bad)]
            all_of = f"{len(bad)} of {len(suite.head)} sessions {worst.several or worst.word}"
            counted = all_of if len(suite.head) > 1 else worst.word
            yield Cell(f"{suite.text}: {counted}", Tone.WARN), bad[0].anchor, bad[0].text
        elif suite.head and not bad and (found := hidden_findings(suite.runs)):
            hiding.append((Cell(f"{suite.text}: passes, but {found}", Tone.WARN), suite.anchor, suite.text))
    yield from hiding


def _place(cause: Cause, suite: SuiteSessions | None) -> tuple[str, str]:
    """Where a cause is seen: both sides of what is worse than before, else the first session that failed."""
    if suite is None:
        return "", ""
    if cause.suite.compared and not cause.suite.is_new and suite.pair:
        return suite.sides, "base and head"
    sessions = suite.head or suite.base
    failed = [each for each in sessions if any(one.criterion == cause.criterion for one in failed_criteria(each.run))]
    failed = failed or [each for each in sessions if each.outcome > Outcome.PASSED]
    place = failed[0] if failed else suite
    return place.anchor, place.text


def _number(suite: SuiteSessions, measure: Measure) -> tuple[str, Cell | None, list[Any], str] | None:
    """The mean of a measure (without a head the base's), its change, a dot per session on a scale to 100, a title."""
    mean = means(run for run in suite.runs if run.status.is_valid).get(measure)
    if mean is None:
        return None
    spec = MEASURES[measure]
    known = [(one, values(one.run.evaluations).get(measure)) for one in (*suite.head, *suite.base)]
    # Scores on their own scale, everything else from nothing to the largest.
    top = 100.0 if spec.limit else max((value for _, value in known if value is not None), default=0.0) or 1.0
    dots = [
        (100 * min(max(value / top, 0.0), 1.0), one.side, f"{one.text}: {written(spec.unit.write, value)}")
        for one, value in known
        if value is not None
    ]
    delta = next((it for it in suite.compared.measures if it.measure is measure), None) if suite.compared else None
    return written(spec.unit.brief, mean), _change(delta) if delta else None, dots, f"{suite.text}, {spec.heading}"


def _change(delta: MeasureDelta) -> Cell | None:
    """Points of a score, per cent of what sessions use; nothing where nothing is left after rounding."""
    unit, change, minus = MEASURES[delta.measure].unit, delta.change or 0.0, "\u2212"
    is_share = unit.brief_relative and delta.change_percent is not None
    size = f"{abs(delta.change_percent or 0.0):,.0f}%" if is_share else written(unit.brief, abs(change))
    if not change or not re.search("[1-9]", size):
        return None
    return Cell(f"{'+' if change > 0 else minus}{size}", words.effect_tone(delta))


# --- two sides ---------------------------------------------------------------------------------------------------

MAX_TURNS = 400


def sides_page(
    suite: SuiteSessions, base_talk: SessionTranscript | None, head_talk: SessionTranscript | None
) -> dict[str, Any]:
    """The page of the pair, for its template; turns beyond the first few hundred are in the sessions."""
    if suite.pair is None or base_talk is None or head_talk is None:
        summary = "The two sides cannot be shown beside each other: a transcript is not stored here."
        return {"rows": [], "first": None, "summary": summary}
    base, head, why = suite.pair
    rows = list(side_rows(base_talk.turns[:MAX_TURNS], head_talk.turns[:MAX_TURNS]))
    parted = [place for place, row in enumerate(rows) if row.kind in {"differs", "only"}]
    # At another step, or where there is none at other text.
    first = next(iter(parted or [place for place, row in enumerate(rows) if row.kind == "alike"]), None)
    summary = f"{len(rows) - len(parted)} of {format_count(len(rows), 'step')} alike"
    if not parted:
        summary = f"Both took the same steps{' and differ in what they wrote' * (first is not None)}"
    if max(len(base_talk.turns), len(head_talk.turns)) > MAX_TURNS:
        summary += f"; the first {MAX_TURNS} turns of each are shown"
    return {
        "base_talk": ShownConversation(base_talk, base.anchor, SessionCitations(), MAX_SHOWN_LENGTH),
        "head_talk": ShownConversation(head_talk, head.anchor, SessionCitations(), MAX_SHOWN_LENGTH),
        "rows": rows,
        "first": first,
        "summary": f"{summary}. {why}".strip(),
    }


# --- the file ----------------------------------------------------------------------------------------------------

MAX_PATCH_LENGTH = 400_000
MAX_IMAGE_BYTES = 1_000_000
MAX_IMAGES_BYTES = 4_000_000
# Of a text, in a session that has more than its share.
MAX_TEXT_LENGTH = 4_000


class SessionFiles(Protocol):
    """What was kept of sessions; whatever is gone is empty, and the size is that of the transcript, unread."""

    def size(self, run_id: str) -> int: ...

    def transcript(self, run_id: str) -> SessionTranscript | None: ...

    def patch(self, run_id: str) -> bytes: ...

    def image(self, run_id: str, image: SessionImage) -> bytes | None: ...


@dataclass(frozen=True)
class PageOptions:
    """How much a report shows."""

    include_transcripts: bool = True
    """Whether it holds what sessions said, did and changed."""
    all_transcripts: bool = False
    """Also of sessions that passed, beyond those that stand side by side."""
    max_bytes: int = 20_000_000
    """Of all transcripts together; where they are larger, long texts are cut in the middle."""


def write_report(target: Path, report: CiReport, files: SessionFiles, options: PageOptions | None = None) -> None:
    """Write a report as one HTML file into a folder that exists, whole or not at all; then it raises `StorageError`."""
    page = _PageParts(report, files, options or PageOptions())
    with one_at_a_time("zelda_ci.report.html.rendering"):
        from zelda_ci.report.html.rendering import environment  # noqa: PLC0415 - jinja2 takes its time
    template, overview = environment().get_template("report.html.j2"), overview_page(report, page.suites)
    stream = template.stream(overview, page=page, suites=page.suites)
    stream.enable_buffering(100)
    write_whole(target, (chunk.encode("utf-8", "backslashreplace") for chunk in stream), durable=False)


class _PageParts:
    """What the page's template asks for as it comes to it."""

    def __init__(self, report: CiReport, files: SessionFiles, options: PageOptions) -> None:
        self._files, self._options = files, options
        self.suites = sessions_of(report, with_texts=options.include_transcripts)
        self._sessions = [session for suite in self.suites for session in suite.all]
        compared = {session for suite in self.suites for session in (suite.pair or ())[:2]}
        passed = {it for it in self._sessions if it.outcome is Outcome.PASSED and it not in compared}
        self._passed = set() if options.all_transcripts else passed
        shown = [it for it in self._sessions if options.include_transcripts and it not in self._passed]
        self._shown = {it: files.size(it.run.run_id) for it in shown}
        share = options.max_bytes / max(len(shown), 1)
        is_long = sum(self._shown.values()) > options.max_bytes
        self._cut = {it for it, size in self._shown.items() if is_long and size > share}
        self._image_room = MAX_IMAGES_BYTES

    def left_out(self) -> Iterator[str]:
        """In sentences, each with where the whole is."""
        if not self._options.include_transcripts:
            yield "This report was made without transcripts and patches."
        if self._cut:
            yield (
                f"The transcripts of {format_count(len(self._cut), 'session')} are too long to be shown whole: "
                "zelda show RUN --transcript prints a whole one."
            )
        if self._passed and self._options.include_transcripts:
            count = f"{format_count(len(self._passed), 'session')} of {len(self._sessions)}"
            yield f"The transcripts of {count} are left out, since they passed: zelda report --all-transcripts has all."

    def sides(self, suite: SuiteSessions) -> dict[str, Any]:
        talks = [self._files.transcript(session.run.run_id) for session in (suite.pair or ())[:2]]
        return sides_page(suite, *talks)

    def session(self, session: SuiteSession) -> dict[str, Any]:
        """What is shown of a session, and what is not."""
        run, talk, patch, left_out = session.run, None, b"", ""
        if session in self._shown:
            transcript, patch = self._files.transcript(run.run_id), self._files.patch(run.run_id)
            limit = MAX_TEXT_LENGTH if session in self._cut else None
            cut = f"Texts of more than {MAX_TEXT_LENGTH:,} characters are cut in the middle."
            left_out = "Its transcript is not stored here." if transcript is None else cut if limit else ""
            if transcript:
                image_source = partial(self._image_source, run.run_id)
                talk = ShownConversation(transcript, session.anchor, session.cited, limit, image_source)
        elif self._options.include_transcripts:
            left_out = "Its transcript and its patch are left out, since it passed; "
            left_out += "zelda report --all-transcripts shows all."
        return {
            "problem": run_problem(run, NO_FILES),
            "sections": run_sections(run),
            "criteria": sorted(session.criteria, key=lambda it: WORST_FIRST.index(criterion_verdict(run, it).tone)),
            "talk": talk,
            "left_out": left_out,
            "patch": [*patched_files(patch, session.cited.quotes, MAX_PATCH_LENGTH)],
        }

    def _image_source(self, run_id: str, image: SessionImage) -> str:
        """An image as a data URI, as far as there is room; empty where it is not shown."""
        data = self._files.image(run_id, image)
        # The bytes say what they are: the transcript may say anything.
        if not data or media_type_of(data) != image.media_type or len(data) > min(MAX_IMAGE_BYTES, self._image_room):
            return ""
        self._image_room -= len(data)
        return f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"
