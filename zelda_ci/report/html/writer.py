"""Writes the HTML report, session by session: no more than one transcript, or the two of a comparison, is in memory."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.session import SessionImage, SessionTranscript, media_type_of
from zelda_ci.files.atomic import write_whole
from zelda_ci.report.html.conversation import EntryBuilder, text_limit
from zelda_ci.report.html.overview import overview_page, page_title, sessions_of, tested_state
from zelda_ci.report.html.rendering import entry, foot, head, render
from zelda_ci.report.html.session import session_page
from zelda_ci.report.html.sides import sides_page
from zelda_ci.report.html.suite import SuiteSession, SuiteSessions, suite_page
from zelda_ci.report.html.texts import fair_limit
from zelda_ci.report.told import CiReport

MAX_BYTES = 20_000_000
MAX_IMAGE_BYTES = 1_000_000
MAX_IMAGES_BYTES = 4_000_000
PASSED = "Its transcript and its patch are left out, since it passed; zelda report --all-transcripts shows all."


class SessionFiles(Protocol):
    """What was kept of sessions; whatever is gone is absent."""

    def size(self, run_id: str) -> int:
        """Bytes of its transcript, without reading it; zero where there is none."""

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
    max_bytes: int = MAX_BYTES
    """Of all transcripts together; where they are larger, long texts are cut in the middle."""


def write_report(target: Path, report: CiReport, files: SessionFiles, options: PageOptions | None = None) -> None:
    """Write a report as one HTML file into a folder that exists, whole or not at all.

    Raises:
        StorageError: It could not be written.
    """
    chunks = _Writer(report, files, options or PageOptions()).chunks()
    write_whole(target, (chunk.encode("utf-8", "backslashreplace") for chunk in chunks), durable=False)


class _Writer:
    """Makes the parts of one report, in order."""

    def __init__(self, report: CiReport, files: SessionFiles, options: PageOptions) -> None:
        self._report, self._files, self._options = report, files, options
        self._suites = sessions_of(report, with_texts=options.include_transcripts)
        compared = {session.anchor for suite in self._suites for session in (suite.pair or ())[:2]}
        sessions = [session for suite in self._suites for session in suite.all]
        self._passed = {
            session.anchor
            for session in sessions
            if session.outcome is Outcome.PASSED and session.anchor not in compared and not options.all_transcripts
        }
        self._count = len(sessions)
        shown = [session for session in sessions if options.include_transcripts and session.anchor not in self._passed]
        self._sizes = {session.anchor: files.size(session.run.run_id) for session in shown}
        self._room = fair_limit([*self._sizes.values()], options.max_bytes)
        self._image_room = MAX_IMAGES_BYTES

    def chunks(self) -> Iterator[str]:
        """The file."""
        state = tested_state(self._report)
        yield head(f"{page_title(self._report)}: report" + (f" on {state}" if state else ""))
        yield render("overview.html.j2", **overview_page(self._report, self._suites, tuple(self._left_out())))
        for suite in self._suites:
            yield render("suite.html.j2", **suite_page(suite))
            if suite.pair:
                talks = [self._files.transcript(session.run.run_id) for session in suite.pair[:2]]
                yield render("sides.html.j2", **sides_page(suite, *talks))
            for session in suite.all:
                yield from self._session(suite, session)
        yield foot()

    def _left_out(self) -> Iterator[str]:
        """In sentences, each with where the whole is."""
        if not self._options.include_transcripts:
            yield "This report was made without transcripts and patches."
        if cut := sum(self._room is not None and size > self._room for size in self._sizes.values()):
            yield (
                f"The transcripts of {format_count(cut, 'session')} are too long to be shown whole: "
                "zelda show RUN --transcript prints a whole one."
            )
        if self._passed and self._options.include_transcripts:
            count = f"{format_count(len(self._passed), 'session')} of {self._count}"
            yield f"The transcripts of {count} are left out, since they passed: zelda report --all-transcripts has all."

    def _session(self, suite: SuiteSessions, session: SuiteSession) -> Iterator[str]:
        transcript, patch, left_out, limit = None, b"", "", None
        run_id, size = session.run.run_id, self._sizes.get(session.anchor)
        if size is not None:
            transcript, patch = self._files.transcript(run_id), self._files.patch(run_id)
            left_out = "" if transcript else "Its transcript is not stored here."
            if transcript and self._room is not None and size > self._room:
                limit = text_limit(transcript, self._room)
                left_out = f"Texts of more than {limit:,} characters are cut in the middle." if limit else ""
        elif self._options.include_transcripts:
            left_out = PASSED
        page = session_page(suite, session, transcript, patch, left_out)
        yield render("session.html.j2", **page)
        if transcript:
            source_of = partial(self._image_source, run_id)
            yield from map(entry, EntryBuilder(transcript, session.anchor, session.cited, limit, source_of).entries())
        # Whoever follows a citation whose place is not shown arrives at the end of what is.
        yield render("session_end.html.j2", **page, anchors=session.cited.leftover())

    def _image_source(self, run_id: str, image: SessionImage) -> str:
        """An image as a data URI, as far as there is room; empty where it is not shown."""
        if image.size_bytes > min(MAX_IMAGE_BYTES, self._image_room):
            return ""
        data = self._files.image(run_id, image)
        # The bytes say what they are: the transcript may say anything.
        if data is None or media_type_of(data) != image.media_type or len(data) > MAX_IMAGE_BYTES:
            return ""
        self._image_room -= len(data)
        return f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"
