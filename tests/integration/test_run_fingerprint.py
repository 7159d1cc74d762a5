"""The fingerprint that `zelda run` stores is the same on every machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.command import the_result, zelda
from tests.support.projects import folder, repository
from tests.support.scripted_api import ScriptedApi, text

SUITE = "prompt: Greet.\nmetrics: {toolUsage: false, requirementFulfillment: false}\n"
FILES = {
    "zelda/test-greeting.yaml": SUITE,
    "CLAUDE.md": "Greet in Latin.\n",
    "src/main.py": "print()\n",
    ".gitignore": ".zelda/\n",
}


def of(path: Path, files: Mapping[str, str], *, plain: bool = False) -> dict[str, Any]:
    project = (folder if plain else repository)(path, dict(files))
    with ScriptedApi([text("Salve.")]) as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    fingerprint: dict[str, Any] = the_result(project)["fingerprint"]
    return fingerprint


def test_two_machines_agree(tmp_path: Path) -> None:
    first = of(tmp_path / "one", FILES)
    assert {"steeringFiles", "evaluators", "prompt", "execution", "models", "cli"} <= set(first["parts"])
    assert first["parts"]["models"] == "claude-sonnet-5-5"
    elsewhere = of(tmp_path / "somewhere" / "else", {**FILES, "zelda/README.md": "Suites.\n"}, plain=True)
    assert elsewhere == first
