"""`zelda run --changed-since`: only suites that may feel what the branch changes."""

import json
import shutil
from collections.abc import Mapping

import pytest

from tests.support.command import results, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call
from tests.support.steered import head

SUITE = "prompt: {0}\nmetrics: {{toolUsage: false, requirementFulfillment: false}}\n"
SKILL = ".claude/skills/deploy/SKILL.md"
FILES = {
    "README.md": "# Sample\n",
    SKILL: head("Do it.\n", description="Deploys."),
    "zelda/test-deploy.yaml": SUITE.format("Please deploy."),
    "zelda/test-talk.yaml": SUITE.format("Please talk."),
}


def answer(request: ApiRequest) -> Reply:
    """One suite calls the skill, one does nothing."""
    said = json.dumps(request.body)
    is_to_call = "Please deploy" in said and "tool_result" not in said
    return tool_call("Skill", {"skill": "deploy"}) if is_to_call else text("Done.")


def run(project: Project, *arguments: str) -> tuple[int, str]:
    with ScriptedApi(answer) as api:
        done = zelda(project, "run", *arguments, "--jobs", "3", api=api.url)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose suites have run three times each: two more times as they did the first time."""
    project = repository(tmp_path_factory.mktemp("tried"), FILES)
    code, output = run(project)
    assert code == 0, output
    for folder in list(project.results.glob("runs/*-*")):
        for trial in (2, 3):
            again = folder.with_name(f"{folder.name}-{trial}")
            shutil.copytree(folder, again)
            for file in again.glob("*.json"):
                file.write_text(file.read_text().replace(f'"{folder.name}"', f'"{again.name}"'))
    return project


def chosen(project: Project, files: Mapping[str, str], *arguments: str) -> tuple[list[str], str]:
    """The suites that would run after a change on a branch of its own, and what is said."""
    project.git("checkout", "-q", "-B", "topic", "main")
    project.write(files)
    project.commit()
    code, output = run(project, "--changed-since", "main", "--dry-run", "--verbose", *arguments)
    assert code == 0, output
    return [name for name in ("deploy", "talk") if f"Not run: {name}: " not in output], output


def test_the_text_of_a_skill_runs_the_suite_that_calls_it(tried: Project) -> None:
    names, output = chosen(tried, {SKILL: head("Do it well.\n", description="Deploys.")})
    assert names == ["deploy"]
    assert "Not run: talk: none of 3 trials called the skill deploy or missed it\n" in output
    before = len(results(tried))
    code, output = run(tried, "--changed-since", "main", "--trials", "1")
    assert code == 0, output
    assert len(results(tried)) == before + 1
    assert chosen(tried, {"README.md": "# Other\n"}, "--all")[0] == ["deploy", "talk"]


def test_a_suite_that_is_not_committed_runs_as_it_lies_there(tried: Project) -> None:
    tried.git("checkout", "-q", "-B", "topic", "main")
    tried.write({"zelda/test-talk.yaml": FILES["zelda/test-talk.yaml"] + "tags: [new]\n"})
    try:
        code, output = run(tried, "--changed-since", "main", "--dry-run")
    finally:
        tried.git("checkout", "-q", "main", "--", "zelda")
    assert code == 0, output
    assert "Not run: deploy: nothing here" in output
    assert "Not run: talk" not in output


def test_a_commit_that_is_not_there_is_named(tried: Project) -> None:
    code, output = run(tried, "--changed-since", "nowhere")
    assert code == 2
    assert "There is no commit 'nowhere' in this repository." in output
