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
    assert "Not run: talk: none of 3 trials called the skill deploy or missed it\n" in output


def test_all_overrides_it(tried: Project) -> None:
    assert len(chosen(tried, {"README.md": "# Other\n"}, "--all")[0]) == 2


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
    assert "Not run: deploy: nothing here" in output


def test_a_commit_that_is_not_there_is_named(tried: Project) -> None:
    code, output = run(tried, "--changed-since", "nowhere")
    assert code == 2
    assert "There is no commit 'nowhere' in this repository." in output
