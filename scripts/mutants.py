"""Mutants of single expressions in those parts of the product that must not be wrong, and how many the tests catch.

    .venv/bin/python scripts/mutants.py --seed 1 --count 200

A seed chooses the same mutants as long as the product is the same. One run under coverage says which tests execute a
line; it is kept in the user's cache folder. Everything happens in copies of the checkout.
"""

import argparse
import ast
import hashlib
import json
import math
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import coverage
import pytest

ROOT = Path(__file__).resolve().parent.parent
# How likely a mutant is chosen there, beside others.
PARTS = {
    3: "compare/gate config/project redact",
    1: """compare/* ci/base named_secrets metrics/citable metrics/evidence
          metrics/panel metrics/requirement_fulfillment
          metrics/tool_claims judge/conversation judge/lookups judge/rendering""",
}
# That concern them, and execute them in their own process.
UNITS = "cli compare config domain execution files github judge metrics pipeline redact report storage"
TESTS = [
    *(f"unit/{name}" for name in UNITS.split()),
    *("golden", "hostile/test_redaction.py", "integration/test_base_commit.py", "integration/test_judge_cases.py"),
    "integration/test_requirement_fulfillment.py",
]
# Percent that are to be caught.
SHARE = 90
# Of the tests of a mutant; until it counts as caught by time-out.
TESTS_SECONDS, MUTANT_SECONDS = 30, 60

SWAPS: dict[Any, tuple[Any, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Add: (ast.Sub,), ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,), ast.BitAnd: (ast.BitOr,),
    "min": ("max",), "max": ("min",), "any": ("all",), "all": ("any",),
}  # fmt: skip
NEGATED = ast.Name | ast.Attribute | ast.Call | ast.BoolOp
EMPTY = {"None", "False", "0", "0.0", "''", "()", "[]", "{}"}  # they are false as None is
# Messages; and what only guards against programmers.
SKIPPED_NODES = (ast.Raise, ast.JoinedStr)
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list"}
SKIPPED_KEYWORDS = {"strict", "frozen", "slots", "repr", "exc_info"}


class Mutant(NamedTuple):
    """One change of one expression; it is executed with any of the statement's lines, or the module's on import."""

    file: str
    line: int
    column: int
    """Of the expression in the statement's line."""
    shown: str
    executed: range
    make: Callable[[], str]
    """Gives the text of the changed module."""


def mutants(seed: int, count: int) -> list[Mutant]:
    """The first of all in the order of the seed; what changes elsewhere in the product does not move one."""

    def chance(weight: int, mutant: Mutant) -> float:
        return math.pow(random.Random(f"{seed} {mutant.file} {mutant.column} {mutant.shown}").random(), 1 / weight)

    made = [(weight, mutant) for file, weight in sorted(_parts(ROOT).items()) for mutant in _mutants_of(file)]
    return [mutant for _, mutant in sorted(made, key=lambda it: chance(*it), reverse=True)[:count]]


def _parts(root: Path) -> dict[Path, int]:
    parts = [(weight, part) for weight, several in reversed(PARTS.items()) for part in several.split()]
    return {file: weight for weight, part in parts for file in root.glob(f"zelda_ci/{part}.py")}


def _mutants_of(file: Path) -> Iterator[Mutant]:
    name, source = str(file.relative_to(ROOT)), file.read_text()
    tree, lines = ast.parse(source), source.splitlines()

    def changed(node: Any, field: str, value: Any, show: Callable[[], str]) -> str:
        with mock.patch.object(node, field, value):
            return show()

    def visit(node: Any, executed: range, *, called: bool) -> Iterator[Mutant]:
        if called and isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            executed = range(node.lineno, body[0].lineno if body else (node.end_lineno or 0) + 1)
        line = getattr(node, "lineno", executed.start)
        for field, value in _changes(node):
            show = partial(printed, node, field)
            told = lines[line - 1].lstrip()
            column = getattr(node, "col_offset", 0) - len(lines[line - 1]) + len(told)
            shown = f"{told}  --  {show()} -> {changed(node, field, value, show)}"
            make = partial(changed, node, field, value, partial(ast.unparse, tree))
            yield Mutant(name, line, column, shown, executed, make)
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name_of, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                is_skipped = isinstance(child, SKIPPED_NODES) or getattr(child, "arg", None) in SKIPPED_KEYWORDS
                if isinstance(child, ast.AST) and name_of not in SKIPPED_FIELDS and not is_skipped:
                    yield from visit(child, executed, called=called or (inner and name_of == "body"))

    def printed(node: Any, field: str) -> str:
        part = node if isinstance(node, ast.expr) else getattr(node, field)
        return " if ".join(map(ast.unparse, part)) if isinstance(part, list) else ast.unparse(part)

    yield from visit(tree, range(1, len(lines) + 1), called=False)


def _changes(node: Any) -> Iterator[tuple[str, Any]]:
    """A field of a node, and what is put there."""
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                for other in SWAPS.get(type(operator), ()):
                    yield "ops", [*operators[:place], other(), *operators[place + 1 :]]
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator):
            yield from (("op", other()) for other in SWAPS.get(type(operator), ()))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "operand", ast.UnaryOp(ast.Not(), operand)
        case ast.Name(id=name):
            yield from (("id", other) for other in SWAPS.get(name, ()))
        case ast.Constant(value=bool() as truth):
            yield "value", not truth
        case ast.Constant(value=int() as number):
            yield from (("value", number + step) for step in (1, -1))
        case ast.Constant(value=float() as number) if number:
            yield from (("value", number * factor) for factor in (2, 0.5))
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in EMPTY:
            yield "value", ast.Constant(None)
        case ast.If(test=test) | ast.IfExp(test=test) if isinstance(test, NEGATED):
            yield "test", ast.UnaryOp(ast.Not(), test)
        case ast.comprehension(ifs=[*_, last]) if isinstance(last, NEGATED):
            yield "ifs", [*node.ifs[:-1], ast.UnaryOp(ast.Not(), last)]


