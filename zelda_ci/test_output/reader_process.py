"""Reading in a process of its own: output may be hostile, and whatever it does to a reader, Zelda goes on."""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from zelda_ci import process
from zelda_ci.domain.test_run import CommandResult, CoverageSummary, RunnerCounts, TestSummary
from zelda_ci.process.spool import Spool
from zelda_ci.redact import Redactor
from zelda_ci.test_output.reading import MAX_NAME_LENGTH
from zelda_ci.test_output.reports import ReportFile

PROGRAM = "zelda_ci.test_output.reader_program"
MAX_SECONDS = 120.0
# Of an answer: names of tests, and what to know about the numbers.
MAX_ANSWER = 4 << 20
# Of what it says when it breaks off.
MAX_REASON = 200
# More tests than anybody has; a reader that counts more has taken something else for a count.
MAX_TESTS = 100_000_000
# How deep texts are put together from others.
MAX_DEPTH = 3
COUNTS: Final = ("passed", "failed", "errored", "skipped", "flaky")
# What it takes to start the same Python.
INHERITED: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

# Kinds of reports.
TESTS = "test"
COVERAGE = "coverage"


@dataclass(frozen=True)
class Findings:
    """What a test command's output and reports tell."""

    tests: TestSummary
    coverage: CoverageSummary


async def read_apart(
    result: CommandResult,
    spool: Spool | None,
    reports: Mapping[str, Sequence[ReportFile]],
    redact: Redactor,
    *,
    max_seconds: float = MAX_SECONDS,
) -> Findings:
    """What the output of a test command and its reports tell. Where reading fails, the counts are unclear.

    Args:
        result: The command, with head and tail of its output.
        spool: All of its output, where there is one.
        reports: By kind, those that it wrote.
        redact: Through which names of tests become `SafeText`.
        max_seconds: For reading; then it is ended, and what it has found until then counts.
    """
    answer = io.BytesIO()
    problem = await _ask(_order(result, spool, reports, max_seconds), spool, answer, max_seconds)
    try:
        tests, coverage = _understood(answer.getvalue(), redact)
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # pydantic's errors are ValueErrors
        tests, coverage, problem = None, None, f"the answer makes no sense ({type(error).__name__})"
    told = f"its output could not be read: {problem}"
    return Findings(
        tests or TestSummary(unclear=(redact(told),)),
        coverage or CoverageSummary(note=f"Of the tests, {told}."),
    )


@dataclass(frozen=True)
class _Order:
    """What the program is given: a line that describes it, and the bytes that follow."""

    about: dict[str, Any]
    contents: Iterable[bytes]

    def encoded(self) -> bytes:
        return b"".join([json.dumps(self.about).encode() + b"\n", *self.contents])


def _order(
    result: CommandResult, spool: Spool | None, reports: Mapping[str, Sequence[ReportFile]], max_seconds: float
) -> _Order:
    files = {kind: list(reports.get(kind, ())) for kind in (TESTS, COVERAGE)}
    whole = spool if spool and not spool.lost else None
    # Without a spool, or where there was no room for it: what the result has kept.
    printed = [part.encode() for part in result.output.split(result.gap, 1)] if result.gap else [result.output.encode()]
    about = {
        "asker": os.getpid(),
        "spool": whole.descriptor if whole else None,
        "parts": whole.parts if whole else [[(0, len(part))] for part in printed],
        "exit_code": result.exit_code,
        "seconds": int(max_seconds) + 10,
        "reports": {kind: [(file.path, len(file.raw)) for file in given] for kind, given in files.items()},
    }
    written = [file.raw for given in files.values() for file in given]
    return _Order(about, written if whole else [*printed, *written])


async def _ask(order: _Order, spool: Spool | None, answer: io.BytesIO, max_seconds: float) -> str:
    """Have it read; what it said is in `answer`, however it ended, which is returned in words."""
    try:
        done = await process.capture(
            [sys.executable, "-P", "-m", PROGRAM],
            cwd=Path("/"),
            environment=_environment(),
            input=order.encoded(),
            timeout_seconds=max_seconds,
            max_bytes=MAX_ANSWER,
            inherit=(spool.descriptor,) if spool else (),
            into=answer,
        )
    except TimeoutError:
        return f"that took longer than {max_seconds:g} s"
    except OSError as error:
        return f"nothing could be started ({error.strerror or error})"
    last = done.stderr.decode("utf-8", "replace").rstrip().rpartition("\n")[2]
    return f"the reader broke off ({last[:MAX_REASON] or f'exit code {done.exit_code}'})"


def _environment() -> dict[str, str]:
    """For the same Python with the same modules, and nothing else: what is set here may be secret."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}


def _understood(answer: bytes, redact: Redactor) -> tuple[TestSummary | None, CoverageSummary | None]:
    """The lines of an answer that are complete. Texts from outside stand apart in it, and are masked here."""
    said = dict[str, Any]()
    for line in answer.splitlines(keepends=True):
        if line.endswith(b"\n"):
            said |= json.loads(line)
    if "tests" not in said:
        return None, None
    mark = re.compile(f"\x02{said['nonce']}\\.(\\d+)\x03")

    def text(value: str) -> str:
        if not mark.search(value):
            return value  # a word of Zelda's own
        for _ in range(MAX_DEPTH):
            value = mark.sub(lambda found: said["texts"][int(found[1])], value)
        return redact(value)

    tests = TestSummary.model_validate(_mapped(said["tests"], text))
    tests = tests.replace(runners=tuple(_checked(runner, redact) for runner in tests.runners))
    return tests, _plausible(CoverageSummary.model_validate(said["coverage"])) if "coverage" in said else None


def _plausible(coverage: CoverageSummary) -> CoverageSummary:
    """Coverage, unless it cannot be one."""
    shares = [share for share in (coverage.lines, coverage.branches) if share is not None]
    if all(0 <= share <= 100 for share in shares):
        return coverage
    return CoverageSummary(note=f"Coverage is not known: {max(shares):g} % was read, which cannot be.")


def _mapped(value: Any, text: Callable[[str], str]) -> Any:
    """JSON with each text in it replaced."""
    match value:
        case str():
            return text(value)
        case list():
            return [_mapped(item, text) for item in value]
        case dict():
            return {key: _mapped(item, text) for key, item in value.items()}
        case _:
            return value


def _checked(runner: RunnerCounts, redact: Redactor) -> RunnerCounts:
    """With names of bounded length.

    Raises:
        ValueError: Its counts cannot be counts.
    """
    if not all(0 <= getattr(runner, count) <= MAX_TESTS for count in COUNTS):
        raise ValueError("a count is negative or absurd")
    # Cut once it is masked: a cut can divide a secret, of which no half is known. Half a mask is masked again.
    return runner.replace(failures=tuple(redact(name[:MAX_NAME_LENGTH]) for name in runner.failures))
