"""Packs what setup has made of a fresh checkout, or puts it back into another; a program of its own.

It runs confined as the run itself, so links and names that a tested commit chose lead it nowhere else. What names the
folder of the first run in a text, as the scripts of a virtual environment do, names that of the other afterwards.

    pack ARCHIVE RUN MAX_BYTES MAX_FILES LISTING: paths below RUN, each ending with a NUL
    unpack ARCHIVE RUN
"""

import io
import json
import os
import stat
import sys
import tarfile
from collections.abc import Iterator

UNFIT = 3
TAKEN = 5
HEAD = 8192
# Larger files are data, and are not searched.
MAX_SEARCHED = 64 << 20
ABOUT = "about.json"


class UnfitError(Exception):
    """What cannot be kept."""


def pack(archive: str, run: str, max_bytes: int, max_files: int, tops: "list[str]") -> None:
    """Write the archive; nothing is left of it where something does not fit."""
    places = [os.path.join(run, part).encode() for part in ("ws", "home")]  # noqa: PTH118
    left, files = max_bytes, 0
    with tarfile.open(archive, "x", format=tarfile.PAX_FORMAT) as tar:
        about = json.dumps({"run": run, "tops": tops}).encode()
        tar.addfile(_member(ABOUT, len(about)), io.BytesIO(about))
        for path in (path for top in tops for path in _below(run, top)):
            member = tar.gettarinfo(os.path.join(run, path), path)  # noqa: PTH118
            if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
                raise UnfitError(f"{path} is no file, folder or link")
            files, left = files + 1, left - member.size
            if left < 0 or files > max_files:
                raise UnfitError("it is too large")
            if not member.isreg():
                tar.addfile(member)
                continue
            with open(os.path.join(run, path), "rb") as file:  # noqa: PTH118, PTH123
                content = file.read(MAX_SEARCHED)
                if b"\0" in content[:HEAD] and not content.startswith(b"#!") and not path.endswith(".pyc"):
                    _check_place(path, content, places)
                file.seek(0)
                tar.addfile(member, file)


def _check_place(path: str, content: bytes, places: "list[bytes]") -> None:
    if any(place in content for place in places):
        raise UnfitError(f"{path} works only where it is")


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def _below(run: str, top: str) -> Iterator[str]:
    """The entry and all that is in it, folders first; links are not followed."""
    waiting = [top]
    while waiting:
        path = waiting.pop()
        yield path
        full = os.path.join(run, path)  # noqa: PTH118
        if stat.S_ISDIR(os.lstat(full).st_mode):
            waiting += sorted((f"{path}/{name}" for name in os.listdir(full)), reverse=True)  # noqa: PTH208


def unpack(archive: str, run: str) -> int:
    """Put everything where it was, below another run's folder; nothing where something is there already."""
    with tarfile.open(archive) as tar:
        first = tar.next()
        text = tar.extractfile(first) if first and first.name == ABOUT else None
        about = json.loads(text.read()) if text else {}
        if any(top.startswith("ws/") and os.path.lexists(os.path.join(run, top)) for top in about["tops"]):  # noqa: PTH118
            return TAKEN
        old, new = about["run"].encode(), run.encode()
        for member in (each for each in tar if each.name != ABOUT):
            _extract(tar, member, os.path.join(run, member.name), old, new)  # noqa: PTH118
    return 0


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, place: str, old: bytes, new: bytes) -> None:
    if member.isdir():
        os.makedirs(place, exist_ok=True)  # noqa: PTH103
        os.chmod(place, member.mode | stat.S_IRWXU)  # noqa: PTH101
        return
    if os.path.lexists(place):
        os.unlink(place)  # noqa: PTH108
    if member.issym():
        link = member.linkname.encode("utf-8", "surrogateescape")
        os.symlink(new + link[len(old) :] if link.startswith(old + b"/") else link, os.fsencode(place))  # noqa: PTH211
        return
    # A second name of a file is a file of its own here: only one of them may name the run's folder.
    source = tar.extractfile(member)
    content = source.read() if source else b""
    if old in content[:MAX_SEARCHED]:
        content = _moved(content, old, new)
    with open(place, "xb") as file:  # noqa: PTH123
        file.write(content)
    os.chmod(place, member.mode)  # noqa: PTH101
    os.utime(place, (member.mtime, member.mtime))


def _moved(content: bytes, old: bytes, new: bytes) -> bytes:
    if b"\0" not in content[:HEAD]:
        return content.replace(old, new)
    if content.startswith(b"#!"):
        head, sep, rest = content.partition(b"\n")
        return head.replace(old, new) + sep + rest
    return content


def main(arguments: "list[str]") -> int:
    """Do as the first argument says; the exit code says whether it was possible."""
    action, archive, run, *limits = arguments
    if action == "unpack":
        return unpack(archive, run)
    with open(limits[2], "rb") as listing:  # noqa: PTH123
        tops = [os.fsdecode(name) for name in listing.read().split(b"\0") if name]
    try:
        pack(archive, run, int(limits[0]), int(limits[1]), tops)
    except (UnfitError, OSError) as problem:
        print(f"not kept: {problem}", file=sys.stderr)  # noqa: T201
        return UNFIT
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
