"""Skills, commands, sub-agents and rules, by the rules that Claude Code was seen to follow."""

import json
from pathlib import Path

import pytest

from tests.support.steered import head, named, problems, scanned
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.execution.manifest.folders import NO_SKILL


def test_a_skill_is_named_by_its_folder_and_labelled_by_its_head(tmp_path: Path) -> None:
    found = scanned(tmp_path, {".claude/skills/renamed/SKILL.md": head(name="other", description="Renames things.")})
    (skill,) = found.items
    assert (skill.kind, skill.name, skill.label) == (ItemKind.SKILL, "renamed", "other")
    assert (skill.description, skill.file) == ("Renames things.", ".claude/skills/renamed/SKILL.md")
    assert (skill.problem, skill.tool) == (None, "Skill(renamed)")


DESCRIPTIONS = [
    ("# Plain skill\n\nFirst text line.\n", "Plain skill"),
    ("\n---\nname: x\ndescription: Not on line one\n---\nBody\n", "---"),
    ("---\ndescription: a: b: [c\n---\nBody\n", "a: b: [c"),
    ("---\ndescription: Never closed\nBody\n", "---"),
    ("---\nname: x\n---\n\nBody line\n", "Body line"),
    ("---\ndescription: [a, b]\n---\nBody\n", "Body"),
    ("---\ndescription: >\n  folded\n  text\n---\nBody\n", "folded text"),
    ("---\r\ndescription: Windows\r\n---\r\nBody\r\n", "Windows"),
    ("\ufeff---\ndescription: Marked\n---\n", "Marked"),
    ("---\n- a\n- b\n---\nBody\n", "Body"),
    ("", None),
]


@pytest.mark.parametrize(("content", "description"), DESCRIPTIONS)
def test_a_description_is_taken_even_from_a_broken_head(tmp_path: Path, content: str, description: str | None) -> None:
    (skill,) = scanned(tmp_path, {".claude/skills/one/SKILL.md": content}).items
    assert (skill.description, skill.problem) == (description, None)


def test_skills_that_are_not_where_they_must_be_say_why(tmp_path: Path) -> None:
    files = {
        ".claude/skills/group/inner/SKILL.md": head(description="Too deep."),
        ".claude/skills/lower/skill.md": head(description="Lower case."),
        ".claude/skills/bare/notes.txt": "nothing",
        ".claude/skills/loose.md": head(description="A file."),
        ".claude/skills/synced/SKILL.md": head(description="Reserved."),
        ".claude/skills/off/SKILL.md": head(description="Off."),
        ".claude/skills/readme.txt": "no skill at all",
        ".claude/settings.json": json.dumps({"skillOverrides": {"off": "off", "on": "on"}}),
    }
    assert problems(scanned(tmp_path, files), ItemKind.SKILL) == {
        **dict.fromkeys([f".claude/skills/{it}" for it in ("bare", "group", "loose.md", "lower")], NO_SKILL),
        ".claude/skills/off/SKILL.md": "the project's settings switch it off (skillOverrides)",
        ".claude/skills/synced/SKILL.md": "the folder name 'synced' is reserved",
    }


def test_a_skill_says_who_may_call_it_and_for_which_files_it_waits(tmp_path: Path) -> None:
    files = {
        ".claude/skills/manual/SKILL.md": head(description="M.", disable_model_invocation="true"),
        ".claude/skills/quiet/SKILL.md": head(description="Q.", user_invocable="false"),
        ".claude/skills/scoped/SKILL.md": head(description="S.", paths="[src/**/*.py, '*.md']"),
    }
    found = named(scanned(tmp_path, files), ItemKind.SKILL)
    assert (found["manual"].is_open, found["manual"].announced) == (False, True)
    assert (found["quiet"].is_open, found["quiet"].announced) == (True, False)
    assert found["scoped"].paths == ("src/**/*.py", "*.md")


def test_commands_are_named_by_their_folders_and_give_way_to_skills(tmp_path: Path) -> None:
    files = {
        ".claude/commands/deploy.md": head(description="Deploys."),
        ".claude/commands/ops/db/restart.md": "Restart it.\n",
        ".claude/commands/notes.txt": "no command",
        ".claude/commands/review.md": head(description="The command."),
        ".claude/skills/review/SKILL.md": head(description="The skill."),
    }
    found = named(scanned(tmp_path, files), ItemKind.COMMAND)
    assert {name: item.description for name, item in found.items()} == {
        "deploy": "Deploys.",
        "ops:db:restart": "Restart it.",
        "review": "The command.",
    }
    assert found["review"].problem == ".claude/skills/review/SKILL.md has the same name and takes its place"
    assert found["deploy"].tool == "Skill(deploy)"


