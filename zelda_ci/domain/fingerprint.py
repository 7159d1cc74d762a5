"""What the outcome of a trial may depend on, as digests: trials with the same fingerprint may be pooled.

Three things are kept apart. `outcome` is what the pull request and the suite decide: prompt, settings, judges, steering
files. `tree` is the project's own code. `platform` is what changes without anybody's commit: Claude Code, the models
that answered, the system.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from zelda_ci.domain.base import Record
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.redact import Redactor, SafeText

# What says how often a suite runs, what it is called, and what is made of its results; every other field of a suite
# counts, so that one that is added later cannot be forgotten.
WITHOUT_EFFECT = frozenset({"name", "file", "description", "tags", "trials", "gate", "pool"})

# Of lists, those whose order says nothing.
SETS = frozenset(
    {
        "execution.extra_models",
        "execution.request_keys",
        "execution.allowed_tools",
        "execution.disallowed_tools",
        "execution.env",
        "isolation.read_paths",
    }
)

# Names of parts that a suite does not decide.
STEERING, SUITE_FILES, EVALUATORS, REPLAYED = "steeringFiles", "suiteFiles", "evaluators", "replayed"
NAMED_FILES = "namedFiles"
PLATFORM = ("cli", "agentSdk", "models", "system", "isolationLevel")

DIGITS = 16

# Of each result: what is beyond counts as felt by every suite.
MAX_TEXTS = 500
MAX_TEXT_NAMES = 32_000


class SteeringState(Record):
    """The files that steer: what every suite feels in one digest, the texts that wait for a call or a file each in one.

    So two states can be told apart as far as one suite feels them.
    """

    folder: SafeText
    """The project's, from the top of the tree."""
    always: str
    """Of everything that every suite may feel."""
    drawn: str
    """Of the project's own files that those which steer import or run."""
    texts: dict[SafeText, str] = {}
    """By file of the unit: what only those feel who call it, or touch a file that it waits for."""
    globs: dict[SafeText, tuple[SafeText, ...]] = {}
    """Of rules among them, the files that they wait for."""


class Fingerprint(Record):
    """What one trial's outcome may depend on; two that are equal may be pooled."""

    outcome: str
    """Digest of everything apart from platform and project code."""
    platform: str
    """Claude Code's version, the models that answered, and the system, in words."""
    tree: str
    """Digest of the project's own code: neither steering files nor Zelda's."""
    parts: dict[str, str] = {}
    """By name, what `outcome` and `platform` were made of: it says what differs."""
    steering: SteeringState | None = None
    """What steers, in pieces; absent where nobody knows who feels what, and in results of older versions."""

    def differences(self, other: "Fingerprint") -> tuple[str, ...]:
        """Names of the parts that differ, and `tree`."""
        names = dict.fromkeys([*self.parts, *other.parts])
        parts = [name for name in names if self.parts.get(name) != other.parts.get(name)]
        return (*parts, *(["tree"] if self.tree != other.tree else []))


@dataclass(frozen=True)
class TreeFile:
    """A file of the tested tree."""

    path: str
    """From the top of the tree, with forward slashes."""
    mode: str
    content: str
    """Git's name for its content."""


@dataclass(frozen=True)
class SteeringFile:
    """How a file steers."""

    kind: Literal["always", "drawn", "waits"]
    """Felt by every suite; the project's own, but imported or run by one that steers; or felt by some only."""
    unit: str = ""
    """Of what waits: the file of the skill, command, sub-agent or rule that it belongs to."""
    head: str | None = None
    """What every suite feels of it all the same: that it is there, with its front matter; absent where none does."""
    globs: tuple[str, ...] = ()


