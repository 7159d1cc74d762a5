"""What a session felt of the files that steer it: loaded, used, missed, broke; and which files it touched."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from posixpath import dirname

from zelda_ci.domain.details import RuleVerdict, ToolUsageDetails
from zelda_ci.domain.kinds import CALLED, ItemKind, skill
from zelda_ci.domain.manifest import (
    ManifestItem,
    SteeringCoverage,
    SuiteCoverage,
    SuiteUse,
    ToolsManifest,
    Unit,
    UnitCoverage,
    UnitUse,
)
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import HookRan, SessionTranscript, UserSaid
from zelda_ci.execution.manifest.loading import TOUCHING, touched
from zelda_ci.metrics.calls import PATH_WORD, texts_of
from zelda_ci.redact import Redactor

# Beyond these nobody can say what a session did not touch.
MAX_TOUCHED = 2_000
MAX_COMMAND_LENGTH = 20_000
MAX_PATH_LENGTH = 300
_SLASHED = re.compile(r"(?:^|\s|<command-name>)/([\w:.-]{1,100})")
# How grep and diff name the file whose lines they print.
_PRINTED = re.compile(r"(?m)^(?:[-+]{3} [ab]/(\S{0,290}\.claude/\S{1,200})|([^\s:]{0,290}\.claude/[^\s:]{1,200}):)")
# The words before a name of a skill in a folder further down, or of a plugin.
_LONG = re.compile(r"\((?:[^()]*:)")
FIELDS = ("loaded", "used", "missed", "broken")


def with_felt(
    run: RunResult, manifest: ToolsManifest | None, transcript: SessionTranscript, redact: Redactor
) -> RunResult:
    """A run with what its session felt of the files that steer it: what it had, did and changed, and the judge said."""
    if manifest is None or not run.status.is_valid:
        return run
    judged = run.details(ToolUsageDetails) or ToolUsageDetails()
    changed = run.changes.files if run.changes else ()
    files = {*touched(manifest, transcript), *_named(manifest, transcript), *changed}
    texts = (transcript.prompt, *(entry.text for entry in transcript.entries if isinstance(entry, UserSaid)))
    # Skills and commands may be written with a slash, in the prompt or in what Claude Code made of it.
    slashed = (skill(name) for text in texts for name in _SLASHED.findall(text))
    calls = {*(call.label for call in transcript.tool_calls), *slashed, *judged.used}
    ran = [entry for entry in transcript.entries if isinstance(entry, HookRan)]
    events = {name for entry in ran for name in (entry.name, entry.event)}
    verdicts = {judgement.rule: judgement.verdict for judgement in reversed(judged.rules)}

    def use(item: ManifestItem) -> UnitUse:
        is_called = item.kind in CALLED
        verdict = None if is_called else verdicts.get(item.name)
        is_used = (is_called and _is_among(item, calls)) or _was_read(item, files)
        if item.kind is ItemKind.HOOK:
            is_used = not events.isdisjoint({item.name, item.name.partition(":")[0]})
        faults = (it.tool for it in (*judged.misused, *judged.instructions_ignored))
        return UnitUse(
            unit=Unit(kind=item.kind, path=item.file, name=item.name),
            loaded=item.loaded,
            used=is_used or verdict in (RuleVerdict.BROKEN, RuleVerdict.FOLLOWED),
            missed=_is_among(item, (it.tool for it in judged.missed)),
            broken=verdict is RuleVerdict.BROKEN or _is_among(item, faults),
            problem=(item.reason or item.note) if item.kind is ItemKind.PLUGIN else None,
        )

    known = tuple(redact(file) for file in sorted(files)) if len(files) <= MAX_TOUCHED else None
    return run.replace(steering=tuple(map(use, manifest.items)), touched=known)


def _was_read(item: ManifestItem, files: Iterable[str]) -> bool:
    """Whether its file, a file of its folder where that is a skill's own, or a folder above it was named."""
    own = f"{dirname(item.file)}/" if item.kind is ItemKind.SKILL else item.file
    steering = (file for file in files if file == item.file or ".claude" in file.split("/"))
    return any(file.startswith(own) or f"{item.file}/".startswith(f"{file}/") for file in steering)


def _is_among(item: ManifestItem, calls: Iterable[str]) -> bool:
    """Whether one of the calls is of it."""
    names = {item.tool, *([skill(item.label)] if item.label else [])}
    begins = tuple(f"{name}__" for name in names)
    return any(call.startswith(begins) or not names.isdisjoint({call, _LONG.sub("(", call)}) for call in calls)


def _named(manifest: ToolsManifest, transcript: SessionTranscript) -> Iterator[str]:
    """Paths that stand in the inputs of other tools, mostly in commands, and steering files whose lines they printed.

    A word too many only makes a suite run that need not.
    """
    for call in transcript.tool_calls:
        if call.name not in TOUCHING:
            inputs = (word for text in texts_of(call.input) for word in PATH_WORD.findall(text[:MAX_COMMAND_LENGTH]))
            words = [word for word in inputs if ("/" in word or "." in word) and len(word) <= MAX_PATH_LENGTH]
            printed = (line[1] or line[2] for line in _PRINTED.finditer(call.output or ""))
            places = (manifest.in_tree(word) for word in (*words, *printed))
            yield from (place for place in places if place and place not in (".", ".."))


def coverage(runs: Sequence[RunResult]) -> SteeringCoverage:
    """The units of the newest trial, and what the trials of each suite did with them, as far as that is known."""
    known = [run for run in runs if run.steering is not None]
    trials = Counter(run.suite for run in known)
    newest = max(known, key=lambda run: run.started_at, default=None)
    # Several hooks of one event are one unit.
    uses = ((run.suite, use) for run in known for use in {use.unit: use for use in run.steering or ()}.values())
    counts = Counter((suite, use.unit, key) for suite, use in uses for key in FIELDS if getattr(use, key))
    rows = []
    for unit in dict.fromkeys(use.unit for use in (newest.steering if newest else None) or ()):
        each = (SuiteUse(suite=it, **{key: counts[it, unit, key] for key in FIELDS}) for it in sorted(trials))
        parts = tuple(part for part in each if part.loaded or _is_touched(part))
        touched = any(map(_is_touched, parts)) or (bool(parts) and unit.kind not in CALLED)
        rows.append(UnitCoverage(unit=unit, touched=touched, suites=parts))
    touching = {run.suite for run in known if any(map(_is_touched, run.steering or ()))}
    return SteeringCoverage(
        units=tuple(sorted(rows, key=lambda row: (row.touched, row.unit.kind, row.unit.path, row.unit.name))),
        suites=tuple(SuiteCoverage(suite=it, trials=trials[it], touches=it in touching) for it in sorted(trials)),
        unknown=tuple(sorted({run.suite for run in runs} - trials.keys())),
    )


def _is_touched(use: SuiteUse | UnitUse) -> bool:
    return bool(use.used or use.missed or use.broken)
