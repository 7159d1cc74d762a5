"""What a supervisor says of the program that it started, in a file that the program cannot write.

An exit code cannot tell: a program may end with any number, 125 included, and so may what should have confined it.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LONGEST = 200
BEGUN, ENDED = "begun", "ended"


@dataclass(frozen=True)
class Launch:
    """How far it came; `exit_code` is the program's own, absent where the supervisor did not see its end."""

    begun: bool
    exit_code: int | None = None


def fresh(file: Path) -> Path:
    """A file for the next start, in which nothing of an earlier one stands.

    Raises:
        OSError: The earlier one cannot be removed.
    """
    file.unlink(missing_ok=True)
    return file


def read(file: Path) -> Launch:
    """What was said; nothing where there is no such file."""
    words: list[str] = []
    with suppress(OSError), file.open("rb") as opened:
        words = opened.read(LONGEST).decode("ascii", "replace").split()
    known = len(words) == 3 and words[1] == ENDED and words[2].isascii() and words[2].isdigit()
    return Launch(words[:1] == [BEGUN], int(words[2]) if known else None)
