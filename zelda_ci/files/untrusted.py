"""Files and folders where somebody hostile may have written.

No link is followed, nothing is opened that could block, and nothing is read but regular files, up to a limit. The error
says why a file was not read: `FileNotFoundError`, `NotRegularError`, `TooLargeError`, or another `OSError`.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from zelda_ci.errors import StorageError

# A path, or a name below the descriptor of a folder; bytes where it need not be UTF-8.
Name = str | bytes | os.PathLike[str]

_SAFE = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# What opening says of a link, a socket or pipe, a device and a folder.
_NOT_REGULAR = {errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EISDIR}
# Of a `.git` file, and of the file that names what a linked work tree shares.
MAX_POINTER_BYTES = 4_000

FILE = "a file"
_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFREG: FILE,
}  # fmt: skip


# Under these git looks at a repository of the user's, which a stranger may have filled.
GIT_SETTINGS: Mapping[str, str] = {
    # It may be another user's, as in a container.
    "safe.directory": "*",
    # A git directory can be committed as an ordinary folder: only one that is named, or a `.git`, is a repository.
    "safe.bareRepository": "explicit",
    # Both would run programs.
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
}
GIT_OPTIONS = tuple(word for name, value in GIT_SETTINGS.items() for word in ("-c", f"{name}={value}"))


def git_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as variables of git's environment: they win over those of every file."""
    pairs = {f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(settings)}
    pairs |= {f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(settings.values())}
    return {"GIT_CONFIG_COUNT": str(len(settings)), **pairs}


class NotRegularError(OSError):
    """A link, a folder, a pipe, a socket or a device."""

    def __init__(self, kind: str) -> None:
        super().__init__(errno.EINVAL, f"not a regular file but {kind}")


class TooLargeError(OSError):
    """More than is read; `size` is what the file had when it was opened, which may be less if it grew."""

    def __init__(self, size: int, max_bytes: int) -> None:
        super().__init__(errno.EFBIG, f"larger than {max_bytes} bytes")
        self.size = size


def refuse_links(folder: Path) -> None:
    """Raise `StorageError` for a folder of a repository behind a link: whoever wrote that chose where it leads."""
    path = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow the links
    # The outermost: a link may lead into another repository.
    *_, top = path, *repositories(path)
    places = [path, *path.parents]
    for place in reversed(places[: places.index(top)]):
        if place.is_symlink():
            message = f"{place} is a symbolic link, through which {folder} would be written."
            raise StorageError(message, hint="Remove the link: Zelda writes through none.", code="STORAGE_LINK")


def repositories(folder: Path) -> Iterator[Path]:
    """Tops of the repositories that a folder is in, the innermost first."""
    return (place for place in (folder, *folder.parents) if os.path.lexists(os.path.join(place, ".git")))  # noqa: PTH118 - fast


def git_folders(top: Path) -> list[Path]:
    """Return the git directory of a work tree, then that of the main work tree where it is a linked one."""

    def text(file: Path) -> str:
        with suppress(OSError):
            return read_head(file, MAX_POINTER_BYTES).decode("utf-8", "surrogateescape").strip()
        return ""

    pointer = text(top / ".git")
    own = top / (pointer.removeprefix("gitdir:").strip() if pointer.startswith("gitdir:") else ".git")
    shared = text(own / "commondir")
    return [own, own / shared] if shared else [own]


def read(name: Name, max_bytes: int | None = None, *, folder: int | None = None, follow_link: bool = False) -> bytes:
    """Return the content of a regular file; without a limit where no session could reach it."""
    # A link is followed where the user named the file.
    with open(open_regular(name, folder=folder, follow_link=follow_link), "rb") as file:
        if max_bytes is None:
            return file.read()
        # A sparse file may claim any size, and one that still grows has more than it said.
        size = os.fstat(file.fileno()).st_size
        content = file.read(max_bytes + 1) if size <= max_bytes else b""
        if max(size, len(content)) > max_bytes:
            raise TooLargeError(size, max_bytes)
        return content


def read_head(name: Name, max_bytes: int) -> bytes:
    """Return the first bytes of a regular file, however large it is."""
    with open(open_regular(name), "rb") as file:
        return file.read(max_bytes)


