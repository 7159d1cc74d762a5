"""`.mcp.json`: the MCP servers of a project."""

from typing import Any

from zelda_ci.domain.manifest import ItemKind
from zelda_ci.execution.manifest.findings import Findings
from zelda_ci.execution.manifest.settings import Settings, json_object


def add(findings: Findings, file: str, settings: Settings, known: set[str]) -> None:
    """A finding for each server of a file; one in a nearer folder takes the place of one further up."""
    servers = json_object(findings, file).get("mcpServers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        shadowed = name in known
        problem = _problem(name, server, settings)
        if shadowed:
            problem = "a server of the same name in a nearer folder takes its place"
        findings.add(
            ItemKind.MCP_SERVER, name, file, description=_described(server), problem=problem, shadowed=shadowed
        )
        known.add(name)


def _problem(name: str, server: object, settings: Settings) -> str | None:
    if name in settings.servers_off:
        return "the project's settings switch it off (disabledMcpjsonServers)"
    if not isinstance(server, dict) or not isinstance(server.get("command") or server.get("url"), str):
        return "neither a command nor a url says how to reach it"
    return None


def _described(server: Any) -> str | None:
    """How it is reached. Arguments, headers and variables may hold secrets of any shape, and are left out."""
    if not isinstance(server, dict):
        return None
    command, url = server.get("command"), server.get("url")
    if isinstance(command, str):
        return f"command: {command}"
    return f"url: {url.partition('?')[0]}" if isinstance(url, str) else None
