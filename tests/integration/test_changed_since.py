"""`zelda run --changed-since`: only suites that may feel what the branch changes."""

import json
from collections.abc import Mapping

import pytest

from tests.support.command import results, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call
from tests.support.steered import head

SUITE = "prompt: {0}\nmetrics: {{toolUsage: false, requirementFulfillment: false}}\ntrials: 3\n"
SKILL = ".claude/skills/deploy/SKILL.md"
FILES = {
    "README.md": "# Sample\n",
    "CLAUDE.md": "Be kind. @docs/style.md\n",
    "docs/style.md": "Short lines.\n",
    "tools/check.py": "pass\n",
    "tools/helper.py": "pass\n",
    "lib/a.py": "pass\n",
    "lib/CLAUDE.md": "Write tests.\n",
    "prompts/read.md": "Please read.",
    ".claude/skills/deploy/SKILL.md": head("Run `python tools/check.py`.\n", description="Deploys."),
    ".claude/skills/release/SKILL.md": head(description="Releases."),
    "zelda/test-deploy.yaml": SUITE.format("Please deploy."),
    "zelda/test-read.yaml": SUITE.replace("prompt: {0}", "promptFile: ../prompts/read.md").format(""),
    "zelda/test-talk.yaml": SUITE.format("Please talk."),
}


def answer(request: ApiRequest) -> Reply:
    """One suite calls the skill, one reads a file, one does nothing."""
    said = json.dumps(request.body)
    if "tool_result" in said:
        return text("Done.")
    if "Please deploy" in said:
        return tool_call("Skill", {"skill": "deploy"})
    return tool_call("Bash", {"command": "cat lib/a.py"}) if "Please read" in said else text("Hello.")


def run(project: Project, *arguments: str) -> tuple[int, str]:
    with ScriptedApi(answer) as api:
        done = zelda(project, "run", *arguments, "--jobs", "3", api=api.url)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose suites have run three times each."""
    project = repository(tmp_path_factory.mktemp("tried"), FILES)
    code, output = run(project)
    assert code == 0, output
    return project


def chosen(project: Project, files: Mapping[str, str | None], *arguments: str) -> tuple[list[str], str]:
    """The suites that ran after a change on a branch of its own, and what was said."""
    project.git("checkout", "-q", "-B", "topic", "main")
    for name, content in files.items():
        file = project.path / name
        if content is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
    project.commit()
    before = len(results(project))
    code, output = run(project, "--changed-since", "main", "--trials", "1", *arguments)
    assert code == 0, output
    names = sorted(result["suite"] for result in sorted(results(project), key=lambda it: it["startedAt"])[before:])
    return names, output


def test_the_text_of_a_skill_runs_the_suite_that_calls_it(tried: Project) -> None:
    ran, output = chosen(tried, {SKILL: head("Do it well.\n", description="Deploys.")})
    assert ran == ["deploy"]
    assert "Not run: read, talk: none of 3 trials called the skill deploy or missed it\n" in output


def test_a_file_that_steers_nothing_runs_nothing(tried: Project) -> None:
    ran, output = chosen(tried, {"README.md": "# Better\n", "lib/a.py": "print()\n"})
    assert ran == []
    assert "Not run: deploy, read, talk: nothing here can change a result\n" in output


def test_a_file_further_down_runs_those_who_touched_its_folder_and_a_prompt_its_suite(tried: Project) -> None:
    assert chosen(tried, {"lib/CLAUDE.md": "Write no tests.\n"})[0] == ["read"]
    assert chosen(tried, {"prompts/read.md": "Please read well."})[0] == ["read"]


def test_a_script_that_a_skill_names_runs_those_that_call_it(tried: Project) -> None:
    assert chosen(tried, {"tools/check.py": "Other\n"})[0] == ["deploy"]


def test_all_overrides_it(tried: Project) -> None:
    assert len(chosen(tried, {"README.md": "# Other\n"}, "--all")[0]) == 3


def test_a_suite_that_is_not_committed_runs_as_it_lies_there(tried: Project) -> None:
    tried.git("checkout", "-q", "-B", "topic", "main")
    suite = tried.path / "zelda/test-talk.yaml"
    suite.write_text(FILES["zelda/test-talk.yaml"] + "tags: [new]\n")
    before = len(results(tried))
    try:
        code, output = run(tried, "--changed-since", "main", "--trials", "1")
    finally:
        tried.git("checkout", "-q", "main", "--", "zelda")
    assert code == 0, output
    assert len(results(tried)) == before + 1
    assert "Not run: deploy, read: nothing here" in output


def test_a_commit_that_is_not_there_is_named(tried: Project) -> None:
    code, output = run(tried, "--changed-since", "nowhere")
    assert code == 2
    assert "There is no commit 'nowhere' in this repository." in output
