"""What a user calls a run: its id, the beginning of its id, or `latest`; and a side of a comparison."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import orjson

from zelda_ci.domain.run import RunResult
from zelda_ci.errors import StorageError
from zelda_ci.storage import codec
from zelda_ci.storage.atomic import read_file
from zelda_ci.storage.history import RunHistory

LATEST = "latest"
MOST_NAMED = 5
LARGEST_RESULTS = 1_000_000_000


@dataclass(frozen=True)
class Side:
    """Runs under one name."""

    name: str
    runs: tuple[RunResult, ...]


def find(history: RunHistory, reference: str) -> str:
    """The id of the run that is meant.

    Raises:
        StorageError: No run is, or several are; the message names those that may be.
    """
    if reference == LATEST:
        return _latest(history)
    names = history.names()
    if reference in names:
        return reference
    matches = [name for name in names if reference and name.startswith(reference)]
    if len(matches) == 1:
        return matches[0]
    raise _ambiguous(reference, matches) if matches else _unknown(history, reference, names)


def read_side(history: RunHistory, reference: str) -> Side:
    """The runs of one side: a results file, a run, or all runs of a batch.

    Raises:
        StorageError: It is none of these, or cannot be read.
    """
    if os.sep in reference or reference.endswith(".json"):
        return Side(Path(reference).name, read_results(Path(reference)))
    known = history.overview().runs if reference != LATEST else ()
    batch = [run.run_id for run in known if run.batch_id == reference]
    names = batch or [find(history, reference)]
    return Side(reference if batch else names[0], tuple(history.result(name) for name in names))


def read_results(path: Path) -> tuple[RunResult, ...]:
    """The runs in a file: what `zelda run --json` printed, or one result.

    Raises:
        StorageError: It is neither.
    """
    data = read_file(path, LARGEST_RESULTS)
    if _holds_runs(data):
        return codec.decode_batch(data, str(path)).runs
    return (codec.decode_result(data, str(path)),)


def _holds_runs(data: bytes) -> bool:
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(tree, dict) and "runs" in tree


def _latest(history: RunHistory) -> str:
    runs = history.overview().runs
    if not runs:
        raise StorageError("There is no stored run yet.", hint="Make one with `zelda run`.", code="NO_RUNS")
    return runs[0].run_id


def _ambiguous(reference: str, matches: Sequence[str]) -> StorageError:
    return StorageError(
        f"{len(matches)} runs begin with {reference!r}: {_named(matches)}.",
        hint="Give more of the id; `zelda list` shows all.",
        code="RUN_AMBIGUOUS",
    )


def _unknown(history: RunHistory, reference: str, names: Sequence[str]) -> StorageError:
    if reference in history.unfinished():
        hint = "It is under way; or it was killed, and the next `zelda run` makes a result of what was captured."
        return StorageError(f"The run {reference} has no result yet.", hint=hint, code="RUN_UNFINISHED")
    near = get_close_matches(reference, names, n=3, cutoff=0.5)
    guess = f" The nearest: {_named(near)}." if near else ""
    hint = "`zelda list` shows all runs; `latest` is the newest." if names else "Make one with `zelda run`."
    return StorageError(f"There is no run {reference!r}.{guess}", hint=hint, code="RUN_UNKNOWN")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
