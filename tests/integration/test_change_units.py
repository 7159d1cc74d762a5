"""Units of changes in real repositories, and commits without some of them."""

import os
from collections.abc import Awaitable, Callable, Mapping
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import anyio
import pytest

from tests.support.projects import Project, repository
from zelda_ci.domain.attribution import ChangeUnit, unit_words
from zelda_ci.domain.kinds import may_steer
from zelda_ci.redact import Redactor
from zelda_ci.workspace import git, units
from zelda_ci.workspace.units import ChangeUnits

Files = Mapping[str, str | bytes]
T = TypeVar("T")


def with_units(
    project: Project, work: Callable[[ChangeUnits], Awaitable[T]], is_felt: Callable[[str], bool | None] = may_steer
) -> T:
    """Read the units of the last commit, and do something with them."""

    async def main() -> T:
        base, head = project.git("rev-parse", "HEAD~1"), project.git("rev-parse", "HEAD")
        project.base.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=project.base) as place:
            zeldas = git.prepare(project.base, project.environ, Redactor([]))
            inside = units.prepare(Path(place, "units"), zeldas, head, project.path / ".git")
            return await work(await units.read_units(inside, base, head, is_felt))

    before = project.fingerprint()
    try:
        return anyio.run(main)
    finally:
        assert project.fingerprint() == before


def changed(tmp_path: Path, before: Files, after: Files, *gone: str, init: tuple[str, ...] = ()) -> Project:
    project = repository(tmp_path, before, init=init)
    for path in gone:
        (project.path / path).unlink()
    project.write(after)
    project.commit()
    return project


def found(project: Project) -> tuple[ChangeUnit, ...]:
    async def work(change: ChangeUnits) -> tuple[ChangeUnit, ...]:
        return tuple(part.unit for part in change.parts)

    return with_units(project, work)


def without(project: Project, *reverted: int) -> str:
    """The tree of a commit without units, as git lists it; the commit is the same each time."""

    async def work(change: ChangeUnits) -> str:
        commit = await change.without(reverted)
        assert commit == await change.without(reverted)
        return os.fsdecode(await change.git("ls-tree", "-r", "-z", commit)).strip()

    return with_units(project, work)


def text(project: Project, path: str, *reverted: int) -> bytes:
    async def work(change: ChangeUnits) -> bytes:
        return await change.git("cat-file", "blob", f"{await change.without(reverted)}:{path}")

    return with_units(project, work)


async def differing(change: ChangeUnits, commit: str) -> list[str]:
    """The files in which a commit differs from the head."""
    names = await change.git("diff-tree", "-r", "-z", "--name-only", change.head, commit)
    return os.fsdecode(names).split("\0")[:-1]


def listed(project: Project, commit: str) -> str:
    return project.git("ls-tree", "-r", "-z", commit)


LINES = [f"line {number}\n" for number in range(1, 13)]


def edited(**lines: str | None) -> str:
    new = {int(key[1:]): value for key, value in lines.items()}
    return "".join(new.get(number, line) or "" for number, line in enumerate(LINES, 1))


