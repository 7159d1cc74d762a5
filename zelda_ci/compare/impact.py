"""Which suites a change can concern: by the changed files, and by what stored trials of each suite have felt. Pure.

It fails open. A suite is left out only where each changed file is known to leave it untouched: the file steers nothing,
or it is one that a session feels only by calling or touching something, and enough trials of the suite never did.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from zelda_ci.compare.evidence import Habits, counted
from zelda_ci.domain import globs
from zelda_ci.domain.fingerprint import SteeringFile
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.suite import ResolvedSuite

# Of a suite, below which nobody says what it never does: as many as an adaptive plan begins with.
MIN_TRIALS = 3
# What GitHub lists of a pull request, and what anybody wants to look at.
MAX_CHANGED_FILES = 3_000

MEMORY_NAMES = frozenset({"claude.md", "agents.md", "claude.local.md"})
SKILL_FILE = "SKILL.md"
CLAUDE = ".claude"
TEXT_ENDINGS = (".md", ".txt")


@dataclass(frozen=True)
class FileText:
    """A file on one side of a change, as far as it says when it is loaded."""

    head: str = ""
    """The front matter of a Markdown file, as it is written."""
    globs: tuple[str, ...] = ()
    """Of a rule, the files that it waits for; none where it is always there."""
    kind: Literal["text", "other", "link", "submodule"] = "text"
    """`other` is what is too large, no text, or not known."""


@dataclass(frozen=True)
class FileChange:
    """A file that differs; absent on the side that does not have it. A renamed file is two."""

    path: str
    """From the top of the repository, with forward slashes."""
    before: FileText | None
    after: FileText | None
    line: int | None = None
    """The first that differs, as it is after the change; absent where that is not known."""


@dataclass(frozen=True)
class ChangeSet:
    """What differs between two states of a repository."""

    files: tuple[FileChange, ...] = ()
    felt: Mapping[str, str] = field(default_factory=dict)
    """Files and folders that files which steer draw in (import, run, link to), with a few words on how."""
    problem: str | None = None
    """Why not every change is known, in words that follow "since"."""


@dataclass(frozen=True)
class ProjectFiles:
    """Where the project has its files; all paths from the top of the repository."""

    folder: str
    """In which its sessions begin; empty at the top."""
    config: str
    test_dir: str


@dataclass(frozen=True)
class SuiteEvidence:
    """A suite, and what is known of it."""

    suite: ResolvedSuite
    files: frozenset[str]
    """Its own, that of its prompt, and files and folders that its commands name; from the top of the repository."""
    trials: tuple[RunResult, ...] = ()
    """Stored ones; those that do not count are passed over here."""
    today: Mapping[str, str] = field(default_factory=dict)
    """Parts of a fingerprint that are known before a session, by name: what it will run on and be judged by."""

    def owns(self, path: str) -> bool:
        """Whether a file is one of its own, or lies in a folder that is."""
        return any(step in self.files for step in _steps(path))


@dataclass(frozen=True)
class SuiteChoice:
    """Whether a suite runs, and why."""

    suite: str
    runs: bool
    reason: str
    """In words that follow "since" or stand alone."""
    by_trials: bool = False
    """Whether stored trials decided, or the lack of them."""


@dataclass(frozen=True)
class Effect:
    """Whom a changed file concerns."""

    path: str
    scope: Literal["all", "suites", "unit", "files"]
    why: str
    """Of `all`, what it is; else what a suite that is concerned does."""
    unit: str = ""
    """Path of the skill, command or sub-agent of which only the text changed."""
    suites: frozenset[str] = frozenset()
    touches: Callable[[str], bool] | None = None
    """Whether touching a file loads it."""


NOTHING = "nothing here can change a result"


def choose(
    changes: ChangeSet,
    suites: Sequence[SuiteEvidence],
    project: ProjectFiles,
    *,
    run_all: str | None = None,
    min_trials: int = MIN_TRIALS,
) -> tuple[SuiteChoice, ...]:
    """Each suite with whether it runs.

    Args:
        changes: What differs from the state that results are compared with.
        suites: All that were asked for.
        project: Where it has its files.
        run_all: Why everything runs whatever has changed.
        min_trials: Below which nobody says what a suite never does.
    """
    known = run_all or changes.problem
    if known is None and len(changes.files) > MAX_CHANGED_FILES:
        known = f"more than {MAX_CHANGED_FILES:,} files changed"
    if known:
        return tuple(SuiteChoice(it.suite.name, runs=True, reason=known) for it in suites)
    effects = [effect for change in changes.files for effect in effects_of(change, changes.felt, suites, project)]
    counts = [counted(it.trials, it.today, it.suite) for it in suites]
    habits = [Habits.of(each, len(it.trials) - len(each)) for it, each in zip(suites, counts, strict=True)]
    # Once for all suites, which touch the same files: patterns are slow.
    touched = frozenset().union(*(each.touched for each in habits))
    loading = {
        id(effect): frozenset(filter(effect.touches, touched)) for effect in effects if effect.touches is not None
    }
    return tuple(
        _choice(it.suite.name, each, effects, loading, min_trials) for it, each in zip(suites, habits, strict=True)
    )


def either(one: Sequence[SuiteChoice], other: Sequence[SuiteChoice]) -> tuple[SuiteChoice, ...]:
    """Of two choices about the same suites: a suite runs where any of them says so; trials say more than nothing."""
    return tuple(max(pair, key=lambda choice: (choice.runs, choice.by_trials)) for pair in zip(one, other, strict=True))


def nothing_changed(choices: Iterable[SuiteChoice]) -> bool:
    """Whether no suite is left out for what it never does: nothing that could matter changed at all."""
    return all(not choice.runs and choice.reason == NOTHING for choice in choices)


def left_out(choices: Iterable[SuiteChoice]) -> tuple[str, ...]:
    """A sentence for each reason for which suites are not run."""
    reasons: dict[str, list[str]] = {}
    for choice in choices:
        if not choice.runs:
            reasons.setdefault(choice.reason, []).append(choice.suite)
    return tuple(f"Not run: {', '.join(names)}: {reason}" for reason, names in reasons.items())


def reasons(choices: Iterable[SuiteChoice]) -> tuple[str, ...]:
    """A sentence for each reason for which suites run."""
    groups: dict[str, list[str]] = {}
    for choice in choices:
        if choice.runs:
            groups.setdefault(choice.reason, []).append(choice.suite)
    return tuple(f"Run: {', '.join(names)}: {reason}" for reason, names in groups.items())


def _choice(
    name: str, habits: "Habits", effects: Sequence[Effect], loading: Mapping[int, frozenset[str]], min_trials: int
) -> SuiteChoice:
    """Of one suite; `loading` has for an effect the files that load what changed."""
    certain = (effect for effect in effects if effect.scope == "all" or name in effect.suites)
    if effect := next(certain, None):
        return SuiteChoice(name, runs=True, reason=f"{effect.path} changed ({effect.why})")
    waiting = [effect for effect in effects if effect.scope in ("unit", "files")]
    if not waiting:
        return SuiteChoice(name, runs=False, reason=NOTHING)
    for effect in waiting:
        if why := concerned(effect, habits, loading.get(id(effect), frozenset()), min_trials):
            return SuiteChoice(name, runs=True, reason=f"{effect.path} changed, and {why}", by_trials=True)
    spared = " or ".join(dict.fromkeys(effect.why for effect in waiting))
    return SuiteChoice(name, runs=False, reason=f"none of {habits.trials} trials {spared}", by_trials=True)


def concerned(effect: Effect, habits: Habits, loading: frozenset[str], min_trials: int) -> str | None:
    """Why a suite feels a change that only those feel who call or touch something."""
    unit = effect.unit or effect.path
    if effect.scope == "unit":
        if unit in habits.shown:
            return f"a trial {effect.why}"
        known = habits.tells.get(unit, 0)
        return None if known >= min_trials else _unknown(known, min_trials, habits)
    if not loading.isdisjoint(habits.touched):
        return f"a trial {effect.why}"
    if unit in habits.read:
        return "a trial read it"
    return None if habits.tellers >= min_trials else _unknown(habits.tellers, min_trials, habits)


def _unknown(trials: int, min_trials: int, habits: Habits) -> str:
    told = f"only {trials} of the {min_trials} stored trials are there that would tell whether the suite feels it"
    if not habits.passed_over:
        return told
    return f"{told} ({habits.passed_over} more broke off, or are of other settings, judges, models or Claude Code)"


def effects_of(
    change: FileChange, felt: Mapping[str, str], suites: Sequence[SuiteEvidence], project: ProjectFiles
) -> Iterator[Effect]:
    """Whom a changed file concerns; nothing where it can change no result."""
    path = change.path
    owners = frozenset(it.suite.name for it in suites if it.owns(path))
    # What lies beside the suites is one's own where it is named itself, and not by its folder.
    is_own = any(path in it.files for it in suites)
    if owners:
        yield Effect(path, "suites", "the suite itself", suites=owners)
    # What a command names may steer everybody else, too.
    if not (is_own and path.startswith(f"{project.test_dir}/")) and (effect := effect_on_others(change, felt, project)):
        yield effect
    if chosen := frozenset(it.suite.name for it in suites if is_meant(path, it.suite, project)):
        yield Effect(path, "suites", "gate.paths", suites=chosen)


def effect_on_others(change: FileChange, felt: Mapping[str, str], project: ProjectFiles) -> Effect | None:
    """Whom a changed file concerns that no suite has for its own."""
    path = change.path
    if path == project.config:
        return Effect(path, "all", "the configuration")
    if path.startswith(f"{project.test_dir}/") and not _is_suite_that_is_gone(change):
        return Effect(path, "all", "beside the suites")
    if why := drawn_in(path, felt) or _no_text(change):
        return Effect(path, "all", why)
    return _steering(change, project) if may_steer(path) else None


def _is_suite_that_is_gone(change: FileChange) -> bool:
    """A suite that was deleted has nothing to run, and no session could see it."""
    name = change.path.rpartition("/")[2]
    return change.after is None and name.startswith("test-") and name.endswith((".yaml", ".yml"))


def _no_text(change: FileChange) -> str | None:
    """What nobody can look into; large and binary files count only where they steer by their names."""
    kinds = {side.kind for side in (change.before, change.after) if side}
    if "link" in kinds or "submodule" in kinds:
        return "a link" if "link" in kinds else "a submodule"
    return "its text is not known" if "other" in kinds and may_steer(change.path) else None


def in_commands(suite: ResolvedSuite) -> Iterator[str]:
    """Words of a suite's commands that may be files or folders of the project: what checks the result is part of it.

    What setup copies may have any name.
    """
    yield from _words(suite.setup_command)
    for command in (suite.build_command, suite.test_command):
        yield from (word for word in _words(command) if "." in word or "/" in word)


def places_of(names: Iterable[str], folder: str) -> frozenset[str]:
    """From a project's folder to the top of the repository; neither the project as a whole nor what lies outside."""
    places = {posixpath.normpath(f"{folder}/{name}" if folder else name) for name in names if not name.startswith("/")}
    return frozenset(place for place in places if place not in (".", "..") and not _is_above(place, folder))


