"""The part of a run that one shard hands in: an archive with its results and the files of its runs.

Whoever reads one trusts nothing in it: it may have been made by anybody who can store a file beside it.
"""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.domain.shards import ShardOf, ShardPart
from zelda_ci.errors import ArtifactError, StorageError
from zelda_ci.files import ownership
from zelda_ci.files.atomic import read_file, replacing, storage_errors, write_whole
from zelda_ci.github.archives import MemberReader, packed
from zelda_ci.storage import codec, run_folder
from zelda_ci.storage.images import IMAGES, image_files
from zelda_ci.storage.result_store import RUNS

PART = "zelda-shard.json"
RESULTS = "zelda-results.json"
FOLDER = "shards"

LOGS = ("setup", "setup-again", "build", "test")
KEPT = (run_folder.TRANSCRIPT, run_folder.PATCH, run_folder.MANIFEST, run_folder.STEERING)
FILES = (*KEPT, *map(run_folder.log_name, LOGS))

MAX_ARCHIVE_BYTES = 512 << 20
MAX_MEMBER_BYTES = 256 << 20
MAX_MEMBERS = 50_000

_IMAGE = re.compile(rf"{IMAGES}/[0-9a-f]{{64}}\.(?:png|jpg|gif|webp)")
_NUMBERED = re.compile(r"(T\d{2}-\d{2}-\d{2})-[1-9]\d*$")
_PART_FILE = re.compile(r"zelda-shard-[0-9]+-of-[0-9]+\.zip")


@dataclass(frozen=True)
class PartFile:
    """A part that was read, nothing of it believed yet but its form."""

    name: str
    """As people know it."""
    part: ShardPart
    batch: BatchResult
    blob: bytes = field(repr=False)

    @property
    def attempt(self) -> int:
        """Of the workflow's run that made it; elsewhere there is one."""
        return self.part.origin.run_attempt if self.part.origin else 1


