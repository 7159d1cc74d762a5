"""`zelda run --watch`: the same run again whenever a file was saved."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from zelda_ci.cli import debug_log
from zelda_ci.cli.output import echo
from zelda_ci.config.files import NEW_ONES, find_root, listed
from zelda_ci.errors import EXIT_INTERRUPTED, ConfigError, ZeldaError

SECONDS = 1.0
State = dict[str, tuple[int, int]]


def watch(folder: Path, run: Callable[[], int]) -> int:
    """Run at once, and again after each change of a file that git tracks or would; until it is interrupted.

    Raises:
        ConfigError: The folder is in no repository: nothing says which files are the project's.
    """
    root = find_root(folder)
    if not (seen := _state(root)):
        hint = "Make it a repository first, or run without --watch."
        raise ConfigError("--watch needs a git repository.", hint=hint, code="USAGE")
    while True:
        try:
            if (code := run()) == EXIT_INTERRUPTED:
                return code
        except ZeldaError as problem:
            debug_log.explain(problem)
        echo(f"\nWatching {len(seen)} files. Ctrl+C ends it.", err=True)
        seen = _changed(root, seen)


def _changed(root: Path, seen: State) -> State:
    """The files once one of them differs, and the editor has written all that it had to write."""
    now = before = seen
    while now == seen or now != before:
        time.sleep(SECONDS)
        before, now = now, _state(root)
    names = sorted(name for name in seen.keys() | now.keys() if seen.get(name) != now.get(name))
    echo(f"Changed: {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}", err=True)
    return now


def _state(root: Path) -> State:
    """By name, what a save changes; nothing of files that are gone."""
    state = {}
    for name in listed(root, *NEW_ONES) or ():
        with suppress(OSError):
            status = (root / name).lstat()
            state[name] = (status.st_mtime_ns, status.st_size)
    return state
