"""What git tracks of a project: only such a file may become a prompt, which goes to the model and into results."""

import os
import shutil
from functools import cached_property
from pathlib import Path

from zelda_ci import process
from zelda_ci.process import git_settings

SECONDS = 60.0
_REGULAR = (b"100644 ", b"100755 ")


def listing(top: Path) -> list[str]:
    """Files of a repository that are tracked, or new and not ignored; nothing where git cannot tell."""
    return sorted(set(_told(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")))


def _told(top: Path, *order: str) -> list[str]:
    git = shutil.which("git")
    try:
        words = [git, "--no-optional-locks", *git_settings.OPTIONS, "-C", str(top), *order] if git else []
        found = process.answer(words, timeout_seconds=SECONDS) if words else None
    except OSError:
        return []
    names = found.stdout.split(b"\0") if found and found.exit_code == 0 else []
    return [os.fsdecode(name) for name in names if name]


class TrackedFiles:
    """Asks git once, and only when it has to. Where there is no repository, nothing is refused."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def refusal(self, path: Path) -> str | None:
        """Why a file of the project may not be used; absent where it may. Links to folders are followed."""
        real = Path(os.path.realpath(path.parent)) / path.name
        if self._names is None or os.fsencode(real.relative_to(self._root)) in self._names:
            return None
        return "is not tracked by git, and what a session gets must be: commit it, or write the text under prompt"

    @cached_property
    def _names(self) -> frozenset[bytes] | None:
        """Regular files in the index, relative to the project; what git cannot tell is not tracked."""
        folders = (self._root, *self._root.parents)
        git = shutil.which("git")
        if git is None or not any(os.path.lexists(folder / ".git") for folder in folders):
            return None
        try:
            listing = process.answer(
                [git, *git_settings.OPTIONS, "-C", str(self._root), "ls-files", "-s", "-z"], timeout_seconds=SECONDS
            )
        except OSError:
            return frozenset()
        entries = listing.stdout.split(b"\0") if listing.exit_code == 0 else []
        return frozenset(entry.partition(b"\t")[2] for entry in entries if entry.startswith(_REGULAR))