def run_files(results_dir: Path, runs: Iterable[RunResult], names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """By path within an archive, those of some files of runs that are there; images are with them."""
    names = tuple(names)
    for run in runs:
        folder = results_dir / RUNS / run.run_id
        for name in (*names, *image_files(folder)):
            path = folder / name
            if path.is_file() and not path.is_symlink():
                yield f"{RUNS}/{run.run_id}/{name}", path


def part_members(
    part: ShardPart, batch: BatchResult, results_dir: Path, *, with_files: bool
) -> Mapping[str, Path | bytes]:
    """What a part holds, by path within it."""
    runs = (*batch.runs, *batch.base_runs) if with_files else ()
    results = batch.model_dump_json(by_alias=True, exclude_none=True).encode()
    return {PART: codec.encode(part, indent=2), RESULTS: results, **dict(run_files(results_dir, runs, FILES))}


def write_part(folder: Path, part: ShardPart, batch: BatchResult, results_dir: Path) -> Path:
    """Write a part as a file; returns where it is.

    Raises:
        StorageError: There was no room or no permission.
        ArtifactError: A file of a run cannot be read.
    """
    target = folder / f"zelda-{ShardOf(number=part.shard, shards=part.plan.shards).file_stem}.zip"
    with storage_errors(target):
        ownership.make_folder(folder)
    members = part_members(part, batch, results_dir, with_files=True)
    with packed(members) as archive, storage_errors(target), replacing(target, durable=False) as file:
        shutil.copyfileobj(archive, file)
    return target


def read_part(blob: bytes, name: str) -> PartFile:
    """A part from its bytes.

    Raises:
        StorageError: It is none.
    """
    try:
        members = _read(MemberReader(blob, max_members=MAX_MEMBERS), {PART, RESULTS})
    except ArtifactError as problem:
        why = problem.message.removeprefix("The artifact cannot be used: ")
        raise StorageError(f"{name} is no part of a run: {why}", code="PART_DAMAGED") from None
    if missing := {PART, RESULTS} - members.keys():
        message = f"{name} is no part of a run: it holds no {min(missing)}."
        raise StorageError(message, hint="`zelda run --shard 2/4` writes one.", code="PART_DAMAGED")
    part = codec.decode(ShardPart, members[PART], f"{name}: {PART}")
    batch = codec.decode(BatchResult, members[RESULTS], f"{name}: {RESULTS}")
    runs = (*batch.runs, *batch.base_runs)
    if wrong := [run.run_id for run in runs if not run_folder.is_run_id(run.run_id)]:
        raise StorageError(f"{name} cannot be used: a run in it is called {wrong[0]!a}.", code="PART_DAMAGED")
    if part.shard > part.plan.shards:
        raise StorageError(f"{name} cannot be used: it is of shard {part.shard} of {part.plan.shards}.")
    return PartFile(name, part, batch, blob)


def parts_in(folder: Path) -> list[PartFile]:
    """The parts in a folder and below, as downloads of many artifacts leave them.

    Raises:
        StorageError: One cannot be read.
    """
    found = sorted(path for path in folder.rglob("zelda-shard-*.zip") if _PART_FILE.fullmatch(path.name))
    return [read_part(read_file(path, MAX_ARCHIVE_BYTES), str(path.relative_to(folder))) for path in found]


def _read(archive: MemberReader, wanted: Iterable[str]) -> dict[str, bytes]:
    return archive.read(wanted, max_member_bytes=MAX_MEMBER_BYTES, max_total_bytes=2 * MAX_MEMBER_BYTES)


def with_own_ids(parts: Iterable[PartFile], results_dir: Path, merged_id: str) -> tuple[list[PartFile], dict[str, str]]:
    """The parts with run ids that no other run has, on any machine; and by new id the one within the part."""
    taken: set[str] = set()
    former: dict[str, str] = {}
    renamed = []
    for part in parts:
        ours = {part.batch.batch_id, merged_id}

        def named(run: RunResult, ours: set[str] = ours) -> RunResult:
            name, number = run.run_id, 2
            start = _NUMBERED.sub(r"\1", run.run_id)
            while name in taken or _is_anothers(results_dir / RUNS / name, ours):
                name, number = f"{start}-{number}", number + 1
            taken.add(name)
            former[name] = run.run_id
            return run if name == run.run_id else run.replace(run_id=name)

        runs, base_runs = (tuple(map(named, each)) for each in (part.batch.runs, part.batch.base_runs))
        batch = part.batch.replace(runs=runs, base_runs=base_runs)
        renamed.append(replace(part, batch=batch))
    return renamed, former


def _is_anothers(folder: Path, batches: set[str]) -> bool:
    """Whether a folder is that of a run of another invocation; one that merges parts of this machine finds its own."""
    try:
        return codec.decode(RunResult, read_file(folder / run_folder.RESULT), "").batch_id not in batches
    except StorageError:
        return folder.exists()


def take_in(parts: Iterable[PartFile], batch: BatchResult, former: Mapping[str, str], results_dir: Path) -> None:
    """Store the runs of parts as if they had been made here.

    Args:
        parts: As `with_own_ids` gives them.
        batch: Their runs as they are to be stored.
        former: By run id, the one within the part.
        results_dir: Where they go.

    Raises:
        StorageError: There was no room or no permission, or a file of a part is damaged.
    """
    whole = {run.run_id: run for run in (*batch.runs, *batch.base_runs)}
    for part in parts:
        try:
            archive = MemberReader(part.blob, max_members=MAX_MEMBERS)
            files = _files_by_run(archive.names)
            for run in (*part.batch.runs, *part.batch.base_runs):
                old = former[run.run_id]
                held = _read(archive, (f"{RUNS}/{old}/{name}" for name in files[old]))
                _take_in(part, held, whole[run.run_id], results_dir)
        except ArtifactError as problem:
            raise StorageError(f"{part.name}: {problem.message}", code="PART_DAMAGED") from None


def _files_by_run(names: Iterable[str]) -> Mapping[str, list[str]]:
    """By run id, what an archive holds of a run, as paths in its folder."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in names:
        start, _, rest = path.partition("/")
        run_id, _, name = rest.partition("/")
        if start == RUNS and _is_ours(name):
            found[run_id].append(name)
    return found


def _take_in(part: PartFile, held: Mapping[str, bytes], run: RunResult, results_dir: Path) -> None:
    folder = results_dir / RUNS / run.run_id
    # A run of this machine has its folder already. Any other appears whole: half of one would be taken for a run that
    # is under way for ever.
    draft = folder if folder.exists() else results_dir / FOLDER / f"{run.run_id}.draft"
    with storage_errors(folder):
        if draft != folder and draft.exists():
            shutil.rmtree(draft)
        ownership.make_folder(draft)
        ownership.make_folder(folder.parent)
    for name, data in held.items():
        # Below `runs/` and the run's folder.
        target = draft / name.split("/", 2)[2]
        if target.name == run_folder.TRANSCRIPT:
            told = codec.decode(SessionTranscript, data, f"{part.name}: {name}")
            data = b"".join(codec.encode_transcript(told.replace(run_id=run.run_id)))  # noqa: PLW2901
        write_whole(target, [data], durable=False)
    # Last: with it the run is finished.
    with suppress(FileNotFoundError):
        (draft / run_folder.RESULT).unlink()
    write_whole(draft / run_folder.RESULT, [codec.encode(run, indent=2)], durable=False)
    if draft != folder:
        with storage_errors(folder):
            draft.rename(folder)


def _is_ours(name: str) -> bool:
    return name in FILES or _IMAGE.fullmatch(name) is not None
