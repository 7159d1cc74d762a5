"""Writes the HTML report, session by session: no more than one transcript, or the two of a comparison, is in memory."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from zelda_ci.domain.ci import CiReport
from zelda_ci.domain.images import SessionImage, media_type_of
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import run_outcome
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.domain.trials import Side
from zelda_ci.files.atomic import write_whole
from zelda_ci.report.builders.page_conversation import EntryBuilder, text_limit, working_folder
from zelda_ci.report.builders.page_overview import overview_page, page_title, sessions_of, tested_state
from zelda_ci.report.builders.page_session import SessionTexts, session_page
from zelda_ci.report.builders.page_sides import SideSession, chosen_pair, sides_page
from zelda_ci.report.builders.page_suite import SuiteSession, SuiteSessions, suite_page
from zelda_ci.report.builders.page_text import fair_limit
from zelda_ci.report.html.rendering import NOTHING, foot, head, packed_part, packed_session, plain_session, render
from zelda_ci.report.model import Tone
from zelda_ci.report.page_model import PageLink

MAX_BYTES = 20_000_000
# Of transcripts that readers without scripts find whole; what is packed takes a fifth of the room.
PLAIN_BYTES = 250_000
MAX_IMAGE_BYTES = 1_000_000
MAX_IMAGES_BYTES = 4_000_000


# Where nothing became worse, few look at the two sides.
NOTABLE_TONES = frozenset({Tone.BAD, Tone.WARN})
CALM_SIDES = (
    "Nothing is known to have become worse here, so the steps of the two sides are packed in this file, and are shown "
    "where scripts run. Each session has a page of its own."
)


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
        self._sizes = {id(one.run): self._size(one) for one in sessions}
        self._room = fair_limit(list(self._sizes.values()), options.max_bytes)
        self._plain = _readable(sessions, self._sizes)
        self._images = ImageReader(files)

    def chunks(self) -> Iterator[str]:
        """The file."""
        state = tested_state(self._report)
        yield head(f"{page_title(self._report)}: report" + (f" on {state}" if state else ""))
        yield render("overview.html.j2", page=overview_page(self._report, self._suites, self._left_out()))
        for suite in self._suites:
            yield from self._suite(suite)
        yield foot()

    def _size(self, session: SuiteSession) -> int:
        return self._files.size(session.run.run_id) if self._options.include_transcripts else 0

    def _left_out(self) -> tuple[str, ...]:
        """In sentences, each with where the whole is."""
        whole = "`zelda show RUN --transcript` prints a whole one"
        if not self._options.include_transcripts:
            return ("This report was made without transcripts and patches.",)
        sentences = []
        cut = sum(size > self._room for size in self._sizes.values()) if self._room is not None else 0
        if cut:
            sentences.append(
                f"The transcripts of {format_count(cut, 'session')} are too long to be shown whole: {whole}."
            )
        if packed := sum(bool(size) for size in self._sizes.values()) - len(self._plain):
            count = f"{format_count(packed, 'session')} of {len(self._sizes)}"
            sentences.append(f"Without scripts, {count} are shown as a list of their steps: {whole}.")
        return tuple(sentences)

    def _suite(self, suite: SuiteSessions) -> Iterator[str]:
        pair = chosen_pair(suite)
        compared = None
        if pair:
            compared = PageLink("base and head side by side", suite.anchors.sides(suite.name), "sides")
        yield render("suite.html.j2", page=suite_page(suite, compared))
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
        page = sides_page(link.anchor, suite.link, sides[0], sides[1], why)
        yield render("sides.html.j2", page=page)
        rows = render("sides_rows.html.j2", page=page)
        if suite.verdict.tone in NOTABLE_TONES:
            yield rows
        else:
            yield from packed_part(link.anchor, CALM_SIDES, rows)
        yield "</section>\n"

    def _side(self, session: SuiteSession) -> SideSession | None:
        transcript = self._files.transcript(session.run.run_id)
        return SideSession(transcript, session.card, _root(session, transcript)) if transcript else None

    def _session(self, suite: SuiteSessions, session: SuiteSession, compared: PageLink | None) -> Iterator[str]:
        texts, limit = self._texts(session)
        cited = suite.cited(session)
        page = session_page(suite, session, cited, texts, compared)
        transcript = texts.transcript
        yield render("session.html.j2", page=page, has_conversation=transcript is not None)
        if transcript is None:
            yield from plain_session(page, NOTHING, cited.leftover)
        else:
            source_of = partial(self._images.source, session.run.run_id)
            talk = EntryBuilder(transcript, session.anchor, cited, texts.root, limit, source_of)
            write = plain_session if id(session.run) in self._plain else packed_session
            yield from write(page, talk.entries(), cited.leftover)
        yield "</section>\n"

    def _texts(self, session: SuiteSession) -> tuple[SessionTexts, int | None]:
        """What is shown of a session, and how long its texts may be."""
        if not self._options.include_transcripts:
            return SessionTexts(), None
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


def _readable(sessions: Sequence[SuiteSession], sizes: dict[int, int]) -> frozenset[int]:
    """Sessions that are not packed: those of the head that failed first, as many as there is room for."""
    ordered = sorted(sessions, key=lambda one: (-max(run_outcome(one.run).value, 0), one.side is not Side.HEAD))
    left, chosen = PLAIN_BYTES, set()
    for session in ordered:
        size = sizes[id(session.run)]
        if 0 < size <= left:
            left -= size
            chosen.add(id(session.run))
    return frozenset(chosen)
