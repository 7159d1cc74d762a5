"""The same run gives the same numbers however its output reached us."""

from collections.abc import Callable
from itertools import product

from tests.support.cases import for_each
from tests.unit.test_output.fixtures import Fixture, expected_numbers, fixtures, numbers

FIXTURES = fixtures()


def by_line(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda raw: b"\n".join(change(line) for line in raw.split(b"\n"))


DISGUISES: dict[str, Callable[[bytes], bytes]] = {
    "CRLF": lambda raw: raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "a UTF-8 byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "UTF-16, as a Windows shell redirects": lambda raw: raw.decode().encode("utf-16"),
    "lines in colour": by_line(lambda line: b"\x1b[32m" + line + b"\x1b[0m" if line else line),
    "a progress line overwritten before each line": by_line(
        lambda line: b"downloading 10%\rdownloading 99%\r" + line if line else line
    ),
    "hyperlinks and window titles": by_line(lambda line: b"\x1b]0;Tests: 9 failed\x07" + line if line else line),
    "bytes of other encodings around it": lambda raw: b"caf\xe9 \xff\xfe \x81\n" + raw + b"\n\xa9 2019 \x00\n",
    "a build log before it": lambda raw: b"added 12 packages in 3s\nBuild: 3 passed, 1 failed checks\n\n" + raw,
    "chatter after it": lambda raw: raw + b"\nnpm ERR! Test failed.  See above for more details.\nDone in 3.20s.\n",
}


@for_each(product(FIXTURES, DISGUISES))
def test_a_disguise_changes_no_number(fixture: Fixture, disguise: str) -> None:
    assert numbers(fixture.read(DISGUISES[disguise](fixture.output))) == expected_numbers(fixture)


LABELS = ("[web] ", "web-1  | ")


# One draws with the cursor, which no prefix survives; the other's lines have labels already.
LABELLED = [fixture for fixture in FIXTURES if fixture.name not in {"bats/pretty", "monorepo/prefixed"}]


@for_each(product(LABELLED, LABELS))
def test_the_label_of_a_parallel_runner_changes_no_number(fixture: Fixture, label: str) -> None:
    labelled = by_line(lambda line: label.encode() + line)(fixture.output)
    assert numbers(fixture.read(labelled)) == expected_numbers(fixture)


# A summary that says the same as a stream of its family is taken for the same run; a lone zero may be a log.
ALIKE = {("vitest/json", "jest/mixed")}
PRINTED = [fixture for fixture in LABELLED if (not fixture.reports or fixture.only_coverage) and fixture.expected]
PRINTED = [fixture for fixture in PRINTED if fixture.name not in {"mocha/none", "pytest/no-tests-quiet"}]
OTHERS = [fixture for fixture in PRINTED if fixture.name in {"pytest/mixed", "cargo/mixed"}]
PAIRS = [(one, other) for one in PRINTED for other in OTHERS if (one.name, other.name) not in ALIKE]


@for_each(PAIRS)
def test_two_runners_in_parallel_are_told_apart_by_their_labels(one: Fixture, other: Fixture) -> None:
    left = [b"[left] " + line for line in one.output.split(b"\n")]
    right = [b"[right] " + line for line in other.output.split(b"\n")]
    woven = [line for pair in zip(left, right, strict=False) for line in pair]
    woven += left[len(right) :] + right[len(left) :]
    found = numbers(one.read(b"\n".join(woven)))
    assert sorted(map(str, found)) == sorted(map(str, expected_numbers(one) + expected_numbers(other)))
