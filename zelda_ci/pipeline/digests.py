"""The files and settings of a trial as digests, and its fingerprint made of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from zelda_ci import metrics
from zelda_ci.domain import fingerprint as names
from zelda_ci.domain.base import Record
from zelda_ci.domain.fingerprint import PLATFORM, Fingerprint, Steers
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
    """What a trial finds, in digests: of what steers, of code, and of suites where build and test commands see them.

    Args:
        files: All that a session finds; suites and configuration are not among them.
        steers: How those steer that do; where nobody knows it, every file counts as such.
        folder: The project's.
        whole: What build and test commands find, where that is more.
        lines: Digests of each line of what steers, by file.
    """

    def __init__(
        self,
        files: Iterable[TreeFile],
        steers: Mapping[str, Steers] | None,
        *,
        folder: str = "",
        whole: Iterable[TreeFile] = (),
        lines: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
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
    models: Iterable[str] = (),
    replayed: bool = False,
    evaluators: Mapping[str, str] | None = None,
) -> Fingerprint:
    """The fingerprint of a trial: of a suite as it runs, the tree that it finds, and a platform by `PLATFORM`'s names.

    Before a session nobody knows the models. `evaluators` are versions of evaluators and prompts, by default today's.
    """
    # In its commands, and in `gate.paths`.
    places = own_places(suite, tree.folder)
    own = {it.path for it in tree.files if not places.isdisjoint(globs.upwards(it.path))}
    named = [it for it in tree.files if it.path in own or is_meant(it.path, suite, tree.folder)]
    found = {
        **_settings(suite, evaluators),
        names.STEERING: tree.steering,
        names.SUITE_FILES: tree.suites if suite.commands_see_suites else "",
        names.NAMED_FILES: _of_files(named) if named else "",
        names.REPLAYED: str(replayed).lower(),
    }
    words = {**platform, "models": ", ".join(sorted(set(models)))}
    return _combined({**found, **{name: words.get(name) or "" for name in PLATFORM}}, tree.code)


def judged_again(earlier: Fingerprint, suite: ResolvedSuite) -> Fingerprint:
    """The fingerprint of a run that other judges, or newer prompts, have judged."""
    return _combined({**earlier.parts, **_settings(suite)}, earlier.tree)


def digest(value: Any) -> str:
    """Of plain data; the order of keys says nothing."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGITS]


def _combined(parts: dict[str, str], code: str) -> Fingerprint:
    shown = "; ".join(parts[name] for name in PLATFORM if parts.get(name))
    outcome = {name: value for name, value in parts.items() if name not in PLATFORM}
    return Fingerprint(outcome=digest(outcome), platform=shown, tree=code, parts=parts)


def _settings(suite: ResolvedSuite, evaluators: Mapping[str, str] | None = None) -> dict[str, str]:
    """A digest for each field of a suite that counts, and one for what evaluates it."""
    counted = ((name, value) for name, value in suite if name not in WITHOUT_EFFECT)
    found = {type(suite).model_fields[name].alias or name: digest(_plain(value, name)) for name, value in counted}
    versions = metrics.versions(suite.metrics) if evaluators is None else evaluators
    return {**found, names.EVALUATORS: digest(dict(versions))}


def _plain(value: Any, name: str) -> Any:
    """A setting as plain data."""
    if isinstance(value, Record):
        return {key: _plain(inner, f"{name}.{key}") for key, inner in value}
    if isinstance(value, tuple):
        items = [_plain(item, name) for item in value]
        return sorted(items) if name in SETS else items
    # A default of 1800 and a given 1800.0 are the same.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _of_files(files: Iterable[TreeFile]) -> str:
    return digest(sorted((file.path, file.mode, file.content) for file in files))
