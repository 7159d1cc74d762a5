"""What git says of a project: the top of its repository, and the files that it tracks."""

import os
import shutil
from functools import cached_property
from pathlib import Path

from zelda_ci import process
from zelda_ci.process import git_settings

SECONDS = 60.0
_REGULAR = ("100644 ", "100755 ")
NEW_ONES = ("--cached", "--others", "--exclude-standard")


def top_of(folder: Path) -> Path | None:
    """The top of the repository that a folder is in; absent where it is in none."""
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)


def listed(folder: Path, *options: str) -> list[str] | None:
    """What `git ls-files` says of a folder; absent where git cannot tell."""
    git = shutil.which("git")
    words = [git, "--no-optional-locks", *git_settings.OPTIONS, "-C", str(folder), "ls-files", "-z", *options]
    try:
        found = process.answer([word for word in words if word], timeout_seconds=SECONDS) if git else None
    except OSError:
        return None
    if found is None or found.exit_code != 0:
        return None
    return [os.fsdecode(name) for name in found.stdout.split(b"\0") if name]


class TrackedFiles:
    """The tracked files of a project: only such a one may become a prompt, which goes to the model and into results.

    Git is asked once, and only when it has to be. Where there is no repository, nothing is refused.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def refusal(self, path: Path) -> str | None:
        """Why a file of the project may not be used; absent where it may. Links to folders are followed."""
        real = Path(os.path.realpath(path.parent)) / path.name
        if self._names is None or str(real.relative_to(self._root)) in self._names:
            return None
        return "is not tracked by git, and what a session gets must be: commit it, or write the text under prompt"

    @cached_property
    def _names(self) -> frozenset[str] | None:
        """Regular files in the index, relative to the project; what git cannot tell is not tracked."""
        if top_of(self._root) is None or shutil.which("git") is None:
            return None
        entries = listed(self._root, "-s") or ()
        return frozenset(entry.partition("\t")[2] for entry in entries if entry.startswith(_REGULAR))
