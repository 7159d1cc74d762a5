"""Change sets with the suites that must run, and no other: a table over what files that steer can lead to."""
# ruff: noqa: E501 - a case a line

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio

from tests.builders import START, result, safe, suite
from tests.support.projects import ENVIRON, Project, repository
from tests.support.steered import head
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import Unit, UnitUse
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.workspace import ChangeSummary
from zelda_ci.pipeline.fingerprints import read_changes
from zelda_ci.redact import Redactor
from zelda_ci.selection.choice import SuiteEvidence, choose
from zelda_ci.selection.effects import ProjectFiles
from zelda_ci.workspace.git import Git, prepare

SKILL, OTHER, AGENT = ".claude/skills/s/SKILL.md", ".claude/skills/o/SKILL.md", ".claude/agents/a.md"
COMMAND, RULE, SETTINGS, MCP = ".claude/commands/c.md", ".claude/rules/r.md", ".claude/settings.json", ".mcp.json"
KINDS = {SKILL: ItemKind.SKILL, OTHER: ItemKind.SKILL, AGENT: ItemKind.AGENT, COMMAND: ItemKind.COMMAND}
TREE = {
    SKILL: head("Do it.\n", description="s"),
    OTHER: head("Do more.\n", description="o"),
    AGENT: head("You are a.\n", name="a", description="a"),
    COMMAND: head("Go.\n", description="c"),
    "CLAUDE.md": "Be kind.\n",
    "src/app.py": "import os\n",
    "lib/x.py": "pass\n",
}
# What trials of each suite use, and what they touch.
USES = {"call": {SKILL}, "order": {COMMAND}, "ask": {AGENT}, "read": set[str](), "talk": set[str]()}
ALL = frozenset(USES)
CALL, ORDER, ASK, READ, NONE = (frozenset({name}) for name in ("call", "order", "ask", "read", ""))
READS = ("docs/guide.md", "lib/x.py", "docs/deep/more.md")


@dataclass(frozen=True)
class Case:
    """Files that are there, the one that changes, and the suites that must run."""

    changes: str
    runs: frozenset[str]
    files: Mapping[str, str]
    reads: tuple[str, ...] = READS
    works: tuple[str, ...] = ()
    """Files that the trials of the reading suite change."""
    now: str | None = "pass  # changed\n"
    """What the file is afterwards; absent where it is gone."""


def skill(body: str, **fields: str) -> dict[str, str]:
    return {SKILL: head(f"{body}\n", description="s", **fields)}


def memory(body: str, path: str = "CLAUDE.md") -> dict[str, str]:
    return {path: f"{body}\n"}


def server(*words: str, **fields: str) -> dict[str, str]:
    command, *args = words
    listed = ", ".join(f'"{arg}"' for arg in args)
    more = "".join(f', "{key}": "{value}"' for key, value in fields.items())
    return {MCP: f'{{"mcpServers": {{"a": {{"command": "{command}", "args": [{listed}]{more}}}}}}}'}


def hook(command: str) -> dict[str, str]:
    return {SETTINGS: f'{{"hooks": {{"Stop": [{{"hooks": [{{"type": "command", "command": "{command}"}}]}}]}}}}'}


