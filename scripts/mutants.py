"""Single-line mutants of those parts of the product that must not be wrong, and how many of them the tests catch.

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
import random
import re
import shutil
import signal
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import accumulate, islice, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pydantic  # noqa: F401 - what every test needs is imported once, before the forks
import pytest

ROOT = Path(__file__).resolve().parent.parent
# How likely a mutant is chosen there, beside others.
PARTS = {
    3: "compare/gate compare/acceptance config/trust redact",
    1: """compare/* ci/base named_secrets metrics/absence metrics/citable metrics/evidence
          metrics/gathering metrics/panel metrics/quotes metrics/sources metrics/requirement_fulfillment
          metrics/tool_claims judge/lookups judge/rendering judge/replies judge/transcript""",
}
# That concern them, and execute them in their own process.
UNITS = "cli compare config domain execution files github judge metrics pipeline redact report storage"
TESTS = [
    *(f"unit/{name}" for name in UNITS.split()),
    *("golden", "slow", "hostile/test_redaction.py"),
    *("integration/test_base_commit.py", "integration/test_judge_cases.py"),
    "integration/test_requirement_fulfillment.py",
]
TESTS_SECONDS, MUTANT_SECONDS = 30, 60

SWAPS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "in": ("not in",), "not in": ("in",), "is": ("is not",), "is not": ("is",), "and": ("or",), "or": ("and",),
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "//": ("*",), "%": ("*",), "|": ("&",), "&": ("|",),
    "min": ("max",), "max": ("min",), "any": ("all",), "all": ("any",), "True": ("False",), "False": ("True",),
}  # fmt: skip
OPERATOR = re.compile(r"not\s+in|is\s+not|\b(?:in|is|and|or)\b|//|[<>=!]=|[-<>+*/%|&]")
EMPTY = {"None", "False", "0", "0.0", "''", "()", "[]", "{}"}  # they are false as None is
# Messages; and what only guards against programmers.
SKIPPED_NODES = (ast.Raise, ast.JoinedStr)
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list"}
SKIPPED_KEYWORDS = {"strict", "frozen", "slots", "repr", "exc_info"}


class Mutant(NamedTuple):
    """One edit of one line; the line may be executed with any of the statement's, or of the module's on import."""

    file: str
    line: int
    shown: str
    text: str
    executed: range


def mutants(seed: int) -> Iterator[Mutant]:
    """All of them, in the order of the seed; what changes elsewhere in the product does not move one."""
    made = [(weight, mutant) for file, weight in sorted(_parts(ROOT).items()) for mutant in _mutants_of(file)]

    def chance(weight: int, mutant: Mutant) -> float:
        return math.pow(random.Random(f"{seed} {mutant.file} {mutant.shown}").random(), 1 / weight)

    ordered = sorted(made, key=lambda it: chance(*it), reverse=True)
    return (mutant for _, mutant in ordered if _parses(mutant.text))


def _mutants_of(file: Path) -> Iterator[Mutant]:
    before = file.read_bytes()
    for begin, end, new, executed in sorted(_edits(before), key=lambda edit: edit[:3]):
        after, line = before[:begin] + new + before[end:], before.count(b"\n", 0, begin)
        if b"\n" not in before[begin:end]:
            shown = "  ->  ".join(text.split(b"\n")[line].strip().decode() for text in (before, after))
            yield Mutant(str(file.relative_to(ROOT)), line + 1, shown, after.decode(), executed)


def _parts(root: Path) -> dict[Path, int]:
    """The files of a checkout, and how likely a mutant is chosen there."""
    parts = [(weight, part) for weight, several in reversed(PARTS.items()) for part in several.split()]
    return {file: weight for weight, part in parts for file in root.glob(f"zelda_ci/{part}.py")}


def _parses(source: str) -> bool:
    try:
        return bool(ast.parse(source))
    except SyntaxError:
        return False


