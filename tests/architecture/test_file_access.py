"""Dangerous work with files has one place: opening without following links, replacing files whole, and locks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "zelda_ci"

EXCEPTIONS = {
    "sandbox/launcher/inside.py": "started as a program of its own, it may import nothing of Zelda",
    "sandbox/launcher/supervisor.py": "started as a program of its own, it may import nothing of Zelda",
    "pipeline/shards.py": "a whole folder is put in its place",
    "workspace/changes.py": "entries of any kind are moved aside for a while",
    "workspace/store.py": "a whole folder is put in its place",
}

OPENING = {"open", "O_NOFOLLOW", "S_ISREG"}
LOCKING = {"flock", "lockf"}
REPLACING = {"replace", "rename", "renames", "mkstemp", "NamedTemporaryFile"}


def dangers(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="open"), args=[first, *_]):
                if ast.unparse(first) != "os.devnull":
                    yield "os.open"
            case ast.Call(func=ast.Attribute(attr="replace"), args=[_], keywords=[]):
                yield "replace"  # of a path: that of a text takes two arguments
            case ast.Call(func=ast.Attribute(attr="rename" | "renames" | "mkstemp" | "NamedTemporaryFile" as name)):
                yield name
            case ast.Attribute(attr="O_NOFOLLOW" | "S_ISREG" | "flock" | "lockf" as name):
                yield name
            case ast.ImportFrom(module="os" | "stat" | "fcntl" | "tempfile", names=names):
                yield from (alias.name for alias in names if alias.name in OPENING | LOCKING | REPLACING)
            case _:
                pass


@pytest.mark.parametrize(
    "source",
    [
        "os.open(path, os.O_RDONLY)",
        "flags = os.O_NOFOLLOW",
        "stat.S_ISREG(mode)",
        "from stat import S_ISREG",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "draft.replace(target)",
        "os.replace(draft, target) or os.rename(draft, target)",
        "tempfile.NamedTemporaryFile('w')",
    ],
)
def test_a_danger_is_seen(source: str) -> None:
    assert list(dangers(source))


@pytest.mark.parametrize(
    "source",
    ["os.open(os.devnull, os.O_RDWR)", "text.replace('a', 'b')", "day.replace(tzinfo=UTC)", "replace(run, trial=2)"],
)
def test_what_is_harmless_is_not(source: str) -> None:
    assert list(dangers(source)) == []


def test_dangerous_work_with_files_is_done_in_one_package() -> None:
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if file.parent != PACKAGE / "files"]
    places = {str(file.relative_to(PACKAGE)): sorted(set(dangers(file.read_text("utf-8")))) for file in files}
    assert {place: names for place, names in places.items() if names and place not in EXCEPTIONS} == {}
    assert [place for place in EXCEPTIONS if not places[place]] == []
