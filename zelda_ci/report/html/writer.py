"""Writes the HTML report, session by session: no more than one transcript, or the two of a comparison, is in memory."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.session import SessionImage, SessionTranscript, media_type_of
from zelda_ci.files.atomic import write_whole
from zelda_ci.report.builders.anchors import PageLink
from zelda_ci.report.html.conversation import EntryBuilder, text_limit, working_folder
from zelda_ci.report.html.overview import overview_page, page_title, sessions_of, tested_state
from zelda_ci.report.html.rendering import entry, foot, head, render
from zelda_ci.report.html.session import SessionTexts, session_page
from zelda_ci.report.html.sides import SideSession, chosen_pair, sides_page
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
    """Write a report as one HTML file, whole or not at all.

    Args:
        target: The file; its folder exists.
        report: What ran, and what it was compared with.
        files: Where transcripts, patches and images are.
        options: How much is shown.

    Raises:
        StorageError: It could not be written.
    """
    chunks = ReportWriter(report, files, options or PageOptions()).chunks()
    encoded = (chunk.encode("utf-8", "backslashreplace") for chunk in chunks)
    write_whole(target, encoded, durable=False)


class ReportWriter:
    """Makes the parts of one report, in order."""

    def __init__(self, report: CiReport, files: SessionFiles, options: PageOptions) -> None:
        self._report, self._files, self._options = report, files, options
        self._suites = sessions_of(report, with_texts=options.include_transcripts)
        sessions = [session for suite in self._suites for session in suite.all]
        chosen = {id(one.run) for suite in self._suites for one in (chosen_pair(suite) or ())[:2]}
        self._passed = [
            id(one.run)
            for one in sessions
            if not options.all_transcripts and id(one.run) not in chosen and run_outcome(one.run) is Outcome.PASSED
        ]
        self._sizes = {id(one.run): self._size(one) for one in sessions}
        self._room = fair_limit(list(self._sizes.values()), options.max_bytes)
        self._images = ImageReader(files)

    def chunks(self) -> Iterator[str]:
        """The file."""
        state = tested_state(self._report)
        yield head(f"{page_title(self._report)}: report" + (f" on {state}" if state else ""))
        yield render("overview.html.j2", **overview_page(self._report, self._suites, self._left_out()))
        for suite in self._suites:
            yield from self._suite(suite)
        yield foot()

    def _size(self, session: SuiteSession) -> int:
        is_shown = self._options.include_transcripts and id(session.run) not in self._passed
        return self._files.size(session.run.run_id) if is_shown else 0

    def _left_out(self) -> tuple[str, ...]:
        """In sentences, each with where the whole is."""
        if not self._options.include_transcripts:
            return ("This report was made without transcripts and patches.",)
        sentences = []
        cut = sum(size > self._room for size in self._sizes.values()) if self._room is not None else 0
        if cut:
            sentences.append(
                f"The transcripts of {format_count(cut, 'session')} are too long to be shown whole: "
                "zelda show RUN --transcript prints a whole one."
            )
        if self._passed:
            count = f"{format_count(len(self._passed), 'session')} of {len(self._sizes)}"
            sentences.append(
                f"The transcripts of {count} are left out, since they passed: zelda report --all-transcripts has all."
            )
        return tuple(sentences)

    def _suite(self, suite: SuiteSessions) -> Iterator[str]:
        pair = chosen_pair(suite)
        compared = None
        if pair:
            compared = PageLink("base and head side by side", suite.anchors.sides(suite.name), "sides")
        yield render("suite.html.j2", **suite_page(suite, compared))
        if pair and compared:
            yield from self._sides(suite, pair, compared)
        for session in suite.all:
            yield from self._session(suite, session, compared)

    def _sides(
        self, suite: SuiteSessions, pair: tuple[SuiteSession, SuiteSession, str], link: PageLink
    ) -> Iterator[str]:
        base, candidate, why = pair
        sides = self._side(base), self._side(candidate)
        if sides[0] is None or sides[1] is None:
            yield render("no_sides.html.j2", anchor=link.anchor, suite=suite.link)
            return
        yield render("sides.html.j2", page=sides_page(link.anchor, suite.link, sides[0], sides[1], why))

    def _side(self, session: SuiteSession) -> SideSession | None:
        transcript = self._files.transcript(session.run.run_id)
        return SideSession(transcript, session, _root(session, transcript)) if transcript else None

    def _session(self, suite: SuiteSessions, session: SuiteSession, compared: PageLink | None) -> Iterator[str]:
        texts, limit = self._texts(session)
        cited = suite.cited(session)
        page = session_page(suite, session, cited, texts, compared)
        transcript = texts.transcript
        yield render("session.html.j2", **page, has_conversation=transcript is not None)
        if transcript:
            source_of = partial(self._images.source, session.run.run_id)
            talk = EntryBuilder(transcript, session.anchor, cited, texts.root, limit, source_of)
            yield from map(entry, talk.entries())
        # Whoever follows a citation whose place is not shown arrives at the end of what is.
        yield render("session_end.html.j2", **page, anchors=cited.leftover())

    def _texts(self, session: SuiteSession) -> tuple[SessionTexts, int | None]:
        """What is shown of a session, and how long its texts may be."""
        if not self._options.include_transcripts:
            return SessionTexts(), None
        if id(session.run) in self._passed:
            return SessionTexts(left_out=PASSED), None
        transcript, patch = self._files.transcript(session.run.run_id), self._files.patch(session.run.run_id)
        if transcript is None:
            return SessionTexts(patch=patch, left_out="Its transcript is not stored here."), None
        size = self._sizes[id(session.run)]
        limit = text_limit(transcript, self._room) if self._room is not None and size > self._room else None
        left_out = f"Texts of more than {limit:,} characters are cut in the middle." if limit else ""
        return SessionTexts(transcript, patch, _root(session, transcript), left_out), limit


@dataclass
class ImageReader:
    """Images as data URIs, as far as there is room."""

    files: SessionFiles
    left: int = MAX_IMAGES_BYTES

    def source(self, run_id: str, image: SessionImage) -> str:
        """The source of an image; empty where it is not shown."""
        if image.size_bytes > min(MAX_IMAGE_BYTES, self.left):
            return ""
        data = self.files.image(run_id, image)
        # The bytes say what they are: the transcript may say anything.
        if data is None or media_type_of(data) != image.media_type or len(data) > MAX_IMAGE_BYTES:
            return ""
        self.left -= len(data)
        return f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"


def _root(session: SuiteSession, transcript: SessionTranscript | None) -> str:
    changes = session.run.changes
    known = (*(session.run.touched or ()), *(changes.files if changes else ()))
    return working_folder(transcript, tuple(map(str, known))) if transcript else ""
