"""The files and settings of a trial as digests, and its fingerprint made of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from zelda_ci.domain.base import Record
from zelda_ci.domain.fingerprint import (
    EVALUATORS,
    NAMED_FILES,
    PLATFORM,
    REPLAYED,
    STEERING,
    SUITE_FILES,
    Fingerprint,
    Steers,
)
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.workspace.store import TreeFile

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

DIGITS = 16


@dataclass(frozen=True)
class TreeDigests:
    """What a trial finds, in digests."""

    steering: str
    code: str
    suites: str = ""
    """Of the suites' own files, where build and test commands see them."""
    named: str = ""
    """Of the files that the suite itself names."""
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
    steers: Mapping[str, Steers] | None,
    *,
    folder: str = "",
    whole: Iterable[TreeFile] = (),
) -> TreeDigests:
    """The tree in digests.

    Args:
        files: All that the session finds, in any order; suites and configuration are not among them.
        steers: Of those that steer, how, by path; absent where nobody knows it: then every file counts as if it did.
        folder: The project's, from the top of the tree.
        whole: What build and test commands find, where that is more.
    """
    seen = tuple(files)
    paths = {file.path for file in seen}
    steering = _of_files(seen) if steers is None else _of_files(file for file in seen if file.path in steers)
    code = (file for file in seen if steers is None or steers.get(file.path) != "itself")
    suites = _of_files(file for file in whole if file.path not in paths)
    return TreeDigests(steering, _of_files(code), suites, "", seen, folder)


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
    return _combined(outcome, words, tree.code)


def judged_again(earlier: Fingerprint, suite: ResolvedSuite, evaluators: Mapping[str, str]) -> Fingerprint:
    """The fingerprint of a run that other judges, or newer prompts, have judged."""
    words = {name: value for name, value in earlier.parts.items() if name in PLATFORM}
    rest = {name: value for name, value in earlier.parts.items() if name not in PLATFORM}
    outcome = {**rest, **suite_parts(suite), EVALUATORS: digest(dict(evaluators))}
    return _combined(outcome, words, earlier.tree)


def suite_parts(suite: ResolvedSuite) -> dict[str, str]:
    """A digest for each field of a suite that counts."""
    fields = {name: value for name, value in suite if name not in WITHOUT_EFFECT}
    return {type(suite).model_fields[name].alias or name: digest(_plain(value, name)) for name, value in fields.items()}


def digest(value: Any) -> str:
    """Of plain data; the order of keys says nothing."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGITS]


def _combined(outcome: Mapping[str, str], platform: Mapping[str, str], code: str) -> Fingerprint:
    shown = [platform[name] for name in PLATFORM if platform.get(name)]
    return Fingerprint(
        outcome=digest(dict(outcome)),
        platform="; ".join(shown),
        tree=code,
        parts={**outcome, **platform},
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
