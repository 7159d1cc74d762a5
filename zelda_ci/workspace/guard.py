"""Keeps protected files as they were committed, also where a command that ran before has changed them.

A build step may be the session's own code. Nothing of the run is alive while the files are looked at, but what it has
left may be anything: links and pipes in place of folders and files.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from zelda_ci.workspace import removal

MOST_NAMED = 20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@dataclass(frozen=True)
class Guard:
    """Copies of the files, by their path below the root, where no run can reach."""

    root: Path
    copies: Path
    files: Sequence[bytes]

    @classmethod
    def over(cls, root: Path, copies: Path, files: Sequence[bytes]) -> "Guard":
        """Copy them from a fresh checkout; links and submodules are left alone."""
        copies.mkdir(mode=0o700)
        places = {name: root / os.fsdecode(name) for name in files}
        plain = {name: place for name, place in places.items() if stat.S_ISREG(place.lstat().st_mode)}
        for number, place in enumerate(plain.values()):
            shutil.copy(place, copies / str(number), follow_symlinks=False)
        return cls(root, copies, tuple(plain))

    def restore(self) -> list[str]:
        """Put back what is different; returns its names."""
        return [os.fsdecode(name) for number, name in enumerate(self.files) if self._put_back(name, number)]

    def _put_back(self, name: bytes, number: int) -> bool:
        content = (self.copies / str(number)).read_bytes()
        *above, last = name.split(b"/")
        with self._inside(above) as folder:
            if _content(last, folder, len(content)) == content:
                return False
            self._aside(last, folder)
            mode = 0o755 if (self.copies / str(number)).stat().st_mode & stat.S_IXUSR else 0o644
            with open(os.open(last, WRITE, mode, dir_fd=folder), "wb") as file:  # noqa: PTH123  # a descriptor
                file.write(content)
                self._hand_over(file.fileno())
        return True

    @contextmanager
    def _inside(self, parts: Sequence[bytes]) -> Iterator[int]:
        """A descriptor of a real folder below the root; whatever else stands in its way is moved aside."""
        current = os.open(self.root, FOLDER)
        try:
            for part in parts:
                current = self._entered(part, current)
            yield current
        finally:
            os.close(current)

    def _entered(self, part: bytes, above: int) -> int:
        try:
            try:
                return os.open(part, FOLDER, dir_fd=above)
            except OSError:
                self._aside(part, above)
                os.mkdir(part, dir_fd=above)
                below = os.open(part, FOLDER, dir_fd=above)
                self._hand_over(below)
                return below
        finally:
            os.close(above)

    def _aside(self, name: bytes, folder: int) -> None:
        top = os.open(self.copies, FOLDER)
        try:
            with suppress(FileNotFoundError):
                removal.move(os.fsdecode(name), folder, secrets.token_hex(8), top)
        finally:
            os.close(top)

    def _hand_over(self, descriptor: int) -> None:
        if os.geteuid() == 0:
            owner = self.root.lstat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


async def restored(guard: Guard | None) -> list[str]:
    """Put back what is different, and say so in a sentence."""
    names = await anyio.to_thread.run_sync(guard.restore) if guard else []
    told = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
    return (
        [f"Protected files that an earlier command had changed were restored before this one: {told}"] if names else []
    )


def _content(name: bytes, folder: int, most: int) -> bytes | None:
    """Of a plain file, one byte more than wanted at most."""
    try:
        descriptor = os.open(name, READ, dir_fd=folder)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor
        return file.read(most + 1)
