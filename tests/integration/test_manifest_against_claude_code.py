"""What a scan says was loaded is what the real Claude Code loaded: its init message and its first request tell."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from tests.builders import transcript
from tests.support.claude_sessions import Session, make_workspace
from tests.support.scripted_api import Message, ScriptedApi, text, tool_call
from tests.support.steered import head, safe
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.session import SessionTranscript, Started
from zelda_ci.execution.manifest.loading import note_listings, resolve_loaded
from zelda_ci.execution.manifest.pins import find_pins
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.model_proxy.meter import LoadedContext

SERVER = {"command": sys.executable, "args": [str(Path(__file__).parents[1] / "support" / "stdio_mcp_server.py")]}
HOOK = [{"hooks": [{"type": "command", "command": "true"}]}]


@dataclass(frozen=True)
class Led:
    """A session, what a scan before it found, and what was put to the model."""

    manifest: ToolsManifest
    by_files: ToolsManifest
    """The same by the files alone, as of a session that was killed."""
    transcript: SessionTranscript
    started: Started
    asked: tuple[str, ...]
    """All that the model was told, request by request."""

    def loaded(self, kind: ItemKind) -> set[str]:
        return {str(item.name) for item in self.manifest.items if item.kind is kind and item.loaded}

    def not_loaded(self, kind: ItemKind) -> dict[str, str]:
        return {
            str(item.file): str(item.reason) for item in self.manifest.items if item.kind is kind and not item.loaded
        }

    def told(self, *, last: bool = False) -> str:
        return self.asked[-1 if last else 0]


def lead(tmp_path: Path, files: Mapping[str, str | Path], *replies: Message, agents: Sequence[Message] = ()) -> Led:
    """Run a session; each sub-agent that it calls says one thing."""
    workspace = make_workspace(tmp_path, files, readable=[Path(SERVER["args"][0])])
    found = scan(workspace.root, workspace.path, safe)
    script = [*(_placed(reply, workspace.path) for reply in replies), text("Done.")]
    with ScriptedApi(script, agents=[[said] for said in agents]) as api:
        session = Session(workspace, api.url, pins=find_pins(workspace, safe, mods=False))
        anyio.run(session.lead)
        asked = tuple(json.dumps(request.body) for request in api.requests)
        context = LoadedContext()
        for request in api.requests:
            context.request(request.body)
    heard = transcript(session.records)
    assert heard.started is not None
    told = note_listings(found, tuple(context.listings), context.tools, safe)
    return Led(resolve_loaded(told, heard, safe), resolve_loaded(found, heard, safe), heard, heard.started, asked)


def _placed(reply: Message, place: Path) -> Message:
    content = json.loads(json.dumps(reply.content).replace("$WORKSPACE", str(place)))
    return Message(content=tuple(content), stop_reason=reply.stop_reason)


SKILLS = {
    ".claude/skills/good/SKILL.md": head(name="good", description="MARK-GOOD"),
    ".claude/skills/renamed/SKILL.md": head(name="other-name", description="MARK-RENAMED"),
    ".claude/skills/plain/SKILL.md": "# Plain skill\n",
    ".claude/skills/broken/SKILL.md": "---\nname: broken\ndescription: a: b: [c\n---\nBody\n",
    ".claude/skills/unclosed/SKILL.md": "---\nname: unclosed\nBody\n",
    ".claude/skills/empty/SKILL.md": "",
    ".claude/skills/manual/SKILL.md": head(description="MARK-MANUAL", disable_model_invocation="true"),
    ".claude/skills/quiet/SKILL.md": head(description="MARK-QUIET", user_invocable="false"),
    ".claude/skills/scoped/SKILL.md": head(description="MARK-SCOPED", paths="src/**/*.py"),
    ".claude/skills/off/SKILL.md": head(description="MARK-OFF"),
    ".claude/skills/synced/SKILL.md": head(description="MARK-SYNCED"),
    ".claude/skills/group/inner/SKILL.md": head(description="MARK-INNER"),
    ".claude/skills/lower/skill.md": head(description="MARK-LOWER"),
    ".claude/skills/loose.md": head(description="MARK-LOOSE"),
    "sub/.claude/skills/nested/SKILL.md": head(description="MARK-NESTED"),
}
COMMANDS = {
    ".claude/commands/deploy.md": head(description="MARK-DEPLOY"),
    ".claude/commands/ops/restart.md": "Restart it.\n",
    ".claude/commands/good.md": head(description="MARK-SHADOW"),
    "sub/.claude/commands/below.md": head(description="MARK-BELOW"),
}
AGENTS = {
    ".claude/agents/reviewer.md": head(name="reviewer", description="MARK-REVIEWER"),
    ".claude/agents/team/deep.md": head(name="deep-one", description="MARK-DEEP"),
    ".claude/agents/nodesc.md": head(name="nodesc"),
    ".claude/agents/noname.md": head(description="MARK-NONAME"),
    ".claude/agents/number.md": head(name="12", description="MARK-NUMBER"),
    ".claude/agents/broken.md": "---\nname: brokenyaml\ndescription: a: b: [c\n---\nBody\n",
    ".claude/agents/x1.md": head(name="dup", description="MARK-FIRST"),
    ".claude/agents/x2.md": head(name="dup", description="MARK-SECOND"),
    "sub/.claude/agents/a.md": head(name="never", description="MARK-NEVER"),
}
RULES = {
    ".claude/rules/always.md": "RULE-ALWAYS\n",
    ".claude/rules/deep/er.md": "RULE-DEEP\n",
    ".claude/rules/star.md": head("RULE-STAR\n", paths="'**'"),
    ".claude/rules/none.md": head("RULE-NONE\n", paths="[]"),
    ".claude/rules/py.md": head("RULE-PY\n", paths="src/**/*.py"),
    ".claude/rules/txt.md": head("RULE-TXT\n", paths="'*.{txt,md}'"),
    ".claude/rules/js.md": head("RULE-JS\n", paths="src/*.js, lib/*.js"),
    "sub/.claude/rules/r.md": "RULE-SUB\n",
}
MEMORY = {
    "CLAUDE.md": "MEMORY-ROOT\n@docs/style.md @missing.md\n```\n@fenced.md\n```\n",
    "docs/style.md": "MEMORY-STYLE\n@deep.md\n",
    "docs/deep.md": "MEMORY-DEEP\n",
    "fenced.md": "MEMORY-FENCED\n",
    ".claude/CLAUDE.md": "MEMORY-DOT\n",
    "AGENTS.md": "MEMORY-AGENTS\n",
    "CLAUDE.local.md": "MEMORY-LOCAL\n",
    "sub/CLAUDE.md": "MEMORY-SUB\n",
}
SETTINGS = {
    "hooks": {"SessionStart": HOOK, "NoSuchEvent": HOOK},
    "skillOverrides": {"off": "off"},
    "disabledMcpjsonServers": ["off"],
}
SERVERS = {
    "greeter": SERVER,
    "we ird": SERVER,
    "dead": {"command": "/no/such/program"},
    "shapeless": {"nothing": 1},
    "off": SERVER,
}
EVERYTHING = {
    **SKILLS,
    **COMMANDS,
    **AGENTS,
    **RULES,
    **MEMORY,
    ".claude/settings.json": json.dumps(SETTINGS),
    ".mcp.json": json.dumps({"mcpServers": SERVERS}),
    "src/a.py": "x = 1\n",
    "sub/x.txt": "x\n",
}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Led:
    """A project that has everything, and a session that touches nothing of it but a skill."""
    replies = [tool_call("Skill", {"skill": "other-name"}), tool_call("Skill", {"skill": "inner"})]
    return lead(tmp_path_factory.mktemp("everything"), EVERYTHING, *replies)


def test_the_skills_that_were_loaded_are_those_of_the_init_message(everything: Led) -> None:
    own = {Path(name).parent.name for name in SKILLS}
    told = own & {*everything.started.skills, *everything.started.slash_commands}
    assert everything.loaded(ItemKind.SKILL) == told | {"quiet"}
    assert "MARK-QUIET" in everything.told()
    assert "MARK-MANUAL" not in everything.told(), "only a person can call it"
    (manual,) = [item for item in everything.manifest.items if item.name == "manual"]
    assert (manual.loaded, manual.is_open) == (True, False)
    reasons = everything.not_loaded(ItemKind.SKILL)
    found = {name for name in SKILLS if Path(name).parent.name not in told | {"quiet"}}
    misplaced = {".claude/skills/group/inner/SKILL.md", ".claude/skills/lower/skill.md"}
    assert set(reasons) == found - misplaced | {".claude/skills/group", ".claude/skills/lower"}
    for mark in ("MARK-INNER", "MARK-LOWER", "MARK-LOOSE", "MARK-OFF", "MARK-SYNCED", "MARK-SCOPED", "MARK-NESTED"):
        assert mark not in everything.told()
    assert not any("did not say why" in reason for reason in reasons.values())


def test_the_commands_that_were_loaded_are_those_of_the_init_message(everything: Led) -> None:
    assert everything.loaded(ItemKind.COMMAND) == {"deploy", "ops:restart"}
    assert everything.loaded(ItemKind.COMMAND) <= set(everything.started.slash_commands)
    assert "MARK-SHADOW" not in everything.told()
    assert set(everything.not_loaded(ItemKind.COMMAND)) == {".claude/commands/good.md", "sub/.claude/commands/below.md"}


def test_the_sub_agents_that_were_loaded_are_those_of_the_init_message(everything: Led) -> None:
    names = {str(item.name) for item in everything.manifest.items if item.kind is ItemKind.AGENT}
    assert everything.loaded(ItemKind.AGENT) == names & set(everything.started.agents)
    assert everything.loaded(ItemKind.AGENT) == {"reviewer", "deep-one", "brokenyaml", "dup"}
    assert "MARK-SECOND" in everything.told()
    assert "MARK-FIRST" not in everything.told()
    assert set(everything.not_loaded(ItemKind.AGENT)) == {
        ".claude/agents/nodesc.md",
        ".claude/agents/noname.md",
        ".claude/agents/number.md",
        ".claude/agents/x1.md",
        "sub/.claude/agents/a.md",
    }


def test_the_servers_that_were_loaded_are_those_that_connected_and_their_tools_are_known(everything: Led) -> None:
    connected = {str(server.name) for server in everything.started.mcp_servers if server.status == "connected"}
    assert everything.loaded(ItemKind.MCP_SERVER) == connected == {"greeter", "we ird"}
    tools = {tool for item in everything.manifest.items for tool in item.tools}
    assert tools == {tool for tool in everything.started.tools if tool.startswith("mcp__")}
    refused = [item for item in everything.manifest.items if item.kind is ItemKind.MCP_SERVER and not item.loaded]
    reasons = {str(item.name): str(item.reason) for item in refused}
    assert reasons.pop("dead").startswith("it could not be started or reached: ")
    assert reasons == {
        "shapeless": "neither a command nor a url says how to reach it",
        "off": "the project's settings switch it off (disabledMcpjsonServers)",
    }


def seen(led: Led, files: Mapping[str, str], *, last: bool = False) -> set[str]:
    """The files whose first words were told to the model."""
    words = {
        name: next(word for word in content.split() if word.startswith(("RULE-", "MEMORY-")))
        for name, content in files.items()
    }
    return {name for name, word in words.items() if word in led.told(last=last)}


def test_the_rules_and_claude_md_files_that_were_loaded_are_those_the_model_was_told(everything: Led) -> None:
    assert everything.loaded(ItemKind.RULE) == seen(everything, RULES)
    assert everything.loaded(ItemKind.MEMORY) == seen(everything, MEMORY)
    assert len(seen(everything, RULES)) == 4
    waiting = {str(item.file) for item in everything.manifest.items if item.on_demand}
    assert waiting == {
        ".claude/rules/js.md",
        ".claude/rules/py.md",
        ".claude/rules/txt.md",
        ".claude/skills/scoped/SKILL.md",
        "sub/.claude/rules/r.md",
        "sub/.claude/skills/nested/SKILL.md",
        "sub/CLAUDE.md",
    }


def test_what_was_touched_brings_what_waited_for_it_and_nothing_else(tmp_path: Path) -> None:
    led = lead(
        tmp_path,
        EVERYTHING,
        tool_call("Bash", {"command": "cat src/a.py sub/x.txt"}),
        tool_call("Write", {"file_path": "$WORKSPACE/src/new.py", "content": "y = 2\n"}),
        tool_call("Read", {"file_path": "$WORKSPACE/sub/x.txt"}),
        # Claude Code reads the skills of a folder beside the conversation: the next request may come too early.
        tool_call("Bash", {"command": "sleep 2"}),
    )
    assert led.loaded(ItemKind.RULE) == seen(led, RULES, last=True) == set(RULES) - {".claude/rules/js.md"}
    assert led.loaded(ItemKind.MEMORY) == seen(led, MEMORY, last=True)
    assert "sub/CLAUDE.md" in led.loaded(ItemKind.MEMORY)
    assert {"scoped", "nested"} <= led.loaded(ItemKind.SKILL)
    assert "MARK-SCOPED" in led.told(last=True)
    assert "MARK-NESTED" in led.told(last=True)


@pytest.mark.parametrize(
    "files",
    [
        {"AGENTS.md": "MEMORY-A\n", ".claude/CLAUDE.md": "MEMORY-B\n"},
        {
            "CLAUDE.md": "MEMORY-0 @a1.md @../outside.md (@a6.md) @a7.txt, b@a6.md\n",
            **{f"a{n}.md": f"MEMORY-{n}\n@a{n + 1}.md\n" for n in range(1, 7)},
            "a7.txt": "MEMORY-7\n",
        },
    ],
    ids=["agents-and-dot-claude", "imports"],
)
def test_memory_is_loaded_as_the_scan_says(tmp_path: Path, files: dict[str, str]) -> None:
    led = lead(tmp_path, files)
    assert led.loaded(ItemKind.MEMORY) == seen(led, files)
