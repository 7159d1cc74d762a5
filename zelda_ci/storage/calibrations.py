"""What is known of the noise of each suite: `.zelda/calibration/<suite>.json`."""

import logging
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from zelda_ci import ownership
from zelda_ci.domain.comparison import Calibration
from zelda_ci.errors import StorageError
from zelda_ci.storage import codec
from zelda_ci.storage.atomic import read_file, storage_errors, write_whole
from zelda_ci.storage.history import LARGEST_RESULT
from zelda_ci.storage.run_id import file_name

FOLDER = "calibration"

log = logging.getLogger(__name__)


class Calibrations:
    """The latest calibration of each suite."""

    def __init__(self, results_dir: Path) -> None:
        self._folder = results_dir / FOLDER

    def save(self, calibration: Calibration) -> Path:
        """Replace the suite's calibration; where it is.

        Raises:
            StorageError: It could not be written.
        """
        path = self._path(calibration.suite)
        with storage_errors(path):
            ownership.make_folder(path.parent)
        write_whole(path, [codec.encode_calibration(calibration)])
        return path

    def read(self, suites: Iterable[str]) -> dict[str, Calibration]:
        """Those that exist, by suite; one that cannot be read is as good as none."""
        found = {}
        for suite in suites:
            path = self._path(suite)
            if path.exists():
                calibration = self._read(path)
                # Two names may make one file name.
                if calibration and calibration.suite == suite:
                    found[suite] = calibration
        return found

    def _read(self, path: Path) -> Calibration | None:
        with suppress(StorageError):
            return codec.decode_calibration(read_file(path, LARGEST_RESULT), str(path))
        log.warning("%s cannot be read and is passed over", path)
        return None

    def _path(self, suite: str) -> Path:
        return self._folder / f"{file_name(suite)}.json"
