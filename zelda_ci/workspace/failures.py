"""What the system refuses, as an error that a person understands."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zelda_ci import locks
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import git

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
IN_THE_WAY = {errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def explained() -> Iterator[None]:
    """A full disk or a missing permission, told as what it is."""
    try:
        yield
    except OSError as error:
        named = error.filename2 or error.filename
        where = f"{os.fsdecode(named)}: " if isinstance(named, (str, bytes)) else ""
        raise WorkspaceError(
            f"The workspace cannot be used: {where}{error.strerror or error}.", hint=_hint(error)
        ) from error


def _hint(error: OSError) -> str | None:
    match error.errno:
        case code if code in FULL:
            return git.MAKE_ROOM
        case code if code in IN_THE_WAY:
            found = _obstacle(error)
            what = f"{found} is {locks.kind_of(found)}, and Zelda keeps something else there: " if found else ""
            advice = f"{what}move it away and start again, or set ZELDA_WORKSPACES to another folder of your own."
            return advice[:1].upper() + advice[1:]
        case code if code in FORBIDDEN:
            return "Make it writable, or set ZELDA_WORKSPACES to another folder of your own."
        case _:
            return None


def _obstacle(error: OSError) -> Path | None:
    """The lowest that exists of what was asked for: of `a/b/c` the file `b`."""
    named = error.filename2 or error.filename
    if not isinstance(named, (str, bytes)):
        return None
    path = Path(os.fsdecode(named))
    return next((place for place in (path, *path.parents) if locks.kind_of(place)), None)