@dataclass(frozen=True)
class TreeDigests:
    """What a trial finds, in digests."""

    steering: str
    code: str
    suites: str = ""
    """Of the suites' own files, where build and test commands see them."""
    named: str = ""
    """Of the files that the suite itself names."""
    state: SteeringState | None = None
    files: tuple[TreeFile, ...] = ()
    """Everything that a session finds."""
    folder: str = ""
    """The project's, from the top of the tree."""
    lines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of each file that steers a digest of every line: they say where two trees differ, and not what stands there."""


@dataclass(frozen=True)
class Host:
    """What a trial ran on, apart from the models, which only the session shows."""

    agent_sdk: str
    system: str
    isolation_level: str
    cli: str | None = None


def digest_tree(
    files: Iterable[TreeFile],
    steers: Mapping[str, SteeringFile] | None,
    *,
    folder: str = "",
    redact: Redactor,
    whole: Iterable[TreeFile] = (),
) -> TreeDigests:
    """The tree in digests.

    Args:
        files: All that the session finds, in any order; suites and configuration are not among them.
        steers: Of those that steer, how, by path; absent where nobody knows it: then every file counts as if it did.
        folder: The project's, from the top of the tree.
        redact: For names of files.
        whole: What build and test commands find, where that is more.
    """
    seen = tuple(files)
    paths = {file.path for file in seen}
    state = None if steers is None or redact(folder) != folder else _state(seen, steers, folder, redact)
    steering = _of_files(seen) if steers is None else _of_files(file for file in seen if file.path in steers)
    code = (file for file in seen if steers is None or _is_code(steers.get(file.path)))
    suites = _of_files(file for file in whole if file.path not in paths)
    return TreeDigests(steering, _of_files(code), suites, "", state, seen, folder)


def _is_code(steers: SteeringFile | None) -> bool:
    return steers is None or steers.kind == "drawn"


def _state(
    files: Iterable[TreeFile], steers: Mapping[str, SteeringFile], folder: str, redact: Redactor
) -> SteeringState:
    known = [(file, steers[file.path]) for file in sorted(files, key=lambda file: file.path) if file.path in steers]
    always: list[Any] = [_listed(file) for file, part in known if part.kind == "always"]
    always += [(file.path, part.head) for file, part in known if part.head is not None]
    waiting: dict[str, list[tuple[TreeFile, SteeringFile]]] = {}
    for file, part in known:
        if part.kind == "waits":
            waiting.setdefault(part.unit, []).append((file, part))
    texts, globs, room = dict[SafeText, str](), dict[SafeText, tuple[SafeText, ...]](), MAX_TEXT_NAMES
    for unit, parts in waiting.items():
        name, patterns = redact(unit), tuple(pattern for _, part in parts for pattern in part.globs)
        safe = tuple(map(redact, patterns))
        room -= sum(map(len, (name, *safe)))
        # A masked name could be that of another file, and one that is no text cannot be stored.
        if room >= 0 and len(texts) < MAX_TEXTS and name == unit and safe == patterns and name.isprintable():
            texts[name] = _of_files(file for file, _ in parts)
            globs |= {name: safe} if safe else {}
        else:
            always += [_listed(file) for file, _ in parts]
    drawn = _of_files(file for file, part in known if part.kind == "drawn")
    return SteeringState(folder=redact(folder), always=digest(always), drawn=drawn, texts=texts, globs=globs)


def named_files(files: Iterable[TreeFile]) -> str:
    """Of the files that a suite itself names; empty where it names none that is there."""
    listed = list(files)
    return _of_files(listed) if listed else ""


def fingerprint(
    suite: ResolvedSuite,
    tree: TreeDigests,
    platform: Host,
    *,
    evaluators: Mapping[str, str],
    models: Iterable[str] = (),
    replayed: bool = False,
) -> Fingerprint:
    """The fingerprint of a trial.

    Args:
        suite: As it runs, with all overrides.
        tree: What it finds.
        platform: What it runs on.
        evaluators: By metric, the version of its evaluator with that of the judge's prompt.
        models: Those that answered; before a session nobody knows.
        replayed: Whether the models' words come from a recording.
    """
    outcome = {
        **suite_parts(suite),
        EVALUATORS: digest(dict(evaluators)),
        STEERING: tree.steering,
        SUITE_FILES: tree.suites if suite.commands_see_suites else "",
        NAMED_FILES: tree.named,
        REPLAYED: str(replayed).lower(),
    }
    words = {
        "cli": platform.cli or "",
        "agentSdk": platform.agent_sdk,
        "models": ", ".join(sorted(set(models))),
        "system": platform.system,
        "isolationLevel": platform.isolation_level,
    }
    return _combined(outcome, words, tree.code, tree.state)


def judged_again(earlier: Fingerprint, suite: ResolvedSuite, evaluators: Mapping[str, str]) -> Fingerprint:
    """The fingerprint of a run that other judges, or newer prompts, have judged."""
    words = {name: value for name, value in earlier.parts.items() if name in PLATFORM}
    rest = {name: value for name, value in earlier.parts.items() if name not in PLATFORM}
    outcome = {**rest, **suite_parts(suite), EVALUATORS: digest(dict(evaluators))}
    return _combined(outcome, words, earlier.tree, earlier.steering)


def suite_parts(suite: ResolvedSuite) -> dict[str, str]:
    """A digest for each field of a suite that counts."""
    fields = {name: value for name, value in suite if name not in WITHOUT_EFFECT}
    return {type(suite).model_fields[name].alias or name: digest(_plain(value, name)) for name, value in fields.items()}


def digest(value: Any) -> str:
    """Of plain data; the order of keys says nothing."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGITS]


def _combined(
    outcome: Mapping[str, str], platform: Mapping[str, str], code: str, steering: SteeringState | None
) -> Fingerprint:
    shown = [platform[name] for name in PLATFORM if platform.get(name)]
    return Fingerprint(
        outcome=digest(dict(outcome)),
        platform="; ".join(shown),
        tree=code,
        parts={**outcome, **platform},
        steering=steering,
    )


def _plain(value: Any, name: str) -> Any:
    """A setting as plain data."""
    if isinstance(value, Record):
        return {key: _plain(inner, f"{name}.{key}") for key, inner in value}
    if isinstance(value, tuple):
        items = [_plain(item, name) for item in value]
        return sorted(items) if name in SETS else items
    if isinstance(value, float) and value.is_integer():
        # A default of 1800 and a given 1800.0 are the same.
        return int(value)
    return str(value) if isinstance(value, str) else value


def _of_files(files: Iterable[TreeFile]) -> str:
    return digest(sorted(map(_listed, files)))


def _listed(file: TreeFile) -> tuple[str, str, str]:
    return file.path, file.mode, file.content
