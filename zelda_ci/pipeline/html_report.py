"""The HTML report of stored runs, and where its texts come from."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.domain.session import MAX_IMAGE_BYTES, SessionImage, SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.files.atomic import read_file
from zelda_ci.imports import one_at_a_time
from zelda_ci.report.told import CiReport
from zelda_ci.storage.images import IMAGES
from zelda_ci.storage.result_store import PATCH, TRANSCRIPT, ResultStore, is_run_id

# A larger one is not read: it would take the memory of many.
MAX_TRANSCRIPT_BYTES = 500_000_000
MAX_PATCH_BYTES = 5_000_000


@dataclass(frozen=True)
class StoredSessions:
    """Transcripts, patches and images of stored runs."""

    history: ResultStore

    def size(self, run_id: str) -> int:
        """Bytes of its transcript; zero where there is none that is read."""
        with suppress(OSError):
            # Results may come from a file that somebody else has made: an id is no path that leads elsewhere.
            size = (self.history.run(run_id).path / TRANSCRIPT).stat().st_size if is_run_id(run_id) else 0
            return size if size <= MAX_TRANSCRIPT_BYTES else 0
        return 0

    def transcript(self, run_id: str) -> SessionTranscript | None:
        """What happened; nothing where it is not stored, cannot be read, or is too large to be."""
        with suppress(StorageError):
            return self.history.run(run_id).transcript() if self.size(run_id) else None
        return None

    def patch(self, run_id: str) -> bytes:
        """What the session changed; empty where it is not known."""
        return self._read(run_id, PATCH, MAX_PATCH_BYTES) or b""

    def image(self, run_id: str, image: SessionImage) -> bytes | None:
        """An image that a tool returned."""
        return self._read(run_id, f"{IMAGES}/{image.file_name}", MAX_IMAGE_BYTES)

    def _read(self, run_id: str, name: str, max_bytes: int) -> bytes | None:
        with suppress(StorageError):
            return read_file(self.history.run(run_id).path / name, max_bytes) if is_run_id(run_id) else None
        return None


def write_html(
    target: Path, report: CiReport, history: ResultStore, *, include_texts: bool = True, all_transcripts: bool = False
) -> int:
    """Write the report of stored runs; returns its size in bytes.

    Transcripts and patches are left out without `include_texts`; otherwise `all_transcripts` are also those of sessions
    that passed and stand beside no other.

    Raises:
        StorageError: It could not be written.
    """
    with one_at_a_time("zelda_ci.report.html.writer"):
        from zelda_ci.report.html.writer import PageOptions, write_report  # noqa: PLC0415 - jinja2 takes its time

    write_report(target, report, StoredSessions(history), PageOptions(include_texts, all_transcripts))
    return target.stat().st_size