def _words(command: str | Sequence[str] | None) -> Iterator[str]:
    for text in (command,) if isinstance(command, str) else command or ():
        for word in re.split(r"[\s\"'`;|&()<>=]+", text):
            # $PWD/fixtures/x is fixtures/x, and of fixtures/*.md the folder.
            name, *pattern = re.split(r"[*?\[{$]", re.sub(r"^\$\{?\w+\}?/", "", word), maxsplit=1)
            if name := name.rpartition("/")[0] if pattern else name:
                yield name


def is_meant(path: str, suite: ResolvedSuite, project: ProjectFiles) -> bool:
    """Whether a suite's `gate.paths` name a file."""
    prefix = f"{project.folder}/" if project.folder else ""
    return path.startswith(prefix) and globs.matches(suite.gate.paths, path.removeprefix(prefix))


def drawn_in(path: str, felt: Mapping[str, str]) -> str | None:
    """How a file that steers draws in another, or a folder above it; absent where none does."""
    return next((felt[step] for step in _steps(path) if step in felt), None)


def _steps(path: str) -> Iterator[str]:
    """A path, and each folder above it."""
    folders = path.split("/")
    return ("/".join(folders[:length]) for length in range(len(folders), 0, -1))


def part_of(path: str, text: FileText, felt: Mapping[str, str], project: ProjectFiles) -> SteeringFile | None:
    """How a file steers: the rule by which suites are chosen, asked what another text of the file would do."""
    effect = next(effects_of(FileChange(path, text, text), felt, (), project), None)
    if effect is None:
        return None
    if effect.scope == "unit":
        return SteeringFile("waits", effect.unit, text.head)
    if effect.scope == "files":
        return SteeringFile("waits", path, globs=text.globs)
    is_own = drawn_in(path, felt) and not may_steer(path) and text.kind not in ("link", "submodule")
    return SteeringFile("drawn" if is_own else "always")


