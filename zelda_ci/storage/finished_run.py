"""A finished run, to be judged again."""

from dataclasses import dataclass
from pathlib import Path

from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.storage import codec
from zelda_ci.storage.atomic import read_file, write_whole
from zelda_ci.storage.run_folder import PATCH, RESULT, TRANSCRIPT


@dataclass(frozen=True)
class FinishedRun:
    """The folder of a finished run."""

    path: Path

    @property
    def patch_file(self) -> Path:
        """What the session changed; absent where it changed nothing."""
        return self.path / PATCH

    def result(self) -> RunResult:
        """Read the result.

        Raises:
            StorageError: It cannot be read.
        """
        return codec.decode_result(read_file(self.path / RESULT), str(self.path / RESULT))

    def transcript(self) -> SessionTranscript:
        """Read the transcript; errors as for `result`."""
        return codec.decode_transcript(read_file(self.path / TRANSCRIPT), str(self.path / TRANSCRIPT))

    def rewrite(self, result: RunResult) -> None:
        """Put another result in the place of the old one, whole.

        Raises:
            StorageError: It could not be written; the old one is as it was.
        """
        write_whole(self.path / RESULT, iter([codec.encode_result(result)]))
