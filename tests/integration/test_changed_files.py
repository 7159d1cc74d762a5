"""What files that steer draw in, and what differs between two commits of a real repository."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.support.projects import ENVIRON, Project, repository
from tests.support.steered import head
from zelda_ci.pipeline.fingerprints import read_changes
from zelda_ci.redact import Redactor
from zelda_ci.selection.effects import ChangeSet
from zelda_ci.selection.reach import MAX_FOLLOWED
from zelda_ci.workspace.git import prepare

HOOKS = '{"hooks": {"Stop": [{"hooks": [{"command": "tools/h.py"}]}]}}'
CODE = {
    "README.md": "# x\n", "tools/server.py": "", "tools/lib.py": "", "src/run.ts": "", "scripts/gen.sh": "",
    "Makefile": "", "package.json": "{}", "pyproject.toml": "", "docs/a.md": "@b.md\n", "docs/b.md": "",
    "pkg/mod/__main__.py": "",
}  # fmt: skip


def changes(project: Project, folder: str = "") -> ChangeSet:
    base = project.home.parent / "git"
    base.mkdir(exist_ok=True)
    git = prepare(base, ENVIRON, Redactor()).within(project.path)
    return anyio.run(partial(read_changes, git, "HEAD~1", "HEAD", folder))


def drawn(tmp_path: Path, files: Mapping[str, str]) -> set[str]:
    """What is drawn in by files that are there before and after a change of something else."""
    project = repository(tmp_path, {**CODE, **files})
    project.write({"README.md": "# y\n"})
    project.commit()
    found = changes(project)
    return {*found.felt, *(file for file, effects in found.reached.items() if len(effects) > 1)}


def test_what_settings_name_is_drawn_in_and_nothing_is_by_what_cannot_be_read(tmp_path: Path) -> None:
    """What else draws in files is in the table of `test_selection_cases.py`."""
    market = '{"agent": "x", "extraKnownMarketplaces": {"m": {"source": {"path": "./docs"}}}}'
    files = {".claude/settings.json": market, ".claude/settings.local.json": "{broken"}
    assert drawn(tmp_path, files) == {".claude/agents", "docs/a.md", "docs/b.md"}


def test_links_lead_to_what_they_lead_to(tmp_path: Path) -> None:
    project = repository(tmp_path, {**CODE, "shared/skills/x/SKILL.md": "x\n", "CLAUDE.md": "@style/b.md\n"})
    (project.path / ".claude").mkdir()
    (project.path / ".claude/skills").symlink_to("../shared/skills")
    (project.path / "style").symlink_to("docs")
    project.commit()
    project.write({"shared/skills/x/SKILL.md": "y\n"})
    project.commit()
    found = changes(project)
    assert set(found.felt) == {"shared/skills", "docs/b.md"}
    assert [change.path for change in found.files] == ["shared/skills/x/SKILL.md"]


def test_imports_are_followed_up_to_a_bound_and_further_by_who_touches_what_imports(tmp_path: Path) -> None:
    modules = [f"m{number}" for number in range(MAX_FOLLOWED + 50)]
    files = {f"lib/{name}.py": "" for name in modules} | {".claude/settings.json": HOOKS}
    project = repository(tmp_path, {**files, "tools/h.py": f"from lib import {', '.join(modules)}\n"})
    project.write({"tools/h.py": "from lib import m0, " + ", ".join(modules[1:]) + "\n\n"})
    project.commit()
    found = changes(project)
    assert len(found.felt) == MAX_FOLLOWED
    beyond = {name for name in modules if f"lib/{name}.py" not in found.felt}
    assert {name for name in beyond if "tools/h.py" in found.reached[f"lib/{name}.py"][-1].read} == beyond != set()


@pytest.mark.parametrize(
    ("files", "links", "changed"),
    [
        ({"docs/guide.md": "@style.md\n"}, {"CLAUDE.md": "docs/guide.md"}, "docs/style.md"),
        ({"shared/rules/a.md": "@../more.md\n"}, {".claude/rules": "../shared/rules"}, "shared/more.md"),
        ({"shared/b.md": "x"}, {".claude/rules": "../shared", "shared/a.md": "../f/a.md"}, "f/a.md"),
        ({"conf/settings.json": HOOKS}, {".claude": "conf"}, "tools/h.py"),
        ({"shared/s/SKILL.md": head("Run `./tools/h.py`.\n")}, {".claude/skills/s": "../../shared/s"}, "tools/h.py"),
        ({"real/x.md": "@y.md\n", "CLAUDE.md": "@docs/x.md\n"}, {"docs/x.md": "../real/x.md"}, "real/y.md"),
        ({".claude-plugin/plugin.json": "{}", "skills/s/SKILL.md": "x"}, {"skills/s/r.md": "../../f/r.md"}, "f/r.md"),
        ({".claude-plugin/plugin.json": "{}", "hooks/hooks.json": HOOKS}, {}, "tools/h.py"),
        ({".claude-plugin/plugin.json": "{}", "skills/s/SKILL.md": "Run `./tools/h.py`"}, {}, "tools/h.py"),
    ],
)  # fmt: skip
def test_what_steers_by_a_link_or_a_plugin_draws_in_what_it_would_at_its_place(
    tmp_path: Path, files: Mapping[str, str], links: Mapping[str, str], changed: str
) -> None:
    project = repository(tmp_path, {"README.md": "x\n", **files, changed: "before\n"})
    for name, target in links.items():
        (project.path / name).parent.mkdir(parents=True, exist_ok=True)
        (project.path / name).symlink_to(target)
    project.commit()
    project.write({changed: "after\n"})
    project.commit()
    felt = changes(project).felt
    assert any(f"{changed}/".startswith(f"{place}/") for place in felt), felt


def test_heads_hold_the_first_line_where_it_is_the_description(tmp_path: Path) -> None:
    skill = ".claude/skills/x/SKILL.md"
    project = repository(tmp_path, {skill: "First.\nMore.\n"})
    project.write({skill: "Other.\nMore.\n"})
    project.commit()
    (change,) = changes(project).files
    assert change.before
    assert change.after
    assert change.before.head != change.after.head
    project.write({skill: "Other.\nLess.\n"})
    project.commit()
    (change,) = changes(project).files
    assert change.before
    assert change.after
    assert change.before.head == change.after.head


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    project = repository(tmp_path, {".claude/skills/x/SKILL.md": "x\n"})
    for content in (b"\0binary", b"x" * 5_000_000):
        project.write({".claude/skills/x/SKILL.md": content})
        project.commit()
        assert changes(project).problem == ".claude/skills/x/SKILL.md could not be read"


def test_a_commit_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    project = repository(tmp_path, CODE)
    assert changes(project).problem == "what changed since HEAD~1 could not be read"


def test_the_first_line_that_differs_is_known(tmp_path: Path) -> None:
    files: dict[str, tuple[str | None, str | None, int | None]] = {
        "changed.md": ("a\nb\nc\n", "a\nB\nc\n", 2),
        "longer.md": ("a\n", "a\nb\n", 2),
        "without.md": ("a\nb\nc\n", "a\nc\n", 2),
        "shorter.md": ("a\nb\n", "a\n", 1),
        "new.md": (None, "a\n", 1),
        "gone.md": ("a\n", None, None),
        "empty.md": ("a\n", "", 1),
    }
    rules = ".claude/rules/"
    project = repository(tmp_path, {"x": "", **{rules + name: old for name, (old, _, _) in files.items() if old}})
    (project.path / rules / "gone.md").unlink()
    project.write({rules + name: new for name, (_, new, _) in files.items() if new is not None})
    project.commit()
    found = {change.path.removeprefix(rules): change.line for change in changes(project).files}
    assert found == {name: line for name, (_, _, line) in files.items()}
