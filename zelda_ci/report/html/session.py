"""A session's page, but for its conversation: how it ended, what was judged, its time line and its patch."""

from typing import Any, NamedTuple

from zelda_ci.domain.details import FulfillmentDetails
from zelda_ci.domain.numbers import duration
from zelda_ci.domain.session import Retried, SessionTranscript
from zelda_ci.domain.trials import Side
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.builders.run import run_sections
from zelda_ci.report.html.conversation import target
from zelda_ci.report.html.suite import SuiteSession, SuiteSessions
from zelda_ci.report.html.texts import patched_files
from zelda_ci.report.model import NO_FILES, Tone

MAX_PATCH_LENGTH = 400_000
CRITERIA = "Acceptance criteria"
ORDER = (Tone.BAD, Tone.WARN, Tone.NEUTRAL, Tone.DIM, Tone.GOOD)


def session_page(
    suite: SuiteSessions, session: SuiteSession, transcript: SessionTranscript | None, patch: bytes, left_out: str
) -> dict[str, Any]:
    """The page, for its templates; `left_out` says what of the session is not shown."""
    details = session.run.details(FulfillmentDetails)
    alike = suite.head if session.side is Side.HEAD else suite.base
    place = alike.index(session)
    return {
        "session": session,
        "suite": suite,
        "problem": run_problem(session.run, NO_FILES),
        # What failed first.
        "criteria": sorted(
            details.criteria if details else (), key=lambda one: ORDER.index(session.verdict_of(one).tone)
        ),
        "sections": [section for section in run_sections(session.run) if section.title != CRITERIA],
        "lanes": time_line(transcript) if transcript and transcript.turns else {},
        "length": duration(_length(transcript)) if transcript else "",
        "before": alike[place - 1] if place else None,
        "behind": alike[place + 1] if place + 1 < len(alike) else None,
        "has_conversation": transcript is not None,
        "left_out": left_out,
        "patch": list(patched_files(patch, session.cited.quotes, MAX_PATCH_LENGTH)),
    }


SCALE = 1000.0
# Narrower bars are not seen.
MIN_LENGTH = 1.5
MAX_BARS = 400


class Bar(NamedTuple):
    """A part of a time line, on a scale from 0 to 1000."""

    start: float
    length: float
    kind: str
    title: str
    anchor: str = ""
    """What it is about, below the anchor of the session."""


def time_line(transcript: SessionTranscript) -> dict[str, list[Bar]]:
    """What the time of a session went to, in lanes by their names; of very many bars, evenly chosen ones."""
    total = _length(transcript)
    lanes: dict[str, list[Bar]] = {"Model": [], "Tools": [], "Waiting": []}

    def add(lane: str, kind: str, start: float, end: float, title: str, anchor: str = "") -> None:
        begun = min(max(start, 0.0) / total * SCALE, SCALE - MIN_LENGTH)
        length = min(max((end - start) / total * SCALE, MIN_LENGTH), SCALE - begun)
        lanes[lane].append(Bar(begun, length, kind, f"{title}: {duration(max(end - start, 0.0))}", anchor))

    ready = 0.0
    for turn in transcript.turns:
        if not turn.parent_tool_call_id:
            # From what came back last to what the model said.
            said = max([turn.at, *(call.started_at for call in turn.tool_calls)])
            add("Model", "model", ready, said, f"turn {turn.index}", f"t{turn.index}")
            ready = max([said, *(call.ended_at or said for call in turn.tool_calls)])
        for number, call in enumerate(turn.tool_calls, start=1):
            end = call.ended_at if call.ended_at is not None else total
            kind = "bad" if call.is_error or call.denied else "agent" if call.name in {"Agent", "Task"} else "tool"
            add("Tools", kind, call.started_at, end, f"{call.name} {target(call)[:80]}", f"t{turn.index}-c{number}")
    if transcript.started and transcript.started.at > 0:
        add("Waiting", "wait", 0, transcript.started.at, "start")
    for entry in transcript.entries:
        if isinstance(entry, Retried):
            add("Waiting", "wait", entry.at, entry.at + entry.delay_seconds, "retry")
    return {name: bars[:: -(-len(bars) // MAX_BARS)] for name, bars in lanes.items() if bars}


def _length(transcript: SessionTranscript) -> float:
    return max([transcript.wall_seconds, *(call.ended_at or call.started_at for call in transcript.tool_calls), 0.001])
