"""CLAUDE.md files, imports and AGENTS.md, by the rules that Claude Code was seen to follow."""

import json
from pathlib import Path

from tests.support.steered import problems, scanned
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ToolsManifest

MEMORY = ItemKind.MEMORY


def loaded(manifest: ToolsManifest) -> set[str]:
    return {str(item.file) for item in manifest.items if item.kind is MEMORY and not item.problem}


def test_both_places_of_claude_md_count_and_the_local_one_does_not(tmp_path: Path) -> None:
    found = scanned(tmp_path, {"CLAUDE.md": "A\n", ".claude/CLAUDE.md": "B\n", "CLAUDE.local.md": "C\n"})
    assert loaded(found) == {"CLAUDE.md", ".claude/CLAUDE.md"}
    assert "one developer's own" in str(problems(found, MEMORY)["CLAUDE.local.md"])


def test_imports_are_followed_relative_to_their_file_but_not_in_code_or_comments(tmp_path: Path) -> None:
    text = (
        "See @docs/style.md\n- @list.md\n`@span.md`\n```\n@fenced.md\n```\n<!-- @comment.md -->\n\n    @indented.md\n"
    )
    names = ("list.md", "span.md", "fenced.md", "comment.md", "indented.md", "docs/deep.md")
    files = {"CLAUDE.md": text, "docs/style.md": "@deep.md and me@home.md\n", **dict.fromkeys(names, "text\n")}
    found = scanned(tmp_path, files)
    assert loaded(found) == {"CLAUDE.md", "docs/style.md", "list.md", "docs/deep.md"}
    assert not any(problems(found, MEMORY).values())


def test_imports_end_four_files_deep_and_circles_end_at_once(tmp_path: Path) -> None:
    files = {"CLAUDE.md": "@a1.md @CLAUDE.md", **{f"a{n}.md": f"@a{n + 1}.md @a1.md\n" for n in range(1, 9)}}
    found = scanned(tmp_path, files)
    assert loaded(found) == {"CLAUDE.md", "a1.md", "a2.md", "a3.md", "a4.md"}
    assert problems(found, MEMORY)["a5.md"] == "it is imported more than 4 files deep"


def test_imports_that_lead_nowhere_or_outside_are_findings(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret of the neighbour\n")
    text = "@missing.md @../outside.md @/etc/passwd.md @~/notes.md @alice @types/node a@b.md\n"
    found = scanned(tmp_path, {"CLAUDE.md": text})
    told = {str(item.name): item.problem for item in found.items if item.problem}
    assert set(told) == {"missing.md", "../outside.md", "/etc/passwd.md", "~/notes.md"}
    assert told["missing.md"] == "it does not exist"
    assert "outside the project" in str(told["../outside.md"])
    assert "neighbour" not in found.model_dump_json()


def test_agents_md_counts_only_where_no_claude_md_says_anything(tmp_path: Path) -> None:
    alone = scanned(tmp_path / "1", {"AGENTS.md": "A\n", ".claude/AGENTS.md": "B\n"})
    assert loaded(alone) == {"AGENTS.md", ".claude/AGENTS.md"}
    beside_blank = scanned(tmp_path / "2", {"AGENTS.md": "A\n", "CLAUDE.md": "\n"})
    assert loaded(beside_blank) == {"AGENTS.md", "CLAUDE.md"}
    above = scanned(tmp_path / "3", {"CLAUDE.md": "A\n", "pkg/AGENTS.md": "B\n"}, folder="pkg")
    assert loaded(above) == {"CLAUDE.md"}
    for name in ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"):
        found = scanned(tmp_path / name, {"AGENTS.md": "A\n", name: "B\n"})
        assert problems(found, MEMORY)["AGENTS.md"] == f"{name} is there, and takes its place"


def test_files_further_down_wait(tmp_path: Path) -> None:
    files = {
        "sub/CLAUDE.md": "@more.md\n",
        "sub/more.md": "more\n",
        "sub/deep/CLAUDE.md": "D\n",
        "sub/AGENTS.md": "silent\n",
        "agents/AGENTS.md": "A\n",
        "sub/CLAUDE.local.md": "L\n",
    }
    found = scanned(tmp_path, files)
    assert {item.file: item.below for item in found.items} == {
        "sub/CLAUDE.md": "sub",
        "sub/more.md": "sub",
        "sub/deep/CLAUDE.md": "sub/deep",
        "agents/AGENTS.md": "agents",
    }


def test_settings_can_exclude_claude_md_files(tmp_path: Path) -> None:
    settings = json.dumps({"claudeMdExcludes": ["**/sub/CLAUDE.md"]})
    found = scanned(tmp_path, {"CLAUDE.md": "A\n", "sub/CLAUDE.md": "@x.md\n", ".claude/settings.json": settings})
    assert loaded(found) == {"CLAUDE.md"}
    assert "claudeMdExcludes" in str(problems(found, MEMORY)["sub/CLAUDE.md"])
