"""Commands reach the runner as they are meant; text of others never becomes one."""

import io
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.runner import REGISTERED, Command, commands, outputs, parse_command
from zelda_ci.github.workflow_commands import (
    CUT,
    MAX_PER_LEVEL,
    Log,
    Severity,
    command,
    neutralise,
    write_outputs,
    write_summary,
)
from zelda_ci.redact import Secret

SIGNS = [":", "::", "##[", *"#[] \t\r\n\u200b\u00ad\ufe0f\u2028\u034f,=", "%0A"]
PIECES = st.sampled_from([*SIGNS, *sorted(REGISTERED)])
HOSTILE = st.lists(PIECES | st.text(max_size=3), max_size=14).map("".join)


def ignoring_the_invisible(line: str) -> str:
    """As a comparison by culture may read it: nothing that takes no room counts."""
    return re.sub(r"[^\x20-\x7e]", "", line)


@given(HOSTILE)
def test_no_text_becomes_a_command(text: str) -> None:
    log = Log(stream := io.StringIO(), {})
    log.say(text)
    printed = stream.getvalue()
    assert commands(printed) == []
    assert not [line for line in printed.split("\n") if parse_command(ignoring_the_invisible(line))]


@given(HOSTILE, HOSTILE, HOSTILE)
def test_a_command_says_exactly_what_was_meant(message: str, title: str, file: str) -> None:
    (found,) = commands(command("error", message, title=title, file=file))
    given_properties = {name: value.strip() for name, value in {"title": title, "file": file}.items() if value}
    # The runner trims the end of the list.
    told = {name: value.strip() for name, value in found.properties.items()}
    assert (found.name, told, found.data) == ("error", given_properties, message)


@given(HOSTILE.filter(lambda text: "%" not in text))
def test_text_that_waits_for_its_end_does_not_run_into_a_command(text: str) -> None:
    log = Log(stream := io.StringIO(), {})
    log.write(text)
    log.report("notice", "here")
    assert commands(stream.getvalue()) == [Command("notice", {}, "here")]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error::x", ": :error: :x"),
        (":::", ": : :"),
        ("a ##[error]x", "a # #[error]x"),
        ("plain text: a::b", "plain text: a: :b"),
        ("\u200b::error::", ": :error: :"),
        ("#\u034f#[error]", "# \u034f#[error]"),
        ("a\rb", "a b"),
    ],
)
def test_what_could_be_a_command_is_pulled_apart(line: str, shown: str) -> None:
    assert neutralise(line) == shown


def test_keys_are_masked_whole_and_short_values_not_at_all() -> None:
    log = Log(stream := io.StringIO(), {"GITHUB_ACTIONS": "true"})
    log.mask([Secret("line one\nline two"), Secret(""), Secret("1"), Secret("  a \n ")])
    assert commands(stream.getvalue()) == [Command("add-mask", {}, "line one\nline two")]
    # Where no runner listens, no key is printed.
    Log(stream := io.StringIO(), {}).mask([Secret("sk-ant-fake-key")])
    assert stream.getvalue() == ""


def test_the_worst_nine_of_each_level_are_kept_and_the_rest_counted() -> None:
    kinds: list[tuple[Severity, int]] = [("warning", 30), ("error", 9)]
    remarks = [(level, f"{level} {n}", "", "", None) for level, count in kinds for n in range(count)]
    Log(stream := io.StringIO(), {}).report_worst(remarks)
    kept = [command.data for command in commands(stream.getvalue())]
    assert kept[:9] == [f"error {n}" for n in range(9)]
    assert len(kept) == 9 + MAX_PER_LEVEL + 1
    assert kept[-1].startswith("and 21 more")


@given(st.lists(st.tuples(st.sampled_from(["verdict", "score", "junit-path"]), HOSTILE), max_size=5))
def test_outputs_arrive_whatever_they_hold(values: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "output"
        path.touch()
        for name, value in values:
            write_outputs(path, {name: value})
        found = outputs(path.read_bytes().decode())
    assert found == {name: value.replace("\r\n", "\n").encode("utf-8", "replace").decode() for name, value in values}


@pytest.mark.parametrize("before", ["", "short\n", "long, longer, longest\n" * 100])
def test_a_summary_takes_the_place_of_an_earlier_one(tmp_path: Path, before: str) -> None:
    path = tmp_path / "summary"
    path.write_text(before)
    write_summary(path, "### Results", anew=True)
    assert path.read_text() == "### Results\n"
    write_summary(path, "one\ntwo " + "x" * 1_000_000, anew=True)
    assert path.read_text() == "one" + CUT


def test_what_a_session_wrote_for_the_runner_is_forgotten(tmp_path) -> None:
    plain, linked, elsewhere, output = (tmp_path / name for name in ("env", "path", "precious", "output"))
    plain.write_text("LD_PRELOAD=evil.so\n")
    elsewhere.write_text("keep")
    linked.symlink_to(elsewhere)
    places = {"ENV": plain, "STEP_SUMMARY": linked, "PATH": tmp_path / "missing", "OUTPUT": output}
    log = Log(stream := io.StringIO(), {f"GITHUB_{name}": str(path) for name, path in places.items()})
    log.forget_files()
    assert plain.read_text() == ""
    for anew in (False, True):
        log.record("text", {"verdict": "passed"}, anew=anew)
    assert stream.getvalue().count("GITHUB_STEP_SUMMARY could not be written: ") == 2
    assert elsewhere.read_text() == "keep"
    assert outputs(output.read_text()) == {"verdict": "passed"}


def test_outside_a_workflow_there_is_nothing_to_write_to() -> None:
    Log(stream := io.StringIO(), {}).record("text", {"verdict": "improved"})
    assert stream.getvalue() == ""
