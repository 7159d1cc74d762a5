"""How long reading test output takes per megabyte: `python benchmarks/test_output.py`. Slowest last."""

import random
import sys
import time
from pathlib import Path

from zelda_ci.redact import Redactor
from zelda_ci.test_output.coverage.reading import read_coverage
from zelda_ci.test_output.reading import FORMATS, read_tests
from zelda_ci.test_output.reports import ReportFile
from zelda_ci.test_output.tally import Output

MEGABYTE = 1_000_000
SIZE = 200_000
REDACT = Redactor()
FIXTURES = Path(__file__).resolve().parents[1] / "tests/data/test_output"
WORDS = [word for form in FORMATS for word in form.hallmarks]
HALLMARKS = "\n".join(WORDS) + "\n"

UNITS = (" ", "\x1b[", "\x1b]", "\r", "# ", "1..", "{", '{"num', "::", " in ", "[", "ok 1 - # ", "\u2500")


def filled(unit: bytes, prefix: bytes = b"") -> bytes:
    return (prefix + unit * (SIZE // max(1, len(unit)) + 1))[:SIZE]


def inputs() -> dict[str, bytes]:
    chance = random.Random(7)
    captured = {f"repeated {path.parent.name}/{path.stem}": path.read_bytes() for path in FIXTURES.glob("*/*.txt")}
    lines = [line for raw in captured.values() for line in raw.splitlines()]
    found = {name: filled(raw + b"\n") for name, raw in captured.items() if raw}
    found["random bytes"] = chance.randbytes(SIZE)
    found["shuffled lines of all runners"] = filled(b"\n".join(chance.choices(lines, k=4_000)))
    found["empty lines"] = filled(b"\n", HALLMARKS.encode())
    found["short lines"] = filled(b"a\n", HALLMARKS.encode())
    found["a new label on every line"] = b"".join(b"%x: x\n" % number for number in range(26_000))[:SIZE]
    for unit in UNITS:
        found[f"one line of {unit!r}"] = filled(unit.encode(), HALLMARKS.encode())
        found[f"lines of {unit!r}"] = filled((unit * (1_900 // len(unit)) + "\n").encode(), HALLMARKS.encode())
    for line in WORDS:
        found[f"lines of {line!r}"] = filled((line + "\n").encode(), HALLMARKS.encode())
    return found


def reports() -> dict[str, bytes]:
    case = b"<testcase classname='a' name='b'><failure>x</failure></testcase>"
    return {
        "JUnit report": b"<testsuite>" + case * (SIZE // len(case)) + b"</testsuite>",
        "JUnit report without end": b"<testsuite>" + filled(case),
        "lcov report": filled(b"SF:a\nDA:1,1\nLF:1\nLH:1\nend_of_record\n"),
        "Go cover profile": b"mode: set\n" + b"".join(b"x.go:%d.1,2.3 4 1\n" % line for line in range(10_000)),
        "deep JSON": b"[" * SIZE,
    }


def seconds_per_megabyte(output: Output, reports: list[ReportFile], size: int) -> float:
    start = time.process_time()
    read_tests(output, reports, 0, REDACT)
    read_coverage(output, reports)
    return (time.process_time() - start) * MEGABYTE / size


def main() -> None:
    timed = [(seconds_per_megabyte(Output(raw), [], len(raw)), name) for name, raw in inputs().items()]
    for name, raw in reports().items():
        timed.append((seconds_per_megabyte(Output(""), [ReportFile("report", raw)], len(raw)), name))
    for spent, name in sorted(timed)[-40:]:
        print(f"{spent:7.3f} s/MB  {name}")
    sys.exit(any(spent > 1 for spent, _ in timed))


if __name__ == "__main__":
    main()
