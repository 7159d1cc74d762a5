"""Of many mutations of a sample project that a full run catches, selection misses none.

What a session feels is played by a model of Claude Code that shares no line with selection: it takes a tree of files
and says which texts reach the session of a suite. `test_selection_model_against_claude_code` holds it to what the real
CLI puts into its requests. A full run catches a mutation if these texts differ for any of its
trials. Selection sees what it sees in earnest: stored trials, made from transcripts by the product's own code, and two
commits in a real repository.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path, PurePosixPath

import anyio
import pytest

from tests.builders import START, records, result, safe, suite, transcript
from tests.integration.test_selection_cases import LINK, commits
from tests.support.projects import ENVIRON, Project, repository
from tests.support.steered import head, scanned
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import Started
from zelda_ci.execution.manifest.loading import resolve_loaded
from zelda_ci.pipeline.fingerprints import read_changes
from zelda_ci.selection.choice import SuiteEvidence, choose
from zelda_ci.selection.effects import ChangeSet, ProjectFiles
from zelda_ci.selection.felt import with_felt
from zelda_ci.workspace.git import Git, prepare

Tree = dict[str, str]

SKILLS = ("deploy", "release", "review", "migrate", "money")
AGENTS, PACKAGES = ("critic", "tester"), ("api", "web", "lib")
HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bash scripts/check.sh"}]}]}}'
PROJECT_FILES = ProjectFiles("", "zelda.config.yaml", "zelda")


def sample() -> Tree:
    """Rules, nested memory, skills with references and scripts, sub-agents, a server, hooks, and code."""
    tree = {
        "README.md": "# Sample\n",
        "CLAUDE.md": "Be kind.\n@docs/style.md\n",
        "docs/style.md": "Short lines.\n@deep.md\n",
        "docs/deep.md": "And few.\n",
        "docs/notes.md": "Nobody imports these.\n",
        ".mcp.json": '{"mcpServers": {"db": {"command": "python", "args": ["tools/server.py"]}}}',
        "tools/server.py": "import helper\n",
        "tools/helper.py": "pass\n",
        "scripts/check.sh": "true\n",
        "scripts/release.py": "pass\n",
        ".claude/settings.json": HOOKS,
        ".claude/rules/always.md": "Always.\n",
        ".claude/rules/python.md": head("Types.\n", paths="['*.py']"),
        ".claude/rules/web.md": head("No tables.\n", paths="['web/**']"),
        ".claude/output-styles/terse.md": head("Terse.\n", name="terse"),
        ".claude/skills/migrate/run.py": "pass\n",
        ".claude/commands/announce.md": head("Announce it.\n", description="To announce."),
        "web/AGENTS.md": "Pages are small.\n",
    }
    for name in SKILLS:
        tree[f".claude/skills/{name}/SKILL.md"] = head(f"How to {name}.\n", description=f"To {name}.")
        tree[f".claude/skills/{name}/reference.md"] = f"More on {name}.\n"
    tree[".claude/skills/release/SKILL.md"] += "Run `python scripts/release.py`.\n"
    for name in AGENTS:
        tree[f".claude/agents/{name}.md"] = head(f"You are a {name}.\n", name=name, description=f"A {name}.")
    tree[".claude/agents/critic.md"] = head(
        "You are strict.\n", name="critic", description="A critic.", skills="review"
    )
    for package in PACKAGES:
        tree[f"{package}/CLAUDE.md"] = f"In {package}, be careful. @rules.txt\n"
        tree[f"{package}/rules.txt"] = f"Rules of {package}.\n"
        tree[f"{package}/main.{'ts' if package == 'web' else 'py'}"] = "code\n"
        tree[f"{package}/.claude/skills/{package}-only/SKILL.md"] = head(f"Only {package}.\n", description="Near.")
    return tree


@dataclass(frozen=True)
class Habit:
    """What sessions of a suite do: some of it in each, the rest in some."""

    name: str
    skills: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    server: bool = False


HABITS = (
    Habit("ship", skills=("deploy", "release"), reads=("api/main.py",)),
    Habit("check", agents=("critic",), reads=("lib/main.py",), server=True),
    Habit("page", skills=("money",), reads=("web/main.ts",)),
    Habit("talk"),
    Habit("move", skills=("migrate",), agents=("tester",), commands=("cat api/main.py",)),
    Habit("tell", skills=("announce",), reads=("web/main.ts", "README.md")),
    Habit("look", commands=("cat .claude/skills/review/reference.md", "git log")),
)


def imported(tree: Tree, file: str, depth: int = 4) -> Iterator[str]:
    """A file's text, and those of the files that it imports."""
    yield tree.get(file, "")
    for name in re.findall(r"(?:^|\s)@(\S+)", tree.get(file, "")) if depth else ():
        yield from imported(tree, str(PurePosixPath(file).parent / name), depth - 1)


def parts(text: str) -> tuple[str, str]:
    """Front matter and body."""
    match = re.match(r"---\n(.*?)---\n(.*)", text, re.DOTALL)
    return (match[1], match[2]) if match else ("", text)