# Seconds of each test that passed. What pytest calls of this file as of a plugin makes the map of lines.
SECONDS: dict[str, float] = defaultdict(float)


def pytest_runtest_logstart(nodeid: str) -> None:
    if measuring := coverage.Coverage.current():
        measuring.switch_context(nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[report.nodeid] += report.duration if report.passed else math.inf


def pytest_sessionfinish() -> None:
    Path(os.environ["SECONDS_OF_TESTS"]).write_text(json.dumps(SECONDS))


def run(copy: Path, *command: str, timeout: float | None = None) -> int | None:
    """Run tests in a copy of the checkout, and give the exit code; nothing where its time was up."""
    habits = ("-q", "-p", "no:cacheprovider", "--hypothesis-seed=1", f"--basetemp={copy}/.tmp")
    environment = {**os.environ, "PYTHONPATH": f"{copy}:{ROOT}/scripts"}
    words, shown = [sys.executable, "-m", *command, *habits], subprocess.DEVNULL if timeout else None
    process = subprocess.Popen(words, cwd=copy, env=environment, start_new_session=True, stdout=shown)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def tests_of_lines(copy: Path, kept: Path) -> Callable[[Mutant], list[str]]:
    """Which tests execute a mutant, its package's and the quickest first, as many as there is time for.

    All tests are run once for it: which lines each executes, and how long it takes.
    """
    if not (kept / "seconds.json").exists():
        kept.mkdir(parents=True, exist_ok=True)
        os.environ |= {"COVERAGE_CORE": "ctrace", "SECONDS_OF_TESTS": str(kept / "seconds.json")}
        files = ",".join(map(str, _parts(copy)))
        settings = ("--rcfile=/dev/null", f"--data-file={kept}/lines", f"--include={files}")
        run(copy, "coverage", "run", *settings, "-m", "pytest", "-p", "mutants", *(f"tests/{it}" for it in TESTS))
    seconds = json.loads((kept / "seconds.json").read_text())
    data = coverage.CoverageData(str(kept / "lines"))
    data.read()
    measured = {file.rpartition("/zelda_ci/")[2]: data.contexts_by_lineno(file) for file in data.measured_files()}

    def tests(mutant: Mutant) -> list[str]:
        lines = measured.get(mutant.file.removeprefix("zelda_ci/"), {})
        found = {test for line in mutant.executed for test in lines.get(line, ())}
        if "" in found:  # an import executes it, before any test
            found = {test for several in lines.values() for test in several}
        own = {part.removesuffix(".py") for part in mutant.file.split("/")[1:]}
        passed = [test for test in found if seconds.get(test, math.inf) < TESTS_SECONDS]
        passed.sort(key=lambda test: (not any(part in test for part in own), seconds[test], test))
        until = accumulate(seconds[test] for test in passed)
        return [test for test, total in zip(passed, until, strict=True) if total < TESTS_SECONDS]

    return tests


def fate(mutant: Mutant, text: str, tests: list[str], copies: "queue.Queue[Path]") -> str:
    """What becomes of a mutant."""
    if not tests:
        return "not executed"
    file = (copy := copies.get()) / mutant.file
    original = file.read_text()
    try:
        file.write_text(text)
        # A time of its own: Python keeps what it has compiled while size and time of a file are the same.
        os.utime(file, (0, zlib.crc32(text.encode())))
        code = run(copy, "pytest", "-x", *tests, timeout=MUTANT_SECONDS)
    finally:
        file.write_text(original)
        copies.put(copy)
    # Where no test has its name any more, none was run.
    return {None: "caught by time-out", 0: "survived", 4: "survived", 5: "survived"}.get(code, "caught")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in {"seed": 1, "count": 200, "workers": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    state = hashlib.sha256(repr(TESTS).encode())
    for file in sorted(file for folder in ("zelda_ci", "tests") for file in (ROOT / folder).rglob("*.py")):
        state.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    kept = Path.home() / ".cache" / "zelda-ci-tests" / f"mutants-{state.hexdigest()[:16]}"
    copies = queue.Queue[Path]()
    with tempfile.TemporaryDirectory(prefix="m-") as folder:
        # Every user may read the copies, as the checkout itself.
        Path(folder).chmod(0o755)
        for copy in [Path(folder, str(number)) for number in range(options.workers)]:
            shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))
            copies.put(copy)
        chosen, tests = mutants(options.seed, options.count), tests_of_lines(copy, kept)
        control = sorted({test for mutant in chosen for test in tests(mutant)[:3]})
        passing = run(copy, "pytest", *control) == 0
        with ThreadPoolExecutor(options.workers) as pool:
            fates: list[str] = []
            texts = [mutant.make() for mutant in chosen]
            for mutant, end in zip(
                chosen, pool.map(fate, chosen, texts, map(tests, chosen), repeat(copies)), strict=True
            ):
                fates.append(end)
                print(f"{len(fates):4} {end}: {mutant.file}:{mutant.line}: {mutant.shown}", flush=True)
        if not passing or run(copy, "pytest", *control) != 0:
            sys.exit("Tests fail without any mutant, before or after: what they say of mutants is worth nothing.")
    caught, late = sum(end.startswith("caught") for end in fates), fates.count("caught by time-out")
    share = 100 * caught / len(chosen)
    print(f"{caught} of {len(chosen)} mutants are caught ({share:.1f} %), {late} of them by time-out.")
    return int(share < SHARE)


if __name__ == "__main__":
    sys.exit(main())
