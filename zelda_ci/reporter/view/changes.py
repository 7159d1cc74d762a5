"""What a session changed, and where a run's files are."""

from collections.abc import Collection, Iterator

from zelda_ci.domain.run import ChangeSummary
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import visible
from zelda_ci.reporter.view.nouns import Cell, Row, RunFiles, Tone

MOST_FILES = 10


def change_row(changes: ChangeSummary) -> Row:
    """How much, and the first names."""
    if not changes.files:
        return Row("Changes", (Cell("none: the session changed no file", Tone.WARN),))
    return Row("Changes", tuple(_sizes(changes)), tuple(_names(changes.files)))


def file_rows(files: RunFiles, failed: Collection[str] = ()) -> tuple[Row, ...]:
    """The paths to copy; of the commands' output only that of the steps that failed."""
    paths = {"Result": files.result, "Transcript": files.transcript, "Patch": files.patch}
    logs = {"setup": files.setup_log, "build": files.build_log, "test": files.test_log}
    paths |= {f"{step.capitalize()} log": path for step, path in logs.items() if step in failed}
    return tuple(
        Row(name, (Cell(visible(path, len(path)), Tone.DIM, whole=True),)) for name, path in paths.items() if path
    )


def _sizes(changes: ChangeSummary) -> Iterator[Cell]:
    yield Cell(numbers.count(len(changes.files), "file"))
    yield Cell(f"+{numbers.whole(changes.insertions)}", Tone.GOOD)
    yield Cell(f"-{numbers.whole(changes.deletions)}", Tone.BAD)
    if changes.truncated:
        yield Cell("the patch was too large and is cut", Tone.WARN)


def _names(files: tuple[str, ...]) -> Iterator[Cell]:
    for name in sorted(files)[:MOST_FILES]:
        yield Cell(visible(name))
    if len(files) > MOST_FILES:
        yield Cell(f"and {numbers.whole(len(files) - MOST_FILES)} more", Tone.DIM)
