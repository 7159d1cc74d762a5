"""Routing suites: each prompt is a session that ends with its first call, and a table says what called what."""

import json
from pathlib import Path
from typing import Any

from tests.support.command import results, zelda
from tests.support.projects import repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call
from tests.support.steered import head

ROUTING = """\
kind: routing
prompts:
  - prompt: What changed in 1.4?
    expect: skill changelog
  - prompt: Ship version 1.5.
    expect: skill release
  - prompt: Write down what is new.
    expect: [skill changelog, skill release]
  - prompt: Look at my last commit.
    expect: agent reviewer
  - prompt: Make the tests run faster.
    expect: skill speed
  - prompt: What is two and two?
    expect: none
"""
CLEAR = "Releases a version."
PROJECT = {
    ".claude/skills/changelog/SKILL.md": head("Write in the past tense.\n", description="Writes the changelog."),
    ".claude/skills/release/SKILL.md": head("Tag it.\n", description=CLEAR),
    ".claude/skills/speed/SKILL.md": head("Measure first.\n", description="Makes slow tests fast. " * 100),
    ".claude/agents/reviewer.md": head("You review.\n", name="reviewer", description="Reviews commits."),
    "zelda/test-routing.yaml": ROUTING,
}
LOOK = tool_call("Bash", {"command": "ls"})
REVIEW = {"subagent_type": "reviewer", "description": "Review", "prompt": "Review HEAD."}
# What each session's first and second request are answered with.
ANSWERS: dict[str, list[Reply]] = {
    "What changed in": [LOOK, tool_call("Skill", {"skill": "changelog"})],
    "Ship version": [tool_call("Skill", {"skill": "release"})],
    "Write down": [tool_call("Skill", {"skill": "of-nobody"}), tool_call("Skill", {"skill": "release"})],
    "Look at my": [tool_call("Agent", {**REVIEW, "run_in_background": False})],
    "Make the tests": [LOOK, LOOK],
    "What is two": [text("Four.")],
}


def script(request: ApiRequest) -> Reply:
    """The model, which takes one skill for another where the description is not clear."""
    said = json.dumps(request.messages)
    (answers,) = (answers for begin, answers in ANSWERS.items() if begin in said)
    if answers is ANSWERS["Ship version"] and CLEAR not in said + json.dumps(request.body.get("system")):
        return tool_call("Skill", {"skill": "changelog"})
    reply: Reply = answers[sum(message["role"] == "assistant" for message in request.messages)]
    return reply


