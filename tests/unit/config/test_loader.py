"""YAML text to a tree: structure, places, bounds, and syntax errors in plain words, with both of PyYAML's parsers."""

from typing import Any

import pytest
import yaml

from zelda_ci.config.loader import MappingNode, at_path, parse, value_of
from zelda_ci.config.messages import Position, Rejected, ordered

PARSERS = [yaml.SafeLoader, yaml.CSafeLoader]


@pytest.fixture(params=PARSERS, ids=["python", "libyaml"])
def parser(request) -> Any:
    return request.param


def said(text: str, parser: Any) -> list[str]:
    try:
        _, problems = parse(text, "f", parser)
    except Rejected as exc:
        problems = exc.problems
    return [str(problem) for problem in ordered(problems)]


def test_values_come_out_as_written(parser):
    text = 'a: 1\nb: "1"\nc: [x, true, 2.5]\nd:\n  e: |\n    two\n    lines\n  f: >-\n    folded\n    text\n'
    root, problems = parse(text, "f", parser)
    assert problems == ()
    assert root is not None
    assert value_of(root) == {
        "a": 1,
        "b": "1",
        "c": ("x", True, 2.5),
        "d": {"e": "two\nlines\n", "f": "folded text"},
    }


def test_every_node_knows_its_place_in_characters(parser):
    root, _ = parse("# é\nä: [x, 'ö', y]\n\nb:\n  c: 1\n", "f", parser)
    assert isinstance(root, MappingNode)
    assert root.entries["ä"].key_at == Position(2, 1)
    assert at_path(root, ("ä", 2)).at == Position(2, 13)
    group = at_path(root, ("b",))
    assert isinstance(group, MappingNode)
    assert group.entries["c"].key_at == Position(5, 3)
    assert at_path(root, ("b", "c")).at == Position(5, 6)


def test_duplicate_keys_name_both_places_and_the_first_counts(parser):
    root, problems = parse("a: 1\nb: 2\na: 3\nc: {x: 1, 'x': 2}\n", "f", parser)
    assert [str(it) for it in ordered(problems)] == [
        "f:3:1: a is given twice; the first time at 1:1",
        "f:4:11: x is given twice; the first time at 4:5",
    ]
    assert root is not None
    assert value_of(root) == {"a": 1, "b": 2, "c": {"x": 1}}


def test_aliases_repeat_what_they_name(parser):
    root, problems = parse("a: &x [1, 2]\nb: *x\nc: {d: *x}\n", "f", parser)
    assert root is not None
    assert (value_of(root), problems) == ({"a": (1, 2), "b": (1, 2), "c": {"d": (1, 2)}}, ())


def test_a_bomb_of_aliases_does_not_go_off(parser):
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))
    assert said(f"l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n{levels}", parser) == [
        "f:4:45: the file holds more than 10000 values, repeated ones included"
    ]


@pytest.mark.parametrize("depth", [33, 50_000])
@pytest.mark.parametrize("bracket", ["[", "{a: "])
def test_deep_nesting_is_refused_before_it_hurts(bracket, depth, parser):
    (line,) = said(bracket * depth, parser)
    assert line.endswith("this is nested more than 32 levels deep")


@pytest.mark.parametrize("text", ["a: *x\n", "a: &x [*x]\n", "a: *x\nb: &x 1\n"])
def test_an_alias_without_a_finished_value_is_refused(text, parser):
    (line,) = said(text, parser)
    assert line.endswith("*x repeats a value, but no finished value above is marked &x")


@pytest.mark.parametrize(
    ("text", "place", "tag"),
    [
        ("a: !custom 1\n", "1:4", "!custom"),
        ("a: !!str 5\n", "1:4", "tag:yaml.org,2002:str"),
        ("a: !!python/object/apply:os.system [id]\n", "1:4", "tag:yaml.org,2002:python/object/apply:os.system"),
        ("!x\na: 1\n", "1:1", "!x"),
    ],
)
def test_tags_are_refused(text, place, tag, parser):
    assert said(text, parser) == [
        f"f:{place}: the tag {tag} is not supported: write the value without it, or in quotes"
    ]


INDENTATION = "the indentation does not fit the lines above"
COLON = "a colon followed by a blank cannot stand in a text without quotes: put the value in quotes"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a:\n\tb: 1\n", "f:2:1: a tab is used to indent: use blanks"),
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
        ("a: !e!x b\n", "f:1:4: a value cannot begin with an exclamation mark: put the value in quotes"),
        ("a: |x\n", "f:1:5: after | or > the text begins on the next line"),
        ("a: ]\n", "f:1:4: a value is missing here, or must be put in quotes"),
        ("a: 1\n---\nb: 2\n", "f:2:1: a second document begins here: a file holds one"),
        ("? [a]\n: 1\nb: 2\n", "f:1:3: a key must be a single word, not a list or a group"),
        ('a: "x\\0y"\n', "f:1:4: an escape sequence stands for a character that no text can hold"),
        ("a:\n" + "- x\n" * 20_000, "f:9999:3: the file holds more than 10000 values, repeated ones included"),
        ("".join(f"{' ' * n}a:\n" for n in range(200)), "f:33:33: this is nested more than 32 levels deep"),
    ],
)
def test_syntax_errors_say_what_to_do(text, line, parser):
    assert said(text, parser) == [line]