def open_regular(
    name: Name, flags: int = os.O_RDONLY, mode: int = 0o666, *, folder: int | None = None, follow_link: bool = False
) -> int:
    """Open a regular file; returns a descriptor, to be closed by the caller. Usable as an `opener`.

    The name is its path, or with a `folder`, which is a descriptor, its name there; `mode`, less the umask, is that of
    a file that is made. A link is followed on demand where it is the last part of the path.
    """
    with _possible_names():
        try:
            descriptor = os.open(name, flags | _SAFE | (0 if follow_link else os.O_NOFOLLOW), mode, dir_fd=folder)
        except OSError as error:
            kind = kind_of(name, folder) if error.errno in _NOT_REGULAR else None
            raise NotRegularError(kind) if kind else error from None
    if not is_regular(status := os.fstat(descriptor)):
        os.close(descriptor)
        raise NotRegularError(_KINDS.get(stat.S_IFMT(status.st_mode), "something unknown"))
    return descriptor


def open_folder(name: Name, *, folder: int | None = None) -> int:
    """Open a real folder; returns a descriptor, to be closed by the caller."""
    with _possible_names():
        return os.open(name, _FOLDER, dir_fd=folder)


@contextmanager
def entered(top: Path | int, parts: Iterable[str | bytes] = ()) -> Iterator[int]:
    """The descriptor of a folder below another, reached step by step so that none of the steps can be a link."""
    # A descriptor as `top` stays open.
    descriptor = os.dup(top) if isinstance(top, int) else open_folder(top)
    try:
        for part in parts:
            outer, descriptor = descriptor, open_folder(part, folder=descriptor)
            os.close(outer)
        yield descriptor
    finally:
        os.close(descriptor)


# Each folder is reached from the top, so that the time grows with the square of the depth.
MAX_DEPTH = 100


class FileTree(NamedTuple):
    """What lies below a folder."""

    files: list[str]
    """Regular files by path, with forward slashes: first those that are not deep, each level sorted. Bytes that are no
    UTF-8 are surrogates in a path, as Python has them."""
    others: list[str]
    """What is neither a regular file nor a folder, by path."""
    is_whole: bool
    """False where there is more than was looked at, or a folder could not be entered."""


def tree(top: Path, max_entries: int, *, leave_out: Container[str] = ()) -> FileTree:
    """Walk a tree, at most so many entries of whatever kind, without names that are left out wherever they are."""
    files, others, waiting = list[str](), list[str](), deque[tuple[str, ...]]([()])
    room, is_whole = max_entries, True
    while waiting:
        parts = waiting.popleft()
        try:
            with entered(top, parts) as folder, os.scandir(folder) as listing:
                # One more than there is room for: whoever made the folder chose how many it holds.
                entries = sorted(islice(listing, room + 1), key=lambda entry: entry.name)
                kinds = [(entry, entry.stat(follow_symlinks=False)) for entry in entries[:room]]
        except OSError:
            is_whole = False
            continue
        is_whole &= len(entries) <= room
        room -= len(kinds)
        for entry, status in kinds:
            path = (*parts, entry.name)
            if entry.name in leave_out:
                continue
            if is_regular(status):
                files.append("/".join(path))
            elif not stat.S_ISDIR(status.st_mode):
                others.append("/".join(path))
            elif len(path) <= MAX_DEPTH:
                waiting.append(path)
            else:
                is_whole = False
    return FileTree(files, others, is_whole)


def read_below(top: Path, path: str, max_bytes: int) -> bytes:
    """Return the whole content of a regular file by its path below a folder, which may have no links and no `..`."""
    *folders, name = path.split("/")
    if any(step in {"", ".", ".."} for step in (*folders, name)):
        raise OSError(errno.EINVAL, "not a path inside the tree")
    with entered(top, folders) as folder:
        return read(name, max_bytes, folder=folder)


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


def kind_of(name: Name, folder: int | None = None) -> str | None:
    """Return what lies at a path, in words, or None where nothing does or nobody can tell."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return _KINDS.get(stat.S_IFMT(status.st_mode), "something unknown")


def move(name: str, folder: int, fresh: str, top: int) -> None:
    """Move an entry of one folder to another; of a folder this writes its `..`, which its own mode may forbid."""
    try:
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:
        unlock(name, folder)
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)


def unlock(name: str, parent: int | None = None) -> None:
    """Change the mode of a folder that cannot be opened, never of what a link in its place points to."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(stat.S_IRWXU)
    finally:
        os.close(handle)


@contextmanager
def _possible_names() -> Iterator[None]:
    try:
        yield
    except ValueError:  # a zero byte, or what no file system could hold
        raise OSError(errno.EINVAL, "an impossible name") from None
