"""The files and settings of a trial as digests, and its fingerprint made of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
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
from zelda_ci.files import globs
from zelda_ci.selection.effects import is_meant, own_places
from zelda_ci.workspace.store import TreeFile

# What says how often a suite runs, what it is called, and what is made of its results; every other field of a suite
# counts, so that one that is added later cannot be forgotten.
WITHOUT_EFFECT = frozenset({"name", "file", "description", "tags", "trials", "gate", "pool"})

# Of lists, those whose order says nothing.
SETS = frozenset({
    "execution.extra_models", "execution.request_keys", "execution.allowed_tools", "execution.disallowed_tools",
    "execution.env", "isolation.read_paths",
})  # fmt: skip
DIGITS = 16


class TreeDigests:
    """What a trial finds, in digests: of what steers, of code, and of suites where build and test commands see them."""

    def __init__(
        self,
        files: Iterable[TreeFile],
        steers: Mapping[str, Steers] | None,
        *,
        folder: str = "",
        whole: Iterable[TreeFile] = (),
        lines: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Make digests of all files that a session finds; suites and configuration are not among them.

        `steers` says of those that steer, how; where nobody knows it, every file counts as such. `whole` is what build
        and test commands find, where that is more; `lines` are digests of each line of what steers, by file.
        """
        self.files, self.folder, self.lines = tuple(files), folder, lines or {}
        paths = {file.path for file in self.files}
        self.steering = _of_files(file for file in self.files if steers is None or file.path in steers)
        self.code = _of_files(file for file in self.files if steers is None or steers.get(file.path) != "itself")
        self.suites = _of_files(file for file in whole if file.path not in paths)


def fingerprint(
    suite: ResolvedSuite,
    tree: TreeDigests,
    platform: Mapping[str, str | None],
    *,
    evaluators: Mapping[str, str],
    models: Iterable[str] = (),
    replayed: bool = False,
) -> Fingerprint:
    """The fingerprint of a trial: of a suite as it runs, the tree that it finds, and a platform by `PLATFORM`'s names.

    `evaluators` are versions of evaluators and their prompts, by metric. Before a session nobody knows the models.
    """
    # In its commands, and in `gate.paths`.
    places = own_places(suite, tree.folder)
    own = {it.path for it in tree.files if not places.isdisjoint(globs.upwards(it.path))}
    named = [it for it in tree.files if it.path in own or is_meant(it.path, suite, tree.folder)]
    outcome = {
        **_settings(suite, evaluators),
        STEERING: tree.steering,
        SUITE_FILES: tree.suites if suite.commands_see_suites else "",
        NAMED_FILES: _of_files(named) if named else "",
        REPLAYED: str(replayed).lower(),
    }
    words = {**platform, "models": ", ".join(sorted(set(models)))}
    return _combined(outcome, {name: words.get(name) or "" for name in PLATFORM}, tree.code)


def judged_again(earlier: Fingerprint, suite: ResolvedSuite, evaluators: Mapping[str, str]) -> Fingerprint:
    """The fingerprint of a run that other judges, or newer prompts, have judged."""
    words = {name: value for name, value in earlier.parts.items() if name in PLATFORM}
    rest = {name: value for name, value in earlier.parts.items() if name not in PLATFORM}
    return _combined({**rest, **_settings(suite, evaluators)}, words, earlier.tree)


def digest(value: Any) -> str:
    """Of plain data; the order of keys says nothing."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGITS]


def _combined(outcome: Mapping[str, str], platform: Mapping[str, str], code: str) -> Fingerprint:
    shown = "; ".join(platform[name] for name in PLATFORM if platform.get(name))
    return Fingerprint(outcome=digest(dict(outcome)), platform=shown, tree=code, parts={**outcome, **platform})


def _settings(suite: ResolvedSuite, evaluators: Mapping[str, str]) -> dict[str, str]:
    """A digest for each field of a suite that counts, and one for what evaluates it."""
    counted = ((name, value) for name, value in suite if name not in WITHOUT_EFFECT)
    found = {type(suite).model_fields[name].alias or name: digest(_plain(value, name)) for name, value in counted}
    return {**found, EVALUATORS: digest(dict(evaluators))}


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
    return digest(sorted((file.path, file.mode, file.content) for file in files))