def felt_texts(tree: Tree, habit: Habit, called: frozenset[str], touched: tuple[str, ...]) -> frozenset[str]:
    """Every text that reaches a session, labelled by where it comes from."""
    felt = {*always(tree), *waiting(tree, touched)}
    for name in called:
        own = (file for file in tree if file.startswith((f".claude/skills/{name}/", f".claude/commands/{name}.md")))
        felt |= {f"{file}\n{tree[file]}" for file in own}
        if "scripts/release.py" in tree.get(f".claude/skills/{name}/SKILL.md", ""):
            felt.add(tree.get("scripts/release.py", ""))
    for name in called & set(AGENTS):
        text = tree.get(f".claude/agents/{name}.md", "")
        skills = re.findall(r"^skills: (\S+)", text, re.MULTILINE)
        felt |= {f"{name}\n{text}", *(f"{it}\n{tree.get(f'.claude/skills/{it}/SKILL.md', '')}" for it in skills)}
    for command in habit.commands:
        felt |= {f"read\n{text}" for file, text in tree.items() if file in command and ".claude" in file}
    return frozenset(felt)


def always(tree: Tree) -> Iterator[str]:
    """What is in every session, and what its hooks and servers run."""
    yield from (*imported(tree, "CLAUDE.md"), *imported(tree, "AGENTS.md"))
    for file in (".mcp.json", ".claude/settings.json", "scripts/check.sh", "tools/server.py", "tools/helper.py"):
        yield tree.get(file, "")
    for file, text in tree.items():
        if re.fullmatch(r"\.claude/skills/[^/]+/SKILL\.md|\.claude/(agents|commands)/[^/]+\.md", file):
            yield f"{file}\n{parts(text)[0]}"


def waiting(tree: Tree, touched: tuple[str, ...]) -> Iterator[str]:
    """What comes with a file that a session touches."""
    for file, text in tree.items():
        if file.startswith(".claude/rules/"):
            front, body = parts(text)
            globs = re.findall(r"'([^']+)'", front)
            if not globs or any(fits(glob, path) for glob in globs for path in touched):
                yield f"{file}\n{body}"
    for package in PACKAGES:
        if any(file.startswith(f"{package}/") for file in touched):
            yield from (*imported(tree, f"{package}/CLAUDE.md"), *imported(tree, f"{package}/AGENTS.md"))
            yield from (text for file, text in tree.items() if file.startswith(f"{package}/.claude/"))


def fits(glob: str, path: str) -> bool:
    """Of the few forms that the sample has."""
    return path.startswith(glob.removesuffix("**")) if glob.endswith("/**") else path.endswith(glob.removeprefix("*"))


def called_by(habit: Habit, dice: random.Random) -> frozenset[str]:
    """What one session calls; what it should have called and did not, the judge sees."""
    return frozenset(name for name in (*habit.skills, *habit.agents) if dice.random() < 0.7)


def touched_by(habit: Habit) -> tuple[str, ...]:
    """What a command names brings CLAUDE.md files and rules as what is read does."""
    named = (part for command in habit.commands for part in command.split() if "/" in part)
    return (*habit.reads, *named)


def stored(root: Path, habit: Habit, number: int, dice: random.Random) -> RunResult:
    """A trial as the product stores it."""
    called = called_by(habit, dice)
    steps = [f"Skill {name}" for name in habit.skills if name in called]
    steps += [f"Agent {name}" for name in habit.agents if name in called]
    steps += [f"Read /tree/{file}" for file in habit.reads] + [f"Bash {command}" for command in habit.commands]
    steps += ["mcp__db__ask x"] if habit.server else []
    manifest = scanned(root, {}).replace(workspace=safe("/tree"))
    names = {"skills": (*SKILLS, "announce"), "agents": AGENTS, "tools": ("mcp__db__ask",)}
    happened = [
        record.replace(**{key: tuple(map(safe, value)) for key, value in names.items()})
        if isinstance(record, Started)
        else record
        for record in records(*steps, '"Done."')
    ]
    log = transcript(happened)
    missed = [
        *({"tool": f"Skill({name})", "reasoning": "so"} for name in habit.skills if name not in called),
        *({"tool": f"Agent({name})", "reasoning": "so"} for name in habit.agents if name not in called),
    ]
    usage = {"metric": Metric.TOOL_USAGE, "version": "1", "reasoning": safe(""), "details": {"missed": missed}}
    run = result(
        f"{habit.name}-2026-02-13T14-30-{number:02}",
        suite=habit.name,
        config=suite(habit.name),
        started_at=START + timedelta(seconds=number),
        evaluations={Metric.TOOL_USAGE: usage},
    )
    return with_felt(run, resolve_loaded(manifest, log, safe), log, safe)


KINDS = (
    "edit", "edit", "edit", "head", "delete", "rename", "add", "import", "globs", "two", "link", "swap",
)  # fmt: skip