def may_steer(path: str) -> bool:
    """Whether a file's name or place says that it steers, or may steer, Claude Code."""
    *folders, name = path.split("/")
    return (
        name.lower() in MEMORY_NAMES
        or name in (".mcp.json", SKILL_FILE)
        or any(folder.lower().startswith(CLAUDE) for folder in (*folders, name))
    )


def _steering(change: FileChange, project: ProjectFiles) -> Effect:
    """Of a file that steers by its name or place."""
    path = change.path
    *folders, name = path.split("/")
    home = folders[: folders.index(CLAUDE)] if CLAUDE in folders else folders
    base, inside = "/".join(home), folders[len(home) + 1 :]
    if change.after is None or (CLAUDE not in folders and name not in ("CLAUDE.md", "AGENTS.md")):
        return Effect(path, "all", _always(name) if change.after else "it is gone")
    if not _is_above(base, project.folder):
        return _below(path, base, name, inside)
    if inside[:1] == ["rules"] and name.endswith(".md"):
        return _rule(change, base)
    return _from_the_start(change, "/".join((*home, CLAUDE)), inside)


def _from_the_start(change: FileChange, home: str, inside: Sequence[str]) -> Effect:
    """Of a file in the `.claude` folder of the project or above it: of skills, only the text waits for a call."""
    path, name = change.path, change.path.rpartition("/")[2]
    if change.before is None or change.after is None or change.before.head != change.after.head:
        return Effect(path, "all", _always(name) if change.before else "it is new")
    match inside:
        case ["skills", skill, *_] if name.endswith(TEXT_ENDINGS):
            return _body(path, f"{home}/skills/{skill}/{SKILL_FILE}", f"the skill {skill}")
        case ["commands" | "agents" as kind, *_] if name.endswith(".md"):
            word = "command" if kind == "commands" else "sub-agent"
            return _body(path, path, f"the {word} {name.removesuffix('.md')}")
        case _:
            return Effect(path, "all", _always(name))


