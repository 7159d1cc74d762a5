"""The first suite: drawn from what the project says, and valid whatever that is."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.config.folder import loaded, make, problems
from zelda_ci.config.init import (
    CommandLine,
    config_text,
    first_suite,
    ignored,
    occasion,
    quoted,
    routing_suite,
    subjects,
)
from zelda_ci.domain.kinds import ItemKind, Shown
from zelda_ci.domain.manifest import ManifestItem
from zelda_ci.redact import Redactor

SAFE = Redactor()


def item(kind: ItemKind, name: str, **more: Any) -> ManifestItem:
    facts: dict[str, Any] = {key: SAFE(value) if isinstance(value, str) else value for key, value in more.items()}
    return ManifestItem(kind=kind, name=SAFE(name), file=SAFE(f"{name}.md"), **facts)


def skill(description: str, **more: Any) -> ManifestItem:
    return item(ItemKind.SKILL, "rest-endpoint", description=description, **more)


def test_the_occasion_of_a_skill_is_the_task_and_neither_its_name_nor_its_description_is_told(tmp_path):
    found = first_suite(skill("How to add a REST endpoint. Use when the user asks to add a route."))
    (suite,) = loaded(tmp_path, test_x=found.text).suites
    assert (found.name, found.about) == ("rest-endpoint", "the skill rest-endpoint (rest-endpoint.md)")
    prompt = " ".join(suite.resolved.prompt.split())
    assert "The occasion: add a route. Choose" in prompt
    assert "REST" not in prompt
    assert "rest-endpoint" not in prompt
    said = ("Writes entries. Use it whenever a feature is added!", "Use it after writing code.", "How to test.")
    assert [occasion(skill(text)) for text in said] == ["a feature is added", "writing code", None]
    assert "accepts a wrong input" in first_suite(skill("How to test things.")).text
    called = "The skill rest-endpoint was called before the first file was changed."
    assert suite.resolved.acceptance_criteria[0] == called


def test_a_rule_names_a_file_that_it_applies_to_and_the_first_item_of_its_list(tmp_path):
    rule = item(
        ItemKind.RULE, ".claude/rules/api.md", text="# API\n\nWe like it.\n- **Always** validate. Then go.\n",
        paths=(SAFE("src/**/*.ts"),), base="packages/web",
    )  # fmt: skip
    files = ("packages/web/docs/a.ts", "packages/web/src/x y.ts", "packages/web/src/user.ts", "src/other.ts")
    assert "in ../api/" not in first_suite(rule, files, "packages/api").text
    assert "function in src/user.ts that" in first_suite(rule, files, "packages/web").text
    found = first_suite(rule, files)
    (suite,) = loaded(tmp_path, test_x=found.text).suites
    assert found.name == "api"
    assert "Find one public function in packages/web/src/user.ts that" in " ".join(suite.resolved.prompt.split())
    assert "validate" not in suite.resolved.prompt
    quote = 'this sentence of .claude/rules/api.md.md: "Always validate. Then go."'
    assert quote in suite.resolved.acceptance_criteria[-1]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("Use tabs.", "Use tabs."),
        ("# Always a heading\n\nTabs must be used! And more.", "Tabs must be used! And more."),
        ("```\n- always in code\n```\n<!-- - never here -->\nText here.\n1. [ ] Add a test.", "Add a test."),
        ("| never | in a table |\n> never quoted\n@always/imports.md\n", None),
        ("Run", None),
        ("Run tests with:\n```\nmake it\n```\n", None),
        ("```never closed\nAlways x.", None),
    ],
)
def test_of_a_text_the_first_item_of_a_list_or_the_first_line_is_quoted(text, quote):
    assert quoted(item(ItemKind.RULE, "x", text=text)) == quote


MARKS = "- ' \" {} [] &a *a !!x | > --- ... % @a ` null yes 1."
YAML_LIKE = [*MARKS.split(), ": ", " #", "\t", "\n", "\r", "\x1b[0m", "\x85", "\u2028", "\ufeff", "\ufffe", "\u202e"]
YAML_LIKE += ["\U0001f600", "\ue000", "always ", "apiKey: hunter2", "testCommand: evil", "ghp_" + "a1B2" * 9]
YAML_LIKE += [f"sk-ant-api03-{'a1B2' * 24}"]
HOSTILE = st.lists(
    st.sampled_from(YAML_LIKE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=12
).map("".join)


@st.composite
def items(draw: st.DrawFn) -> ManifestItem:
    return ManifestItem(
        kind=draw(st.sampled_from(list(ItemKind))),
        name=SAFE(draw(HOSTILE)),
        file=SAFE(draw(HOSTILE)),
        description=SAFE(draw(HOSTILE)),
        text=SAFE(draw(HOSTILE)),
        below=SAFE(draw(HOSTILE)),
        base=SAFE(draw(HOSTILE)),
        paths=tuple(map(SAFE, draw(st.lists(HOSTILE, max_size=2)))),
        shown=draw(st.sampled_from(Shown)),
    )


@settings(max_examples=25)
@given(st.lists(items(), max_size=3), st.lists(HOSTILE, max_size=3), HOSTILE, HOSTILE)
def test_whatever_the_project_says_what_is_written_loads(tmp_path_factory, found, files, remark, fact):
    folder = tmp_path_factory.mktemp("written", numbered=True)
    commands = [
        CommandLine("setupCommand", "npm ci", fact),
        CommandLine("testCommand", "npm test", fact, remark or None),
    ]
    config = config_text([fact, remark], commands)
    for number, subject in enumerate([*subjects(found), None]):
        suite = first_suite(subject, tuple(files))
        assert problems(make(folder / f"{number}", config=config, **{f"test_{suite.name}": suite.text})) == []
        assert suite.text.isascii() or all(char.isprintable() for char in suite.text.replace("\n", ""))
    if routed := routing_suite(found):
        assert problems(make(folder / "routed", test_routed=routed)) == []
        assert all(char.isprintable() for char in routed.replace("\n", ""))


def test_a_skill_is_wanted_in_its_folder_called_where_only_people_call_it_and_shows_no_credential(tmp_path):
    ships = "Use when shipping a package."
    (suite,) = loaded(tmp_path / "a", test_x=first_suite(skill(ships, below="packages/web")).text).suites
    assert "small piece of work in packages/web," in suite.resolved.prompt
    (suite,) = loaded(tmp_path / "b", test_x=first_suite(skill(ships, shown=Shown.HIDDEN)).text).suites
    assert suite.resolved.prompt.startswith("/rest-endpoint ")
    secret = first_suite(skill(f"Use for -----BEGIN RSA PRIVATE KEY----- {'A' * 64}"))
    assert problems(make(tmp_path / "c", test_x=secret.text)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b".zelda/\n"),
        (b"node_modules/", b"node_modules/\n.zelda/\n"),
        (b"a\r\nb", b"a\r\nb\r\n.zelda/\r\n"),
        (b"\xff\xfe odd bytes\n", b"\xff\xfe odd bytes\n.zelda/\n"),
        (b"# .zelda/\n.zelda-old/\n", b"# .zelda/\n.zelda-old/\n.zelda/\n"),
        (b".zelda/\n!.zelda/\n", b".zelda/\n!.zelda/\n.zelda/\n"),
    ],
)
def test_gitignore_gets_a_line_and_keeps_its_own(before, after, tmp_path):
    (tmp_path / ".gitignore").write_bytes(before)
    draft, _ = ignored(tmp_path, tmp_path, [".zelda"])
    assert draft is not None
    assert draft.content == after


def test_folders_are_ignored_that_no_file_on_the_way_to_the_top_ignores(tmp_path):
    inner = tmp_path / "packages" / "web"
    inner.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("__pycache__/\n/packages/web/.venv\n.zelda/\n!.zelda/\n")
    draft, folders = ignored(inner, tmp_path, [".zelda", "__pycache__", ".venv", "target"])
    assert draft is not None
    assert (draft.content, folders) == (b".zelda/\ntarget/\n", [".zelda", "target"])
    (inner / ".gitignore").write_bytes(draft.content)
    assert ignored(inner, tmp_path, [".zelda", "target"]) == (None, [])


def test_a_routing_suite_has_two_drafts_for_each_thing_that_can_be_called(tmp_path):
    items = [
        skill("How to add a REST endpoint. Use when the user asks to add a route."),
        item(ItemKind.AGENT, "reviewer", description="Reviews commits"),
        item(ItemKind.COMMAND, "ship", description="Ships it: at once. Never on Fridays."),
        item(ItemKind.SKILL, "by-hand", description="Runs by hand only.", shown=Shown.HIDDEN),
        item(ItemKind.SKILL, "broken", description="Is broken.", problem="it has no name"),
        item(ItemKind.SKILL, "two words", description="Has a bad name."),
        item(ItemKind.RULE, "rule", description="Is no call."),
        item(ItemKind.SKILL, "x:y'z", description='Says "it\'s" # so.\n- a: b'),
        item(ItemKind.SKILL, "release", description="\u767a\u5e03\u3002\u5199\u6587\u6863"),
    ]
    suites = loaded(tmp_path, test_x=routing_suite(items) or "").suites
    assert [(it.resolved.prompt, it.resolved.checks[0].routed) for it in suites] == [
        ("How to add a REST endpoint.", ("skill rest-endpoint",)),
        ("add a route", ("skill rest-endpoint",)),
        ("Reviews commits", ("agent reviewer",)),
        ("I need help with this: Reviews commits", ("agent reviewer",)),
        ("Ships it: at once.", ("command ship",)),
        ("Never on Fridays.", ("command ship",)),
        ('Says "it\'s" # so.', ("skill x:y'z",)),
        ("- a: b", ("skill x:y'z",)),
        ("\u767a\u5e03\u3002", ("skill release",)),
        ("\u5199\u6587\u6863", ("skill release",)),
        ("What is two and two?", ("none",)),
        ("Thank you, that is all for today.", ("none",)),
    ]
    assert routing_suite(items[3:7]) is None
    assert routing_suite([item(ItemKind.SKILL, "bare")]) is None


def test_a_routing_suite_has_no_more_prompts_than_a_file_may_have(tmp_path):
    many = [item(ItemKind.SKILL, f"s{number}", description="Does this. And that.") for number in range(300)]
    assert len(loaded(tmp_path, test_x=routing_suite(many) or "").suites) == 500
