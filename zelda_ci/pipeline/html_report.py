"""The HTML report of stored runs: where its texts come from, and what it says of two sides."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.compare.gate import failures, recorded_settings
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.domain.run import BatchResult, batch_of
from zelda_ci.domain.session import MAX_IMAGE_BYTES, SessionImage, SessionTranscript
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.errors import StorageError
from zelda_ci.files.atomic import read_file
from zelda_ci.imports import one_at_a_time
from zelda_ci.pipeline.comparing import Compared
from zelda_ci.report.told import CiReport, PullRequestChanges
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.images import IMAGES
from zelda_ci.storage.references import SideReference
from zelda_ci.storage.run_folder import PATCH, TRANSCRIPT, is_run_id

# A larger one is not read: it would take the memory of many.
MAX_TRANSCRIPT_BYTES = 500_000_000
MAX_PATCH_BYTES = 5_000_000


@dataclass(frozen=True)
class StoredSessions:
    """Transcripts, patches and images of runs, in the first of several places that has them."""

    histories: tuple[RunHistory, ...]

    def size(self, run_id: str) -> int:
        """Bytes of its transcript; zero where there is none."""
        folder = self._folder(run_id)
        try:
            size = (folder / TRANSCRIPT).stat().st_size if folder else 0
        except OSError:
            return 0
        return size if size <= MAX_TRANSCRIPT_BYTES else 0

    def transcript(self, run_id: str) -> SessionTranscript | None:
        """What happened; nothing where it is not stored, cannot be read, or is too large to be."""
        if self.size(run_id):
            for history in self.histories:
                with suppress(StorageError):
                    return history.run(run_id).transcript()
        return None

    def patch(self, run_id: str) -> bytes:
        """What the session changed; empty where it is not known."""
        return self._read(run_id, PATCH, MAX_PATCH_BYTES) or b""

    def image(self, run_id: str, image: SessionImage) -> bytes | None:
        """An image that a tool returned."""
        return self._read(run_id, f"{IMAGES}/{image.file_name}", MAX_IMAGE_BYTES)

    def _read(self, run_id: str, name: str, max_bytes: int) -> bytes | None:
        folder = self._folder(run_id)
        if folder:
            with suppress(StorageError):
                return read_file(folder / name, max_bytes)
        return None

    def _folder(self, run_id: str) -> Path | None:
        # Results may come from a file that somebody else has made: an id is no path that leads elsewhere.
        if not is_run_id(run_id):
            return None
        folders = (history.run(run_id).path for history in self.histories)
        return next((folder for folder in folders if folder.is_dir()), None)


def report_alone(batch: BatchResult, subject: str = "") -> CiReport:
    """Of runs that are compared with nothing."""
    without = BaselineOrigin(state=BaselineState.OFF, sentence="")
    return CiReport(batch, failures(batch, recorded_settings(batch.runs)), without, subject=subject)


def report_of_arms(batch: BatchResult, compared: Compared, subject: str = "") -> CiReport:
    """Of two commits that one invocation ran."""
    commit, changed = (batch.base.commit, batch.base.changed) if batch.base else (None, ())
    origin = BaselineOrigin(state=BaselineState.FOUND, sentence="", commit=commit)
    changes = PullRequestChanges(steering=changed)
    return CiReport(batch, compared.gate, origin, compared.comparison, subject=subject, changes=changes)


def report_of_sides(
    baseline: SideReference,
    candidate: SideReference,
    compared: Compared,
    subject: str = "",
    changes: Sequence[SteeringChange] = (),
) -> CiReport:
    """Of two stored sides."""
    before = batch_of(baseline.runs)
    sources = {run.source.commit for run in baseline.runs if run.source and run.source.commit}
    origin = BaselineOrigin(
        state=BaselineState.FOUND,
        sentence="",
        commit=sources.pop() if len(sources) == 1 else None,
        created_at=before.finished_at,
    )
    after = batch_of(candidate.runs)
    changed = PullRequestChanges(steering=tuple(changes))
    return CiReport(after, compared.gate, origin, compared.comparison, before, subject=subject, changes=changed)


def write_html(
    target: Path,
    report: CiReport,
    histories: Sequence[RunHistory],
    *,
    include_texts: bool = True,
    all_transcripts: bool = False,
) -> int:
    """Write the report of stored runs; its size in bytes.

    Args:
        target: The file; its folder exists.
        report: What ran, and what it is compared with.
        histories: Where the runs are stored.
        include_texts: Whether it shows transcripts and patches.
        all_transcripts: Also of sessions that passed and stand beside no other.

    Raises:
        StorageError: It could not be written.
    """
    with one_at_a_time("zelda_ci.report.html.writer"):
        from zelda_ci.report.html.writer import PageOptions, write_report  # noqa: PLC0415 - jinja2 takes its time

    options = PageOptions(include_texts, all_transcripts)
    write_report(target, report, StoredSessions(tuple(histories)), options)
    return target.stat().st_size