def _always(name: str) -> str:
    return "always in context" if name.lower() in MEMORY_NAMES else "every suite may feel it"


def _body(path: str, unit: str, name: str) -> Effect:
    """Of a text that only those read who call what it belongs to."""
    return Effect(path, "unit", f"called {name} or missed it", unit=unit)


def _below(path: str, base: str, name: str, inside: Sequence[str]) -> Effect:
    """Of a file that waits for files of its folder."""
    if inside or name in ("CLAUDE.md", "AGENTS.md"):
        return Effect(
            path, "files", f"touched a file below {base}/", touches=lambda file: f"{file}/".startswith(f"{base}/")
        )
    return Effect(path, "all", "every suite may feel it")


def _rule(change: FileChange, base: str) -> Effect:
    """Of a rule, which waits for files where it names some."""
    sides = [side for side in (change.before, change.after) if side]
    if not all(side.globs for side in sides):
        return Effect(change.path, "all", "a rule that is always in context")
    patterns = [pattern for side in sides for pattern in side.globs]
    prefix = f"{base}/" if base else ""

    def touches(file: str) -> bool:
        return file.startswith(prefix) and globs.matches(patterns, file.removeprefix(prefix))

    return Effect(change.path, "files", f"touched a file that {change.path} is for", touches=touches)


def _is_above(base: str, folder: str) -> bool:
    """Whether a folder is that of the project, or one above it."""
    return not base or f"{folder}/".startswith(f"{base}/")
