"""Folders that other users may not enter, such as root's home: what lies below is out of reach of a run's own user."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def barrier(path: Path) -> Path | None:
    """The first folder on the way to a path, links followed, that other users may not enter."""
    real = Path(os.path.realpath(path))
    for folder in (*reversed(path.parents), path, *reversed(real.parents), real):
        with suppress(OSError):
            mode = folder.stat().st_mode
            if stat.S_ISDIR(mode) and not mode & stat.S_IXOTH:
                return folder
    return None


def is_within_reach(path: Path, base: Path) -> bool:
    """Whether a run's own user gets to a path; what lies in the workspaces' `base`, Zelda opens to it."""
    return path.is_relative_to(base) or barrier(path) is None


def is_open(file: Path) -> bool:
    """Whether everybody may read a file, and pass through the folders above it."""
    return file.is_file() and bool(file.stat().st_mode & stat.S_IROTH) and barrier(file) is None


def unreachable(file: Path) -> str | None:
    """What is in the way to a file below a closed folder, and what helps, in sentences; nothing where it is open."""
    if (folder := barrier(file)) is None:
        return None
    way_out = f"Let others pass through it (chmod 711 {folder}), install it elsewhere, or use isolation level full."
    return f"{file} lies below {folder}, which the run's own user may not enter. {way_out}"
