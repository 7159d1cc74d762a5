"""What a supervisor says of the program that it started, in a file that the program cannot write.

An exit code cannot tell: a program may end with any number, 125 included, and so may what should have confined it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from zelda_ci.files import untrusted

MAX_MESSAGE_LENGTH = 200
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


@contextmanager
def followed(file: Path) -> Iterator[BinaryIO]:
    """The file for the next start, held open: where nothing is confined, a command can remove it, and not what it says.

    Raises:
        OSError: The earlier one cannot be removed, or there is no room.
    """
    with fresh(file).open("x+b", buffering=0) as opened:
        yield opened


def read(file: Path) -> Launch:
    """What was said; nothing where there is no such file."""
    with suppress(OSError):
        return _launch(untrusted.read_head(file, MAX_MESSAGE_LENGTH))
    return Launch(begun=False)


def read_opened(opened: BinaryIO) -> Launch:
    """What was said in a file, from its beginning."""
    opened.seek(0)
    return _launch(opened.read(MAX_MESSAGE_LENGTH) or b"")


def _launch(message: bytes) -> Launch:
    words = message.decode("ascii", "replace").split()
    has_ended = len(words) == 3 and words[1] == ENDED and words[2].isascii() and words[2].isdigit()
    return Launch(words[:1] == [BEGUN], int(words[2]) if has_ended else None)
