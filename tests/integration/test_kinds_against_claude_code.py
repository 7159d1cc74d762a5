"""Every kind of steering in every state, in one session of the real Claude Code: the manifest says what it did."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.integration.test_manifest_against_claude_code import SERVER, Led, lead
from tests.support.claude_sessions import Session, make_workspace
from tests.support.scripted_api import ScriptedApi, text, tool_call
from tests.support.steered import head, safe, workspace_in
from zelda_ci.domain.kinds import CALLED, FOLLOWED, KINDS, ItemKind, Shown
from zelda_ci.domain.manifest import ManifestItem
from zelda_ci.domain.steering import felt_by
from zelda_ci.execution import launch
from zelda_ci.execution.manifest.scan import memory_lines
from zelda_ci.model_proxy.witness import TranscriptWitness

HOOK = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: echo {}\n"
# As the head of a file may spell it, and whether Claude Code takes it for a yes.
SPELLINGS = {
    "1": True, "0": False, "yes": True, "no": False, "on": True, "off": False, "True": True, "'true'": True,
    "' TRUE'": True, "'yes '": True, "2": False, "1.0": True, "null": False, "y": False, "[true]": False,
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "agent": "lead",
    "outputStyle": "terse",
    "skillOverrides": {"s-name": "name-only", "s-user": "user-invocable-only", "s-off": "off", "c-name": "name-only",
                       "c-off": "off", "w-off": "off"},
    "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]},
}  # fmt: skip
KIT, MOD, MARKET = ".claude/skills/kit", ".claude/skills/moddy", "market/p"
PLUGINS = {
    f"{KIT}/.claude-plugin/plugin.json": json.dumps({"name": "kit", "commands": "./more"}),
    f"{KIT}/skills/inner/SKILL.md": head(description="MARK:kit:inner;"),
    f"{KIT}/commands/never.md": "Never.\n",
    f"{KIT}/more/ops/go.md": head(description="MARK:kit:ops:go;"),
    f"{KIT}/agents/team/a.md": head(name="helper", description="MARK:kit:team:helper;"),
    f"{KIT}/workflows/w.js": "export const meta = {name: 'flow', description: 'MARK:kit:flow;'}\n",
    f"{KIT}/hooks/hooks.json": json.dumps(
        {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    ),
    f"{KIT}/.mcp.json": json.dumps({"mcpServers": {"greeter": SERVER}}),
    f"{MOD}/.claude-plugin/plugin.json": json.dumps({"name": "moddy"}),
    f"{MOD}/skills/of-mod/SKILL.md": head(description="MARK:moddy:of-mod;"),
    f"{MOD}/hooks/hooks.json": json.dumps({"modules": ["./register.js"]}),
    f"{MOD}/hooks/register.js": "export function register(on) {}\n",
    ".claude/skills/offk/.claude-plugin/plugin.json": json.dumps({"name": "offk"}),
    ".claude/skills/offk/skills/o/SKILL.md": head(description="MARK:offk:o;"),
    ".claude/skills/nameless/.claude-plugin/plugin.json": "{}",
    "market/.claude-plugin/marketplace.json": json.dumps(
        {
            "name": "market",
            "owner": {"name": "x"},
            "plugins": [{"name": "p", "source": "./p"}, {"name": "far", "source": {"source": "npm", "package": "x"}}],
        }
    ),
    f"{MARKET}/.claude-plugin/plugin.json": json.dumps({"name": "p"}),
    f"{MARKET}/skills/sold/SKILL.md": head(description="MARK:p:sold;"),
}
SETTINGS |= {
    "extraKnownMarketplaces": {"market": {"source": {"source": "directory", "path": "./market"}}},
    "enabledPlugins": {"offk@skills-dir": False, "p@market": True, "far@market": True, "gone@market": True},
}
FILES = {
    **PLUGINS,
    "CLAUDE.md": "MARK:CLAUDE.md\n",
    ".claude/rules/r.md": "MARK:.claude/rules/r.md\n",
    ".claude/rules/waits.md": head("MARK:.claude/rules/waits.md\n", paths="src/**"),
    ".claude/settings.json": json.dumps(SETTINGS),
    ".claude/output-styles/terse.md": head("MARK:STYLE\n", name="terse", description="x"),
    **{f".claude/skills/{name}/SKILL.md": head(description=f"MARK:{name};") for name in ("s-name", "s-user", "s-off")},
    ".claude/skills/s-when/SKILL.md": "---\ndescription: Ships.\nwhen_to_use: MARK:s-when;\n---\nDo it.\n",
    ".claude/skills/s-long/SKILL.md": head(description="d" * 1600 + " MARK:s-long;"),
    ".claude/skills/s-hooked/SKILL.md": f"---\ndescription: MARK:s-hooked;\n{HOOK.format('SKILL-HOOK')}---\nDo it.\n",
    ".claude/skills/s-silent/SKILL.md": f"---\ndescription: MARK:s-silent;\n{HOOK.format('NEVER')}---\nDo it.\n",
    **{
        f".claude/skills/d{number}/SKILL.md": head(description=f"MARK:d{number};", disable_model_invocation=value)
        for number, value in enumerate(SPELLINGS)
    },
    **{
        f".claude/skills/u{number}/SKILL.md": head(description=f"MARK:u{number};", user_invocable=value)
        for number, value in enumerate(SPELLINGS)
    },
    **{f".claude/commands/{name}.md": head(description=f"MARK:{name};") for name in ("c-name", "c-off", "c-plain")},
    ".claude/agents/lead.md": head("MARK:LEAD\n", name="lead", description="MARK:lead;"),
    ".claude/agents/colon.md": head(name="a:b", description="MARK:a:b;"),
    ".claude/agents/plain.md": head(name="plain", description="MARK:plain;"),
    **{
        f".claude/workflows/{name}.js": f"export const meta = {{name: '{name}', description: 'MARK:{name};'}}\n"
        for name in ("w-on", "w-off")
    },
    ".claude/workflows/w-none.js": "export default 1\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def led(tmp_path_factory: pytest.TempPathFactory) -> Led:
    replies = [
        tool_call("Skill", {"skill": "s-hooked"}),
        tool_call("Bash", {"command": "true"}),
        tool_call("Skill", {"skill": "w-on"}),
    ]
    return lead(tmp_path_factory.mktemp("kinds"), FILES, *replies)


def of(led: Led, *kinds: ItemKind) -> Iterator[ManifestItem]:
    found = [item for item in led.manifest.items if item.kind in kinds]
    assert {item.kind for item in found} == set(kinds)
    return iter(found)


def test_the_model_was_told_of_each_what_the_manifest_says(led: Led) -> None:
    said: dict[str, Shown | None] = {}
    real: dict[str, Shown | None] = {}
    for item in of(led, *CALLED - {ItemKind.MCP_SERVER}):
        said[item.name] = item.shown if item.loaded else None
        has_name = re.search(rf"- {re.escape(item.name)}(?![\w-])", led.told())
        has_text = f"MARK:{item.name};" in led.told()
        real[item.name] = Shown.DESCRIPTION if has_text else Shown.NAME if has_name else None
    # Of what is longer than its limit, Claude Code tells the beginning.
    real["s-long"] = Shown.DESCRIPTION if "d" * 1500 in led.told() else None
    assert {name: None if shown is Shown.HIDDEN else shown for name, shown in said.items()} == real
    assert {*said.values()} == {*Shown, None}
    for number, is_yes in enumerate(SPELLINGS.values()):
        assert said[f"d{number}"] is (Shown.HIDDEN if is_yes else Shown.DESCRIPTION)


def test_what_claude_code_listed_is_what_the_manifest_calls_loaded(led: Led) -> None:
    for kind in CALLED - {ItemKind.MCP_SERVER}:
        listed = {name for each in KINDS[kind].listed for name in getattr(led.started, each)}
        for item in of(led, kind):
            # Skills that no person can call are told to the model, and are in no list.
            assert item.loaded == (item.name in listed or not item.announced), item.name


def test_what_is_followed_was_in_the_first_request(led: Led) -> None:
    for item in of(led, *FOLLOWED):
        assert item.loaded == (f"MARK:{item.name}" in led.told()), item.name
    (main,) = [item for item in led.manifest.items if item.is_main]
    assert (main.name, main.text, main.is_followed) == ("lead", "MARK:LEAD", True)
    assert "MARK:LEAD" in led.told()
    assert "MARK:STYLE" in led.told()


def test_hooks_in_heads_are_loaded_once_their_skill_was_called(led: Led) -> None:
    hooks = {(item.file.split("/")[-2], item.name): item.loaded for item in of(led, ItemKind.HOOK)}
    assert hooks == {
        (".claude", "SessionStart"): True,
        ("hooks", "UserPromptSubmit"): True,
        ("s-hooked", "PreToolUse:Bash"): True,
        ("s-silent", "PreToolUse:Bash"): False,
    }
    ran = {str(entry.name) for entry in led.transcript.entries if entry.type == "hookRan"}
    assert {"SessionStart:startup", "PreToolUse:Bash", "UserPromptSubmit"} <= ran


def test_plugins_are_those_of_the_session_and_what_is_absent_says_why(led: Led) -> None:
    own = {str(item.name): str(item.reason) for item in of(led, ItemKind.PLUGIN) if not item.loaded}
    assert {name for name in led.started.plugins if not name.endswith("@builtin")} == {"kit@skills-dir", "p@market"}
    assert own.keys() == {"moddy@skills-dir", "offk@skills-dir", "nameless@skills-dir", "far@market", "gone@market"}
    assert "isolation.mods" in own["moddy@skills-dir"]
    assert "nothing is fetched" in own["far@market"]
    assert {note.split()[2] for note in led.manifest.notes if note.startswith("The plugin ")} == own.keys()
    (mod,) = of(led, ItemKind.MOD)
    assert not mod.loaded
    (server,) = of(led, ItemKind.MCP_SERVER)
    assert (server.name, server.loaded) == ("plugin:kit:greeter", True)
    assert server.tools


@pytest.mark.parametrize(("settings", "is_told"), [({}, True), ({"claudeMdExcludes": ["**"]}, False)])
def test_a_session_that_is_not_told_of_the_projects_claude_md_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], *, is_told: bool
) -> None:
    """As a Claude Code would do that reads no configuration unless it is asked to."""
    monkeypatch.setattr(launch, "GUARDS", {**launch.GUARDS, **settings})
    workspace = make_workspace(tmp_path, {"CLAUDE.md": 'Say "hello\\world" — always.\n'})
    witness = TranscriptWitness()
    witness.expected = memory_lines(workspace, safe)
    with ScriptedApi([tool_call("Read", {"file_path": str(workspace.path / "CLAUDE.md")}), text("Done.")]) as api:
        anyio.run(Session(workspace, api.url).lead)
    for request in api.requests:
        witness.request(request.body)
    assert witness.lacks_memory is not is_told


def test_claude_md_that_the_project_itself_switches_off_is_not_waited_for(tmp_path: Path) -> None:
    settings = json.dumps({"env": {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"}})
    led = lead(tmp_path, {"CLAUDE.md": "MARK:CLAUDE.md\n", ".claude/settings.json": settings})
    assert not led.loaded(ItemKind.MEMORY)
    assert "MARK:CLAUDE.md" not in led.told()
    assert not memory_lines(workspace_in(tmp_path / "run with space" / "ws"), safe)


def test_what_was_called_or_ran_is_used(led: Led) -> None:
    outcome = felt_by(led.manifest, led.transcript, None, (), safe)
    used = {use.unit.name for use in outcome.units if use.used}
    assert {"s-hooked", "w-on", "SessionStart", "PreToolUse:Bash"} <= used
    assert used.isdisjoint({"kit:flow", "s-silent", "c-plain", "plain"})
