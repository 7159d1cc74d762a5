"""Writes the HTML report, session by session: no more than one transcript, or the two of a comparison, is in memory."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.session import SessionImage, SessionTranscript, media_type_of
from zelda_ci.files.atomic import write_whole
from zelda_ci.imports import one_at_a_time
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.builders.run import run_sections
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.html.conversation import ShownConversation, patched_files
from zelda_ci.report.html.pages import SuiteSession, SuiteSessions, overview_page, sessions_of, sides_page
from zelda_ci.report.model import NO_FILES

MAX_BYTES = 20_000_000
MAX_PATCH_LENGTH = 400_000
MAX_IMAGE_BYTES = 1_000_000
MAX_IMAGES_BYTES = 4_000_000
# Of a text, in a session that has more than its share.
MAX_TEXT_LENGTH = 4_000
PASSED = "Its transcript and its patch are left out, since it passed; zelda report --all-transcripts shows all."
CUT = f"Texts of more than {MAX_TEXT_LENGTH:,} characters are cut in the middle."


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
    max_bytes: int = MAX_BYTES
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
        """Two sessions of a suite side by side."""
        talks = [self._files.transcript(session.run.run_id) for session in (suite.pair or ())[:2]]
        return sides_page(suite, *talks)

    def session(self, session: SuiteSession) -> dict[str, Any]:
        """What is shown of a session, and what is not."""
        run, talk, patch, left_out = session.run, None, b"", ""
        if session in self._shown:
            transcript, patch = self._files.transcript(run.run_id), self._files.patch(run.run_id)
            limit = MAX_TEXT_LENGTH if session in self._cut else None
            left_out = "Its transcript is not stored here." if transcript is None else CUT if limit else ""
            if transcript:
                image_source = partial(self._image_source, run.run_id)
                talk = ShownConversation(transcript, session.anchor, session.cited, limit, image_source)
        elif self._options.include_transcripts:
            left_out = PASSED
        return {
            "problem": run_problem(run, NO_FILES),
            "sections": run_sections(run),
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
