"""References to stored runs, sides and batches, as users write them."""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import orjson

from zelda_ci.domain.numbers import format_count, some_of
from zelda_ci.domain.outcome import StoredRun
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.errors import NotStoredError
from zelda_ci.files.atomic import read_file
from zelda_ci.storage import codec
from zelda_ci.storage.result_store import ResultStore, is_run_id

LATEST = "latest"
# `latest`, `latest~2`, `latest:SUITE`, `latest:SUITE~2`.
LATEST_PATTERN = re.compile(r"latest(?::(?P<suite>[^~]+))?(?:~(?P<back>[0-9]{1,9}))?")
MAX_NAMED = 5
MAX_RESULTS_BYTES = 1_000_000_000
# The batch, where it is meant as a whole, and ids of runs: none where its comparison needed none beside stored ones.
Found = tuple[str | None, tuple[str, ...]]


@dataclass(frozen=True)
class SideReference:
    """Runs under one name."""

    name: str
    runs: tuple[RunResult, ...]
    batch_id: str | None = None
    """Batch that is meant with all that it compared; absent of a run, and of a file."""


def find(history: ResultStore, reference: str) -> Found:
    """A batch and its runs, as they began, or a single run; else raises `NotStoredError`."""
    match = LATEST_PATTERN.fullmatch(reference)
    return _latest(history, match, "run") if match else _find(history, reference)


def newest_batch(history: ResultStore) -> str:
    """The batch that began last, also a comparison that needed no run; `latest` where there is none."""
    stored = history.overview().runs
    newest = [run.batch_id for run in _as_they_are(stored)[:1]]
    # Ids of batches begin with the time.
    return max([*newest, *history.compared_without(stored)], default=LATEST)


def read_side(history: ResultStore, reference: str, *, whole: bool = False) -> SideReference:
    """The runs of a results file, a run or a batch, as a `whole` with those of the base; `latest` is the newest."""
    if os.sep in reference or reference.endswith(".json"):
        batch_id, name, runs = None, Path(reference).name, read_results(Path(reference))
    else:
        match = LATEST_PATTERN.fullmatch(reference)
        found = _latest(history, match, "batch", whole=whole) if match else _find(history, reference)
        batch_id, runs = found[0], tuple(map(history.result, found[1]))
        name = (batch_id or found[1][0]) + (f", {match['suite']} only" if match and match["suite"] else "")
        if batch_id and not whole:
            # What ran beside them is no part of what an invocation tested.
            runs = tuple(run for run in runs if run.side is Side.HEAD)
    if not runs and not (batch_id and whole):
        hint = "Give a run, a batch or a file of results; `zelda show` has a comparison of stored runs."
        raise NotStoredError(f"{name} holds no run of the head.", hint=hint, code="NO_RUNS")
    return SideReference(name, runs, batch_id)


def _as_they_are(stored: Sequence[StoredRun]) -> list[StoredRun]:
    """Those of batches without runs of variants, which say nothing of the files as they are."""
    apart = {run.batch_id for run in stored if run.variant}
    return [run for run in stored if run.batch_id not in apart]


def _latest(history: ResultStore, match: re.Match[str], noun: str, *, whole: bool = False) -> Found:
    """The runs, newest first, of the run or batch that `latest~2` means; of the base only in a batch as a `whole`."""
    suite, back = match["suite"], int(match["back"] or 0)
    runs = [run for run in _as_they_are(history.overview().runs) if whole or run.side is Side.HEAD]
    if not runs:
        raise NotStoredError("There is no stored run yet.", hint="Make one with `zelda run`.", code="NO_RUNS")
    found: dict[str, list[str]] = {}
    for run in runs:
        if suite in (None, run.suite):
            found.setdefault(getattr(run, f"{noun}_id"), []).append(run.run_id)
    if not found:
        suites = sorted({run.suite for run in runs})
        near = get_close_matches(suite, suites, n=1)
        guess = f"Did you mean latest:{near[0]}?" if near else f"There are runs of {some_of(suites, MAX_NAMED)}."
        hint = "`zelda list` shows all stored runs."
        raise NotStoredError(f"There is no stored run of the suite {suite!r}. {guess}", hint=hint, code="RUN_UNKNOWN")
    if back >= len(found):
        of, several = f" of the suite {suite}" if suite else "", "batches" if noun == "batch" else None
        hint = "`latest` is the newest, `latest~1` the one before. `zelda list` shows all."
        message = f"There is no {match[0]}: {format_count(len(found), noun, several)} stored{of}."
        raise NotStoredError(message, hint=f"Make another with `zelda run`; {hint}", code="RUN_UNKNOWN")
    name, run_ids = list(found.items())[back]
    return (name if noun == "batch" else None), tuple(run_ids)


def _find(history: ResultStore, reference: str) -> Found:
    """The run whose id is given or begins so, or a batch and its runs, as they began."""
    stored = history.overview()
    names = [run.run_id for run in stored.runs] + [each.name for each in stored.skipped if is_run_id(each.name)]
    batch_ids = {run.batch_id for run in stored.runs} | history.compared_without(stored.runs)
    runs, batches = _beginning(reference, names), _beginning(reference, batch_ids)
    if len(batches) == 1 and (not runs or batches == [reference]):
        return batches[0], tuple(run.run_id for run in stored.runs[::-1] if run.batch_id in batches)
    if len(runs) == 1 and (not batches or runs == [reference]):
        return None, tuple(runs)
    if runs or batches:
        counted = [("run", "runs", runs), ("batch", "batches", batches)]
        kinds = " and ".join(format_count(len(names), *words) for *words, names in counted if names)
        begin = "begins" if len(runs) + len(batches) == 1 else "begin"
        message = f"{kinds} {begin} with {reference!r}: {some_of([*runs, *batches], MAX_NAMED)}."
        raise NotStoredError(message, hint="Give more of the id; `zelda list` shows all.", code="RUN_AMBIGUOUS")
    if is_run_id(reference) and history.run(reference).path.is_dir():
        hint = "It is under way; or it was killed, and the next `zelda run` makes a result of what was captured."
        raise NotStoredError(f"The run {reference} has no result yet.", hint=hint, code="RUN_UNFINISHED")
    near = get_close_matches(reference, names, n=3, cutoff=0.5)
    guess = f" The nearest: {some_of(near, MAX_NAMED)}." if near else ""
    hint = "`zelda list` shows all runs; `latest` is the newest." if names else "Make one with `zelda run`."
    raise NotStoredError(f"There is no run {reference!r}.{guess}", hint=hint, code="RUN_UNKNOWN")


def _beginning(reference: str, names: Iterable[str]) -> list[str]:
    """Names that begin with a reference; an exact match alone."""
    found = sorted(name for name in names if reference and name.startswith(reference))
    return [reference] if reference in found else found


def read_results(path: Path) -> tuple[RunResult, ...]:
    """The runs in a file: what `zelda run --json` printed, or one result."""
    data = read_file(path, MAX_RESULTS_BYTES)
    with suppress(orjson.JSONDecodeError):
        tree = orjson.loads(data)
        if isinstance(tree, dict) and "runs" in tree:
            return codec.decode(BatchResult, data, str(path)).runs
    return (codec.decode(RunResult, data, str(path)),)
