"""Checks that went well, so that a second run on the same commit need not pay for them again."""

import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from zelda_ci.domain.check import Check
from zelda_ci.errors import StorageError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import write_whole
from zelda_ci.process import removal
from zelda_ci.storage import codec

FOLDER = "checks"
MAX_BYTES = 100_000
KEPT_SECONDS = 7 * 86_400.0


class CheckMemory:
    """Files in the project's results, each named by a digest of all that the check depends on."""

    def __init__(self, results_dir: Path) -> None:
        self._folder = results_dir / FOLDER

    def recall(self, key: str, max_seconds: float) -> Check | None:
        """Read what an earlier check of the same found, unless that is too long ago."""
        file = self._file(key)
        try:
            if time.time() - file.lstat().st_mtime > max_seconds:
                return None
            found = Check.model_validate_json(untrusted.read(file, MAX_BYTES))
        except (OSError, ValidationError):
            return None
        return found.replace(remembered=True, cost_usd=0.0)

    def remember(self, key: str, check: Check) -> None:
        """Keep a check that stops nothing; where that is not possible, the next run checks again."""
        if check.status in {"passed", "warning"}:
            with suppress(StorageError, OSError):
                write_whole(self._file(key), [codec.encode(check)], durable=False)
                for file in removal.older_than(self._folder, KEPT_SECONDS):
                    file.unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self._folder / f"{sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"
