"""`zelda init` in projects as people have them: what it finds, tries, writes, asks and leaves alone."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_init_and_validate import on_terminal
from tests.support import needs
from tests.support.command import after, ended, environment, gone, run, started
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.config.project import load

SKILL = "---\nname: rest-endpoint\ndescription: Creates a REST endpoint. Use when adding an endpoint.\n---\nSteps.\n"
NODE_TEST = "require('node:test').test('adds', () => {})\n"
NODE = {
    "package.json": json.dumps({"scripts": {"test": "node --test", "build": "exit 3"}}),
    "sum.test.js": NODE_TEST,
    "CLAUDE.md": "# Shop\n\nNever log a password.\n",
    ".claude/rules/api.md": "- Always validate input.\n",
    ".claude/skills/rest-endpoint/SKILL.md": SKILL,
}
UNITTEST = "import unittest\nclass T(unittest.TestCase):\n    def test_one(self):\n        pass\n"


def zelda(project: Project, *arguments: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return run(arguments, cwd or project.path, environment(project, **more))


def init(project: Project, *arguments: str, cwd: Path | None = None, **more: str) -> list[str]:
    done = zelda(project, "init", *arguments, cwd=cwd, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    valid = zelda(project, "validate", cwd=cwd)
    assert valid.returncode == 0, valid.stderr
    return done.stdout.splitlines()


@needs.NPM
def test_a_node_project_gets_its_commands_and_a_suite_about_its_skill(tmp_path):
    project = repository(tmp_path, NODE)
    said = init(project)
    assert said[:5] == [
        "Found: JavaScript (package.json, npm).",
        "Claude Code reads here: 1 CLAUDE.md file, 1 skill, 1 rule.",
        "",
        "wrote zelda.config.yaml",
        "wrote zelda/test-rest-endpoint.yaml, about the skill rest-endpoint (.claude/skills/rest-endpoint/SKILL.md)",
    ]
    assert "buildCommand: npm run build - left out" in said
    assert said[said.index("buildCommand: npm run build - left out") + 1] == "  buildCommand ended with exit code 3."
    assert "testCommand: npm test - works" in said
    assert said[-1].endswith("`zelda run rest-endpoint`.")
    config = (project.path / "zelda.config.yaml").read_text()
    assert (
        "\n# Left out: buildCommand ended with exit code 3.\n# buildCommand: npm run build  # package.json\n" in config
    )
    loaded = load(project.path)
    assert (loaded.config.build_command, loaded.config.test_command) == (None, "npm test")
    assert [suite.resolved.name for suite in loaded.suites] == ["rest-endpoint"]
    assert len(config.splitlines()) < 30
    assert gone(project)
    with ScriptedApi(lambda _: text("Yes.")) as api:
        done = run(["check", "--json"], project.path, environment(project, api.url))
    assert done.returncode == 0, done.stdout
    (test,) = [check for check in json.loads(done.stdout)["checks"] if check["subject"] == "testCommand"]
    assert (test["about"], test["status"]) == ("npm test", "passed")


def test_a_python_project_whose_packages_cannot_be_had_leaves_out_what_needs_them(tmp_path):
    wanted = {".claude/settings.json": json.dumps({"enabledPlugins": {"kit@elsewhere": True}})}
    project = repository(tmp_path, {"requirements.txt": "no-such-package\n", "tests/test_one.py": UNITTEST, **wanted})
    said = init(project, PIP_NO_INDEX="1")
    assert any(
        line.startswith(".claude/settings.json is not loaded, kit@elsewhere: it comes from outside") for line in said
    )
    (setup,) = [line for line in said if line.startswith("setupCommand: ")]
    assert setup.endswith(" -r requirements.txt - left out")
    assert said[said.index(setup) + 1] == "  setupCommand ended with exit code 1."
    (test,) = [line for line in said if line.startswith("testCommand: ")]
    assert test.endswith(" - left out")
    assert said[said.index(test) + 1] == "  not tried, since setupCommand did not succeed"
    # Said outright, so that nothing finds another one.
    assert (load(project.path).config.setup_command, load(project.path).config.execution.path) == ((), ())


def test_in_a_subfolder_it_says_what_it_does_and_asks_at_a_terminal(tmp_path):
    project = repository(tmp_path, {**NODE, "src/a.js": ""})
    inner = project.path / "src"
    done = zelda(project, "init", cwd=inner)
    assert "Set up is this folder alone; the whole repository: zelda init --project .." in done.stderr
    assert (inner / "zelda.config.yaml").exists()
    shutil.rmtree(inner / "zelda")
    # The repository ignores the results already.
    assert not (inner / ".gitignore").exists()
    (inner / "zelda.config.yaml").unlink()
    shown, code = on_terminal("init", "--no-check", cwd=inner, answers="\n2\n")
    assert "Set up the whole repository instead? [Y/n]: " in shown
    assert "2  the rule .claude/rules/api.md" in shown
    assert "wrote zelda/test-api.yaml, about the rule .claude/rules/api.md" in shown
    assert ((project.path / "zelda/test-api.yaml").exists(), (inner / "zelda").exists(), code) == (True, False, 0)


def test_new_adds_a_suite_about_a_skill_or_a_rule_and_names_what_there_is(tmp_path):
    project = repository(tmp_path, NODE)
    for order, wanted in (
        (
            ["api/health", "--skill", "rest-endpoint"],
            "The occasion: adding an endpoint.",
        ),
        (["checked", "--rule", "api"], 'All changes keep to this sentence of .claude/rules/api.md: "Always validate'),
        (["plain"], "Find one public function of this project that no test covers yet"),
    ):
        done = zelda(project, "new", *order)
        assert done.returncode == 0, done.stderr
        (file,) = re.findall(r"wrote (\S+?),? ", done.stdout.replace("\n", " "))
        assert wanted in " ".join((project.path / file).read_text().split())
    assert zelda(project, "validate").returncode == 0
    for order, why in (
        (["plain"], "zelda/test-plain.yaml exists already"),
        (["Plain"], "zelda/test-plain.yaml is a suite of the name Plain already"),
        (["other/health"], "zelda/api/test-health.yaml is a suite of the name health already"),
        (["x", "--rule", "apis"], "Did you mean api?"),
        (["x", "--skill", "y"], "There are rest-endpoint."),
        (["../x"], "../x is no name of a suite"),
    ):
        done = zelda(project, "new", *order)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("name", ["$(touch evil)", "-rf\nü\u202e\x1b[31m: c'\"`"])
def test_hostile_names_and_texts_load_and_steer_no_terminal(name, tmp_path):
    head = f'---\nname: {json.dumps(name)}\ndescription: "x: y # z\\n- a\\x1b[31m\\u202e\'"\n---\n'
    project = repository(tmp_path, {
        f"{name}/.claude/skills/{name}/SKILL.md": head,
        f"{name}/package.json": '{"scripts": {"test": "true; touch evil"}}',
        f"{name}/App $(touch evil).csproj": "",
        f"{name}/CLAUDE.md": f"Always {name}.\n",
    })  # fmt: skip
    inner = project.path / name
    done = zelda(project, "init", "--no-check", cwd=inner)
    assert done.returncode == 0, done.stderr
    assert all(char.isprintable() for char in (done.stdout + done.stderr).replace("\n", ""))
    assert zelda(project, "validate", cwd=inner).returncode == 0
    assert not list(project.path.rglob("evil"))


def test_links_are_not_followed_out_of_the_project(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "package.json").write_text('{"scripts": {"test": "true"}}')
    (outside / "SKILL.md").write_text(SKILL)
    project = repository(tmp_path / "p", {"README.md": "#\n"})
    (project.path / "package.json").symlink_to(outside / "package.json")
    (project.path / ".claude/skills").mkdir(parents=True)
    (project.path / ".claude/skills/rest-endpoint").symlink_to(outside)
    said = init(project, "--no-check")
    assert "wrote zelda/test-example.yaml" in said
    assert load(project.path).config.test_command is None
    os.unlink(project.path / "package.json")  # noqa: PTH108


def test_commands_are_not_tried_at_an_isolation_that_nobody_accepted(tmp_path):
    needs.level("landlock")
    project = repository(tmp_path, {**NODE, "zelda/test-a.yaml": "prompt: x\nisolation: {level: landlock}\n"})
    said = init(project, "--yes", ZELDA_UNSAFE="0", ZELDA_ACCEPT_ISOLATION="")
    assert any(line.startswith("not tried: ") and "At isolation level landlock" in line for line in said)
    assert any("--accept-isolation landlock" in line for line in said)
    assert load(project.path).config.test_command == "npm test"


@needs.NPM
def test_whoever_does_not_want_to_wait_has_all_files_already(tmp_path):
    reached = tmp_path / "reached"
    command = f"touch {reached}; sleep 600"
    files = {**NODE, "package.json": json.dumps({"scripts": {"test": command}})}
    project = repository(tmp_path, {**files, "zelda/test-a.yaml": "prompt: x\nisolation: {level: none}\n"})
    with started(project, "init", "--yes") as process:
        after(reached.exists)
        process.send_signal(signal.SIGINT)
        code, _ = ended(process)
    assert code == 130
    assert load(project.path).config.test_command == "npm test"
    assert "Nobody tried the commands yet" in (project.path / "zelda.config.yaml").read_text()
    after(lambda: gone(project))
