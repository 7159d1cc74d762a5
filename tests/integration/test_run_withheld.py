"""`zelda run`: a session finds neither its answer key nor a way to put committed secrets into the results."""

import json
from pathlib import Path

from tests.integration.test_run_correctness import correctness, line, log, run
from tests.support.command import the_result, transcript
from tests.support.projects import Project, repository

CRITERION = "the-answer-is-forty-two"
METRICS = "metrics: {requirementFulfillment: false, toolUsage: false}\n"
SUITE = f"prompt: Work on the shop.\nacceptanceCriteria: [{CRITERION}]\n{METRICS}"
LOOK = "grep -r answer.is . ; git log -p | grep answer.is ; git show HEAD:zelda/test-shop.yaml ; ls -A"

PASSWORD, TOKEN, OTHER = "aK8x2mQ9-zL4vW7p", "kq7Zp2Lx9Rt5", "Tr0ub4dor&3xY"
SECRETS: dict[str, str | bytes] = {
    "config/db.yml": f"production:\n  password: {PASSWORD}\n",
    ".npmrc": f"//registry.example.com/:_authToken={TOKEN}\n",
    "deploy/Dockerfile": f"FROM scratch\nENV DB_PASSWORD={OTHER}\n",
    "config/example.yml": "password: ${DB_PASSWORD}\ntoken: changeme\n",
}


def told(project: Project) -> str:
    """What the session's tools answered."""
    return json.dumps(transcript(project))


def test_the_session_cannot_read_what_it_is_judged_by_and_commands_see_it_where_the_suite_says_so(
    tmp_path: Path,
) -> None:
    look = line("testCommand", "cat zelda/test-shop.yaml shop.py && test -f made")
    suite = f"{SUITE}commandsSeeSuites: true\n{look}{line('setupCommand', 'touch made')}"
    project = repository(tmp_path, {"shop.py": "x = 1\n", "zelda/test-shop.yaml": suite, "zelda.config.yaml": "{}\n"})
    code, output = run(project, f"{LOOK}; echo 'x = 2' > shop.py; touch seen")
    assert code == 0, output
    assert CRITERION not in told(project)
    result = the_result(project)
    assert result["source"]["commit"] == project.git("rev-parse", "HEAD")
    assert result["changes"]["files"] == ["seen", "shop.py"]
    assert result["config"]["acceptanceCriteria"] == [CRITERION]
    assert correctness(project)["details"]["passed"] is True
    assert log(project, "test") == f"{suite}x = 2\n"
    assert result["isolation"]["protected"] == []


def test_committed_secrets_reach_no_result(tmp_path: Path) -> None:
    suite = f"{SUITE}{line('testCommand', 'cat config/db.yml; cut -c15- config/db.yml')}"
    project = repository(tmp_path, {"zelda/test-shop.yaml": suite, **SECRETS})
    code, output = run(
        project,
        "grep -r . config deploy .npmrc; cut -d= -f2 .npmrc; cut -c13- config/db.yml | base64;"
        f"sed -i 's/production/staging/' config/db.yml; echo \"url = 'postgres://app:{OTHER}1@db/x'\" > new.ini",
    )
    assert code == 0, output
    kept = {file: file.read_text("utf-8", "replace") for file in project.results.rglob("*") if file.is_file()}
    for secret in (PASSWORD, TOKEN, OTHER):
        assert [str(file) for file, text in kept.items() if secret in text] == []
        assert secret not in output
    (patch,) = project.results.glob("runs/*/changes.patch")
    assert "-production:\n+staging:\n   password: ***\n" in patch.read_text()
    assert "+url = 'postgres://app:***@db/x'" in patch.read_text()
    assert "changeme" in told(project)
    assert "${DB_PASSWORD}" in told(project)
