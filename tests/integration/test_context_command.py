"""`zelda context` from the developer's chair: what the real Claude Code gives a session that is never answered."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import zelda
from tests.support.projects import Project, repository
from tests.support.schemas import checker
from tests.support.scripted_api import ScriptedApi
from tests.support.steered import head
from zelda_ci.model_proxy.wire import texts

SERVER: dict[str, Any] = {
    "command": sys.executable,
    "args": [str(Path(__file__).parents[1] / "support" / "stdio_mcp_server.py")],
    "env": {"INSTRUCTIONS": "Six words say\n\n## Other\nmore."},
}
FRAME = 7
PROJECT = {
    "CLAUDE.md": "Be careful with money.\n<!-- a remark -->\n@docs/style.md\n@docs/none.md\n",
    "docs/style.md": "Tabs, not blanks.\n",
    ".claude/rules/always.md": "Test what you write.\n",
    ".claude/rules/src.md": head("Sources are typed.\n", paths="src/**"),
    ".claude/skills/deploy/SKILL.md": head("Five words are in here.\n", description="Deploys the service."),
    ".claude/skills/manual/SKILL.md": head("Only people call it.\n", disable_model_invocation="true"),
    ".claude/skills/long/SKILL.md": head("Do it.\n", description="Words " * 400),
    ".claude/agents/critic.md": head(
        "You find mistakes.\n", name="critic", description="|\n  Finds mistakes.\n\n  - In sums"
    ),
    ".claude/skills/typed/SKILL.md": head("Only for sources.\n", description="Types sources.", paths="src/**"),
    ".claude/workflows/w.js": "export const meta = {name: 'flow', description: 'Deploys all.'}\n",
    # Claude Code tells letters by case in these patterns.
    ".claude/settings.json": '{"claudeMdExcludes": ["**/ALWAYS.md"]}',
    "src/main.py": "",
}


def listed(project: Project, *arguments: str, api: ScriptedApi | None = None) -> dict[str, Any]:
    """What it prints for programs."""
    done = zelda(project, "context", *arguments, "--json", api=api.url if api else None)
    assert done.returncode == 0, done.stderr
    tree: dict[str, Any] = json.loads(done.stdout)
    checker("zelda.context.schema.json").validate(tree)
    return tree


def sizes(listing: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """By name, what is always there and what comes on demand."""
    return {item["name"]: (item["always"], item["onDemand"]) for item in listing["items"]}


def words(body: dict[str, Any]) -> int:
    """How the scripted API counts: a token for each word of a text, and a frame; a file's path is one word."""
    contents = [body.get("system"), *(message["content"] for message in body["messages"])]
    said = [text for content in contents for text in texts(content)]
    return FRAME + sum(len(re.findall(r"[\w./]+", text)) for text in said)


def test_the_api_counts_each_text_and_the_model_is_never_asked(tmp_path: Path) -> None:
    servers = {".mcp.json": json.dumps({"mcpServers": {"greeter": SERVER}})}
    config = {"zelda.config.yaml": f"isolation:\n  readPaths: [{SERVER['args'][0]}]\n"}
    project = repository(tmp_path, PROJECT | servers | config)
    with ScriptedApi([], counts=words) as api:
        tree = listed(project, api=api)
        assert api.requests == []
        assert api.counts_asked > 0
    listing = tree["head"]
    assert (listing["isEstimated"], listing["window"], listing["own"] > 1000) == (False, 1_000_000, True)
    found = sizes(listing)
    greeter = found.pop("greeter")
    # What it says of itself, under its name, and its tool's name, until the model looks for the tool.
    assert (greeter[0], greeter[1] > 10) == (7, True)
    cut = {item["name"]: item["cut"] for item in listing["items"] if item["cut"]}
    assert found == {
        "deploy": (4, 5),
        "manual": (0, 4),
        "long": (257, 2),
        # Its description has a paragraph and a list.
        "critic": (8, 3),
        "typed": (0, 5),
        ".claude/rules/always.md": (4, 0),
        ".claude/rules/src.md": (0, 3),
        "flow": (3, 0),
        # An import that leads nowhere is a word of its file, and no file.
        "CLAUDE.md": (6, 0),
        "docs/style.md": (3, 0),
    }
    assert cut == {"long": 400 * len("Words ") - 1 - 1536}


