"""Calls that a session made, and the rules by which checks name them: those of Claude Code's permissions."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from posixpath import normpath
from typing import Any

import re2

from zelda_ci.domain.kinds import TURNS_TO
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.session import ToolCall
from zelda_ci.files import globs

# A rule for one of these counts for the others, as in Claude Code.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "Read": ("Read", "Grep", "Glob", "LS", "NotebookRead"),
    "Edit": ("Edit", "Write", "MultiEdit", "NotebookEdit"),
    "Agent": ("Agent", "Task"),
    "Task": ("Agent", "Task"),
}
PATH_KEYS = ("file_path", "notebook_path", "path")
# What Claude Code answers where a call was not carried out at all.
NOT_CARRIED_OUT = "<tool_use_error>"
MAX_COMMAND_LENGTH = 20_000
MAX_SHOWN_LENGTH = 200
MAX_DEPTH = 3
# Words that may be paths, in whatever alphabet.
PATH_WORD = re2.compile(r"[\pL\pN_.@+~%/-]*[\pL\pN_.]")
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)([A-Za-z_]\w*)\2")
_PIECE = re.compile(
    r"""
    (?P<text> \\. | '[^']*' | \d*[<>]{1,2}[&|]? | &>{1,2} | \$\{ )
    | "(?P<quoted> (?: \\. | [^"\\] )* )"
    | (?P<comment> (?:(?<=\s)|^) \#[^\n]* )
    | (?P<end> \$\( | `| && | \|\|? | ;{1,2} | & | \n | [()] )
    | (?P<rest> [^\\'"$`;&|\n()<>\#]+ | . )
    """,
    re.DOTALL | re.VERBOSE | re.MULTILINE,
)
_INNER = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
# Sessions write these lines: on RE2, no line takes for ever.
_ASSIGNMENT = re2.compile(r"[A-Za-z_]\w*=(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"]*)*(?:\s+|$)")
_KEYWORD = re2.compile(r"(?:if|then|elif|else|while|until|do|time|!|\{)\s+")
# Programs that run what stands behind them, with their options and numbers.
_WRAPPER = re2.compile(
    r"(?:sudo|env|nohup|nice|stdbuf|command|exec|timeout)(?:\s+(?:-u\s+\S+|-{1,2}\S+|\d+(?:\.\d+)?[smhd]?))*\s+"
)
_SHELL = re2.compile(r"(?:\S*/)?(?:ba|z|da|k)?sh(?:\s+-\S+)*\s+-\w*c\s+")


@dataclass(frozen=True, eq=False)
class SessionCall:
    """A call that was made or tried, with its place in the transcript."""

    turn: int
    number: int
    """Of the turn's calls, from 1."""
    tool: ToolCall
    is_main: bool

    @property
    def is_made(self) -> bool:
        """False where it was denied, or not carried out; skills and sub-agents that failed never began."""
        if self.tool.denied or (self.tool.output or "").startswith(NOT_CARRIED_OUT):
            return False
        return not (self.tool.is_error and self.tool.name in TURNS_TO)

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Of a shell line, the simple commands in it, in order."""
        line = self.tool.input.get("command")
        is_line = self.tool.name == "Bash" and isinstance(line, str)
        return tuple(simple_commands(str(line)[:MAX_COMMAND_LENGTH])) if is_line else ()

    @property
    def shown(self) -> str:
        values = [value for value in self.tool.input.values() if isinstance(value, str)]
        return (self.tool.label if self.tool.label != self.tool.name or not values else values[0])[:MAX_SHOWN_LENGTH]


@dataclass(frozen=True)
class Rule:
    """A rule such as `Bash(git push*)`: a tool, and what it is called with."""

    text: str
    manifest: ToolsManifest

    def covers(self, call: SessionCall) -> bool:
        return bool(self.positions(call))

    def positions(self, call: SessionCall) -> tuple[int, ...]:
        """Of the simple commands of a shell line, the numbers of those that it names; of another call that, 0."""
        (name, opened, rest), tool = self.text.partition("("), call.tool.name
        is_of_server = name.startswith("mcp__") and name.count("__") == 1 and tool.startswith(f"{name}__")
        if not (is_of_server or tool in FAMILIES.get(name, ()) or is_like(tool, name)):
            return ()
        if not opened:
            return (0,)
        wanted = rest.removesuffix(")")
        if call.tool.name == "Bash":
            forms = ((command, _without_wrappers(command)) for command in call.commands)
            return tuple(number for number, both in enumerate(forms) if any(is_like(it, wanted) for it in both))
        return (0,) if self._is_called_with(call.tool, wanted) else ()

    def _is_called_with(self, tool: ToolCall, wanted: str) -> bool:
        given = tool.input
        if tool.name in FAMILIES["Read"] + FAMILIES["Edit"]:
            paths = [given[key] for key in PATH_KEYS if isinstance(given.get(key), str)]
            return any(covers_path([wanted], path, self.manifest) for path in paths)
        if tool.name in TURNS_TO:
            name = str(given.get("skill" if tool.name == "Skill" else "subagent_type") or "").removeprefix("/")
            names = {name} if ":" in wanted.removesuffix(":*") else {name, name.rpartition(":")[2]}
            return any(is_like(each, wanted.removeprefix("/")) for each in names)
        if wanted.startswith("domain:"):
            host = re.sub(r"^\w+://(?:[^/@]*@)?", "", str(given.get("url") or "")).partition("/")[0].partition(":")[0]
            host, domain = host.lower(), wanted.removeprefix("domain:").lower()
            return is_like(host, domain) or host.endswith(f".{domain}")
        return any(is_like(text, wanted) for text in texts_of(given))


def covers_path(patterns: Sequence[str], path: str, manifest: ToolsManifest) -> bool:
    """Whether a pattern covers a path as the session wrote it; `//` begins an absolute one, `./` changes nothing."""
    relative = manifest.in_folder(manifest.in_tree(path))
    absolute = [f"/{pattern.lstrip('/')}" for pattern in patterns if pattern.startswith("//")]
    inside = [pattern.removeprefix("./") for pattern in patterns if not pattern.startswith("//")]
    return (relative is not None and globs.matches(inside, relative)) or (
        path.startswith("/") and globs.matches(absolute, normpath(path).lstrip("/"))
    )


def texts_of(value: Any) -> Iterator[str]:
    """Every text in the input of a call."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from texts_of(inner)


@lru_cache(maxsize=1000)
def _expression(wanted: str) -> Any:
    # `:*` is the older way to write a prefix.
    text, rest = (wanted[:-2], r"(\s.*)?") if wanted.endswith((":*", " *")) else (wanted, "")
    return re2.compile(f"(?s){'.*'.join(map(re2.escape, text.split('*')))}{rest}")


def is_like(text: str, wanted: str) -> bool:
    return bool(_expression(wanted).fullmatch(text))


# --- shell lines --------------------------------------------------------------------------------------------------


def simple_commands(line: str, depth: int = 0) -> Iterator[str]:
    """Every simple command in a shell line, as it is written, blanks made one; those inside of others too."""
    # The bodies of here-documents are data. What a program makes of its arguments, nobody sees here.
    current: list[str] = []
    inner: list[str] = []

    def ended() -> Iterator[str]:
        command = " ".join("".join(current).split())
        current.clear()
        while keyword := _KEYWORD.match(command):
            command = command[keyword.end() :]
        if command and command not in {"fi", "done", "else", "}", "then", "do"}:
            yield command
            if depth < MAX_DEPTH and (shell := _SHELL.match(_without_wrappers(command))):
                script = _without_wrappers(command)[shell.end() :]
                with suppress(ValueError):
                    script = next(iter(shlex.split(script)), "")
                yield from simple_commands(script, depth + 1)
        for text in inner if depth < MAX_DEPTH else ():
            yield from simple_commands(text, depth + 1)
        inner.clear()

    for piece in _PIECE.finditer(_without_heredocs(line)):
        if piece["end"]:
            yield from ended()
        elif piece["comment"] is None:
            current.append(piece[0])
            if piece["quoted"]:
                inner += [first or second for first, second in _INNER.findall(piece["quoted"])]
    yield from ended()


def _without_heredocs(line: str) -> str:
    kept: list[str] = []
    waiting: list[tuple[str, str]] = []
    for text in line.split("\n"):
        if waiting:
            dash, word = waiting[0]
            if (text.lstrip("\t") if dash else text) == word:
                waiting.pop(0)
            continue
        kept.append(text)
        waiting += [(match[1], match[3]) for match in _HEREDOC.finditer(text)]
    return "\n".join(kept)


def _without_wrappers(command: str) -> str:
    """A command without assignments and programs before it that only start it."""
    while match := _ASSIGNMENT.match(command) or _WRAPPER.match(command):
        command = command[match.end() :]
    return command
