"""Trees that want to hang the scan, to exhaust it, or to lead it elsewhere."""

import os
import stat
from pathlib import Path

import pytest

from tests.support.steered import head, named, problems, scanned, write
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.redact import Redactor

redact = Redactor()
STEERING = (
    "CLAUDE.md",
    "AGENTS.md",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/rules/r.md",
    ".claude/skills/s/SKILL.md",
    ".claude/agents/a.md",
    ".claude/commands/c.md",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name in STEERING:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
    return root


def test_pipes_sockets_and_folders_in_place_of_files_are_findings(root: Path) -> None:
    for name in STEERING[::2]:
        os.mkfifo(root / name)
    for name in STEERING[1::2]:
        (root / name).mkdir()
    (root / "sub").mkdir()
    os.mknod(root / "sub/CLAUDE.md", stat.S_IFSOCK | 0o600)
    found = scan(root, root, redact)
    assert all(item.problem for item in found.items)
    assert {item.problem for item in found.items if item.file == "CLAUDE.md"} == {"it is not a regular file"}


def test_links_out_of_the_tree_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, {"SKILL.md": head(description="STOLEN"), "x.md": "STOLEN"})
    for name in STEERING:
        (root / name).symlink_to(outside / "x.md")
    (root / ".claude/skills/folder").symlink_to(outside)
    (root / ".claude/skills/relative").symlink_to("../../../outside")
    (root / ".claude/rules/dots.md").symlink_to("../../../outside/x.md")
    (root / "sub").symlink_to(outside, target_is_directory=True)
    found = scan(root, root, redact)
    assert "STOLEN" not in found.model_dump_json()
    why = problems(found, ItemKind.RULE)
    assert why[".claude/rules/r.md"] == why[".claude/rules/dots.md"] == "it leads out of the project, or in circles"


def test_links_that_stay_inside_are_followed_as_claude_code_does(root: Path) -> None:
    write(root, {"AGENTS.md": "Common words.\n", "real/SKILL.md": head(description="Linked."), "rule.md": "Rule.\n"})
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / ".claude/skills/linked").symlink_to("../../real")
    (root / ".claude/rules/linked.md").symlink_to("../../rule.md")
    found = scan(root, root, redact)
    assert named(found, ItemKind.MEMORY)["CLAUDE.md"].text == "Common words."
    assert named(found, ItemKind.SKILL)["linked"].description == "Linked."
    assert named(found, ItemKind.RULE)[".claude/rules/linked.md"].text == "Rule."


def test_circles_end(root: Path) -> None:
    (root / "CLAUDE.md").symlink_to("CLAUDE.md")
    (root / ".claude/rules/loop").symlink_to("..")
    (root / ".claude/rules/self").symlink_to(".")
    (root / ".claude/skills/a").symlink_to("b")
    (root / ".claude/skills/b").symlink_to("a")
    (root / "back").symlink_to(".")
    write(root, {".claude/rules/r.md": "Once.\n"})
    found = scan(root, root, redact)
    assert [str(item.file) for item in found.items if item.text == "Once."] == [".claude/rules/r.md"]
    assert problems(found, ItemKind.MEMORY)["CLAUDE.md"] == "it leads out of the project, or in circles"


def test_large_files_are_findings_and_not_read(root: Path) -> None:
    with (root / "CLAUDE.md").open("wb") as file:
        file.truncate(5 << 30)
    write(root, {".claude/rules/r.md": b"\x7fELF\0\0", ".claude/skills/s/SKILL.md": b"\xff\xfe latin \xe9"})
    found = scan(root, root, redact)
    assert problems(found, ItemKind.MEMORY) == {"CLAUDE.md": "it is larger than 4 MiB"}
    assert problems(found, ItemKind.RULE) == {".claude/rules/r.md": None}, "Claude Code tells it the model"
    assert problems(found, ItemKind.SKILL) == {".claude/skills/s/SKILL.md": None}


def test_a_deep_tree_with_links_to_its_top_ends(tmp_path: Path) -> None:
    deep = tmp_path / "tree" / "/".join("d" * 100)
    deep.mkdir(parents=True)
    (deep / "CLAUDE.md").write_text("Deep.\n")
    for number in range(5):
        (deep / f"link{number}").symlink_to("/".join([".."] * 100), target_is_directory=True)
    (item,) = scan(tmp_path / "tree", tmp_path / "tree", redact).items
    assert item.text == "Deep."


def test_a_tree_without_end_is_left_and_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scan.__globals__, "MAX_FOLDERS", 20)
    found = scanned(tmp_path, {f"{number}/x.txt": "" for number in range(30)})
    assert found.notes == ("Only the first 20 folders of the project were searched.",)


BOMBS = [
    "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"b{n}: &b{n} [*a,*a,*a,*a,*a,*a,*a]\n" for n in range(9)),
    "a: " + "[" * 5000,
    "a: " + "{a: " * 5000,
    "!!python/object/apply:os.system ['touch /tmp/owned']\n",
    "a: !!binary x\n",
    "a: 2026-99-99\n",
    "? [1, 2]\n: x\n",
    "\x01\x02\n",
    "a: " + "9" * 5000,
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_heads_that_are_bombs_are_taken_as_text(tmp_path: Path, bomb: str) -> None:
    files = {".claude/skills/s/SKILL.md": f"---\n{bomb}\ndescription: Still here.\n---\nBody\n"}
    (skill,) = scanned(tmp_path, files).items
    assert skill.problem is None
    assert skill.description in ("Still here.", "Body")


def test_names_that_are_not_utf_8_or_command_a_terminal_are_kept_as_they_can_be(root: Path) -> None:
    for name in (b"caf\xe9", b"\x1b[31mred", b"a\nb", b" ", b"-rf"):
        write(root / ".claude/skills" / os.fsdecode(name), {"SKILL.md": head(description="Odd.")})
    found = scan(root, root, redact)
    odd = [item for item in found.items if item.description == "Odd."]
    assert len(odd) == 5
    found.model_dump_json()


def test_an_unreadable_file_is_a_finding(root: Path) -> None:
    write(root, {"CLAUDE.md": "Text.\n"})
    (root / "CLAUDE.md").chmod(0)
    found = scan(root, root, redact)
    expected = None if os.geteuid() == 0 else "it cannot be read (Permission denied)"
    assert problems(found, ItemKind.MEMORY) == {"CLAUDE.md": expected}


def test_a_plugin_that_is_nested_as_nobody_nests_it_ends_no_scan(root: Path) -> None:
    manifest = f'{{"name": "deep", "x": {"[" * 900}{"]" * 900}}}'
    write(root, {".claude/skills/deep/.claude-plugin/plugin.json": manifest})
    assert "deep@skills-dir" in named(scan(root, root, redact), ItemKind.PLUGIN)
