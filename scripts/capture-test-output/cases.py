"""What one captured run is: a small project with a known outcome, and the command that tests it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent


@dataclass(frozen=True)
class Runner:
    """A tool that can be asked for its version; `packages` are installed into a folder of the runner's own."""

    name: str
    version: str
    """Shell line that prints the version."""
    npm: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One run. `expect` was written by hand from the project, never copied from what the parser said."""

    runner: Runner
    name: str
    files: Mapping[str, str]
    command: str
    expect: Mapping[str, object]
    reports: tuple[str, ...] = ()
    """Globs of the report files that are kept beside the output."""
    environment: Mapping[str, str] = field(default_factory=dict)


def text(source: str) -> str:
    """Source code as it stands in a file: without the indentation it has here."""
    return dedent(source).lstrip("\n")


def counts(
    form: str, passed: int = 0, failed: int = 0, errored: int = 0, skipped: int = 0, flaky: int = 0, **more: object
) -> dict[str, object]:
    """The expectation of a run that one format describes."""
    numbers = {"passed": passed, "failed": failed, "errored": errored, "skipped": skipped, "flaky": flaky}
    return {"format": form, **numbers, **more}