GUIDE, MORE = "docs/guide.md", "docs/deep/more.md"
CASES = {
    # Agents and skills that lead to each other
    "fork": Case(AGENT, CALL | ASK, skill("Do.", context="fork", agent="a"), now=head("B.\n", name="a", description="a")),
    "fork by name": Case(
        ".claude/agents/sub/z.md", CALL, {**skill("Do.", context="fork", agent="zed"), ".claude/agents/sub/z.md": head("A.\n", name="zed", description="z")},
        now=head("B.\n", name="zed", description="z"),
    ),
    "forked agent names": Case("docs/a.md", CALL | ASK, {**skill("Do.", context="fork", agent="a"), AGENT: head("See docs/a.md.\n", name="a", description="a")}),
    "preloaded": Case(OTHER, ASK, {AGENT: head("You.\n", name="a", description="a", skills="o")}, now=head("New.\n", description="o")),
    # Programs that a skill names
    "module": Case("tools/gen/main.py", CALL, skill("Run `python -m tools.gen.main`.")),
    "module of src": Case("src/pkg/gen.py", CALL, skill("Run `python -m pkg.gen --all`.")),
    "package": Case("tools/gen/__main__.py", CALL, skill("```bash\npython3 -m tools.gen\n```")),
    "package's other module": Case("tools/gen/util.py", CALL, {**skill("```bash\npython3 -m tools.gen\n```"), "tools/gen/__main__.py": "from . import util\n"}),
    "without an ending": Case("tools/check", CALL, skill("Then `./tools/check`.")),
    "without an ending or a dot": Case("tools/check", CALL, skill("Run tools/check and fix what it says.")),
    "what it sources": Case("lib/common.sh", CALL, {**skill("Then `./tools/check`."), "tools/check": '. "$(dirname "$0")/../lib/common.sh"\n'}),
    "go run": Case("tools/gen/main.go", CALL, skill("Run `go run ./tools/gen`.")),
    "node folder": Case("tools/gen/index.js", CALL, skill("Run `node tools/gen`.")),
    "node bare folder": Case("gen/index.js", CALL, skill("Run `node gen`.")),
    "make": Case("Makefile", CALL, {**skill("Run `make lint`."), "Makefile": "lint:\n\t./tools/lint.sh\n"}),
    "make in prose": Case("Makefile", CALL, {**skill("Run make lint at the end."), "Makefile": "lint:\n\t./tools/lint.sh\n"}),
    "recipe in prose": Case("tools/lint.sh", CALL, {**skill("Run make lint at the end."), "Makefile": "lint:\n\t./tools/lint.sh\n"}),
    "recipe in prose of CLAUDE.md": Case("tools/lint.sh", ALL, {**memory("Run make lint at the end."), "Makefile": "lint:\n\t./tools/lint.sh\n"}),
    "recipe": Case("tools/lint.sh", CALL, {**skill("Run `make check`."), "Makefile": "check: lint\nlint:\n\t./tools/lint.sh\n"}),
    "other recipe": Case("tools/ship.sh", CALL, {**skill("Run `make lint`."), "Makefile": "lint:\n\ttrue\nship:\n\t./tools/ship.sh\n"}),
    "what a recipe reads": Case("tools/lint.toml", CALL, {**skill("Run `make lint`."), "Makefile": "lint:\n\ttrue -c tools/lint.toml src/app.py\n"}),
    "code that a recipe names": Case("src/app.py", NONE, {**skill("Run `make lint`."), "Makefile": "lint:\n\ttrue -c tools/lint.toml src/app.py\n"}),
    "document that a recipe names": Case("README.md", NONE, {**memory("Run `docker build .`."), "Dockerfile": "COPY README.md uv.lock /app/\\n"}),
    "entry point": Case("src/kit/serve.py", ALL, {**server("uv", "run", "kit"), "pyproject.toml": '[project.scripts]\nkit = "kit.serve:main"\n'}),
    "npm": Case("tools/lint.mjs", CALL, {**skill("`npm run lint`"), "package.json": '{"scripts": {"lint": "node tools/lint.mjs"}}'}),
    "just": Case("tools/lint.sh", CALL, {**skill("`just lint`"), "justfile": "lint:\n  tools/lint.sh\n"}),
    "cd first": Case("tools/deep/gen.py", CALL, skill("`cd tools/deep && python gen.py`")),
    "its own script": Case(".claude/skills/s/run.py", CALL, skill("Run `run.py`.")),
    "its script's import": Case("tools/helper.py", CALL, {**skill("Run it."), ".claude/skills/s/run.py": "import sys\nsys.path.append('../../../tools')\nfrom tools import helper\n"} ),
    "own script of an unused skill": Case(".claude/skills/o/run.py", NONE, {}),
    # Documents that are named without @
    "named by a skill": Case(GUIDE, CALL | READ, skill("Follow docs/guide.md.")),
    "named by a skill, unread": Case("docs/own.md", CALL, skill("Follow [the guide](../../../docs/own.md#top).")),
    "named in the middle": Case("docs/own.md", CALL, skill("When in doubt, docs/own.md, our guide, decides.")),
    "named in bold": Case("docs/own.md", CALL, skill("See **docs/own.md**!")),
    "spaces": Case("docs/my own.md", CALL, skill("See [it](<docs/my own.md>).")),
    "escaped": Case("docs/my own.md", CALL, skill("See [it](/docs/my%20own.md).")),
    "reference link": Case("docs/own.md", CALL, skill("See [it].\n\n[it]: ./docs/own.md 'x'")),
    "by its name alone": Case("docs/style/naming.md", CALL, skill("The rules are in naming.md.")),
    "named by CLAUDE.md and read": Case(GUIDE, READ, memory("Read docs/guide.md before you begin.")),
    "named by CLAUDE.md, unread": Case("docs/own.md", NONE, memory("Read docs/own.md before you begin.")),
    "named by an agent": Case("docs/own.md", ASK, {AGENT: head("Read `docs/own.md`.\n", name="a", description="a")}),
    "named by a command": Case("docs/own.md", ORDER, {COMMAND: head("Read docs/own.md.\n", description="c")}),
    "named by what is named": Case(MORE, READ, {**memory("Read docs/guide.md."), GUIDE: "See [more](deep/more.md).\n"}, reads=(GUIDE, MORE, "README.md")),
    "read by all, named nowhere": Case("docs/guide.md", READ, {}),
    "changed by the task": Case("docs/guide.md", NONE, {}, works=("docs/guide.md",)),
    "code that all read": Case("lib/x.py", NONE, {}),
    "code in a folder that is named": Case("src/app.py", NONE, memory("Code is in `src/`, tests in `tests/`.")),
    "code that is read, in a folder that is named": Case("lib/x.py", READ, memory("Code is in `lib/`.")),
    "folder of a skill": Case("templates/a/page.md", CALL, skill("Copy one of `templates/`.")),
    "folder with all read": Case("docs/rules/a.md", READ, memory("Read all of docs/rules/ first."), reads=("docs/rules",)),
    "glob of a skill": Case("docs/api/v1.md", CALL, skill("Read docs/api/*.md.")),
    "glob with all read": Case("docs/api/v1.md", READ, memory("Read docs/**/*.md."), reads=("docs/api",)),
    "gone": Case("docs/own.md", CALL, skill("Follow docs/own.md."), now=None),
    "new folder's file": Case("docs/own.md", CALL, {**skill("Follow `docs/own.md`."), "docs/own.md": ""}),
    # What CLAUDE.md and rules import, further down, too
    "imported": Case("docs/own.md", ALL, memory("@docs/own.md")),
    "imported by an import": Case("docs/deep/own.md", ALL, {**memory("@docs/own.md"), "docs/own.md": "@deep/own.md\n"}),
    "told to run by CLAUDE.md": Case("scripts/fix.sh", READ, memory("After each change, run `./scripts/fix.sh`."), reads=("scripts/fix.sh",)),
    "told to run by CLAUDE.md, and never run": Case("scripts/fix.sh", NONE, memory("After each change, run `./scripts/fix.sh`.")),
    "permission": Case("package.json", NONE, {SETTINGS: '{"permissions": {"allow": ["Bash(npm test:*)"]}}', "package.json": '{"scripts": {"test": "x"}}'}),
    "nested memory": Case("lib/notes.txt", READ, memory("@notes.txt", "lib/CLAUDE.md")),
    "nested memory of others": Case("web/notes.txt", NONE, memory("@notes.txt", "web/CLAUDE.md")),
    "rule with paths": Case("docs/own.md", READ, {RULE: head("@../../docs/own.md\n", paths="['lib/**']")}),
    "rule with other paths": Case("docs/own.md", NONE, {RULE: head("@../../docs/own.md\n", paths="['web/**']")}),
    "command's import": Case("docs/own.md", ORDER, {COMMAND: head("@docs/own.md\n", description="c")}),
    "command's output": Case("docs/own.md", ORDER, {COMMAND: head("State: !`cat docs/own.md`\n", description="c")}),
    "command's program": Case("tools/state", ORDER, {COMMAND: head("!`tools/state`\n", description="c")}),
    # Servers and hooks
    "default": Case("tools/server.py", ALL, server("python", "${TOOLS:-tools}/server.py")),
    "default of all": Case("tools/server.py", ALL, server("${PYTHON:-python}", "${SERVER:-tools/server.py}")),
    "nested default": Case("tools/server.py", ALL, server("python", "${A:-${B:-tools}}/server.py")),
    "variable of settings": Case("tools/deep/server.py", ALL, server("python", "${TOOLS}/server.py")),
    "server's folder": Case("tools/deep/server.py", ALL, server("python", "server.py", cwd="tools/deep")),
    "server's module": Case("src/pkg/serve.py", ALL, server("uv", "run", "python", "-m", "pkg.serve")),
    "server's import": Case("common/db.py", ALL, {**server("python", "tools/server.py"), "tools/server.py": "from common.db import ask\n"}),
    "server's import of import": Case("core/sql.py", ALL, {**server("python", "tools/server.py"), "tools/server.py": "from common.db import ask\n", "common/db.py": "from core import sql\n"}),
    "server's require": Case("shared/util.js", ALL, {**server("node", "tools/server.js"), "tools/server.js": "const u = require('../shared/util')\n"}),
    "server's import of TypeScript": Case("shared/util.ts", ALL, {**server("npx", "tsx", "tools/server.ts"), "tools/server.ts": "import {u} from '../shared/util.js'\n"}),
    "server's data": Case("data/words.txt", ALL, {**server("python", "tools/server.py"), "tools/server.py": "open(HERE.parent / 'data' / 'words.txt')\n"}),
    "hook's source": Case("lib/common.sh", ALL, {**hook("bash scripts/stop.sh"), "scripts/stop.sh": 'source "${BASH_SOURCE%/*}/../lib/common.sh"\n'}),
    "hook's source of the top": Case("lib/common.sh", ALL, {**hook("$CLAUDE_PROJECT_DIR/scripts/stop"), "scripts/stop": '. "$(git rev-parse --show-toplevel)/lib/common.sh"\n'}),
    "hook's text": Case("docs/own.md", ALL, {**hook("bash scripts/stop.sh"), "scripts/stop.sh": 'cat "$CLAUDE_PROJECT_DIR/docs/own.md"\n'}),
    "hook's glob": Case("hooks.d/a.sh", ALL, {**hook("bash scripts/stop.sh"), "scripts/stop.sh": 'for f in hooks.d/*.sh; do . "$f"; done\n'}),
    "hook's lint": Case("src/app.py", NONE, hook("npx eslint src/ && ruff check src")),
    "hook of a skill": Case("tools/guard.py", CALL, {SKILL: "---\ndescription: s\nhooks:\n  Stop:\n    - hooks:\n        - command: python tools/guard.py\n---\nDo.\n"}),
    "status line": Case("tools/line.sh", ALL, {SETTINGS: '{"statusLine": {"type": "command", "command": "tools/line.sh"}}'}),
    "plugin": Case("plug/bin/x", ALL, {"plug/.claude-plugin/plugin.json": '{"name": "p"}'}),
    "plugin in skills": Case(".claude/skills/k/lib/x.js", ALL, {".claude/skills/k/.claude-plugin/plugin.json": '{"name": "k"}', ".claude/skills/k/SKILL.md": head(description="k")}),
    "style": Case(".claude/output-styles/x.md", ALL, {}),
    # Further ones
    "manifest that CLAUDE.md runs": Case("package.json", NONE, {**memory("Run `npm test`."), "package.json": '{"scripts": {"test": "node t.mjs"}}'}),
    "script that CLAUDE.md runs": Case("tools/t.mjs", ALL, {**memory("Run `npm test`."), "package.json": '{"scripts": {"test": "node tools/t.mjs"}}'}),
    "Makefile that CLAUDE.md runs": Case("Makefile", ALL, {**memory("Run `make test`."), "Makefile": "test:\n\ttrue\n"}),
    "make sure": Case("Makefile", NONE, {**memory("Make sure that you make tests."), "Makefile": "lint:\n\ttrue\n"}),
    "named by AGENTS.md": Case(GUIDE, READ, {"AGENTS.md": "See `docs/guide.md`.\n"}),
    "backslashes": Case("docs/own.md", CALL, skill("See docs\\own.md.")),
    "alias": Case("src/utils/x.ts", ALL, {**server("npx", "tsx", "mcp/s.ts"), "mcp/s.ts": "import x from '@/utils/x'\n"}),
    "Go's import": Case("internal/db/q.go", ALL, {**server("go", "run", "./cmd/s"), "cmd/s/main.go": 'package main\nimport (\n\t"fmt"\n\t"example.org/m/internal/db"\n)\n'}),
    "other skill's text": Case(".claude/skills/o/more.md", CALL, skill("As in ../o/more.md.")),
    "environment": Case("docs/own.md", ALL, {SETTINGS: '{"env": {"GUIDE": "docs/own.md"}}'}),
    "nested memory that names": Case("docs/own.md", READ, memory("See docs/own.md.", "lib/CLAUDE.md"), reads=("lib/x.py", "docs/own.md")),
    "nested memory that runs": Case("lib/gen.sh", READ, memory("Run `./gen.sh`.", "lib/CLAUDE.md")),
    "task's own work, named": Case("CHANGELOG.md", NONE, memory("Add a line to CHANGELOG.md."), reads=("CHANGELOG.md",), works=("CHANGELOG.md",)),
    "script of a document": Case("tools/boot.py", NONE, {**memory("See docs/guide.md."), GUIDE: "Run `python tools/boot.py`.\n"}, reads=(GUIDE,)),
    "script that is read": Case("tools/boot.py", READ, {**memory("See docs/guide.md."), GUIDE: "Run `python tools/boot.py`.\n"}, reads=("tools/boot.py",)),
    "import of a script that is read": Case("tools/util.py", READ, {**memory("See docs/guide.md."), GUIDE: "Run `python tools/boot.py`.\n", "tools/boot.py": "import util\n"}, reads=("tools/boot.py",)),
    "style's text": Case("docs/own.md", ALL, {".claude/output-styles/x.md": "@docs/own.md\n"}),
    "table": Case("docs/own.md", CALL, skill("| What | Where |\n|---|---|\n| API |docs/own.md|")),
    "image": Case("docs/own.svg", CALL, skill("![x](docs/own.svg)")),
    "json config": Case("conf/rules.json", CALL, skill("Rules are in `conf/rules.json`.")),
    "what a config names": Case("prompts/x.txt", ALL, {**server("python", "tools/s.py", "--config", "conf/s.yaml"), "conf/s.yaml": "prompt: prompts/x.txt\n"}),
    # What nobody can feel
    "code": Case("src/app.py", NONE, skill("Do it.")),
    "readme": Case("README.md", NONE, {"README.md": "x\n"}),
    "address": Case("docs/own.md", NONE, memory("See https://example.org/docs/own.md.")),
}  # fmt: skip


