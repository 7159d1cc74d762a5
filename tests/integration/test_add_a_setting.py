"""The guide "Add a setting" of CONTRIBUTING.md, done as it says: in a copy of the package, which then has the key."""

import ast
import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import yaml

from tests.support.patience import PATIENCE

REPOSITORY = Path(__file__).parents[2]
KEY = re.compile(r"`(zelda_ci/[\w/]+\.py)`, at the end of `(\w+)`:.*?```python\n(.*?)   ```", re.DOTALL)
USE = re.compile(r"`(zelda_ci/[\w/]+\.py)`, after `(\w+)`: the place that uses it, `(.*?)`")
USES = """
import json
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
from zelda_ci.ci.inputs import INPUTS
from zelda_ci.config.trust import DECISIONS
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.execution import claude_code
from zelda_ci.overrides import apply, read
suite = ResolvedSuite(name="a", file="zelda/test-a.yaml", prompt="x")
given = apply(suite, read("input", {"fallback-model": "claude-haiku-4-5"}.get)).execution
request = SimpleNamespace(execution=given, workspace=SimpleNamespace(path=Path()), session_id="1")
with mock.patch.object(claude_code, "launch"):
    options = claude_code._options(request, Path("claude"), print)
decision = DECISIONS["execution.fallbackModel"].by
print(json.dumps([options.fallback_model, "fallback-model" in INPUTS, decision]))
"""


def test_a_key_with_an_option_and_an_input_touches_two_files(tmp_path: Path) -> None:
    for part in ("zelda_ci", "scripts", "schemas", "docs", "runner"):
        shutil.copytree(REPOSITORY / part, tmp_path / part)
    shutil.copy(REPOSITORY / "action.yml", tmp_path)
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8").partition("## Add a setting\n")[2].partition("\n## ")[0]
    (file, group, code), (user, before, use) = *KEY.findall(guide), *USE.findall(guide)
    text = (tmp_path / file).read_text("utf-8")
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == group]
    lines = text.splitlines(keepends=True)
    lines.insert(nodes[0].end_lineno or 0, textwrap.indent(textwrap.dedent(code), "    "))
    (tmp_path / file).write_text("".join(lines), "utf-8")
    text = (tmp_path / user).read_text("utf-8")
    (tmp_path / user).write_text(re.sub(rf"^( +){before}=.*\n", rf"\g<0>\1{use}\n", text, flags=re.MULTILINE), "utf-8")

    python(tmp_path, "scripts/schemas")
    python(tmp_path, "scripts/reference.py")
    for action in ("action.yml", "runner/action.yml"):
        described = yaml.safe_load((tmp_path / action).read_text())["inputs"]["fallback-model"]["description"]
        assert described.startswith("Model that answers where the session's own is overloaded: its full id. Overrides")
    row = "| `execution.fallbackModel` | `--fallback-model` (`zelda run`, `zelda check`) | `fallback-model` | |"
    assert row in (tmp_path / "docs/configuration.md").read_text()
    pages = {"docs/ci.md": "`execution.fallbackModel`", "docs/action.md": "| `fallback-model` |"}
    for page, words in {**pages, "docs/cli.md": "`--fallback-model MODEL`"}.items():
        assert words in (tmp_path / page).read_text()
    properties = json.loads((tmp_path / "schemas/zelda.suite.schema.json").read_text())["$defs"]["ExecutionSettings"]
    assert "fallbackModel" in properties["properties"]
    assert json.loads(python(tmp_path, "-c", USES)) == ["claude-haiku-4-5", True, "head"]


def python(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={"PYTHONPATH": str(root), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
