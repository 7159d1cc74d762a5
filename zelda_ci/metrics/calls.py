"""Calls that a session made, and the rules by which checks name them: those of Claude Code's permissions."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from posixpath import join, normpath
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
MAX_COMMAND_LENGTH = 100_000
MAX_SHOWN_LENGTH, MAX_FOLDER_LENGTH = 200, 1000
MAX_DEPTH, MAX_NESTED = 10, 50
# Words that may be paths, in whatever alphabet.
PATH_WORD = re2.compile(r"[\pL\pN_.@+~%/-]*[\pL\pN_.]")
# Sessions write these lines: no line takes for ever.
_QUOTES = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\."""
_ARITHMETIC = r"\$\(\((?:[^()]|\([^()]*\))*\)\)"
_PIECE = re.compile(
    rf"""
    (?P<text> \\. | '[^']*' | <<< | {_ARITHMETIC} | \$\{{[^}}'"`$]*\}} | [<>]{{1,2}}[&|] | &>{{1,2}} )
    | <<(?P<dash>-?)[ \t]*(?P<until> '[^'\n]+' | "[^"\n]+" | [^\s;&|<>()'"]+ )
    | (?P<open> [$<>]?\( | ["`] )
    | (?P<comment> (?:(?<=[\s;&|(])|^) \#[^\n]* )
    | (?P<end> && | \|[|&]? | ;{{1,2}} | [&\n)] )
    | [^\\'"$`;&|\n()<>\#]+ | .
    """,
    re.DOTALL | re.VERBOSE | re.MULTILINE,
)
# The same within double quotes.
_QUOTED = re.compile(rf'\\.|{_ARITHMETIC}|(?P<open>\$\(|`)|(?P<end>")|[^\\"$`]+|.', re.DOTALL)
_INNER = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_KEYWORD = re2.compile(r"(?:if|then|elif|else|while|until|do|time|!|\{)\s+")
# What may stand before a command: assignments, redirections, and programs that run it, with their options and numbers.
_WRAPPER = re2.compile(
    r"[A-Za-z_]\w*=(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"]*)*(?:\s+|$)|\d*>{1,2}[&|]?\s*\S+\s+|"
    r"(?:sudo|env|nohup|nice|stdbuf|command|exec|timeout|xargs)(?:\s+(?:-u\s+\S+|-{1,2}\S+|\d+(?:\.\d+)?[smhd]?|\{\}))*\s+"
)
_SHELL = re2.compile(r"(?:eval|((?:\S*/)?(?:ba|z|da|k)?sh(?:\s+-\S+)*\s+-\w*c))\s+")
# Programs to which a here-document is no data: shells, and others.
_READS_SCRIPT = re.compile(r"(?:\S*/)?(?:((?:ba|z|da|k)?sh)|(?:python|node|ruby|perl|php|deno|bun)[\d.]*)\b")
_REDIRECTED = re.compile(rf"({_QUOTES})|\s*(?:(?<!\S)\d+|&)?[<>]{{1,3}}[&|-]?\s*(?:{_QUOTES}|[^\s'\"<>])*", re.DOTALL)
# Programs that show the content of no file that they name, and those of which any word may be a file or a folder. The
# first word of some is what they look for, and the last one of others what they write.
_SHOWS_NOTHING = re.compile(
    "echo|printf|rm|rmdir|unlink|mkdir|touch|chmod|chown|ls|tree|du|stat|test|\\[{1,2}|find|tee|which|basename|dirname|"
    "realpath|readlink|gh|git-(?:add|commit|rm|mv|push|status|tag|branch|restore|checkout|switch|reset|clean|ls-files|check-ignore)"
)
_SEARCHES = re.compile("[ef]?grep|rg|ag|ack|sed|awk|jq|yq|git-grep")
_PRINTS_NAMES = re.compile("[ef]?grep|rg|ag|ack|diff|git-.*")
_COPIES = re.compile("cp|mv|ln|install|rsync|scp")
_READS = re.compile(
    "tac|cat|bat|head|tail|less|more|nl|cut|sort|uniq|wc|diff|cmp|od|xxd|find|hexdump|strings|base64|tar|zip|source|[.]|"
    f"git-show|git-diff|{_SEARCHES.pattern}|{_COPIES.pattern}"
)
# Words that leave files out, and those behind which such files stand.
_NOT = ("!", ":!", ":^", ":(exclude", "--exclude", "--ignore", "--glob=!", "-g!")
_LEAVES_OUT = re.compile("--(?:exclude|ignore)(?:-(?:dir|from|glob|path|pattern))?|-path|-name")
_WORD = re.compile(rf"(?:{_QUOTES}|[^\s'\"\\])+", re.DOTALL)
_MARKS = re.compile(r"""['"\\]|\$\{?(?:PWD|CLAUDE_PROJECT_DIR)\}?/""")
_WRITES_TO = re.compile(r"(?:(?<!\S)\d+|&)?>{1,2}\|?\s*\S+")
# How grep and diff name the file whose lines they print.
_PRINTED = re.compile(r"^(?:[-+]{3} [ab]/([^\t\n]{1,300})|([^\s:]{1,300}):)", re.MULTILINE)
# Claude Code's shell is where the line before left it, unless that did not work or is outside of the project.
_STAYS = re.compile(r"(Shell cwd was reset to)|\bcd: ")
# Subshells that a command is in, by where each begins.
Scope = tuple[int, ...]


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
    def commands(self) -> tuple[tuple[str, str, Scope], ...]:
        """Of a shell line, the simple commands in it, in order; each also without what only starts it."""
        line = self.tool.input.get("command")
        is_line = self.tool.name == "Bash" and isinstance(line, str)
        return tuple(simple_commands(str(line)[:MAX_COMMAND_LENGTH])) if is_line else ()

    @cached_property
    def forms(self) -> tuple[set[str], ...]:
        """Of each simple command, how rules may name it: as it is, without what starts it, without redirections."""
        return tuple({command, bare, _REDIRECTED.sub(r"\1", bare)} for command, bare, _ in self.commands)

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
        if not (is_of_server or tool in FAMILIES.get(name, ()) or _is_like(tool, name)):
            return ()
        wanted = rest.removesuffix(")")
        if not opened or wanted == "*":
            return (0,)
        if call.tool.name == "Bash":
            found = tuple(
                number for number, forms in enumerate(call.forms) if any(_is_like(it, wanted) for it in forms)
            )
            # A rule may be a line itself.
            line = " ".join(str(call.tool.input.get("command")).split()) if re.search(r"&&|[;|]", wanted) else ""
            return found or ((0,) if line and _is_like(line, wanted) else ())
        return (0,) if self._is_called_with(call.tool, wanted) else ()

    def _is_called_with(self, tool: ToolCall, wanted: str) -> bool:
        given = tool.input
        if tool.name in FAMILIES["Read"] + FAMILIES["Edit"]:
            paths = [given[key] for key in PATH_KEYS if isinstance(given.get(key), str)]
            return any(covers_path([wanted], path, self.manifest) for path in paths)
        if tool.name in TURNS_TO:
            return is_named(tool.label.partition("(")[2].removesuffix(")"), wanted)
        if wanted.startswith("domain:"):
            address = re.sub(r"^\w+://(?:[^/@?#]*@)?", "", str(given.get("url") or ""))
            host, domain = re.split(r"[/:?#]", address)[0].lower(), wanted.removeprefix("domain:").lower()
            return _is_like(host, domain) or host.endswith(f".{domain}")
        return any(_is_like(text, wanted) for text in texts_of(given))


