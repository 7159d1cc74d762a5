"""The comparisons of `zelda run --against`, so that later commands show the very same one."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from zelda_ci.domain.run import StoredComparison
from zelda_ci.errors import StorageError
from zelda_ci.files.atomic import read_file, write_whole
from zelda_ci.storage import codec

COMPARISONS = "comparisons"


def keep(results_dir: Path, comparison: StoredComparison) -> None:
    """Store what a comparison rests on."""
    target = results_dir / COMPARISONS / f"{comparison.batch.batch_id}.json"
    write_whole(target, [codec.encode(comparison)], durable=False)


def read(results_dir: Path, batch_id: str) -> StoredComparison | None:
    """Read what the comparison of a batch rests on; None where it compared nothing, or that cannot be read."""
    # A result may come from elsewhere: an id is no path that leads elsewhere.
    if Path(batch_id).name == batch_id:
        with suppress(StorageError):
            path = results_dir / COMPARISONS / f"{batch_id}.json"
            return codec.decode(StoredComparison, read_file(path), str(path))
    return None


def forget(results_dir: Path, run_ids: Collection[str], batch_ids: Collection[str]) -> None:
    """Remove comparisons that rest on runs or batches that are gone."""
    for path in (results_dir / COMPARISONS).glob("*.json"):
        kept = read(results_dir, path.stem)
        if kept is None or path.stem in batch_ids or not set(kept.all).isdisjoint(run_ids):
            # What cannot be removed is not shown either, since its runs are gone.
            with suppress(OSError):
                path.unlink()
