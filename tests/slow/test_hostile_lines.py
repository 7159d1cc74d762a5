"""A hostile line is read to its end, whatever reader it was made for."""

import pytest

from zelda_ci.redact import Redactor
from zelda_ci.test_output.coverage import read_coverage
from zelda_ci.test_output.reading import read_tests
from zelda_ci.test_output.tally import Output

PIECES = (
    "TOTAL 1 1 1 ", "1 ", "1 passed, ", "=== 1 failed, ", "Tests: ", "Tests run: 1, ",
    "| All files | 1 ", "ok 1 # ", "--- FAIL: ",
    "[x] ", "x ...... ", "lines......: ", "coverage: ", "3 tests ",
    "{", "[{", '{"stats":{', "Executed 1 of 1 (", "(1 ", "Failed  ",
    ". [100%]", "\u2713 ", "12:00:00 ", "#12 1.0 ", "a:b: ",
    "running 1 test ", "1..1 ", "\x1b[1m", "\r", "  1) ", "FAIL\tx\t", "PASS x ", "Test Summary: | Pass ", " \t", "-1 ",
)  # fmt: skip


@pytest.mark.parametrize("length", [1_900, 30_000])
def test_long_lines_of_any_pieces_are_read(length: int) -> None:
    """The patterns that this is about took 25 s for 2 kB: with such a one it does not end in time."""
    for piece in PIECES:
        line = piece * (length // len(piece))
        text = "\n".join([line, f"{line}x"] * (60_000 // length))
        read_tests(Output(text), (), 0, Redactor())
        read_coverage(Output(text), ())
