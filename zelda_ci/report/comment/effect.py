"""What of a pull request never took effect: settings that are refused, and files that steer and that no session had."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from posixpath import dirname

from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.domain.details import ToolUsageDetails
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestEntry, SteeringChange
from zelda_ci.domain.run import RunResult
from zelda_ci.report.builders.anchors import base_runs
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.text import visible

KINDS = {ItemKind.MCP_SERVER: "MCP server", ItemKind.AGENT: "sub-agent"}


_Key = tuple[ItemKind, str, str]


@dataclass(frozen=True)
class Ineffective:
    """One thing that is not loaded."""

    brief: str
    sentence: str


def ineffective(report: CiReport) -> list[Ineffective]:
    """What the pull request changes and no session of the head had, the refused settings files first."""
    refused = [reason for reason in report.gate.reasons if isinstance(reason, NotLoaded)]
    found = [Ineffective(f"{visible(it.file, 80)} is not loaded", f"{gate_sentence(it)}.") for it in refused]
    known = {it.file for it in refused}
    for entry in _not_loaded(report):
        if entry.file not in known:
            file, where = visible(entry.file, 80), ""
            named = file
            if entry.name != entry.file:
                named, where = f"the {KINDS.get(entry.kind, entry.kind)} {visible(entry.name, 60)}", f" ({file})"
            why = (entry.reason or "no reason is known").rstrip(".")
            words = f"{named[:1].upper()}{named[1:]}{where} is not loaded: {why}."
            found.append(Ineffective(f"{named} is not loaded", words))
    known |= {entry.file for entry in _not_loaded(report)}
    for change in report.changes.steering:
        if change.path not in known and _is_absent(report, change):
            brief = f"{visible(change.path, 80)} is not checked out"
            found.append(Ineffective(brief, f"{brief}, so no session had it."))
    return found


def _not_loaded(report: CiReport) -> list[ManifestEntry]:
    """What no session of the head had, although a session of the base had it, or the pull request changes it."""
    here = _missing(report.batch.runs)
    before = _missing(base_runs(report))
    always = [entry for key, entry in here[0].items() if all(key in missing for missing in here)] if here else []
    new = [entry for entry in always if not any(_key(entry) in missing for missing in before)]
    if steering := report.changes.steering:
        return [entry for entry in new if any(_concerns(change, entry) for change in steering)]
    return new if before else []


def _missing(runs: Iterable[RunResult]) -> list[dict[_Key, ManifestEntry]]:
    """What each of the sessions that count did not load."""
    counted = (run.details(ToolUsageDetails) for run in runs if run.status.is_valid)
    return [{_key(entry): entry for entry in details.not_loaded} for details in counted if details]


def _key(entry: ManifestEntry) -> _Key:
    return entry.kind, entry.name, entry.file


def _concerns(change: SteeringChange, entry: ManifestEntry) -> bool:
    own = f"{dirname(entry.file)}/" if entry.kind is ItemKind.SKILL else entry.file
    return change.path == entry.file or f"{entry.file}/".startswith(f"{change.path}/") or change.path.startswith(own)


def _is_absent(report: CiReport, change: SteeringChange) -> bool:
    """Whether the checkout lacks a changed submodule or file of Git LFS, as a note of the run says."""
    listed = re.compile(rf"[:,] {re.escape(change.path)}(?=, | \(| and |\. )")
    return any(listed.search(note) for note in report.batch.notes)
