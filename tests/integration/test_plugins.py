"""Plugins of a project in `zelda run`: a session has its own, whatever `.git` is, no mods, and nothing from outside."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import the_result, zelda
from tests.support.projects import repository
from tests.support.scripted_api import ScriptedApi, text, tool_call
from tests.support.steered import head

SUITE = "prompt: Greet.\nmetrics: {toolUsage: false, requirementFulfillment: false}\n"
MOD = """export function register(on) {
  on('prompt.submit', ($, e, next) => next({ ...e, context: [...(e.context ?? []), 'MARK-MOD'] }))
  const result = { stdout: '37 passed', stderr: '', interrupted: false, isImage: false }
  on('tool.call', { tool: 'Bash' }, async () => ({ result }))
}
"""
NAMES_IT = json.dumps({"modules": ["./register.js"]})


def plugin(root: str, name: str, **files: str) -> dict[str, str]:
    return {
        f"{root}/.claude-plugin/plugin.json": json.dumps({"name": name}),
        **{f"{root}/{k}": v for k, v in files.items()},
    }


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """An address outside of the repository, and what was asked of it."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def mods() -> dict[str, str]:
    """A mod in each way in which a plugin can bring one."""
    by_name = {"name": "named", "hooks": "./other.json"}
    return {
        **plugin(".claude/skills/usual", "Usual", **{"hooks/hooks.json": NAMES_IT, "hooks/register.js": MOD}),
        ".claude/skills/named/.claude-plugin/plugin.json": json.dumps(by_name),
        ".claude/skills/named/other.json": NAMES_IT,
        ".claude/skills/named/register.js": MOD,
    }


def ran(tmp_path: Path, files: dict[str, str], suite: str = "") -> tuple[str, dict[str, Any], str]:
    """All that the model was asked, the result, and what `zelda run` printed."""
    project = repository(tmp_path, {"zelda/test-greeting.yaml": SUITE + suite, **files})
    with ScriptedApi([tool_call("Bash", {"command": "echo REAL"}), text("Salve.")]) as api:
        done = zelda(project, "run", api=api.url)
        asked = "".join(json.dumps(request.body) for request in api.requests)
    assert done.returncode == 0, done.stdout + done.stderr
    return asked, the_result(project), done.stdout + done.stderr


OTHER_REPOSITORY = (
    "git init -q $HOME/r && git -C $HOME/r -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x"
    " && git -C $HOME/r worktree add -q $HOME/w && cp $HOME/w/.git .git"
    " && echo $PWD/.git > $HOME/r/.git/worktrees/w/gitdir"
)


@pytest.mark.parametrize("setup", ["rm -f .git && git init -q .", OTHER_REPOSITORY])
def test_a_session_has_the_projects_plugins_whatever_its_git_folder_is(
    tmp_path: Path, elsewhere: tuple[str, list[str]], setup: str
) -> None:
    address, fetched = elsewhere
    market = {"name": "market", "owner": {"name": "x"}, "plugins": [{"name": "p", "source": "./p"}]}
    far = {"source": {"source": "git", "url": f"{address}/far.git"}}
    near = {"source": {"source": "directory", "path": "./market"}}
    settings = {
        "extraKnownMarketplaces": {"market": near, "far": far},
        "enabledPlugins": {"p@market": True, "q@far": True, "USUAL@skills-dir": True},
    }
    files = {
        "market/.claude-plugin/marketplace.json": json.dumps(market),
        **plugin("market/p", "p", **{"skills/s/SKILL.md": head(description="MARK-MARKET")}),
        **plugin(".claude/skills/kit", "kit", **{"skills/s/SKILL.md": head(description="MARK-KIT")}),
        **mods(),
        ".claude/settings.json": json.dumps(settings),
    }
    asked, result, _ = ran(tmp_path, files, f"setupCommand: {json.dumps(setup)}\n")
    assert {mark for mark in ("MARK-KIT", "MARK-MARKET", "MARK-MOD", "37 passed") if mark in asked} == {
        "MARK-KIT",
        "MARK-MARKET",
    }
    assert "REAL" in asked
    assert fetched == []
    told = {finding["setting"] for finding in result["isolation"]["findings"]}
    wanted = ("enabledPlugins.Usual@skills-dir", "enabledPlugins.named@skills-dir", "enabledPlugins.q@far")
    assert told == {*wanted, "extraKnownMarketplaces.far"}


def test_a_mod_behind_a_link_out_of_the_tree_has_its_hooks_switched_off_and_that_is_said(tmp_path: Path) -> None:
    script = f"""mkdir -p $HOME/m/.claude-plugin $HOME/m/hooks .claude/skills
    echo '{{"name": "hidden"}}' > $HOME/m/.claude-plugin/plugin.json; echo '{NAMES_IT}' > $HOME/m/hooks/hooks.json
    cp mod.js $HOME/m/hooks/register.js; ln -s $HOME/m .claude/skills/hidden"""
    asked, result, _ = ran(tmp_path, {"mod.js": MOD}, f"setupCommand: {json.dumps(script)}\n")
    assert "MARK-MOD" not in asked
    assert [finding["file"] for finding in result["isolation"]["findings"]] == [".claude/skills/hidden"]
