"""The base commit where git cannot fetch it: through GitHub's API, into a repository of Zelda's own.

Every file has the name of its content, and all of them together must make the very tree of the commit. That this tree
is the commit's, GitHub says; the commit that holds it here is therefore one of Zelda's own.
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio.to_thread

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.source_tree import (
    MAX_ARCHIVE_BYTES,
    MAX_FILE_BYTES,
    MAX_UNPACKED_BYTES,
    Signature,
    SourceCommit,
    SourceEntry,
    contents,
    read_blob,
    read_commit,
    read_tree,
)
from zelda_ci.workspace.git import Git, explained

# Asked for one by one: a job may ask GitHub a thousand times in an hour.
MAX_SINGLE_FILES = 200


async def supply(git: Git, api: Api, commit: str, wanted: Callable[[str], bool] | None = None) -> str:
    """Fill an empty bare repository with a commit's folders and files.

    Args:
        git: In the repository, at its top.
        api: Of the repository on GitHub.
        commit: Its name.
        wanted: Says of a path whether its content is needed; without it all are.

    Returns:
        The name of a commit with the very same tree.

    Raises:
        GitHubError: It cannot be had as it is; the message says why.
        WorkspaceError: Git could not be run, or there is no room.
    """
    with explained():
        source, entries = await anyio.to_thread.run_sync(_bring, api, commit, git.cwd, wanted)
        await _make_tree(git, source.tree.sha, entries)
        return _write(git.cwd, b"commit", _commit(source))


def _bring(
    api: Api, commit: str, repository: Path, wanted: Callable[[str], bool] | None
) -> tuple[SourceCommit, Sequence[SourceEntry]]:
    source = read_commit(api, commit)
    entries = read_tree(api, source.tree.sha)
    left = {entry.sha: entry.size for entry in entries if entry.type == "blob" and (not wanted or wanted(entry.path))}
    _check_sizes(left)
    count = len(left)
    if wanted is None or count > MAX_SINGLE_FILES:
        with api.source_archive(commit, max_bytes=MAX_ARCHIVE_BYTES) as archive:
            for name, content in contents(archive, dict(left)):
                _write(repository, b"blob", content)
                del left[name]
    if len(left) > MAX_SINGLE_FILES:
        why = "attributes like export-ignore or export-subst change what is in it"
        message = f"GitHub's archive of {commit[:7]} lacks {len(left):,} of {count:,} files: {why}."
        raise GitHubError(message, code="GITHUB_REFUSED")
    for name in left:
        _write(repository, b"blob", read_blob(api, name))
    return source, entries


def _check_sizes(sizes: Mapping[str, int]) -> None:
    """Before anything is downloaded."""
    if sum(sizes.values()) > MAX_UNPACKED_BYTES or max(sizes.values(), default=0) > MAX_FILE_BYTES:
        limits = f"{MAX_UNPACKED_BYTES >> 30} GB together or {MAX_FILE_BYTES >> 20} MB each"
        raise GitHubError(f"The commit's files have more than {limits}.", code="GITHUB_TOO_LARGE")


async def _make_tree(git: Git, tree: str, entries: Sequence[SourceEntry]) -> None:
    """Make the folders, and see that they are those of the commit."""
    lines = "".join(f"{entry.mode} {entry.type} {entry.sha}\t{entry.path}\0" for entry in entries)
    indexed = git.within(git.cwd, GIT_DIR=str(git.cwd), GIT_INDEX_FILE=str(git.cwd / "index-of-api"))
    listed = await indexed.attempt("update-index", "-z", "--index-info", stdin=lines.encode("utf-8", "replace"))
    made = await indexed.attempt("write-tree", "--missing-ok")
    if listed.exit_code or made.exit_code or made.stdout.decode().strip() != tree:
        raise GitHubError("The files that GitHub lists are not those of the commit.", code="GITHUB_REFUSED")


def _commit(source: SourceCommit) -> bytes:
    author, committer = (_signed(each) for each in (source.author, source.committer))
    message = source.message.replace("\0", "")
    return f"tree {source.tree.sha}\nauthor {author}\ncommitter {committer}\n\n{message}\n".encode("utf-8", "replace")


def _signed(signature: Signature) -> str:
    name, email = (re.sub(r"[<>\x00-\x1f]", "", text).strip() for text in (signature.name, signature.email))
    return f"{name or 'unknown'} <{email}> {max(0, int(signature.date.timestamp()))} +0000"


def _write(repository: Path, kind: bytes, content: bytes) -> str:
    """Keep a loose object, as git does; returns its name."""
    whole = b"%b %d\0%b" % (kind, len(content), content)
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    file = repository / "objects" / name[:2] / name[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(whole, 1))
    return name