def is_named(name: str, wanted: str) -> bool:
    """Whether a skill or sub-agent of a name is one that a rule wants."""
    names = {name} if ":" in wanted.removesuffix(":*") else {name, name.rpartition(":")[2]}
    wanted = wanted.removeprefix("/")
    # All of a plugin, too.
    forms = (wanted, f"{wanted}*") if wanted.endswith(":*") else (wanted,)
    return any(_is_like(each, form) for each in names for form in forms)


def covers(patterns: Iterable[str], path: str) -> bool:
    """Whether the patterns cover a path, of which those behind `!` take out again what others before them cover."""
    found = [it for it in patterns if globs.matches([it.removeprefix("!").removeprefix("./")], path)]
    return bool(found) and not found[-1].startswith("!")


def covers_path(patterns: Sequence[str], path: str, manifest: ToolsManifest) -> bool:
    """Whether the patterns cover a path as the session wrote it; `//` and `~/` begin those from the top and HOME."""
    # Workspace and HOME of a session lie in one folder.
    home = f"{(manifest.workspace or '').rpartition('/')[0]}/home/"
    path = f"{home}{path[2:]}" if path.startswith("~/") else path
    relative, full = manifest.in_folder(manifest.in_tree(path)), normpath(path)
    return (
        (relative is not None and covers((it for it in patterns if it[:2] not in {"//", "~/"}), relative))
        or (full.startswith("/") and covers((it[1:] for it in patterns if it.startswith("//")), full[1:]))
        or (full.startswith(home) and covers((it[1:] for it in patterns if it.startswith("~/")), full[len(home) :]))
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


def _is_like(text: str, wanted: str) -> bool:
    return bool(_expression(wanted).fullmatch(text))


# --- shell lines --------------------------------------------------------------------------------------------------


@dataclass
class _OpenShell:
    """A part of a shell line until it is closed: the line itself, a subshell, or what stands in double quotes."""

    closer: str
    scope: Scope
    pieces: list[str] = field(default_factory=list)
    begin: int = 0
    """Number of the piece with which the current command begins."""


def simple_commands(line: str, scope: Scope = ()) -> Iterator[tuple[str, str, Scope]]:
    """Every simple command in a shell line as it is written, blanks made one, each behind those inside of it."""
    # The bodies of here-documents are data. What a program makes of its arguments, nobody sees here.
    opened, at, skip = [_OpenShell("", scope)], 0, 0
    line = line.replace("\\\n", " ")

    def ended() -> Iterator[tuple[str, str, Scope]]:
        part = opened[-1]
        command = "" if part.closer == '"' else " ".join("".join(part.pieces[part.begin :]).split())
        while keyword := _KEYWORD.match(command):
            command = command[keyword.end() :]
        if command and command not in {"fi", "done", "else", "}", "then", "do"}:
            bare = without_wrappers(command)
            yield command, bare, part.scope
            if len(scope) < MAX_DEPTH and (shell := _SHELL.match(bare)):
                script = bare[shell.end() :]
                with suppress(ValueError):
                    words = shlex.split(script)
                    script = " ".join(words[:1] if shell[1] else words)
                yield from simple_commands(script, (*part.scope, at))

    while at < len(line):
        part = opened[-1]
        piece: Any = (_QUOTED if part.closer == '"' else _PIECE).match(line, at)
        at, kind, text = piece.end(), piece.lastgroup, piece[0]
        if kind == "comment":
            continue
        if kind in {"open", "end"} and text == part.closer:
            yield from ended()
            opened.pop()
            is_apart = opened[-1].pieces[-1] == "("
            opened[-1].pieces += [*part.pieces, text]
            opened[-1].begin = len(opened[-1].pieces) if is_apart else opened[-1].begin
            continue
        is_border = kind == "end" or text == "("
        if is_border:
            yield from ended()
        part.pieces.append(text)
        if is_border:
            part.begin = len(part.pieces)
            at = max(at, skip) if text == "\n" else at
        if kind == "open" and len(opened) < MAX_NESTED:
            inner = part.scope if text == '"' else (*part.scope, at)
            opened.append(_OpenShell(text if text in {'"', "`"} else ")", inner))
        elif kind == "until" and (start := max(line.find("\n", at), skip)) > 0:
            word, tabs = re.sub(r"[\\'\"]", "", piece["until"]), "\t*" if piece["dash"] else ""
            end = re.compile(rf"^{tabs}{re.escape(word)}$", re.MULTILINE).search(line, start + 1)
            body, skip = line[start + 1 : end.start() if end else None], end.end() if end else len(line)
            reader = _READS_SCRIPT.match(without_wrappers("".join(part.pieces[part.begin : part.begin + 9]).strip()))
            inside = [first or second for first, second in _INNER.findall(body)] if word == piece["until"] else []
            scripts = [body] if reader and reader[1] else inside
            for script in scripts if len(scope) < MAX_DEPTH else ():
                yield from simple_commands(script, (*part.scope, at))
            part.pieces += [f" {body}"] if reader and not reader[1] else []
    while opened:
        yield from ended()
        part = opened.pop()
        if opened:
            opened[-1].pieces += part.pieces


def without_wrappers(command: str) -> str:
    """A command without assignments and programs before it that only start it."""
    while match := _WRAPPER.match(command):
        command = command[match.end() :]
    return command


def shown_files(call: SessionCall, folder: str) -> tuple[list[str], str]:
    """Files whose content a call may have shown, as far as input and output name them; and where its shell is then.

    A slash at the end of a name says that it may be a folder, of which all was shown.
    """
    tool, folders, is_printing = call.tool, dict[Scope, str]({(): folder}), call.tool.name == "Grep"
    paths = [tool.input.get(key) for key in PATH_KEYS] if tool.name in {"Read", "NotebookRead", "Grep"} else ()
    found = [f"{path}/" if is_printing else path for path in paths if isinstance(path, str)]
    for command, bare, scope in call.commands:
        here = next(folders[scope[:end]] for end in range(len(scope), -1, -1) if scope[:end] in folders)
        shown = _WRITES_TO.sub(" ", bare or command) if ">" in command else bare or command
        first, *words = [it if it.isalnum() else _MARKS.sub("", it) for it in _WORD.findall(shown)] or [""]
        program = first.rpartition("/")[2]
        while program == "git" and words:
            option, *words = words
            here = join(here, words[0]) if option == "-C" and words else here
            words, program = (words[1:], program) if option in {"-C", "-c"} else (words, f"git-{option.lstrip('-')}")
        is_printing = is_printing or bool(_PRINTS_NAMES.fullmatch(program))
        if program in {"cd", "pushd", "popd"}:
            place = next((word for word in words if not word.startswith("--")), "") or ("~" if program == "cd" else "-")
            folders[scope] = "" if place[0] in "-$" else normpath(join(here, place))[-MAX_FOLDER_LENGTH:]
        elif not _SHOWS_NOTHING.fullmatch(program) or "-exec" in words:
            found += (join(here, name) for name in _named_files(program, words or [first]))
    if is_printing:
        found += (first or second for first, second in _PRINTED.findall(tool.output or ""))
    stays = _STAYS.search(tool.output or "") if call.commands and folders[()] else None
    return found, ("" if stays[1] else folder) if stays else folders[()]


def _named_files(program: str, words: list[str]) -> Iterator[str]:
    """The words of a command that may be files, or patterns of them."""
    is_reader = _READS.fullmatch(program)
    if is_reader and _SEARCHES.fullmatch(program) and not {"-e", "-f"} & {*words}:
        looked_for = next((number for number, word in enumerate(words) if not word.startswith("-")), len(words))
        words = words[:looked_for] + words[looked_for + 1 :]
    words = words[:-1] if _COPIES.fullmatch(program) else words
    for before, word in zip(["", *words], words, strict=False):
        if (
            (is_reader or "/" in word or "." in word)
            and not word.startswith(_NOT)
            and not _LEAVES_OUT.fullmatch(before)
        ):
            parts = () if word.isalnum() else (it.lstrip("@") for it in PATH_WORD.findall(word))
            for name in dict.fromkeys((word[:MAX_SHOWN_LENGTH], *parts)):
                if is_reader or "/" in name or "." in name:
                    yield f"{name}/" if is_reader and name.strip("./") else name