def routing(output: str) -> list[str]:
    """The lines of the table, blanks made one."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    begin = next(number for number, line in enumerate(lines) if line.startswith("Routing: zelda/test-routing.yaml")) + 2
    return lines[begin : lines.index("", begin)]


def test_sessions_end_with_their_first_call_and_a_table_compares_both_sides(tmp_path: Path) -> None:
    project = repository(tmp_path, PROJECT)
    project.write({".claude/skills/release/SKILL.md": head("Tag it.\n", description="Handles things.")})
    project.commit()
    with ScriptedApi(script) as api:
        order = ("run", "--against", "HEAD~1", "--trials", "1", "--jobs", "2", "--reporter", "json=all.json")
        done = zelda(project, *order, api=api.url)
    assert done.returncode == 0, done.stderr
    runs = results(project)
    sides: dict[str, dict[str, Any]] = {side: {} for side in ("base", "head")}
    for run in runs:
        sides["base" if run.get("side") == "base" else "head"][run["suite"]] = run
    for side, met in (("base", [1, 1, 1, 1, 0, 1]), ("head", [1, 0, 1, 1, 0, 1])):
        found = [sides[side][f"routing.{number}"] for number in range(1, 7)]
        assert [run["status"] for run in found] == ["completed"] * 6
        # No request follows the call, not even a sub-agent's; without a call two are the most.
        assert [run["api"]["requests"] for run in found] == [2, 1, 2, 1, 2, 1]
        fulfilled = [run["evaluations"]["requirementFulfillment"] for run in found]
        assert [run["score"] / 100 for run in fulfilled] == met
        assert {it["by"] for run in fulfilled for it in run["details"]["criteria"]} == {"check"}
        assert not any("judge" in run for run in found)
    assert routing(done.stdout) == [
        "skill changelog 1 of 1 → 1 of 2 1 of 1",
        "skill release 2 of 2 → 1 of 1 2 of 2 → 1 of 2",
        "skill changelog instead: routing.2 (new)",
        "agent reviewer 1 of 1 1 of 1",
        "skill speed - 0 of 1",
        "nothing was called: routing.5",
        "none 1 of 2 1 of 1",
        "skill speed: the model saw only the beginning of its description",
    ]
    (files,) = {run["config"]["file"] for run in json.loads((project.path / "all.json").read_text())["runs"]}
    assert files == "zelda/test-routing.yaml"


def test_a_call_that_a_rule_denies_is_not_the_end(tmp_path: Path) -> None:
    prompts = "kind: routing\ntrials: 1\nprompts:\n  - prompt: Ship version 1.5.\n    expect: none\n"
    denied = {".claude/settings.json": json.dumps({"permissions": {"deny": ["Skill(release)"]}})}
    project = repository(tmp_path, {**PROJECT, **denied, "zelda/test-routing.yaml": prompts})
    with ScriptedApi([tool_call("Skill", {"skill": "release"}), text("I may not.")]) as api:
        done = zelda(project, "run", api=api.url)
        again = zelda(project, "rejudge", "latest", api=api.url)
    assert done.returncode == 0, done.stdout
    assert (api.unused, len(api.requests)) == (0, 2)
    assert routing(done.stdout)[0] == "none 1 of 1 1 of 1"
    assert (again.returncode, routing(again.stdout)) == (0, routing(done.stdout))
    # A file is a row; its sum is all that is said of it where only failures are wanted.
    assert [line.split()[:2] for line in done.stdout.splitlines() if "test-routing.yaml" in line] == [
        ["PASS", "zelda/test-routing.yaml"],
        ["Routing:", "zelda/test-routing.yaml:"],
    ]
    with ScriptedApi([text("I may not.")]) as api:
        quiet = zelda(project, "run", "--quiet", "--report", "page.html", api=api.url)
    assert quiet.stdout.splitlines()[0].strip() == "Routing: zelda/test-routing.yaml: 1 of 1 as expected"
    page = (project.path / "page.html").read_text()
    assert "<caption>Routing: zelda/test-routing.yaml: 1 of 1 as expected</caption>" in page
    assert ("<h2>Checks</h2>" in page, "Acceptance criteria" in page) == (True, False)


def test_a_draft_is_made_of_the_descriptions_and_runs_as_it_is(tmp_path: Path) -> None:
    files = {name: text for name, text in PROJECT.items() if "speed" not in name and "routing" not in name}
    project = repository(tmp_path, {**files, "zelda/test-mine.yaml": "prompt: Mine.\n"})
    done = zelda(project, "init", "--yes", "--routing", "--no-check")
    assert done.returncode == 0, done.stderr
    draft = (project.path / "zelda/test-routing.yaml").read_text()
    assert "  - prompt: Releases a version.  # draft\n    expect: skill release\n" in draft
    project.commit()
    with ScriptedApi(lambda _: text("Nothing to call.")) as api:
        done = zelda(project, "run", "routing", "--trials", "1", "--jobs", "2", api=api.url)
    assert len(api.requests) == 8
    output = done.stdout[done.stdout.index("Routing: zelda/test-routing.yaml") :]
    assert ["none", "2", "of", "8", "2", "of", "2"] in [line.split() for line in output.splitlines()]
    assert [it.name for it in sorted(project.path.glob("zelda/*"))] == ["test-mine.yaml", "test-routing.yaml"]


def test_a_draft_is_added_to_a_project_without_touching_another_file(tmp_path: Path) -> None:
    files = {name: text for name, text in PROJECT.items() if "routing" not in name}
    project = repository(tmp_path, {**files, "zelda/test-routing.yaml": "prompt: Mine.\n", ".gitignore": "x\n"})
    before = {it: it.read_bytes() for it in project.path.rglob("*") if it.is_file() and ".git" not in it.parts}
    done = zelda(project, "new", "more/routes", "--routing")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["wrote zelda/more/test-routes.yaml", "Next: make its prompts yours, then `zelda run more/routes`."],
    )
    draft = project.path / "zelda/more/test-routes.yaml"
    after = {it: it.read_bytes() for it in project.path.rglob("*") if it.is_file() and ".git" not in it.parts}
    assert after == {**before, draft: draft.read_bytes()}
    assert draft.read_text().count("    expect: skill release\n") == 2
    assert zelda(project, "new", "x", "--routing", "--rule", "y").returncode == 2
    done = zelda(repository(tmp_path, name="bare"), "new", "routes", "--routing")
    assert (done.returncode, "No skill, sub-agent or command here has a description." in done.stderr) == (2, True)
