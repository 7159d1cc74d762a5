"""Where everything of one run lies while the run lives."""

import json
import os
from contextlib import suppress
from pathlib import Path

from zelda_ci.files import untrusted

MAX_JSON_BYTES, MAX_SENTENCE = 1 << 16, 1 << 10


def read_json_object(file: Path) -> dict[str, object]:
    """A small JSON object, or nothing; a session may have put anything in its place."""
    try:
        content = json.loads(untrusted.read_head(file, MAX_JSON_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def is_there(place: Path) -> bool:
    """Whether a folder is where it should be; a link there would lead a command out of the workspace."""
    # Unlike pathlib's, it bears with a closed folder above it.
    return os.path.isdir(place) and os.path.realpath(place) == str(place)  # noqa: PTH112


class WorkspaceFolder:
    """Names of what lies in a run's folder, which the lock with the descriptor `number` keeps alive.

    `root` is the work tree and `session_index` its index, both the session's to change; they hang from the run's own
    repository, `git_dir`. `home` and `tmp` are HOME and TMPDIR of the session, and `private` is what it finds as the
    system's temporary folders. In `limit_report` a supervisor says which bound was reached, beyond the session's reach.
    """

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number
        self.root, self.git_dir, self.home, self.tmp = (path / name for name in ("ws", "git", "home", "tmp"))
        self.session_index = self.git_dir / "worktrees" / self.root.name / "index"
        self.private, self.limit_report = path / "private", path / "limit.txt"

    def limit(self) -> str | None:
        """The sentence that a supervisor left, once."""
        self._restore_permissions()
        with suppress(OSError):  # nothing, or something that a session has put there
            sentence = untrusted.read_head(self.limit_report, MAX_SENTENCE).decode("utf-8", "replace")
            self.limit_report.unlink()
            return sentence
        return None

    def is_intact(self) -> bool:
        """Whether the work tree is still the folder that was made, and not a link to somewhere else."""
        self._restore_permissions()
        return is_there(self.root)

    def _restore_permissions(self) -> None:
        """Restore our permissions on the folder where a session of the same user has removed them."""
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            with suppress(OSError):
                untrusted.unlock(str(self.path))
