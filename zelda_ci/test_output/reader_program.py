"""The program that reads test output: started by `reader_process`, which may end it at any moment.

It is given an order on standard input, one line of JSON and then the bytes of the reports, and holds no secret: text
from outside stands apart in its answer, and is masked by whoever asked.
"""

import json
import os
import secrets
import sys
import threading
import time
from contextlib import suppress
from typing import IO, Any

from zelda_ci.redact import Redactor, SafeText
from zelda_ci.test_output.coverage.reading import read_coverage
from zelda_ci.test_output.reading import read_tests
from zelda_ci.test_output.reports import ReportFile
from zelda_ci.test_output.tally import Output

# Address space: an output of the largest size, as lines and as what readers make of them.
MAX_MEMORY = 4 << 30
# Between two looks at whether whoever asked is still there.
PARENT_SECONDS = 0.5


class HeldTexts(Redactor):
    """Keeps each text and stands a short mark in its place, which no output can hold: it is drawn while reading."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.nonce = secrets.token_hex(8)

    def __call__(self, text: str) -> SafeText:
        self.texts.append(text)
        return super().__call__(f"\x02{self.nonce}.{len(self.texts) - 1}\x03")


def read(order: dict[str, Any], given: IO[bytes], answer: IO[str]) -> None:
    """Answer in two lines, each as soon as it is known: the tests, then the coverage."""
    output = _output(order, given)
    reports = {
        kind: [ReportFile(path, given.read(size)) for path, size in files] for kind, files in order["reports"].items()
    }
    hide = HeldTexts()
    tests = read_tests(output, reports["test"], order["exit_code"], hide)
    _say(answer, {"tests": tests.model_dump(mode="json"), "texts": hide.texts, "nonce": hide.nonce})
    _say(answer, {"coverage": read_coverage(output, reports["coverage"]).model_dump(mode="json")})


def _output(order: dict[str, Any], given: IO[bytes]) -> Output:
    """What was printed: from the spool, else from the input."""
    if order["spool"] is not None:
        pieces = [[_bytes(order["spool"], start, end) for start, end in part] for part in order["parts"]]
    else:
        pieces = [[given.read(end - start) for start, end in part] for part in order["parts"]]
    head, *tail = (b"".join(part) for part in pieces)
    return Output(head, *tail)


def _bytes(descriptor: int, start: int, end: int) -> bytes:
    pieces = []
    while start < end and (piece := os.pread(descriptor, end - start, start)):
        pieces.append(piece)
        start += len(piece)
    return b"".join(pieces)


def _say(answer: IO[str], message: dict[str, Any]) -> None:
    answer.write(json.dumps(message, allow_nan=False) + "\n")
    answer.flush()


def limit(seconds: int) -> None:
    """Bound what this process may use, also where nobody is left to end it."""
    with suppress(ImportError, OSError, ValueError):  # another system
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def follow(parent: int) -> None:
    """End with the process that asked: killed, it could not end this one, which would read on for minutes."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def main() -> None:
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=follow, args=(order["asker"],), daemon=True).start()
    limit(order["seconds"])
    read(order, sys.stdin.buffer, sys.stdout)


if __name__ == "__main__":
    main()
