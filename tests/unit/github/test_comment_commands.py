"""What a comment asks for: the grammar, and everything that is not in it."""

import pytest
from hypothesis import given, strategies

from zelda_ci.ci.conversation import (
    MAX_REASON_LENGTH,
    AcceptCriteria,
    AskHelp,
    Command,
    RunAgain,
    RunCommit,
    parse_command,
)
from zelda_ci.ci.event import is_command

COMMIT = "0123456789abcdef" * 2 + "01234567"


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("/zelda", AskHelp()),
        ("/Zelda RERUN", RunAgain()),
        ("/zelda\u00a0rerun", RunAgain()),
        ("/zelda rerun\r\n\r\nThe API was down.", RunAgain()),
        ("/zelda rerun greeting, api.list greeting", RunAgain(("greeting", "api.list"))),
        (f"/zelda run {COMMIT}", RunCommit(COMMIT)),
        (f"/zelda run {COMMIT.upper()} greeting", RunCommit(COMMIT, ("greeting",))),
        ("/zelda run", RunCommit(None)),
        # Another commit with the same first digits is made in seconds.
        (f"/zelda run {COMMIT[:12]}", RunCommit(None)),
        ("/zelda accept greeting because we want\nless of it", AcceptCriteria("greeting", None, "we want less of it")),
        ("/zelda accept greeting#2 BECAUSE: it is\tdue", AcceptCriteria("greeting", 2, "it is due")),
        ("/zelda accept a because b because c\n\nMore.", AcceptCriteria("a", None, "b because c")),
        ("/zelda accept a because @team #7 `$(id)` <!-- x", AcceptCriteria("a", None, "@team #7 `$(id)` <!-- x")),
    ],
)
def test_a_command_is_understood(body: str, command: Command) -> None:
    assert is_command(body)
    assert parse_command(body) == command


NO_COMMANDS = (
    *("", "zelda rerun", "please /zelda rerun", " /zelda rerun", "> /zelda rerun", "```\n/zelda rerun\n```"),
    *("\n/zelda rerun", "/zeldarerun", "<!-- -->/zelda rerun", "\u200b/zelda rerun"),
)


@pytest.mark.parametrize("body", NO_COMMANDS)
def test_a_comment_that_does_not_begin_with_a_command_is_none(body: str) -> None:
    assert not is_command(body)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("/zelda deploy", "no command “deploy”"),
        ("/zelda re\u200brun", "cannot be seen"),
        ("/zelda rerun $(id)", "“$(id)” is not the name"),
        ("/zelda rerun -x", "is not the name"),
        ("/zelda rerun gr\u0435eting", "is not the name"),
        (f"/zelda run {COMMIT} ;id", "“;id” is not the name"),
        ("/zelda rerun " + " ".join(f"s{number}" for number in range(21)), "at most 20 suites"),
        ("/zelda rerun\n/zelda run", "one command"),
        ("/zelda accept a because b\n\n/zelda accept c because d", "one command"),
        ("/zelda accept greeting", "say why"),
        ("/zelda accept greeting because", "say why"),
        ("/zelda accept greeting because ?!", "says nothing"),
        ("/zelda accept a b because c", "say why"),
        ("/zelda accept greeting#0 because x", "neither a suite nor"),
        ("/zelda accept $(id)#1 because x", "neither a suite nor"),
        (f"/zelda accept a because {'x' * (MAX_REASON_LENGTH + 1)}", "at most 500"),
        ("/zelda rerun " + "x" * 10_000, "at most 2,000"),
        ("/zelda rerun " + "x" * 70, "…” is not the name"),
    ],
)
def test_what_does_not_fit_gets_help_and_does_nothing(body: str, problem: str) -> None:
    command = parse_command(body)
    assert isinstance(command, AskHelp)
    assert problem in command.problem


@given(strategies.text(max_size=200))
def test_whatever_follows_names_are_names_and_commits_are_commits(text: str) -> None:
    for verb in ("rerun", "run", f"run {COMMIT}", "accept", "accept a because", ""):
        match parse_command(f"/zelda {verb} {text}"):
            case RunAgain(suites=suites) | RunCommit(suites=suites):
                assert all(
                    name.isascii() and name[0].isalnum() and not set(name) & set(" $;&|<>`'\"/") for name in suites
                )
            case AcceptCriteria(suite=suite, reason=reason):
                assert suite.isascii()
                assert 0 < len(reason) <= MAX_REASON_LENGTH
            case AskHelp():
                pass
