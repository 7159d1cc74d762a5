"""Status of a start, which the supervisor of a program writes into a file that the program cannot write.

An exit code cannot tell: a program may end with any number, 125 included, and so may what should have confined it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 200
# Process id of the supervisor, the word that the program has begun, its exit code: each written once it is known.
STATUS = re.compile(rb"(?:([0-9]{1,9})\n)?(?:(begun)\n)?(?:ended ([0-9]{1,3})\n)?")


@dataclass(frozen=True)
class Launch:
    """How far a start came; `exit_code` is the program's own, absent where the supervisor did not see its end."""

    begun: bool
    exit_code: int | None = None
    supervisor: int | None = None
    """Process id of the supervisor, once it runs."""


@contextmanager
def followed(file: Path) -> Iterator[Callable[[], Launch]]:
    """Hold the file for the next start open, and yield its reader: an unconfined command can remove the file only.

    Raises:
        OSError: The earlier one cannot be removed, or there is no room.
    """
    file.unlink(missing_ok=True)
    with file.open("x+b", buffering=0) as opened:

        def read() -> Launch:
            opened.seek(0)
            supervisor, begun, code = STATUS.findall(opened.read(MAX_BYTES) or b"")[0]
            return Launch(bool(begun), int(code) if code else None, int(supervisor) if supervisor else None)

        yield read
