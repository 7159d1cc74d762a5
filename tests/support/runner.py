"""What GitHub's runner makes of a step's output: its parsers of commands and of command files, followed closely."""

import re
from typing import NamedTuple

REGISTERED = {
    *("add-mask", "add-matcher", "remove-matcher", "add-path", "set-env", "set-output", "save-state"),
    *("debug", "warning", "error", "notice", "group", "endgroup", "echo"),
    *("stop-commands", "start-action", "end-action"),
}
_PROPERTY = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
_DATA = {"%0D": "\r", "%0A": "\n", "%25": "%"}


class Command(NamedTuple):
    name: str
    properties: dict[str, str]
    data: str


def commands(output: str) -> list[Command]:
    """Every command in what a step printed; a lone carriage return ends a line, too."""
    found = (parse_command(line) for line in re.split(r"\r\n|\r|\n", output))
    return [command for command in found if command]


def parse_command(line: str) -> Command | None:
    """The command that a line is, if it is one: the newer syntax first, then the one found anywhere in a line."""
    return _new(line) or _old(line)


def _new(line: str) -> Command | None:
    trimmed = line.lstrip()
    end = trimmed.find("::", 2)
    if not trimmed.startswith("::") or end < 0:
        return None
    name, _, properties = trimmed[2:end].partition(" ")
    if name.lower() not in REGISTERED:
        return None
    pairs = (pair.split("=", 1) for pair in properties.strip().split(",") if "=" in pair)
    return Command(
        name, {key: _unescaped(value, _PROPERTY) for key, value in pairs}, _unescaped(trimmed[end + 2 :], _DATA)
    )


def _old(line: str) -> Command | None:
    begin = line.find("##[")
    end = line.find("]", begin)
    if begin < 0 or end < 0:
        return None
    name = line[begin + 3 : end].partition(" ")[0]
    return Command(name, {}, line[end + 1 :]) if name.lower() in REGISTERED else None


def _unescaped(text: str, table: dict[str, str]) -> str:
    for code, char in table.items():
        text = text.replace(code, char)
    return text


def outputs(text: str) -> dict[str, str]:
    """The values in a file of outputs, or the error with which the runner fails the step; the last of a name wins."""
    lines = text.split("\n")
    ended = lines.pop() == ""
    found: dict[str, str] = {}
    while lines:
        line = lines.pop(0)
        equals, heredoc = line.find("="), line.find("<<")
        if not line:
            continue
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, value = line.partition("=")
            found[name] = value
        elif heredoc > 0 and line[heredoc + 2 :]:
            found[line[:heredoc]] = _here(lines, line[heredoc + 2 :], ended=ended)
        else:
            raise ValueError(f"Invalid format {line!r}")
    return found


def _here(lines: list[str], end: str, *, ended: bool) -> str:
    value: list[str] = []
    while lines and lines[0] != end:
        value.append(lines.pop(0))
    if not lines:
        raise ValueError("Matching delimiter not found" if ended else "EOF marker missing new line")
    lines.pop(0)
    return "\n".join(value)
