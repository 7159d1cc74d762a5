"""What a session had, from what the files promise and what the session told."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.builders import records, safe, transcript
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.session import (
    McpServer,
    McpServerState,
    ServersReported,
    SessionRecord,
    Started,
)
from zelda_ci.execution.manifest.loading import resolve_loaded


@dataclass
class Init:
    """What the init message lists."""

    skills: tuple[str, ...] = ()
    slash_commands: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    servers: dict[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()


def settled(init: Init | None, *steps: str, **fields: Any) -> ManifestItem:
    """The one item of a manifest after a session of these steps."""
    given = {"kind": ItemKind.SKILL, "name": safe("one"), "file": safe("file.md"), **fields}
    manifest = ToolsManifest(items=(ManifestItem(**given),), workspace=safe("/tree"), folder=safe(""))
    happened = [_told(record, init) for record in records(*steps)]
    heard = [record for record in happened if init or not isinstance(record, Started)]
    (item,) = resolve_loaded(manifest, transcript(heard), safe).items
    return item


def _told(record: Any, init: Init | None) -> Any:
    if not isinstance(record, Started) or init is None:
        return record
    servers = tuple(McpServer(name=safe(name), status=safe(status)) for name, status in init.servers.items())
    lists = {name: tuple(map(safe, getattr(init, name))) for name in ("skills", "slash_commands", "agents", "tools")}
    return record.model_copy(update={**lists, "mcp_servers": servers})


@pytest.mark.parametrize(
    ("kind", "init"),
    [
        (ItemKind.SKILL, Init(skills=("one",))),
        (ItemKind.SKILL, Init(slash_commands=("one",))),
        (ItemKind.COMMAND, Init(slash_commands=("one",))),
        (ItemKind.AGENT, Init(agents=("one",))),
        (ItemKind.MCP_SERVER, Init(servers={"one": "connected"})),
        (ItemKind.MCP_SERVER, Init(servers={"one": "pending"}, tools=("mcp__one__go",))),
    ],
)
def test_what_the_session_lists_was_loaded_whatever_else_is_thought_of_it(kind: ItemKind, init: Init) -> None:
    item = settled(init, kind=kind, problem=safe("a rule of the format"))
    assert (item.loaded, item.reason) == (True, None)


@pytest.mark.parametrize("kind", [ItemKind.SKILL, ItemKind.COMMAND, ItemKind.AGENT, ItemKind.MCP_SERVER])
def test_what_the_session_does_not_list_was_not_loaded(kind: ItemKind) -> None:
    assert settled(Init(), kind=kind).reason == "Claude Code did not say why"
    known = settled(Init(), kind=kind, problem=safe("it lies too deep"))
    assert (known.loaded, known.on_demand, known.reason) == (False, False, "it lies too deep")


def test_of_two_files_with_one_name_only_one_was_loaded() -> None:
    problem = safe("other.md has the same name and takes its place")
    item = settled(Init(agents=("one",)), kind=ItemKind.AGENT, problem=problem, shadowed=True)
    assert (item.loaded, item.reason) == (False, problem)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("failed", "it could not be started or reached"),
        ("pending", "it was still connecting when the session ended"),
        ("needs-auth", "it asks for a login, which is not possible in a test run"),
    ],
)
def test_a_server_that_did_not_connect_says_why(status: str, reason: str) -> None:
    item = settled(Init(servers={"one": status}), kind=ItemKind.MCP_SERVER)
    assert (item.loaded, item.reason) == (False, reason)


WAITING = {"kind": ItemKind.RULE, "announced": False, "paths": ("src/*.py",), "base": ""}


@pytest.mark.parametrize(
    "step",
    ["Read /tree/src/a.py", "Edit /tree/src/a.py", "Write /tree/src/a.py", "Read src/a.py", "Read /tree/x/../src/a.py"],
)
def test_what_waits_for_a_file_comes_when_one_is_touched(step: str) -> None:
    assert settled(Init(), step, **WAITING).loaded


@pytest.mark.parametrize(
    "step",
    [
        "Bash cat src/a.py",
        "Read /tree/src/a.js",
        "Read /tree/src/a.py -> error",
        "Read /tree/src/a.py -> nothing",
        "Read /elsewhere/src/a.py",
        "Read",
    ],
)
def test_what_waits_for_a_file_is_on_demand_and_no_finding(step: str) -> None:
    item = settled(Init(), step, **WAITING)
    assert (item.loaded, item.on_demand) == (False, True)
    assert item.reason


def test_paths_count_from_the_folder_of_the_rule_and_files_of_a_subfolder_bring_its_own() -> None:
    nested = {**WAITING, "base": "pkg", "below": "pkg"}
    assert settled(Init(), "Read /tree/pkg/src/a.py", **nested).loaded
    assert settled(Init(), "Read /tree/src/a.py", **nested).on_demand
    below = {"kind": ItemKind.MEMORY, "announced": False, "below": "pkg"}
    assert settled(Init(), "Read /tree/pkg/deep/x.txt", **below).loaded
    assert settled(Init(), "Read /tree/pkgs/x.txt", **below).on_demand


def server_after(*happened: SessionRecord) -> ManifestItem:
    """The server `one` of a manifest, after a session in which this happened."""
    item = ManifestItem(kind=ItemKind.MCP_SERVER, name=safe("one"), file=safe(".mcp.json"))
    (settled_item,) = resolve_loaded(ToolsManifest(items=(item,)), transcript(happened), safe).items
    return settled_item


def init(status: str, at: float = 1) -> Started:
    (started,) = (record for record in records('"Hello."') if isinstance(record, Started))
    return started.model_copy(update={"at": at, "mcp_servers": (McpServer(name=safe("one"), status=safe(status)),)})


def report(status: str, at: float, error: str | None = None, tools: tuple[str, ...] = ()) -> ServersReported:
    state = McpServerState(
        name=safe("one"), status=safe(status), error=safe(error) if error else None, tools=tuple(map(safe, tools))
    )
    return ServersReported(at=at, servers=(state,))


def test_a_server_that_connects_later_was_loaded_late() -> None:
    item = server_after(init("pending"), report("pending", 2), report("connected", 12.34, tools=("mcp__one__go",)))
    assert (item.loaded, item.tools) == (True, ("mcp__one__go",))
    assert item.note == "it connected late: 12.3 s after the start, when the session had already started"


@pytest.mark.parametrize("last", ["failed", "pending"])
def test_a_server_that_was_lost_was_loaded_and_lost(last: str) -> None:
    item = server_after(init("connected"), report("connected", 2), report(last, 9, "Connection closed"))
    assert item.loaded
    assert str(item.note).startswith("it was connected, and then lost: it ")
    assert str(item.note).endswith(": Connection closed")


def test_rules_are_there_from_the_start_and_a_server_has_its_tools_whatever_its_name() -> None:
    assert settled(Init(), kind=ItemKind.RULE, announced=False).loaded
    assert settled(Init(), kind=ItemKind.RULE, announced=False, problem=safe("binary")).reason == "binary"
    ready = Init(servers={"we ird": "connected"}, tools=("Bash", "mcp__we_ird__greet", "mcp__we_irder__x"))
    assert settled(ready, kind=ItemKind.MCP_SERVER, name=safe("we ird")).tools == ("mcp__we_ird__greet",)