CASES: dict[str, tuple[Files, Files, tuple[str, ...], int]] = {
    "hunks near each other": (
        {"CLAUDE.md": "".join(LINES)},
        {"CLAUDE.md": edited(_1="one\n", _4=None, _7="seven\nand\n", _10="ten\n", _12="twelve\n")},
        (),
        4,
    ),
    "one line between": ({"CLAUDE.md": "".join(LINES)}, {"CLAUDE.md": edited(_2="two\n", _4="four\n")}, (), 1),
    "added and removed": ({"a/CLAUDE.md": "a\n", "CLAUDE.md": ""}, {".claude/rules/n.md": "n\n"}, ("a/CLAUDE.md",), 2),
    "renamed with its name elsewhere": (
        {".claude/skills/old/SKILL.md": "".join(LINES), "CLAUDE.md": "Use old.\n\n\nBe brief.\n"},
        {".claude/skills/new/SKILL.md": edited(_2="two\n"), "CLAUDE.md": "Use new.\n\n\nBe long.\n"},
        (".claude/skills/old/SKILL.md",),
        2,
    ),
    "renamed, and a hunk with its letter": (
        {".claude/skills/a/SKILL.md": "".join(LINES), "CLAUDE.md": "Always.\n"},
        {".claude/skills/b/SKILL.md": "".join(LINES), "CLAUDE.md": "Be brief.\n"},
        (".claude/skills/a/SKILL.md",),
        2,
    ),
    "settings": (
        {".claude/settings.json": '{\n"a": 1,\n"b": 2,\n"c": 3\n}\n', "CLAUDE.md": "a\n"},
        {".claude/settings.json": '{\n"env": {\n"a": 1,\n"b": 2,\n"c": 3\n}}\n', "CLAUDE.md": "b\n"},
        (),
        2,
    ),
    "binary": (
        {".claude/skills/a/x.bin": b"\0a", "CLAUDE.md": "a\n"},
        {".claude/skills/a/x.bin": b"\0b", "CLAUDE.md": "b\n"},
        (),
        2,
    ),
    "line ends": ({"CLAUDE.md": "a\r\nb\r\nc\r\nd\r\n"}, {"CLAUDE.md": "A\r\nb\r\nc\r\nD\r\n"}, (), 2),
    "no line end": ({"CLAUDE.md": "a\nb\nc\nd"}, {"CLAUDE.md": "A\nb\nc\nd\ne"}, (), 2),
    "odd names": (
        {'.claude/rules/a\tb\n"ü\\.md': "a\n", "CLAUDE.md": "1\n"},
        {'.claude/rules/a\tb\n"ü\\.md': "b\n", "CLAUDE.md": "2\n"},
        (),
        2,
    ),
    "code": (
        {"CLAUDE.md": "a\n", "a.py": "1", "b.py": "1"},
        {"CLAUDE.md": "b\n", "b.py": "2", "c/d.py": "3"},
        ("a.py",),
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_any_units_can_be_taken_back(tmp_path: Path, name: str) -> None:
    before, after, gone, count = CASES[name]
    project = changed(tmp_path, before, after, *gone, init=("--object-format=sha256",) if name == "code" else ())
    assert len(found(project)) == count
    assert without(project) == listed(project, "HEAD")
    assert without(project, *range(count)) == listed(project, "HEAD~1")
    trees = [without(project, *some) for size in range(count + 1) for some in combinations(range(count), size)][:12]
    assert all(trees.count(tree) == 1 for tree in trees)


def test_a_hunk_is_taken_back_and_nothing_else(tmp_path: Path) -> None:
    before, after = CASES["hunks near each other"][:2]
    project = changed(tmp_path, before, after)
    places = ["line 1", "lines removed after line 3", "lines 6 to 7", "lines 10 to 12"]
    assert [*map(unit_words, found(project))] == [f"CLAUDE.md, {place}" for place in places]
    first = changed(tmp_path / "top", {"CLAUDE.md": "a\nb\n"}, {"CLAUDE.md": "b\n"})
    assert [*map(unit_words, found(first))] == ["CLAUDE.md, lines removed at the top"]
    assert text(project, "CLAUDE.md", 1).decode() == edited(_1="one\n", _7="seven\nand\n", _10="ten\n", _12="twelve\n")


def test_a_mode_and_a_link_are_units_and_a_submodule_stays(tmp_path: Path) -> None:
    project = repository(tmp_path, {".claude/rules/run.md": "a\n", ".claude/rules/b.md": "b\n", "CLAUDE.md": "1\n"})
    first = project.git("rev-parse", "HEAD")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{first},lib")
    project.git("commit", "-q", "-m", "with a submodule")
    second = project.git("rev-parse", "HEAD")
    (project.path / ".claude/rules/run.md").chmod(0o755)
    (project.path / ".claude/rules/b.md").unlink()
    (project.path / ".claude/rules/b.md").symlink_to("run.md")
    project.git("add", ".claude")
    project.git("update-index", "--cacheinfo", f"160000,{second},lib")
    project.git("commit", "-q", "-m", "changed")
    assert [(unit.kind, unit.files) for unit in found(project)] == [
        ("file", (".claude/rules/b.md",)),
        ("file", (".claude/rules/run.md",)),
    ]
    assert without(project, 0, 1) == listed(project, "HEAD~1").replace(first, second)


def test_what_no_session_sees_is_no_unit(tmp_path: Path) -> None:
    project = changed(tmp_path, {"CLAUDE.md": "a\n"}, {"CLAUDE.md": "b\n", "zelda/test-a.yaml": "", "a.py": ""})

    async def work(change: ChangeUnits) -> list[tuple[str, ...]]:
        return [part.unit.files for part in change.parts]

    seen = with_units(project, work, lambda path: None if path.startswith("zelda") else may_steer(path))
    assert seen == [("CLAUDE.md",), ("a.py",)]


SKILL = "---\nname: deploy\ndescription: >\n  Use it\n\n  to ship.\n---\n# Deploy\n\nRun it.\n"
MEMORY = "---\n# C#\n---\n# A\n\none\n\n## B\n\n```\n# no heading\n```\n\ntwo\n\n<!--\n# C#\n-->\n\n"
SHARP, LAST = "# C#\r\n\r\nthree\r\n\r\n", "Set *ext*\n===\nfour"


@pytest.mark.parametrize(
    ("name", "files", "section"),
    [
        ("deploy", {".claude/skills/deploy/SKILL.md", ".claude/skills/deploy/more.md"}, ""),
        ("linked", {".claude/skills/linked"}, ""),
        (".claude/rules/money.md", {".claude/rules/money.md"}, ""),
        ("money", {".claude/rules/money.md"}, ""),
        ("CLAUDE.md:b", {"CLAUDE.md"}, MEMORY[MEMORY.index("## B") :]),
        ("CLAUDE.md: C# ", {"CLAUDE.md"}, SHARP),
        ("./CLAUDE.md:Set *ext*", {"CLAUDE.md"}, LAST),
        ("CLAUDE.md:nowhere", set(), ""),
        ("CLAUDE.md:no heading", set(), ""),
        ("CLAUDE.md:", set(), ""),
        ("other", set(), ""),
        ("../CLAUDE.md", set(), ""),
        ("/etc/passwd", set(), ""),
        ("", set(), ""),
    ],
)
def test_what_has_a_name_is_gone_or_says_nothing(tmp_path: Path, name: str, files: set[str], section: str) -> None:
    whole = MEMORY + SHARP + LAST
    named = {".claude/skills/deploy/SKILL.md": SKILL, ".claude/skills/deploy/more.md": "more\n"}
    project = repository(tmp_path, {"CLAUDE.md": whole})
    project.write({**named, ".claude/rules/money.md": "Pay.\n", "deploy.py": ""})
    (project.path / ".claude/skills/linked").symlink_to("deploy")
    project.commit()

    async def work(change: ChangeUnits) -> tuple[set[str], list[dict[str, str]]]:
        removed = await units.without(change.git, change.head, name)
        if removed is None:
            return set(), []
        trees = []
        for commit in removed:
            paths = os.fsdecode(await change.git("ls-tree", "-r", "-z", "--name-only", commit)).split("\0")[:-1]
            trees.append({it: (await change.git("cat-file", "blob", f"{commit}:{it}")).decode() for it in paths})
        return {*await differing(change, removed[0])}, trees

    found, trees = with_units(project, work)
    assert found == files
    for path in files:
        gone, inert = trees[0].get(path), trees[1].get(path)
        assert gone == (whole.replace(section, "") if section else None)
        if path.endswith("linked"):
            assert inert is None
            continue
        text = (project.path / path).read_bytes().decode()
        assert inert is not None
        assert len(inert) == len(text)
        assert inert != text
        skill = "---\nname: deploy\ndescription: T\n  his te\n\n  xt has n\n---\n"
        assert path != ".claude/skills/deploy/SKILL.md" or inert.startswith(skill), inert


def test_paths_count_from_the_project_and_scripts_have_no_words(tmp_path: Path) -> None:
    files = {"CLAUDE.md": "top\n", "app/CLAUDE.md": "own\n", "docs/a.md": "a\n", "app/.claude/settings.json": "{}\n"}
    project = changed(tmp_path, {}, files)

    async def work(change: ChangeUnits) -> None:
        names = ("CLAUDE.md", "../CLAUDE.md", "docs", ".claude/settings.json")
        removed = [await units.without(change.git, change.head, name, "app") for name in names]
        found = [(await differing(change, gone), gone != inert) for gone, inert in filter(None, removed)]
        assert found[:2] == [(["app/CLAUDE.md"], True), (["CLAUDE.md"], True)]
        assert found[2:] == [(["docs/a.md"], True), (["app/.claude/settings.json"], False)]

    with_units(project, work)
