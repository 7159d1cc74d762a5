"""What a session felt of the files that steer it: loaded, used, missed, broke; and which files it touched."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname
from typing import Any

from zelda_ci.domain.details import RuleVerdict, ToolUsageDetails
from zelda_ci.domain.kinds import CALLED, ItemKind, skill
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.session import HookRan, SessionTranscript, UserSaid
from zelda_ci.domain.steering import Unit, UnitUse
from zelda_ci.execution.manifest.loading import TOUCHING, in_tree, touched
from zelda_ci.redact import Redactor, SafeText

# Beyond these nobody can say what a session did not touch.
MAX_TOUCHED = 2_000
MAX_COMMAND_LENGTH = 20_000
MAX_PATH_LENGTH = 300


@dataclass(frozen=True)
class Felt:
    """What a session felt."""

    units: tuple[UnitUse, ...]
    touched: tuple[SafeText, ...] | None


def felt_by(
    manifest: ToolsManifest,
    transcript: SessionTranscript,
    judged: ToolUsageDetails | None,
    changed: Iterable[str],
    redact: Redactor,
) -> Felt:
    """What a session felt of the files that steer it.

    Args:
        manifest: What the project offered, and what the session had of it.
        transcript: What it did.
        judged: What the judge says of tools and rules, where it was asked.
        changed: Files that the session changed, from the top of the tree.
        redact: For paths that stand in commands.
    """
    files = frozenset({*touched(manifest, transcript), *_named(manifest, transcript), *changed})
    labels = [call.label for call in transcript.tool_calls]
    calls = frozenset({*labels, *_slashed(transcript), *(judged.used if judged else ())})
    session = _SessionMarks(files, calls, _events(transcript), judged or ToolUsageDetails())
    uses = [session.use(item, loaded=item.loaded) for item in manifest.items]
    uses += [session.use(item, loaded=not item.problem) for item in manifest.settings]
    known = tuple(redact(file) for file in sorted(files)) if len(files) <= MAX_TOUCHED else None
    return Felt(tuple(uses), known)


@dataclass(frozen=True)
class _SessionMarks:
    files: frozenset[str]
    calls: frozenset[str]
    events: frozenset[str]
    judged: ToolUsageDetails

    def use(self, item: ManifestItem, *, loaded: bool) -> UnitUse:
        judged, names = self.judged, _names(item)
        verdict = next((it.verdict for it in judged.rules if it.rule == item.name), None)
        broken = verdict is RuleVerdict.BROKEN and item.kind not in CALLED
        return UnitUse(
            unit=Unit(kind=item.kind, path=item.file, name=item.name),
            loaded=loaded,
            used=self._was_used(item) or broken or (verdict is RuleVerdict.FOLLOWED and item.kind not in CALLED),
            missed=_are_named(names, (it.tool for it in judged.missed)),
            broken=broken or _are_named(names, (it.tool for it in (*judged.misused, *judged.instructions_ignored))),
            problem=(item.reason or item.note) if item.kind is ItemKind.PLUGIN else None,
        )

    def _was_used(self, item: ManifestItem) -> bool:
        if item.kind is ItemKind.HOOK:
            return item.name in self.events or item.name.partition(":")[0] in self.events
        return (item.kind in CALLED and _are_named(_names(item), self.calls)) or self._was_read(item)

    def _was_read(self, item: ManifestItem) -> bool:
        """Whether its file, a file of its folder where that is a skill's own, or a folder above it was named."""
        own = f"{dirname(item.file)}/" if item.kind is ItemKind.SKILL else item.file
        steering = (file for file in self.files if file == item.file or ".claude" in file.split("/"))
        return any(file.startswith(own) or f"{item.file}/".startswith(f"{file}/") for file in steering)


def _names(item: ManifestItem) -> frozenset[str]:
    """Under which it stands among a session's calls."""
    return frozenset({item.tool, *([skill(item.label)] if item.label else [])})


def _are_named(names: frozenset[str], calls: Iterable[str]) -> bool:
    """Whether one of the calls is of that name; skills of folders further down and of plugins have a word before it."""
    return any(
        call in names or call.startswith(tuple(f"{name}__" for name in names)) or _plain(call) in names
        for call in calls
    )


def _plain(call: str) -> str:
    return re.sub(r"\((?:[^()]*:)", "(", call)


_SLASHED = re.compile(r"(?:^|\s|<command-name>)/([\w:.-]{1,100})")


def _slashed(transcript: SessionTranscript) -> Iterator[str]:
    """Skills and commands that were written with a slash, in the prompt or in what Claude Code made of it."""
    texts = [entry.text for entry in transcript.entries if isinstance(entry, UserSaid)]
    return (skill(name) for text in (transcript.prompt, *texts) for name in _SLASHED.findall(text))


def _events(transcript: SessionTranscript) -> frozenset[str]:
    ran = [entry for entry in transcript.entries if isinstance(entry, HookRan)]
    return frozenset({*(entry.name for entry in ran), *(entry.event for entry in ran)})


_PATH = re.compile(r"[\w.@+~%/-]*[\w.]")
# How grep and diff name the file whose lines they print.
_PRINTED = re.compile(
    r"^(?:[-+]{3} [ab]/(\S{0,290}\.claude/\S{1,200})|([^\s:]{0,290}\.claude/[^\s:]{1,200}):)", re.MULTILINE
)


def _named(manifest: ToolsManifest, transcript: SessionTranscript) -> Iterator[str]:
    """Paths that stand in the inputs of other tools, mostly in commands, and steering files whose lines they printed.

    A word too many only makes a suite run that need not.
    """
    for call in transcript.tool_calls:
        if call.name not in TOUCHING:
            for text in _texts(call.input):
                for word in _PATH.findall(text[:MAX_COMMAND_LENGTH]):
                    if ("/" in word or "." in word) and len(word) <= MAX_PATH_LENGTH:
                        yield from _inside(word, manifest)
            for line in _PRINTED.finditer(call.output or ""):
                yield from _inside(line[1] or line[2], manifest)


def _inside(word: str, manifest: ToolsManifest) -> Iterator[str]:
    path = in_tree(word, manifest)
    if path and path not in (".", ".."):
        yield path


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)
        case _:
            pass
