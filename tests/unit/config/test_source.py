"""YAML text to values: words, structure, places, bounds, and syntax errors in plain words."""

import pytest

from tests.support.cases import for_each
from zelda_ci.config.source import Ambiguous, Position, Rejected, ordered, plain_value, read


def said(text: str) -> list[str]:
    try:
        problems = tuple(read(text, "f").problems)
    except Rejected as exc:
        problems = exc.problems
    return [str(problem) for problem in ordered(problems)]


def test_values_come_out_as_written_and_aliases_repeat_what_they_name():
    text = 'a: 1\nb: "1"\nc: [x, true, 2.5]\nd:\n  e: |\n    two\n    lines\n  f: >-\n    folded\n    text\n'
    text += "g: &x [1, 2]\nh: *x\ni: {j: *x}\n"
    source = read(text, "f")
    assert source.problems == []
    assert source.values == {
        "a": 1,
        "b": "1",
        "c": ("x", True, 2.5),
        "d": {"e": "two\nlines\n", "f": "folded text"},
    } | {"g": (1, 2), "h": (1, 2), "i": {"j": (1, 2)}}


def test_every_value_and_key_knows_its_place_in_characters():
    source = read("# é\nä: [x, 'ö', y]\n\nb:\n  c: 1\n", "f")
    assert source.keys == {("ä",): Position(2, 1), ("b",): Position(4, 1), ("b", "c"): Position(5, 3)}
    assert (source.at["ä", 2], source.at["b", "c"]) == (Position(2, 13), Position(5, 6))


def test_duplicate_keys_name_both_places_and_the_first_counts():
    source = read("a: 1\nb: 2\na: 3\nc: {x: 1, 'x': 2}\n", "f")
    assert [str(it) for it in ordered(source.problems)] == [
        "f:3:1: a is given twice; the first time at 1:1",
        "f:4:11: x is given twice; the first time at 4:5",
    ]
    assert source.values == {"a": 1, "b": 2, "c": {"x": 1}}


def test_a_bomb_of_aliases_does_not_go_off():
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))
    assert said(f"l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n{levels}") == [
        "f:1:25: the file holds more than 10000 values, repeated ones included"
    ]


@pytest.mark.parametrize("depth", [33, 50_000])
@pytest.mark.parametrize("brackets", ["[]", ["{a: ", "}"]])
def test_deep_nesting_is_refused_before_it_hurts(brackets, depth):
    opening, closing = brackets
    (line,) = said(opening * depth + closing * depth)
    assert line.endswith("this is nested more than 32 levels deep")


TAG = "the tag {} is not supported: write the value without it, or in quotes"
INDENTATION = "the indentation does not fit the lines above"
COLON = "a colon followed by a space cannot stand in a text without quotes: put the value in quotes"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a:\n\tb: 1\n", "f:2:1: a tab is used to indent: use spaces"),
        ("a: 'x\nb: 1\n", "f:1:4: a quote is opened here and never closed"),
        ('a: 1\nb: "x\n', "f:2:4: a quote is opened here and never closed"),
        ("a: [1, 2\n", "f:1:4: a list in square brackets is opened here and never closed, or a comma is missing in it"),
        ("a: {b: 1\n", "f:1:4: a group in curly brackets is opened here and never closed, or a comma is missing in it"),
        ("prompt: Fix: it\n", f"f:1:12: {COLON}"),
        ("a: 1\n b: 2\n", f"f:2:2: {INDENTATION}"),
        ("a: 1\n- b\n", f"f:2:1: {INDENTATION}"),
        ("- a\nb: 1\n", f"f:2:1: {INDENTATION}"),
        ("a: - b\n", "f:1:4: a list item must begin on a line of its own"),
        ("a: |\n x\ny\n", "f:3:1: this line is no key: a colon is missing, or it must be indented"),
        ("a: @x\n", "f:1:4: a value cannot begin with this character: put the value in quotes"),
        ("a: & x\n", "f:1:5: a value cannot begin with & or *: put the value in quotes"),
        ("a: **bold**\n", "f:1:5: a value cannot begin with & or *: put the value in quotes"),
        ("a: *x\nb: &x 1\n", "f:1:4: a value that begins with * repeats one that is marked with & above, and none is"),
        ("a: &x [*x]\n", "f:1:4: this is nested more than 32 levels deep"),
        ("a: &x 1\nb: &x 2\n", "f:2:4: the same mark after & is given to two values"),
        ("a: !custom 1\n", f"f:1:4: {TAG.format('!custom')}"),
        ("a: !!str 5\n", f"f:1:4: {TAG.format('tag:yaml.org,2002:str')}"),
        (
            "a: !!python/object/apply:os.system [id]\n",
            f"f:1:4: {TAG.format('tag:yaml.org,2002:python/object/apply:os.system')}",
        ),
        ("!x\na: 1\n", f"f:1:1: {TAG.format('!x')}"),
        ("a: !e!x b\n", "f:1:4: a value cannot begin with an exclamation mark: put the value in quotes"),
        ("a: |x\n", "f:1:5: after | or > the text begins on the next line"),
        ("a: ]\n", "f:1:4: a value is missing here, or must be put in quotes"),
        ("a: 1\n---\nb: 2\n", "f:2:1: a second document begins here: a file holds one"),
        ("a: \x01\n", "f:1:1: this holds characters that YAML does not allow"),
        ("? [a]\n: 1\nb: 2\n", "f:1:3: a key must be a single word, not a list or a group"),
        ('a: "x\\0y"\n', "f:1:4: an escape sequence stands for a character that no text can hold"),
        ("a:\n" + "- x\n" * 20_000, "f:9999:3: the file holds more than 10000 values, repeated ones included"),
        ("".join(f"{' ' * n}a:\n" for n in range(200)), "f:33:33: this is nested more than 32 levels deep"),
    ],
)
def test_syntax_errors_say_what_to_do(text, line):
    assert said(text) == [line]


AMBIGUOUS = (
    "on", "Off", "yes", "NO", "y", "N", "012", "0o17", "0x1F", "0b101", "1_000", "1e3", "1.5E-3", "12:30", "1:30:00",
    "2026-02-13", "2026-02-13T14:30:00Z", "2026-02-13 14:30:00", ".inf", "-.INF", ".nan", "=", "<<", "9" * 19,
    "9" * 50_000,
)  # fmt: skip
TEXT = (
    "one", "nothing", "yes please", "3 apples", "3.10.1", "v1", "-", ".", "+", "a: b", "12:30 in the morning",
    "2026-02-13 was a Friday", "onward", "9" * 50_000 + "x",
)  # fmt: skip
PLAIN = [
    *((text, None) for text in ("", "~", "null", "Null", "NULL")),
    ("true", True), ("False", False), ("TRUE", True),
    ("0", 0), ("30", 30), ("-3", -3), ("+7", 7), ("9" * 18, 10**18 - 1),
    ("0.5", 0.5), ("-1.25", -1.25), ("3.", 3.0), (".5", 0.5),
    *((text, Ambiguous(text)) for text in AMBIGUOUS),
    *((text, text) for text in TEXT),
]  # fmt: skip


@for_each(PLAIN)
def test_a_plain_value_is_nothing_a_switch_a_number_text_or_what_readers_disagree_on(text: str, value: object) -> None:
    found = plain_value(text)
    assert (type(found), found) == (type(value), value)