def test_without_a_key_it_is_estimated_and_a_change_has_its_sign(tmp_path: Path) -> None:
    project = repository(tmp_path, PROJECT)
    project.write(
        {
            "CLAUDE.md": PROJECT["CLAUDE.md"] + "Every amount is an integer number of cents, never a float.\n" * 10,
            ".claude/skills/deploy/SKILL.md": head("Body.\n", description="D."),
        }
    )
    (project.path / ".claude/rules/always.md").unlink()
    done = zelda(project, "context", "--against", "HEAD")
    assert done.returncode == 0, done.stderr
    shown = re.sub(r"[ ]{2,}", "  ", done.stdout)
    assert re.search(r"^Always in context: [\d,]+ → [\d,]+ tokens \(\+\d+, \+\d+%, estimated\)$", shown, re.MULTILINE)
    assert re.search(r"CLAUDE\.md  CLAUDE\.md file  \d+ → \d+", shown)
    tree = listed(project, "--against", "HEAD")
    assert tree == listed(project, "--against", "HEAD")
    head_, base = sizes(tree["head"]), sizes(tree["base"])
    assert tree["head"]["isEstimated"]
    assert tree["base"]["commit"]
    assert "commit" not in tree["head"]
    # By the count of ctok.
    assert abs((head_["CLAUDE.md"][0] - base["CLAUDE.md"][0]) / 179 - 1) < 0.15
    assert head_["deploy"] < base["deploy"]
    assert ".claude/rules/always.md" in base.keys() - head_.keys()
    assert base["critic"] == head_["critic"]


def test_a_limit_that_is_exceeded_is_exit_code_1_and_a_missing_commit_2(tmp_path: Path) -> None:
    project = repository(tmp_path, PROJECT)
    done = zelda(project, "context", "--max-always-on", "100")
    assert (done.returncode, "at most 100 are allowed" in " ".join(done.stdout.split())) == (1, True)
    done = zelda(project, "context", "--max-always-on", "12000", "--against", "HEAD")
    # Of equal files one listing is enough.
    assert (done.returncode, "(head)" in done.stdout, "as before" in done.stdout) == (0, True, True)
    for ref in ("nowhere", ""):
        done = zelda(project, "context", "--against", ref)
        assert (done.returncode, f"There is no commit '{ref}'" in done.stderr) == (2, True)
        assert "`git fetch --unshallow`" in done.stderr
    done = zelda(project, "context", "--max-always-on", "many")
    assert (done.returncode, "must be a whole number" in done.stderr) == (2, True)


@pytest.mark.parametrize("nonsense", [None, 0, -7])
def test_where_the_api_does_not_count_all_numbers_are_estimates(tmp_path: Path, nonsense: int | None) -> None:
    # What a settings file says that Claude Code refuses does not hold.
    refused = json.dumps({"env": {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"}, "cleanupPeriodDays": "never"})
    project = repository(tmp_path, {"CLAUDE.md": "Be careful.\n", ".claude/settings.json": refused})
    with ScriptedApi([], counts=lambda body: words(body) if len(body["messages"]) == 1 else nonsense) as api:
        done = zelda(project, "context", api=api.url)
        assert api.requests == []
    assert (done.returncode, "did not count all tokens" in done.stderr + done.stdout) == (0, True)
    assert "Always in context: 4 tokens (estimated)" in done.stdout
    assert ".claude/settings.json:1: not loaded: cleanupPeriodDays: Expected number" in " ".join(done.stdout.split())