def trials(name: str, case: Case) -> Iterator[RunResult]:
    for number in range(3):
        uses = tuple(
            UnitUse(unit=Unit(kind=kind, path=safe(path), name=safe("x")), loaded=True, used=path in USES[name])
            for path, kind in {
                **KINDS,
                **({case.changes: ItemKind.AGENT} if "/agents/" in case.changes else {}),
            }.items()
        )
        touched = case.reads if name == "read" else ("src/other.py",)
        yield result(
            f"{name}-2026-02-13T14-30-0{number}",
            suite=name,
            config=suite(name),
            started_at=START + timedelta(seconds=number),
            steering=uses,
            touched=tuple(map(safe, touched)),
            changes=ChangeSummary(files=tuple(map(safe, case.works if name == "read" else ()))),
        )


LINK = "-> "
"""What a file begins with that is a link in the tree; the rest is where it leads."""


def commits(project: Project, trees: Iterable[Mapping[str, str]]) -> list[str]:
    """Commits of these files alone, without a work tree, all by one process."""
    lines: list[str] = []
    for mark, files in enumerate(trees, 1):
        lines += [
            "commit refs/heads/case",
            f"mark :{mark}",
            "committer x <x@example.org> 0 +0000",
            "data 0",
            "deleteall",
        ]
        for path, text in files.items():
            mode, content = ("120000", text.removeprefix(LINK)) if text.startswith(LINK) else ("644", text)
            lines += [f'M {mode} inline "{path}"', f"data {len(content.encode())}", content]
    marks = project.home / "marks"
    words = ("fast-import", "--quiet", "--force", f"--export-marks={marks}")
    project.git(*words, stdin="\n".join([*lines, ""]).encode())
    found = dict(line.split() for line in marks.read_text().splitlines())
    return [found[f":{mark}"] for mark in range(1, len(found) + 1)]


