"""A session's page, but for its conversation: how it ended, what was judged, its time line and its patch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zelda_ci.domain.details import FulfillmentDetails
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.report.builders.anchors import PageLink, SessionCitations
from zelda_ci.report.builders.run import run_view
from zelda_ci.report.html.model import JudgedView
from zelda_ci.report.html.suite import SuiteSession, SuiteSessions
from zelda_ci.report.html.texts import patched_files
from zelda_ci.report.html.time_line import time_line
from zelda_ci.report.model import NO_FILES, Tone
from zelda_ci.report.text import sentence, visible

MAX_PATCH_LENGTH = 400_000
CRITERIA = "Acceptance criteria"
ORDER = (Tone.BAD, Tone.WARN, Tone.NEUTRAL, Tone.DIM, Tone.GOOD)


@dataclass(frozen=True)
class SessionTexts:
    """What was kept of a session; absent parts are not shown."""

    transcript: SessionTranscript | None = None
    patch: bytes = b""
    root: str = ""
    """The folder in which it worked."""
    left_out: str = ""
    """What of it is not shown, in a sentence."""


def session_page(
    suite: SuiteSessions, session: SuiteSession, cited: SessionCitations, texts: SessionTexts, sides: PageLink | None
) -> dict[str, Any]:
    """The page, for its templates; without a transcript it has no time line."""
    view, transcript = run_view(session.run, NO_FILES, several=True), texts.transcript
    sections = tuple(section for section in view.sections if section.title != CRITERIA)
    return {
        "anchor": session.anchor,
        "title": f"{visible(suite.name, 80)}, {session.title}",
        "suite": suite.link,
        "side": session.side,
        "verdict": view.verdict,
        "facts": view.facts,
        "problem": view.problem,
        "criteria": tuple(_criteria(session, cited)),
        "sections": sections,
        "time_line": time_line(transcript, texts.root) if transcript else None,
        "around": (*_around(suite, session), *((sides,) if sides else ())),
        "whole": f"zelda show {visible(session.run.run_id)} --transcript",
        "left_out": texts.left_out,
        "patch": patched_files(texts.patch, cited.by_file, MAX_PATCH_LENGTH),
    }


def _criteria(session: SuiteSession, cited: SessionCitations) -> Iterator[tuple[str, JudgedView]]:
    """What failed first."""
    if details := session.run.details(FulfillmentDetails):
        views = [(sentence(one.criterion), session.judged(one, cited)) for one in details.criteria]
        yield from sorted(views, key=lambda view: ORDER.index(view[1].verdict.tone))


def _around(suite: SuiteSessions, session: SuiteSession) -> Iterator[PageLink]:
    """The sessions of the same side before and behind it."""
    sessions = suite.of(session.side)
    place = sessions.index(session)
    for other, word in ((place - 1, "previous"), (place + 1, "next")):
        if 0 <= other < len(sessions):
            yield PageLink(sessions[other].title, sessions[other].anchor, word)
