"""The final workspace of a session, listed, read and searched for judges: bounded, and always in the same order.

A session that may be hostile has written the tree, and whoever judges it names paths and patterns.
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import re2

from zelda_ci.files import globs, untrusted

MAX_ENTRIES = 50_000
# Of one file: a larger one is neither read nor searched.
MAX_FILE_BYTES = 10_000_000
# Of all files that one search reads.
MAX_SEARCHED_BYTES = 100_000_000
MAX_PATTERN_LENGTH = 500


class LookupFailedError(Exception):
    """Why something cannot be looked up, in words."""


@dataclass(frozen=True)
class FinalTree:
    """The files below the top of a final workspace, without git's own."""

    root: Path

    @cached_property
    def _tree(self) -> untrusted.FileTree:
        return untrusted.tree(self.root, MAX_ENTRIES, leave_out=(".git",))

    @property
    def is_whole(self) -> bool:
        """False where there is more than is listed."""
        return self._tree.is_whole

    def files(self, patterns: Sequence[str]) -> list[str]:
        """Regular files that a pattern covers, by path, in a fixed order."""
        return [path for path in self._tree.files if _covers(patterns, path)]

    def others(self, patterns: Sequence[str]) -> list[str]:
        """What a pattern covers that is neither a regular file nor a folder, by path."""
        return [path for path in self._tree.others if _covers(patterns, path)]

    def read(self, path: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """The whole content of a regular file; raises OSError where it cannot be read, or is larger."""
        return untrusted.read_below(self.root, path.removeprefix("./"), max_bytes)

    def text(self, path: str, max_bytes: int = MAX_FILE_BYTES) -> str:
        """The text of a regular file; raises OSError as `read` does, and where it is binary."""
        data = self.read(path, max_bytes)
        if b"\0" in data:
            raise OSError(errno.EINVAL, "a binary file")
        return data.decode("utf-8", "replace")


def _covers(patterns: Sequence[str], path: str) -> bool:
    return globs.matches((pattern.removeprefix("./") for pattern in patterns), path)


def expression(pattern: str, *, is_regex: bool = True) -> Any:
    """Compile what is searched for in lines: an expression of RE2, or a text as it stands.

    Raises LookupFailedError where it is too long, or no expression that RE2 understands.
    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise LookupFailedError(f"the pattern is longer than {MAX_PATTERN_LENGTH} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 16 << 20
    try:
        return re2.compile(f"(?m){pattern}" if is_regex else re2.escape(pattern), options)
    except re2.error:
        raise LookupFailedError("the pattern is no expression that RE2 understands") from None
