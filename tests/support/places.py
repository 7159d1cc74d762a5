"""Where tests put what they make: every folder on the way is open to others, since runs of root are other users'."""

import os
import tempfile
from pathlib import Path

UMASK = 0o022
"""Of whoever runs the tests: what they make can be read by other users unless a test closes it."""


def is_passable(folder: Path) -> bool:
    """Whether every user may go into a folder."""
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


def passable(candidates: tuple[str, ...] = ("/tmp", "/var/tmp", "/srv")) -> Path:
    """The folder of temporary files, or another one where that is closed to other users: a TMPDIR of root's own."""
    own = Path(tempfile.gettempdir()).resolve()
    if os.geteuid() != 0:
        return own
    found = (Path(place).resolve() for place in candidates)
    return next((place for place in (own, *found) if place.is_dir() and is_passable(place)), own)


def make_passable(above: Path | None = None, *, prefix: str) -> Path:
    """A new folder that every user may pass through and read."""
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=above or passable()))
    made.chmod(0o755)
    return made
