"""Status of a start, which the supervisor of a program writes into a file that the program cannot write.

An exit code cannot tell: a program may end with any number, 125 included, and so may what should have confined it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAX_MESSAGE_LENGTH = 200
BEGUN, ENDED = "begun", "ended"


@dataclass(frozen=True)
class Launch:
    """How far a start came; `exit_code` is the program's own, absent where the supervisor did not see its end."""

    begun: bool
    exit_code: int | None = None


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
            words = (opened.read(MAX_MESSAGE_LENGTH) or b"").decode("ascii", "replace").split()
            has_ended = len(words) == 3 and words[1] == ENDED and words[2].isascii() and words[2].isdigit()
            return Launch(words[:1] == [BEGUN], int(words[2]) if has_ended else None)

        yield read