def _edits(source: bytes) -> Iterator[tuple[int, int, bytes, range]]:
    """Where an edit begins and ends, what it puts there, and the lines of which one is executed with it."""
    starts = [0, *(found.end() for found in re.finditer(rb"\n", source))]

    def span(node: Any) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def visit(node: Any, executed: range, *, called: bool) -> Iterator[tuple[int, int, bytes, range]]:
        if called and isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            executed = range(node.lineno, body[0].lineno if body else (node.end_lineno or 0) + 1)
        yield from ((*edit, executed) for edit in _edits_of(node, source, span))
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                is_skipped = isinstance(child, SKIPPED_NODES) or getattr(child, "arg", None) in SKIPPED_KEYWORDS
                if isinstance(child, ast.AST) and name not in SKIPPED_FIELDS and not is_skipped:
                    yield from visit(child, executed, called=called or (inner and name == "body"))

    yield from visit(ast.parse(source), range(1, len(starts) + 1), called=False)


def _edits_of(node: Any, source: bytes, span: Any) -> Iterator[tuple[int, int, bytes]]:
    for left, right in pairwise(_operands(node) if isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp) else []):
        begin, end = span(left)[1], span(right)[0]
        gap = re.sub(r"#[^\n]*", lambda it: " " * len(it[0]), source[begin:end].decode("latin-1"))
        if found := OPERATOR.search(gap):
            for other in SWAPS.get(" ".join(found[0].split()), ()):
                yield begin + found.start(), begin + found.end(), other.encode()
    for part, new in _replacements(node):
        begin, end = span(part)
        yield begin, end, new.encode().replace(b"...", source[begin:end])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield span(node)[0], span(node.operand)[0], b""


def _operands(node: Any) -> list[ast.expr]:
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return getattr(node, "values", []) if isinstance(node, ast.BoolOp) else [node.left, node.right]


def _replacements(node: Any) -> Iterator[tuple[ast.expr, str]]:
    """What is replaced as a whole: names, constants, what is returned, and conditions that no other edit negates."""
    tests = [node.test] if isinstance(node, ast.If | ast.IfExp) else getattr(node, "ifs", [])
    yield from ((it, "not (...)") for it in tests if isinstance(it, ast.Name | ast.Attribute | ast.Call | ast.BoolOp))
    match node:
        case ast.Name(id="min" | "max" | "any" | "all" as name):
            yield node, SWAPS[name][0]
        case ast.Constant(value=bool() as truth):
            yield node, str(not truth)
        case ast.Constant(value=int() as number):
            yield from ((node, str(number + step)) for step in (1, -1))
        case ast.Constant(value=float() as number) if number:
            yield from ((node, str(number * factor)) for factor in (2, 0.5))
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in EMPTY:
            yield value, "None"
        case _:
            pass


