"""What a session changed: the patch, and the lines that it counts."""

import os
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import anyio

from zelda_ci.domain.workspace import Changes
from zelda_ci.files.atomic import replacing
from zelda_ci.redact import Redactor
from zelda_ci.workspace.git import ABSENT, Git, RawChange
from zelda_ci.workspace.staging import MAX_FILE_BYTES, StagedTree

MAX_PATCH_BYTES = 20 << 20
MAX_RAW_BYTES = 256 << 20
MAX_NAMED = 50
# As arguments of a command.
MAX_EXCLUDED = 500
BORDER = b"diff --git "
# Lines of a file's own begin with a sign.
BINARY = b"\nGIT binary patch\n"
DIFF = ("diff-index", "--cached", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "-M", "-l1000")
# First the counts of all files, then, behind an empty field, the patch.
PATCH = (*DIFF, "--numstat", "-z", "--patch", "--binary", "--no-color")


async def write_patch(staged: StagedTree, start: str, raw: Path, target: Path, redact: Redactor) -> Changes:
    """Write the patch from the start commit to a staged tree, and count what is in it.

    Args:
        staged: The state after the session.
        start: The commit.
        raw: A file to make for git's own output.
        target: The file to make for the patch.
        redact: Masks the patch and the names.

    Raises:
        WorkspaceError: Git failed altogether, for instance for want of room.
    """
    large = await _large_before(staged.git, staged.changed)
    left_out = staged.left_out | {path: f"{size} bytes before" for path, size in large.items()}
    # Git would print all of a large file that is gone, and what comes after it would not fit any more.
    places = ("--", ":(top)", *(f":(top,exclude,literal){path}" for path in large))
    outcome = await staged.git.attempt(*PATCH, start, *places, to=raw, max_bytes=MAX_RAW_BYTES)
    if outcome.exit_code and not outcome.truncated:
        raise staged.git.failure(PATCH, outcome)

    def write() -> tuple[dict[str, tuple[int, int]], int, bool]:
        with raw.open("rb") as source, replacing(target) as file:
            file.write(redact("".join(f"# {line}\n" for line in _preface(left_out))).encode())
            counts = read_counts(source)
            cut = copy_sections(source, file, redact, complete=not outcome.truncated)
            return counts, file.tell(), cut

    counts, size, cut = await anyio.to_thread.run_sync(write)
    return Changes(
        files=tuple(map(redact, sorted({*counts, *left_out}))),
        insertions=sum(added for added, _ in counts.values()),
        deletions=sum(removed for _, removed in counts.values()),
        patch=target,
        patch_bytes=size,
        truncated=cut or bool(left_out),
    )


async def _large_before(git: Git, changed: Mapping[str, RawChange]) -> dict[str, int]:
    """Files that are changed or gone and were large at the start, with their sizes then."""
    old = {path: change.old_content for path, change in changed.items() if change.old_mode != ABSENT}
    if not old:
        return {}
    blobs = "".join(f"{blob}\n" for blob in old.values())
    sizes = await git("cat-file", "--batch-check=%(objectsize)", stdin=blobs.encode())
    known = [(path, int(size)) for path, size in zip(old, sizes.splitlines(), strict=True) if size.isdigit()]
    return dict([(path, size) for path, size in known if size > MAX_FILE_BYTES][:MAX_EXCLUDED])


def _preface(left_out: Mapping[str, str]) -> list[str]:
    """Lines for people, which `git apply` skips."""
    lines = [f"not in this patch: {name!r} ({why})" for name, why in sorted(left_out.items())]
    more = len(lines) - MAX_NAMED
    return [*lines[:MAX_NAMED], *([f"and {more} more"] if more > 0 else [])]


def read_counts(source: BinaryIO) -> dict[str, tuple[int, int]]:
    """Read git's counts of added and removed lines by file, up to the patch behind them.

    A renamed file stands by its new name, and a binary one has no lines.
    """
    head = b""
    while (end := head.find(b"\0\0")) < 0 and (chunk := source.read(1 << 20)):
        head += chunk
    if end < 0:
        return {}
    source.seek(end + 2)
    counts = {}
    fields = iter(os.fsdecode(head[:end]).split("\0"))
    for entry in fields:
        added, removed, name = entry.split("\t", 2)
        if not name:
            _, name = next(fields), next(fields)
        counts[name] = int(added.replace("-", "0")), int(removed.replace("-", "0"))
    return counts


def copy_sections(source: BinaryIO, file: BinaryIO, redact: Redactor, *, complete: bool) -> bool:
    """Append git's patch to a file, masked, as far as there is room; returns whether a file's section was left out.

    Bytes that are not UTF-8 are replaced. The last section is dropped where git's output broke off.
    """
    is_cut, section = not complete, bytearray()
    for line in chain(source, [BORDER] if complete else []):
        if line.startswith(BORDER) and section:
            # Compressed data says nothing, but letters by chance look like a name with a value.
            mask = redact.known_only() if BINARY in section else redact
            text = mask(section.decode("utf-8", "replace")).encode() if len(section) <= MAX_PATCH_BYTES else section
            if file.tell() + len(text) <= MAX_PATCH_BYTES:
                file.write(text)
            else:
                is_cut = True
            section.clear()
        # Of a section that can never fit, only enough to show that.
        if len(section) <= MAX_PATCH_BYTES:
            section += line
    return is_cut
