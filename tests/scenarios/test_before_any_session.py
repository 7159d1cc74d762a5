"""What is known of a pull request before any session: settings that Claude Code refuses, and tests that fail."""

import json
import re
from pathlib import Path
from typing import Any

from tests.scenarios.stage import FILES, GOOD, GREETING, NO_KEY, Stage
from zelda_ci.execution.manifest.folders import OUTSIDE

FILE = ".claude/settings.json"
HOOKS = {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]}
FINE = {"hooks": HOOKS, "permissions": {"deny": ["Read(./.env)"]}}
REFUSED = {**FINE, "cleanupPeriodDays": "never"}
PROBLEM = "cleanupPeriodDays: Expected number, but received string"
EFFECT = f"{FILE} is not loaded: {PROBLEM}"

KIT = ".claude/skills/kit"
ENABLED: dict[str, Any] = {
    "extraKnownMarketplaces": {"here": {"source": {"source": "directory", "path": "./market"}}},
    "enabledPlugins": {"p@here": True, "gone@here": True, "old@far": True},
}
PLUGINS = {
    FILE: json.dumps(ENABLED),
    f"{KIT}/.claude-plugin/plugin.json": json.dumps({"name": "kit"}),
    "market/.claude-plugin/marketplace.json": json.dumps(
        {
            "name": "here",
            "owner": {"name": "x"},
            "plugins": [{"name": "p", "source": "./p"}, {"name": "gone", "source": "./q"}],
        }
    ),
    "market/p/commands/x.md": "Do it.\n",
}


def test_what_is_newly_refused_turns_the_check_red_and_is_the_headline(tmp_path: Path) -> None:
    with Stage(tmp_path, {**FILES, FILE: json.dumps(FINE)}) as stage:
        stage.store(stage.tip)
        done = stage.pull_request(stage.open_pull({FILE: json.dumps(REFUSED)}), GOOD)
        assert done.code == 1, done.printed
        (body,) = stage.bodies()
        assert re.search(rf"(?m)^### Zelda: {re.escape(FILE)} is not loaded, 1 suite without it$", body)
        assert "no change found" not in body
        assert EFFECT in body
        assert "The check is red because a settings file or plugin is not loaded." in body
        assert (FILE, EFFECT) in {(it.properties.get("file"), it.data) for it in done.told("error")}


def test_a_fork_without_a_key_is_red_for_it_and_one_that_changes_nothing_of_it_is_not(tmp_path: Path) -> None:
    with Stage(tmp_path, {**FILES, FILE: json.dumps(FINE)}) as stage:
        done = stage.pull_request(stage.open_pull({FILE: json.dumps(REFUSED)}, fork=True), variables=NO_KEY)
        assert (done.code, done.outputs["verdict"]) == (1, "failed"), done.printed
        assert "a settings file or plugin is not loaded" in done.summary
        assert PROBLEM in done.summary
    base = {**FILES, **PLUGINS, FILE: json.dumps(REFUSED)}
    with Stage(tmp_path / "refused before", base) as stage:
        changes = {"README.md": "# New\n", f"{KIT}/commands/go.md": "Go.\n"}
        done = stage.pull_request(stage.open_pull(changes, fork=True), variables=NO_KEY)
        assert (done.code, done.outputs["verdict"]) == (0, "skipped"), done.printed
        assert "not loaded" not in done.summary


def test_plugins_that_a_fork_breaks_or_adds_from_elsewhere_turn_it_red_without_a_key(tmp_path: Path) -> None:
    with Stage(tmp_path, {**FILES, **PLUGINS}) as stage:
        settings = {**ENABLED, "enabledPlugins": {**ENABLED["enabledPlugins"], "new@far": True, "off@far": False}}
        changes = {FILE: json.dumps(settings), f"{KIT}/.claude-plugin/plugin.json": "{}"}
        done = stage.pull_request(stage.open_pull(changes, fork=True), variables=NO_KEY)
        assert (done.code, done.outputs["verdict"]) == (1, "failed"), done.printed
        told = {it.data for it in done.told("error")}
        assert told == {
            f"{KIT}/.claude-plugin/plugin.json is not loaded, kit@skills-dir: its plugin.json gives no name.",
            f"{FILE} is not loaded, new@far: {OUTSIDE}.",
        }


def test_tests_that_fail_before_any_session_are_blamed_on_the_files_that_break_them(tmp_path: Path) -> None:
    """And never on the line of CLAUDE.md that the pull request changes, too."""
    suite = GREETING.replace("test -f greeting.txt", "grep -q fine state.txt")
    with Stage(tmp_path, {**FILES, "zelda/test-greeting.yaml": suite, "state.txt": "fine\n"}) as stage:
        pull = stage.open_pull({"state.txt": "broken\n", "CLAUDE.md": "Be kind.\n"})
        done = stage.pull_request(pull, GOOD, variables={"ZELDA_NO_CHECK": ""})
        assert done.code == 1, done.printed
        (body,) = stage.bodies()
        assert "It fails on this commit before any session: testCommand ended with exit code 1." in body
        assert "What breaks it is among `state.txt`, which this pull request changes and which steer nothing." in body
        assert "CLAUDE.md" not in next(line for line in body.splitlines() if line.startswith("> "))
        assert [it.properties.get("file") for it in done.told("error")] == ["state.txt"]