def mutated(tree: Tree, dice: random.Random) -> tuple[str, Tree]:
    """Another tree, and what was done."""
    file, kind = dice.choice(sorted(tree)), dice.choice(KINDS)
    if kind == "two":
        first, new = mutated(tree, dice)
        second, new = mutated(new, dice)
        return f"two {first}, {second}", new
    new = of_many(kind, tree, dice) if kind in ("add", "import", "globs") else of_file(kind, file, tree, dice)
    return f"{kind} {file}", new


def of_file(kind: str, file: str, tree: Tree, dice: random.Random) -> Tree:
    new = dict(tree)
    match kind:
        case "head" if tree[file].startswith("---\n"):
            new[file] = tree[file].replace("---\n", f"---\nversion: {dice.random()}\n", 1)
        case "delete":
            del new[file]
        case "rename":
            new[f"{file.removesuffix('.md')}-2.md"] = new.pop(file)
        case "link":
            new[file] = f"{LINK}{'../' * file.count('/')}{dice.choice(sorted(tree))}"
        case "swap":
            other = dice.choice(sorted(tree))
            new[file], new[other] = new[other], new[file]
        case _:
            new[file] += f"Changed {dice.random()}.\n"
    return new


def of_many(kind: str, tree: Tree, dice: random.Random) -> Tree:
    new = dict(tree)
    match kind:
        case "add":
            folder = dice.choice(
                [".claude/rules", ".claude/skills/new", "api", "docs", ".claude/agents", "web/.claude"]
            )
            name = {".claude/skills/new": "SKILL.md", "api": "AGENTS.md"}.get(folder, "new.md")
            new[f"{folder}/{name}"] = head("New.\n", name="new", description="New.")
        case "import":
            memory = dice.choice([file for file in tree if file.endswith("CLAUDE.md")])
            new[memory] += f"@{'../' if '/' in memory else ''}docs/notes.md\n"
        case _:
            rule = dice.choice([".claude/rules/python.md", ".claude/rules/web.md"])
            new[rule] = head("Types.\n", paths=f"['{dice.choice(['*.ts', '*.rs', 'lib/**'])}']")
    return new


@dataclass(frozen=True)
class Bench:
    """The sample project with its stored trials; `spoil` takes something from selection that it needs."""

    project: Project
    git: Git
    first: str
    trials: Mapping[str, list[RunResult]]
    spoil: Callable[[ChangeSet], ChangeSet] = lambda changes: changes

    def running(self, after: str) -> set[str]:
        changes = self.spoil(anyio.run(partial(read_changes, self.git, self.first, after, "")))
        known = [
            SuiteEvidence(suite(it.name), frozenset({f"zelda/test-{it.name}.yaml"}), tuple(self.trials[it.name]))
            for it in HABITS
        ]
        return {choice.suite for choice in choose(changes, known, PROJECT_FILES) if choice.runs}


def catches(tree: Tree, other: Tree, dice: random.Random) -> set[str]:
    """Suites in whose sessions another text arrives."""
    found = set()
    for habit in HABITS:
        for _ in range(5):
            called, touched = called_by(habit, dice), touched_by(habit)
            if felt_texts(tree, habit, called, touched) != felt_texts(other, habit, called, touched):
                found.add(habit.name)
    return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    dice, tree = random.Random(16), sample()
    project = repository(tmp_path, tree)
    base = tmp_path / "git"
    base.mkdir()
    scanned(tmp_path, tree)
    trials = {it.name: [stored(tmp_path, it, n, dice) for n in range(3)] for it in HABITS}
    git = prepare(base, ENVIRON, safe).within(project.path)
    return Bench(project, git, project.git("rev-parse", "HEAD"), trials)


def test_of_a_hundred_mutations_that_a_full_run_catches_none_is_missed(bench: Bench) -> None:
    dice, tree = random.Random(16), sample()
    mutations: list[tuple[str, Tree, set[str]]] = []
    while sum(bool(caught) for _, _, caught in mutations) < 100:
        what, other = mutated(tree, dice)
        mutations.append((what, other, catches(tree, other, dice)))
    names = commits(bench.project, (other for _, other, _ in mutations))
    ran = spared = 0
    missed = []
    for (what, _, caught), commit in zip(mutations, names, strict=True):
        running = bench.running(commit)
        ran, spared = ran + len(running), spared + len(HABITS) - len(running)
        missed += [(what, name) for name in sorted(caught - running)]
    assert missed == []
    assert {what.partition(" ")[0] for what, _, caught in mutations if caught} >= {*KINDS} - {"two"}
    # It must not be right by running everything.
    assert spared > 0.2 * (ran + spared), (ran, spared)


def without_drawn(changes: ChangeSet) -> ChangeSet:
    return replace(changes, felt={})


def test_a_selection_that_overlooks_something_is_found_out(bench: Bench) -> None:
    """Otherwise the test above would prove nothing."""
    dice, tree, blind = random.Random(16), sample(), replace(bench, spoil=without_drawn)
    trees = [mutated(tree, dice)[1] for _ in range(200)]
    for other, commit in zip(trees, commits(bench.project, trees), strict=True):
        caught = catches(tree, other, dice)
        if caught and caught - blind.running(commit):
            return
    pytest.fail("no mutation was missed")