def sides(case: Case) -> tuple[dict[str, str], dict[str, str]]:
    before = {**TREE, case.changes: "pass\n", **case.files}
    if case.changes in (AGENT, OTHER):
        before[case.changes] = {**TREE, **case.files}[case.changes]
    after = {**before, case.changes: case.now or ""}
    if case.now is None:
        del after[case.changes]
    return before, after


def running(git: Git, case: Case, before: str, after: str) -> set[str]:
    changes = anyio.run(partial(read_changes, git, before, after, ""))
    known = [SuiteEvidence(suite(name), frozenset(), tuple(trials(name, case))) for name in USES]
    project_files = ProjectFiles("", "zelda.config.yaml", "zelda")
    return {choice.suite for choice in choose(changes, known, project_files) if choice.runs}


def test_each_change_runs_the_suites_that_can_feel_it_and_no_other(tmp_path: Path) -> None:
    project = repository(tmp_path, {"x": ""})
    (tmp_path / "git").mkdir()
    git = prepare(tmp_path / "git", ENVIRON, Redactor()).within(project.path)
    names = iter(commits(project, [tree for case in CASES.values() for tree in sides(case)]))
    wrong = {}
    for name, case in CASES.items():
        found, wanted = running(git, case, next(names), next(names)), case.runs - {""}
        if found != wanted:
            wrong[name] = f"missed {listed(wanted - found)}, needless {listed(found - wanted)}"
    assert wrong == {}


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
