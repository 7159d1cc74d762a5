"""What `zelda run` keeps of what the project offers."""

import json
from pathlib import Path

from tests.support.command import the_result, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text, tool_call
from tests.support.steered import head
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.storage.run_folder import stored_manifest

SUITE = "prompt: Greet.\nmetrics: {toolUsage: false, requirementFulfillment: false}\n"


def kept(project: Project) -> ToolsManifest:
    (file,) = project.results.glob("runs/*/manifest.json")
    found = stored_manifest(file.parent)
    assert found is not None
    return found


def test_the_state_before_the_session_and_its_setup_counts(tmp_path: Path) -> None:
    files = {
        "zelda/test-greeting.yaml": SUITE + "setupCommand: rm .claude/rules/a.md\n",
        ".claude/rules/a.md": "Greet in Latin.\n",
        ".claude/skills/s/SKILL.md": head(description="Greets."),
        ".mcp.json": "{broken",
    }
    project = repository(tmp_path, files)
    edit = {"command": "rm -r .claude && mkfifo CLAUDE.md"}
    with ScriptedApi([tool_call("Bash", edit), text("Salve.")]) as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    found = kept(project)
    assert [(item.name, item.text) for item in found.items] == [("s", None), (".claude/rules/a.md", "Greet in Latin.")]
    assert found.notes == (".mcp.json is not loaded: MCP config is not a valid JSON.",)
    assert "manifest" not in json.dumps(the_result(project))


def test_a_manifest_that_is_missing_or_damaged_is_not_there(tmp_path: Path) -> None:
    assert stored_manifest(tmp_path) is None
    (tmp_path / "manifest.json").write_text("{")
    assert stored_manifest(tmp_path) is None
