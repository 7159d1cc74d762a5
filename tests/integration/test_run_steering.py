"""What a real run stores of what the project offers, before its setup, and of what steered its session.

And what judging again makes of it.
"""

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.command import the_result, zelda
from tests.support.judges import use, uses
from tests.support.judging import said
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call
from tests.support.steered import head
from zelda_ci.storage.result_store import RunFolder

SUITE = "prompt: Note the fix.\nmetrics: {requirementFulfillment: false}\nsetupCommand: rm .mcp.json\n"
PROJECT = {
    "CLAUDE.md": "Never write in the present tense.\n",
    "lib/CLAUDE.md": "Test first.\n",
    "lib/a.py": "pass\n",
    ".claude/skills/changelog/SKILL.md": head("Write in the past tense.\n", description="Writes the changelog."),
    ".claude/skills/release/SKILL.md": head(description="Releases."),
    ".mcp.json": "{broken",
    "zelda/test-note.yaml": SUITE,
}
WORK: list[Reply] = [
    tool_call("Skill", {"skill": "changelog"}),
    tool_call("Read", {"file_path": "lib/a.py"}),
    tool_call("Bash", {"command": "echo Fixes it. > NOTES.md && cat NOTES.md"}),
    text("Done."),
]


def judging(first: str, second: str) -> Callable[[ApiRequest], Reply]:
    """The session, and a judge who finds this of the root's CLAUDE.md and of the skill that was not called."""

    def script(request: ApiRequest) -> Reply:
        if request.answer_tool != "answer_tool_findings":
            said_by_session: Reply = WORK[sum(message["role"] == "assistant" for message in request.messages)]
            return said_by_session
        place = ("patch:NOTES.md", "Fixes it.")
        found = {
            "Skill(changelog)": use("USED_WELL", ("turn 1 call 1", "changelog")),
            "Skill(release)": use(second),
            "CLAUDE.md": use(first, place),
            "lib/CLAUDE.md": use("NOT_APPLICABLE"),
        }
        return tool_call(request.answer_tool, uses(said(request), found))

    return script


def steering(project: Project) -> dict[str, list[str]]:
    """By unit, what the stored result says of it."""
    return {
        it["unit"]["name"]: [key for key, yes in it.items() if yes is True] for it in the_result(project)["steering"]
    }


def test_a_run_stores_what_its_session_felt_and_judging_again_corrects_it(tmp_path: Path) -> None:
    project = repository(tmp_path, PROJECT)
    with ScriptedApi(judging("BROKEN", "MISSED")) as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    felt = {"changelog": ["loaded", "used"], "release": ["loaded", "missed"], "lib/CLAUDE.md": ["loaded"]}
    assert steering(project) == {**felt, "CLAUDE.md": ["loaded", "used", "broken"]}
    (file,) = project.results.glob("runs/*/manifest.json")
    manifest = RunFolder(file.parent).manifest()
    assert manifest is not None
    offered = {item.name: item.text for item in manifest.items}
    told = {name: PROJECT[name].strip() for name in ("CLAUDE.md", "lib/CLAUDE.md")}
    assert offered == {"changelog": None, "release": None, **told}
    assert manifest.notes == (".mcp.json is not loaded: MCP config is not a valid JSON.",)
    assert "manifest" not in the_result(project)
    touched = the_result(project)["touched"]
    assert {"NOTES.md", "lib/a.py"} <= set(touched)
    with ScriptedApi(judging("FOLLOWED", "NOT_APPLICABLE")) as api:
        done = zelda(project, "rejudge", the_result(project)["runId"], api=api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert steering(project) == {**felt, "release": ["loaded"], "CLAUDE.md": ["loaded", "used"]}
    assert json.dumps(the_result(project)["touched"]) == json.dumps(touched)


def test_a_manifest_that_is_missing_or_damaged_is_not_there(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).manifest() is None
    (tmp_path / "manifest.json").write_text("{")
    assert RunFolder(tmp_path).manifest() is None