class Tests:
    """A plugin of pytest: runs the wanted tests in their order, tells coverage which one runs, and notes its time."""

    def __init__(self, wanted: list[str] | None = None) -> None:
        self.order = {test: place for place, test in enumerate(wanted or [])}
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order:
            items[:] = sorted((it for it in items if it.nodeid in self.order), key=lambda it: self.order[it.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if measuring := coverage.Coverage.current():
            measuring.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        passed = report.duration if report.passed else math.inf
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + passed

    def run(self, copy: Path, *options: str) -> int:
        """Run pytest in a copy of the checkout, in a process that has imported nothing of the product."""
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy)
        sys.path.insert(0, str(copy))
        habits = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=1", f"--basetemp={copy}/.tmp"]
        files = sorted({test.partition("::")[0] for test in self.order})
        return int(pytest.main([*habits, *options, *files], plugins=[self]))


@cache
def copied(_process: int) -> Path:
    """A copy of the checkout for a process, which every user may read as the checkout itself."""
    copy = Path(tempfile.mkdtemp(prefix="m-"))
    shutil.copytree(ROOT, copy, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    copy.chmod(0o755)
    return copy


def map_lines(copy: Path, kept: Path) -> int:
    """Run all tests once: which lines each executes, and how long it takes."""
    measured = coverage.Coverage(kept / "lines", config_file=False, include=[str(file) for file in _parts(copy)])
    measured.set_option("run:core", "ctrace")
    measured.start()
    tests = Tests()
    code = tests.run(copy, *(f"tests/{each}" for each in TESTS if (copy / "tests" / each).exists()))
    measured.stop()
    measured.save()
    (kept / "seconds.json").write_text(json.dumps({"copy": str(copy), "tests": tests.seconds}))
    return code


def in_child(target: Callable[..., int], *arguments: Any, timeout: float | None = None) -> int | None:
    """Call in a fork, and give its exit code; nothing where its time was up. What has a time is silent."""

    def call() -> None:
        os.setsid()
        if timeout:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        os._exit(target(*arguments))

    process = get_context("fork").Process(target=call)
    process.start()
    process.join(timeout)
    code = process.exitcode
    with suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    return code


def fate(mutant: Mutant, tests: list[str]) -> str:
    """What becomes of a mutant."""
    if not tests:
        return "not executed"
    copy = copied(os.getpid())
    file = copy / mutant.file
    original = file.read_text()
    try:
        file.write_text(mutant.text)
        # A time of its own: Python keeps what it has compiled while size and time of a file are the same.
        os.utime(file, (0, zlib.crc32(mutant.text.encode())))
        code = in_child(Tests(tests).run, copy, "-x", timeout=MUTANT_SECONDS)
    finally:
        file.write_text(original)
    # Where all tests have other names than before, none was run.
    return {None: "caught by time-out", 0: "survived", 5: "survived"}.get(code, "caught")


def tests_of_lines(kept: Path) -> Callable[[Mutant], list[str]]:
    """Which tests execute a mutant, its package's and the quickest first, as many as there is time for."""
    noted = json.loads((kept / "seconds.json").read_text())
    data = coverage.CoverageData(str(kept / "lines"))
    data.read()
    contexts = cache(lambda file: data.contexts_by_lineno(f"{noted['copy']}/{file}"))

    def tests(mutant: Mutant) -> list[str]:
        lines = contexts(mutant.file)
        found = {test for line in mutant.executed for test in lines.get(line, ())}
        if "" in found:  # an import executes it, before any test
            found = {test for several in lines.values() for test in several}
        passed = [test for test in found if noted["tests"].get(test, math.inf) < MUTANT_SECONDS]
        own = {part.removesuffix(".py") for part in mutant.file.split("/")[1:]}
        passed.sort(key=lambda test: (not any(part in test for part in own), noted["tests"][test], test))
        until = accumulate(noted["tests"][test] for test in passed)
        return [test for test, total in zip(passed, until, strict=True) if total < TESTS_SECONDS]

    return tests


def cache_folder() -> Path:
    """Where the lines of these tests and this product are kept."""
    state = hashlib.sha256(repr(TESTS).encode())
    for file in sorted(file for folder in ("zelda_ci", "tests") for file in (ROOT / folder).rglob("*.py")):
        state.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return Path.home() / ".cache" / "zelda-ci-tests" / f"mutants-{state.hexdigest()[:16]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--share", type=float, default=90, help="how many percent are to be caught")
    parser.add_argument("--workers", type=int, default=2, choices=(1, 2))
    options = parser.parse_args()
    kept = cache_folder()
    with tempfile.TemporaryDirectory(prefix="m-") as folder:
        Path(folder).chmod(0o755)
        tempfile.tempdir = folder
        if not (kept / "seconds.json").exists():
            kept.mkdir(parents=True, exist_ok=True)
            in_child(map_lines, copied(0), kept)
        chosen, tests = list(islice(mutants(options.seed), options.count)), tests_of_lines(kept)
        control = Tests(sorted({test for mutant in chosen for test in tests(mutant)[:3]}))
        passing = in_child(control.run, copied(0)) == 0
        with ProcessPoolExecutor(options.workers, get_context("fork")) as pool:
            fates = []
            for mutant, end in zip(chosen, pool.map(fate, chosen, map(tests, chosen)), strict=True):
                fates.append(end)
                print(f"{len(fates):4} {end}: {mutant.file}:{mutant.line}: {mutant.shown}", flush=True)
        if not passing or in_child(control.run, copied(0)) != 0:
            sys.exit("Tests fail without any mutant, before or after: what they say of mutants is worth nothing.")
    print("\nNot caught:")
    for mutant, end in zip(chosen, fates, strict=True):
        if not end.startswith("caught"):
            print(f"{mutant.file}:{mutant.line}: {mutant.shown}  ({end})")
    caught = sum(end.startswith("caught") for end in fates)
    share = 100 * caught / len(chosen)
    late = fates.count("caught by time-out")
    print(f"{caught} of {len(chosen)} mutants are caught ({share:.1f} %), {late} of them by time-out.")
    return int(share < options.share)


if __name__ == "__main__":
    sys.exit(main())
