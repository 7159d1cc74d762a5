"""A bare repository written by hand: four small files cost less than one git process."""

from collections.abc import Mapping
from pathlib import Path


def create(
    folder: Path,
    *,
    object_format: str = "sha1",
    settings: Mapping[str, str] | None = None,
    borrow: Path | None = None,
    shallow: bytes = b"",
) -> None:
    """Make an empty repository in a new folder: no remotes, no hooks, nothing of the user's but checkout settings.

    It may borrow the objects of another object folder, which it never writes.
    """
    (folder / "refs" / "heads").mkdir(parents=True)
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "info").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(_configuration(object_format, settings or {}))
    if borrow is not None:
        (folder / "objects" / "info" / "alternates").write_text(f"{borrow}\n")
    if shallow:
        (folder / "shallow").write_bytes(shallow)


def _configuration(object_format: str, settings: Mapping[str, str]) -> str:
    values = {
        "core.repositoryformatversion": "0" if object_format == "sha1" else "1",
        "core.filemode": "true",
        "core.logallrefupdates": "true",
        "core.hookspath": "/dev/null",
        "gc.auto": "0",
        "maintenance.auto": "false",
        **settings,
        "core.bare": "true",
    }
    if object_format != "sha1":
        values["extensions.objectformat"] = object_format
    return "".join(_line(name, value) for name, value in values.items())


def _line(setting: str, value: str) -> str:
    section, name = setting.split(".", 1)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}]\n\t{name} = "{escaped}"\n'
