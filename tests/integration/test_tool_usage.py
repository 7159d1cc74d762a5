"""Tool usage from the developer's chair, and what both judges see: the real command, a scripted API."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import session
from tests.support.command import zelda
from tests.support.judges import use, uses
from tests.support.judging import all_pass, answer, details, fulfillment, is_part, said, verdict
from tests.support.projects import repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, http_error, text, tool_call

SUITE = "prompt: Note the fix.\nacceptanceCriteria: [There is an entry.]\nexecution: {mcpStartupSeconds: 5}\n"
SKILL = "---\nname: changelog\ndescription: Writes the changelog.\n---\nWrite in the past tense.\n"
PROJECT = {
    "CLAUDE.md": "Never write in the present tense.\n",
    ".claude/skills/changelog/SKILL.md": SKILL,
    ".claude/rules/money.md": "Money is whole cents.\n",
    ".mcp.json": json.dumps({"mcpServers": {"catalog": {"command": "/nowhere/at/all"}}}),
    "zelda/test-note.yaml": SUITE,
}
ENTRY = "Fixes the b\u0430sket.\u202e\n"
WORK: list[Reply] = [
    tool_call("Skill", {"skill": "changelog"}),
    tool_call("Bash", {"command": f"printf '{ENTRY}' > NOTES.md && cat NOTES.md"}),
    text("Done."),
]
# As it was shown, and as somebody writes it who left the marks out.
MARKED = "Fixes the b\u0430⟦CYRILLIC letters⟧sket.⟦U+202E RIGHT-TO-LEFT OVERRIDE⟧"
BARE = "Fixes the b\u0430sket."


def test_findings_are_checked_asked_for_again_and_counted_in_a_real_run(tmp_path: Path) -> None:
    project = repository(tmp_path, PROJECT)
    tools: list[ApiRequest] = []
    criteria: list[ApiRequest] = []

    def script(request: ApiRequest) -> Reply:
        if request.answer_tool == "answer_tool_findings":
            tools.append(request)
            quote = ENTRY.upper() if len(tools) == 1 else MARKED
            found = {
                "Skill(changelog)": use("INSTRUCTIONS_IGNORED", ("turn 1 call 1", "changelog")),
                "CLAUDE.md": use("broken", ("turn 2 call 1", quote)),
                ".claude/rules/money.md": use("NOT_APPLICABLE"),
            }
            return tool_call(request.answer_tool, uses(said(request).partition("You have answered")[0], found))
        if request.answer_tool:
            criteria.append(request)
            return answer(verdict(1, evidence=[{"where": "NOTES.md:1", "quote": BARE}]))
        said_by_session: Reply = WORK[sum(message["role"] == "assistant" for message in request.messages)]
        return said_by_session

    with ScriptedApi(script) as api:
        done = zelda(project, "run", "--verbose", api=api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = project.results.glob("runs/note-*/result.json")
    result = json.loads(file.read_bytes())["evaluations"]["toolUsage"]
    assert (result["score"], result["version"]) == (25.0, "4.4")
    found: dict[str, Any] = result["details"]
    assert [one["tool"] for one in found["instructionsIgnored"]] == ["Skill(changelog)"]
    assert {rule["rule"]: rule["verdict"] for rule in found["rules"]} == {
        "CLAUDE.md": "broken",
        ".claude/rules/money.md": "notApplicable",
    }
    assert len(tools) == 2
    assert "You have answered this before" in said(tools[1])
    assert "not found" in said(tools[1]).partition("You have answered this before")[2]
    assert "Used, but" in done.stdout
    for request in (*tools, *criteria):
        assert "MCP servers that were not connected]\ncatalog: failed" in said(request)
        assert MARKED in said(request)
        assert "\u202e" not in said(request)


LONG = session("Read a.py -> found it", *(f"Bash step{number} -> {'word ' * 2000}" for number in range(40)))
pytestmark = pytest.mark.anyio


async def test_a_prompt_that_the_api_finds_too_long_is_cut_anew_until_it_fits() -> None:
    fits = 150_000

    def script(request: ApiRequest) -> Reply:
        if len(said(request)) > fits:
            return http_error(400, "prompt is too long: 210000 tokens > 200000 maximum")
        return all_pass(request)

    with ScriptedApi(script) as api:
        result = await fulfillment(api, LONG, "One.", context_tokens=200_000, max_lookups=0)
    assert result.score == 100.0
    assert details(result).parts > 2
    read = "".join(said(request) for request in api.requests if is_part(request) and len(said(request)) <= fits)
    assert [number for number in range(40) if f"command: step{number}\n" not in read] == []
    assert len([request for request in api.requests if len(said(request)) > fits]) <= 4
