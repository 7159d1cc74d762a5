"""What of a pull request never took effect: settings that are refused, and files that steer and that no session had."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import dirname

from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.domain.details import ToolUsageDetails
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.builders.phrases import line
from zelda_ci.report.model import Line
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.told import CiReport

KINDS = {ItemKind.MCP_SERVER: "MCP server", ItemKind.AGENT: "sub-agent", ItemKind.OUTPUT_STYLE: "output style"}
MAX_TOLD = 3
MAX_REASON = 300

_Key = tuple[ItemKind, str, str]


@dataclass(frozen=True)
class Ineffective:
    """One thing that is not loaded."""

    brief: str
    sentence: str


def ineffective(report: CiReport) -> tuple[Ineffective, ...]:
    """What the pull request changes and no session of the head had, the refused settings files first."""
    refused = [reason for reason in report.gate.reasons if isinstance(reason, NotLoaded)]
    told = [Ineffective(f"{visible(it.file, 80)} is not loaded", f"{sentence(gate_sentence(it))}.") for it in refused]
    files = {it.file for it in refused}
    entries = [entry for entry in _not_loaded(report) if entry.file not in files]
    told += [_entry(entry) for entry in entries]
    known = {*files, *(entry.file for entry in entries)}
    return (*told, *(_absent(it) for it in report.changes.steering if it.path not in known and _is_absent(report, it)))


def brief(report: CiReport) -> Iterator[str]:
    """The first of it, for the headline."""
    if found := ineffective(report):
        yield found[0].brief + (f" and {len(found) - 1} more" if len(found) > 1 else "")


def sentences(report: CiReport) -> Iterator[Line]:
    """A sentence each."""
    return (line("{}", each.sentence) for each in ineffective(report)[:MAX_TOLD])


def _not_loaded(report: CiReport) -> list[ManifestEntry]:
    """What no session of the head had, although a session of the base had it, or the pull request changes it."""
    here = [found for run in report.batch.runs if (found := _missing(run)) is not None]
    stored = report.baseline_batch.runs if report.baseline_batch else ()
    before = [found for run in (*report.batch.base_runs, *stored) if (found := _missing(run)) is not None]
    always = [entry for key, entry in here[0].items() if all(key in found for found in here)] if here else []
    steering = report.changes.steering
    return [
        entry
        for entry in always
        if not any(_key(entry) in found for found in before)
        and (any(_concerns(change, entry) for change in steering) or (bool(before) and not steering))
    ]


def _missing(run: RunResult) -> dict[_Key, ManifestEntry] | None:
    details = run.details(ToolUsageDetails)
    return None if details is None or not run.status.is_valid else {_key(entry): entry for entry in details.not_loaded}


def _key(entry: ManifestEntry) -> _Key:
    return entry.kind, entry.name, entry.file


def _concerns(change: SteeringChange, entry: ManifestEntry) -> bool:
    own = f"{dirname(entry.file)}/" if entry.kind is ItemKind.SKILL else entry.file
    return change.path == entry.file or f"{entry.file}/".startswith(f"{change.path}/") or change.path.startswith(own)


def _entry(entry: ManifestEntry) -> Ineffective:
    named = f"the {KINDS.get(entry.kind, entry.kind)} {visible(entry.name, 60)}"
    if entry.name == entry.file:
        named = visible(entry.file, 80)
    why = sentence(entry.reason or "no reason is known", MAX_REASON).rstrip(".")
    where = "" if entry.name == entry.file else f" ({visible(entry.file, 80)})"
    return Ineffective(f"{named} is not loaded", f"{named[:1].upper()}{named[1:]}{where} is not loaded: {why}.")


def _is_absent(report: CiReport, change: SteeringChange) -> bool:
    """Whether the checkout lacks a changed submodule or file of Git LFS, as a note of the run says."""
    listed = re.compile(rf"[:,] {re.escape(change.path)}(?=, | \(| and |\. )")
    return any(listed.search(note) for note in report.batch.notes)


def _absent(change: SteeringChange) -> Ineffective:
    path = visible(change.path, 80)
    return Ineffective(f"{path} is not checked out", f"{path} is not checked out, so no session had it.")