def test_sub_agents_need_a_name_and_a_description(tmp_path: Path) -> None:
    files = {
        ".claude/agents/team/deep.md": head(name="deep-one", description="Found in a subfolder."),
        ".claude/agents/a-nodesc.md": head(name="nodesc"),
        ".claude/agents/b-noname.md": head(description="Nameless."),
        ".claude/agents/c-text.md": "Only text.\n",
        ".claude/agents/d-empty.md": head(name="empty", description="''"),
        ".claude/agents/e-number.md": head(name="12", description="A number is no name."),
        ".claude/agents/f-broken.md": head(name="broken", description="a: b: [c"),
        ".claude/agents/g-dup.md": head(name="dup", description="First."),
        ".claude/agents/h-dup.md": head(name="dup", description="Second."),
    }
    assert problems(scanned(tmp_path, files), ItemKind.AGENT) == {
        ".claude/agents/team/deep.md": None,
        ".claude/agents/a-nodesc.md": "its head gives no description",
        ".claude/agents/b-noname.md": "its head gives no name",
        ".claude/agents/c-text.md": "its head gives no name and no description",
        ".claude/agents/d-empty.md": "its head gives no description",
        ".claude/agents/e-number.md": "its head gives no name",
        ".claude/agents/f-broken.md": None,
        ".claude/agents/g-dup.md": ".claude/agents/h-dup.md has the same name and takes its place",
        ".claude/agents/h-dup.md": None,
    }


GLOBS = [
    ("'src/**/*.py'", ("src/**/*.py",)),
    ("src/**/*.py, *.md", ("src/**/*.py", "*.md")),
    ("'src/*.{ts,tsx}, *.md'", ("src/*.{ts,tsx}", "*.md")),
    ("['*.py', 'a,b.md', lib/**]", ("*.py", "a", "b.md", "lib")),
    ("[unclosed", ("[unclosed",)),
    ("[]", ()),
    ("'**'", ()),
    ("12", ()),
    ("", ()),
]


@pytest.mark.parametrize(("written", "globs"), GLOBS)
def test_rules_wait_for_the_files_of_their_paths(tmp_path: Path, written: str, globs: tuple[str, ...]) -> None:
    content = f"---\npaths: {written}\n---\nMoney is whole cents.\n"
    (rule,) = scanned(tmp_path, {".claude/rules/deep/money.md": content}).items
    assert (rule.name, rule.file) == (".claude/rules/deep/money.md",) * 2
    assert (rule.paths, rule.text, rule.announced) == (globs, "Money is whole cents.", False)


def test_folders_above_the_session_count_and_the_nearest_name_wins(tmp_path: Path) -> None:
    files = {
        ".claude/skills/same/SKILL.md": head(description="Above."),
        "pkg/.claude/skills/same/SKILL.md": head(description="Near."),
        ".claude/agents/a.md": head(name="above", description="Above."),
        ".claude/rules/r.md": "Above.\n",
        "other/.claude/skills/elsewhere/SKILL.md": head(description="Beside."),
    }
    found = scanned(tmp_path, files, folder="pkg")
    assert problems(found, ItemKind.SKILL) == {
        "pkg/.claude/skills/same/SKILL.md": None,
        ".claude/skills/same/SKILL.md": "pkg/.claude/skills/same/SKILL.md has the same name and takes its place",
    }
    assert set(named(found, ItemKind.AGENT)) == {"above"}
    assert set(named(found, ItemKind.RULE)) == {".claude/rules/r.md"}


def test_skills_and_rules_of_subfolders_wait_and_other_things_there_are_never_loaded(tmp_path: Path) -> None:
    files = {
        "sub/.claude/skills/lazy/SKILL.md": head(description="Waits."),
        "sub/.claude/rules/r.md": "Waits too.\n",
        "sub/.claude/agents/a.md": head(name="never", description="Never."),
        "sub/.claude/commands/c.md": "Never.\n",
        "node_modules/x/.claude/skills/s/SKILL.md": head(description="A dependency's."),
    }
    found = scanned(tmp_path, files)
    assert {item.name: item.below for item in found.items if not item.problem} == {
        "lazy": "sub",
        "sub/.claude/rules/r.md": "sub",
    }
    refused = {item.name: item.problem for item in found.items if item.problem}
    assert set(refused) == {"never", "c"}
    assert all("only from the .claude folder of the project" in str(problem) for problem in refused.values())


def test_descriptions_are_cut_and_secrets_masked(tmp_path: Path) -> None:
    key = "sk-ant-fake-" + "a" * 40
    files = {
        ".claude/skills/long/SKILL.md": head(description="word " * 2000),
        ".claude/skills/leaky/SKILL.md": head(description="x" * 1520 + " " + key),
        ".claude/rules/leaky.md": f"Use {key}.\n",
    }
    found = scanned(tmp_path, files)
    assert max(len(item.description or "") for item in found.items) <= 1536
    assert "sk-ant-fake" not in found.model_dump_json()
