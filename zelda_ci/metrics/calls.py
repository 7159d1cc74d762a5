"""Calls that a session made, and the rules by which checks name them: those of Claude Code's permissions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise
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
    **dict.fromkeys(("Agent", "Task"), ("Agent", "Task")),
}
PATH_KEYS = ("file_path", "notebook_path", "path")
# What Claude Code answers where a call was not carried out at all.
NOT_CARRIED_OUT = "<tool_use_error>"
MAX_COMMAND_LENGTH, MAX_SHOWN_LENGTH, MAX_FOLDER_LENGTH = 100_000, 200, 1000
# Of subshells and quotations in each other, and of those around a line that a shell runs.
MAX_NESTED, MAX_AROUND_LINE = 40, 3
# Words that may be paths, in whatever alphabet, and how those begin that are neither options nor numbers.
PATH_WORD = re2.compile(r"[\pL\pN_.@+~%/-]*[\pL\pN_.]")
_NAME = re2.compile(r"(?:[^-].*)?[\pL*?]")
# Sessions write these lines: no line takes for ever.
_PIECE = re.compile(
    r"""
    (?P<text> \\. | '[^']*' | \$'(?:\\.|[^\\'])*' | \$?\(\((?:[^()]|(?<!\$)\([^()]*\))*\)\) | \$\{[^}'"`$]*\} )
    | (?P<gap> [^\S\n]+ | (?:(?<=[\s;&|(])|^) \#[^\n]* )
    | <<-?[ \t]*(?P<document> (?: '[^'\n]*' | "[^"\n]*" | [^\s;&|<>()'"] )+ )
    | (?P<open> [$<>]\( | ["`] )
    | (?P<redirection> (?: (?<!\S)\d+ | & )? (?: <<< | [<>]{1,2} ) [&|]? [ \t]* )
    | (?P<end> && | \|[|&]? | ;{1,2} | [&\n()] )
    | [^\\'"$`;&|()<>\#\s]+ | .
    """,
    re.DOTALL | re.VERBOSE | re.MULTILINE,
)
# The same within double quotes, and in here-documents.
_QUOTED = re.compile(r'\\.|\$\(\((?:[^()]|(?<!\$)\([^()]*\))*\)\)|(?P<open>\$\(|`)|[^\\"$`]+|.', re.DOTALL)
# Of a command, behind each word of which there is a NUL: what may stand before it, which are keywords, assignments and
# programs that run it, with their options and numbers; its redirections, and files among them; the line that it runs.
_SYNTAX = re.compile(r"\A(?:(?:if|then|elif|else|fi|while|until|do|done|function\0+[^\0]+|[!{}]?|[^\0()]+\(\)\{?)\0+)*")
_CASE = re.compile(r"\0*(?:(?:then|do|else|[{])\0+)?case\0")
_STARTERS = re.compile(
    r"\A(?:(?:[!{]|if|while|until)\0+|[A-Za-z_]\w*\+?=[^\0]*\0+|(?:[^\0]*/)?(?:sudo|doas|env|time|nohup|setsid|(?:io)?nice"
    r"|stdbuf|command|builtin|exec|coproc|timeout|watch|xargs|busybox)\0+(?!(?<=command\0)-[vV])"
    r"(?:-[uIdaC]\0+[^\0]+\0+|-s\0+[A-Z\d]+\0+|-[^\0]+\0+|\d+(?:\.\d+)?[smhd]?\0+)*)*"
)
_BEFORE_NAME = re.compile(
    r"\A(?:[^\0]*/)?(?:(git\0+)(?:(?:-[Cc]|--(?:git-dir|work-tree|namespace))\0+[^\0]+\0+|-(?!-?h)[^\0]*\0+)+)?"
)
_REDIRECTION = re.compile(r"(?<![^\0])(?:\d+|&)?(?:<(?![<(&])[ \t]*([^\0]*)|[<>](?!\()[^\0]*)\0+")
_RUNS = re.compile(r"eval\0+(.*)|(?:ba|z|da|k|a|fi)?sh\0+(?:-(?:\w*[oO]\0+\w)?[^\0]*\0+)*?-\w*c\0+([^\0]*)", re.DOTALL)
# What programs do with files that they name, and to which of them a here-document is no data.
_PROGRAM = re.compile(
    r"""
    (?P<shell> (?:ba|z|da|k|a|fi)?sh ) | (?P<interpreter> (?:python|node|ruby|perl|php|deno|bun)[\d.]* )
    | (?P<moves> cd|pushd|popd ) | (?P<edits> sed|awk|jq|yq ) | (?P<copies> cp|mv|ln|install|rsync|scp )
    | (?P<reads> cat|tac|bat|head|tail|less|more|nl|cut|sort|uniq|wc|cmp|od|xxd|hexdump|strings|base64|tar|zip
        |source|[.] ) | (?P<greps> (?:[ef]|git-)?grep|rg|ag|ack )
    | (?P<compares> diff
        |git-(?:show|diff.*|log|whatchanged|blame|annotate|cat-file|archive|stash|format-patch|merge-file) )
    | (?P<shows_nothing> echo|printf|export|rm|rmdir|unlink|mkdir|touch|truncate|chmod|chown|ls|tree|du|stat|test
        |\[{1,2}|find|tee|which|basename|dirname|realpath|readlink|gh|git-.* )
    """,
    re.VERBOSE,
)
# What a shell takes for one text, and in double quotes for one character.
_UNQUOTED = re.compile(r"""\$?'([^']*)'|\$?"((?:\\.|[^"\\])*)"|\\(.)""", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`])')
# Words that leave files out, and those behind which such files stand.
_NOT = ("!", ":!", ":^", ":(exclude", "--exclude", "--ignore", "--glob=!", "-g!")
_LEAVES_OUT = re.compile(r"--(?:exclude|ignore)[\w-]*|-path|-name")
_MARKS = re.compile(r"""['"\\]|\$(?:\{?(?:PWD|CLAUDE_PROJECT_DIR)\}?|\((?:pwd|git rev-parse --show-toplevel)\))/""")
# How grep and diff name the file whose lines they print.
_PRINTED = re.compile(r"^(?:[-+]{3} [ab]/([^\t\n]{1,300})|([^\s:]{1,300}):)", re.MULTILINE)
# Claude Code's shell is where the line before left it, unless that did not work or is outside of the project.
_STAYS = re.compile(r"(Shell cwd was reset to)|\bcd: ")
# Subshells that a command is in, by where each begins.
Scope = tuple[int, ...]
# How rules may name a simple command: as it is, without what only starts it, without redirections; the words of the
# last of these, as they are written, and files that are its input.
Command = tuple[list[str], list[str], Scope]


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
        is_refused = self.tool.denied or (self.tool.output or "").startswith(NOT_CARRIED_OUT)
        return not (is_refused or (self.tool.is_error and self.tool.name in TURNS_TO))

    @cached_property
    def commands(self) -> list[Command]:
        """Of a shell line, the simple commands in it, in order."""
        line = self.tool.input.get("command") if self.tool.name == "Bash" else None
        return ShellLine(line[:MAX_COMMAND_LENGTH]).commands if isinstance(line, str) else []

    @property
    def shown(self) -> str:
        values = [value for value in self.tool.input.values() if isinstance(value, str)]
        return (self.tool.label if self.tool.label != self.tool.name or not values else values[0])[:MAX_SHOWN_LENGTH]


def positions(rule: str, call: SessionCall, manifest: ToolsManifest) -> tuple[int, ...]:
    """Of the commands of a shell line, the numbers of those that a rule names, such as `Bash(git push*)`; else 0."""
    (name, opened, rest), tool, given = rule.partition("("), call.tool.name, call.tool.input
    if not (tool in FAMILIES.get(name, ()) or _like(name)(tool) or tool.startswith(f"{name}__")):
        return ()
    wanted, found = rest.removesuffix(")"), tuple[int, ...]()
    if not opened or wanted == "*":
        return (0,)
    is_like = _like(wanted)
    if tool == "Bash":
        found = tuple(number for number, (forms, *_) in enumerate(call.commands) if any(map(is_like, forms)))
        # A rule may be a line itself.
        is_meant = re.search(r"&&|[;|<>]", wanted) and is_like(" ".join(str(given.get("command")).split()))
    elif tool in FAMILIES["Read"] + FAMILIES["Edit"]:
        paths = [given[key] for key in PATH_KEYS if isinstance(given.get(key), str)]
        below = "/*" if tool in {"Grep", "Glob", "LS"} else ""
        is_meant = any(covers_path([wanted], f"{path}{below}", manifest) for path in paths)
    elif tool in TURNS_TO:
        is_meant = is_named(call.tool.label.partition("(")[2].removesuffix(")"), wanted)
    elif wanted.startswith("domain:"):
        address = re.sub(r"^\w+://(?:[^/\\@?#]*@)?", "", str(given.get("url") or ""))
        host, domain = re.split(r"[/\\:?#]", address)[0].lower().rstrip("."), wanted.removeprefix("domain:").lower()
        is_meant = _like(domain)(host) or host.endswith(f".{domain}")
    else:
        is_meant = any(map(is_like, texts_of(given)))
    return found or ((0,) if is_meant else ())


def is_named(name: str, wanted: str) -> bool:
    """Whether a skill or sub-agent of a name is one that a rule wants, be it without its plugin's name."""
    wanted = wanted.removeprefix("/")
    # All of a plugin, too.
    forms = _like(wanted), _like(wanted.replace(":*", ":**"))
    return any(is_like(each) for is_like in forms for each in (name, name.rpartition(":")[2]))


def covers(patterns: Iterable[str], path: str | None) -> bool:
    """Whether the patterns cover a path, of which those behind `!` take out again what others before them cover."""
    found = [it for it in patterns if path and globs.matches([it.removeprefix("!").removeprefix("./")], path)]
    return bool(found) and not found[-1].startswith("!")


def covers_path(patterns: Sequence[str], path: str, manifest: ToolsManifest) -> bool:
    """Whether the patterns cover a path as the session wrote it; `//` and `~/` begin those from the top and HOME."""
    # Workspace and HOME of a session lie in one folder.
    home = f"{(manifest.workspace or '').rpartition('/')[0]}/home/"
    path = normpath(join(manifest.workspace or "", manifest.folder or "", re.sub("^~/", lambda _: home, path)))
    relative = manifest.in_folder(manifest.in_tree(path))
    return covers((it for it in patterns if it[:2] not in {"//", "~/"}), relative) or any(
        path.startswith(top) and covers((it[1:] for it in patterns if it.startswith(begin)), path[len(top) :])
        for begin, top in (("//", "/"), ("~/", home))
    )


def texts_of(value: Any) -> Iterator[str]:
    """Every text and number in the input of a call."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    yield from [str(value)] if isinstance(value, str | int | float) else chain.from_iterable(map(texts_of, inner))


@lru_cache(maxsize=1000)
def _like(wanted: str) -> Any:
    """Returns what says whether a text is as a rule wants it, in which `*` stands for any text."""
    # `:*` is the older way to write a prefix.
    text, rest = (wanted[:-2], r"(\s.*)?") if wanted.endswith((":*", " *")) else (wanted, "")
    return re2.compile(f"(?s){'.*'.join(map(re2.escape, text.split('*')))}{rest}").fullmatch


class ShellLine:
    """Takes a shell line apart into its simple commands, each behind those inside of it.

    What a program makes of its arguments, nobody sees here, but for shells. Bodies of here-documents are data.
    """

    def __init__(self, line: str, scope: Scope = (), closer: str = "") -> None:
        self.commands = list[Command]()
        self._line, self._at, self._behind = line.replace("\\\n", " ") + "\n", 0, 0
        self._read(closer, scope)

    def _read(self, closer: str, scope: Scope, *, is_code: bool = True) -> str:
        """Read up to what closes a subshell or a quotation, and return that text; what is no code names no commands."""
        before, command, documents, is_pattern = "", "", list[tuple[str, bool]](), False
        pattern = _QUOTED if closer in {'"', '""'} else _PIECE
        while piece := pattern.match(self._line, self._at):
            self._at, kind, text = piece.end(), piece.lastgroup, piece[0]
            if kind == "end":  # Patterns stand between `case` or `;;` and a bracket.
                is_pattern = bool(_CASE.match(command)) or (is_pattern and not re.match(r"\0*esac\b", command))
            if text == closer and not (kind == "end" and is_code and is_pattern):
                break
            # Of arrays and functions, and within [[ ]].
            is_text = text == "(" and (not is_code or command[-1:] not in {"", "\0"} or "[[\0" in command)
            if kind == "end" and not is_text:
                self._keep("" if is_pattern else command, documents, scope, is_code=is_code)
                is_pattern = text == ";;" or (is_pattern and text not in "()")
                before, command, documents = before + command + text, "", []
                self._at = max(self._at, self._behind) if text == "\n" else self._at
            else:
                command += "\0" if kind == "gap" else f"\0{text}" if kind in {"redirection", "document"} else text
            if kind == "document":
                documents.append(self._document(piece[kind]))
            elif (kind == "open" or (kind == "end" and text == "(")) and len(scope) < MAX_NESTED:
                inner = self._read(text if text in '"`' else ")", (*scope, self._at), is_code=not is_text)
                command += inner if kind == "open" or is_text else ""
        if pattern is _PIECE:
            self._keep(command, documents, scope, is_code=is_code)
        return f"{before}{command}{closer}".replace("\0", " ")

    def _document(self, until: str) -> tuple[str, bool]:
        """The body of a here-document, behind that of one before it, and whether commands in it are run."""
        start, word = max(self._line.find("\n", self._at), self._behind), _MARKS.sub("", until)
        end = re.compile(rf"^\t*{re.escape(word)}$", re.MULTILINE).search(self._line, start + 1)
        stop, self._behind = end.span() if end else 2 * (len(self._line),)
        return self._line[start + 1 : stop], word == until

    def _keep(self, command: str, documents: list[tuple[str, bool]], scope: Scope, *, is_code: bool) -> None:
        """Keep a command, and behind it those of the lines that it runs."""
        whole = _SYNTAX.sub("", f"{command}\0")
        cleared = _REDIRECTION.sub("", whole)
        unquoted = _UNQUOTED.sub(_inner, cleared)
        bare = {it: _STARTERS.sub("", it) for it in dict.fromkeys((whole, cleared, unquoted))}
        said = _BEFORE_NAME.sub(lambda it: it[1] or "", bare[unquoted])
        if re.match(r"[^\0]*\s", said):  # as no program is called
            said = bare[unquoted] = bare[cleared]
        kind, runs = _kind(said.partition("\0")[0]), _RUNS.match(said)
        words = [*filter(None, bare[cleared].split("\0")), *filter(None, _REDIRECTION.findall(whole))]
        words += (body for body, _ in documents if kind == "interpreter")
        forms = [" ".join(it.replace("\0", " ").split()) for it in dict.fromkeys((whole, *bare.values(), said))]
        self.commands += [(forms if is_code else [], words, scope)] if whole else []
        lines = [(body, "" if kind == "shell" else '""') for body, is_run in documents if is_run or kind == "shell"]
        lines += [((runs[1] or runs[2] or "").replace("\0", " "), "")] if runs else []
        lines += [(_UNQUOTED.sub(_inner, it), "") for it in re.findall(r"\0<<<\s*([^\0]*)", whole) if kind == "shell"]
        for line, end in lines if is_code and len(scope) < MAX_AROUND_LINE else ():
            self.commands += ShellLine(line, (*scope, self._at), end).commands


def _inner(text: re.Match[str]) -> str:
    return text[1] or _ESCAPED.sub(r"\1", text[2] or "") or text[3] or ""


def _kind(program: str) -> str | None:
    return (match := _PROGRAM.fullmatch(program.rpartition("/")[2])) and match.lastgroup


def shown_files(call: SessionCall, folder: str) -> tuple[list[str], str]:
    """Files whose content a call may have shown, as far as input and output name them; and where its shell is then.

    A slash at the end of a name says that it may be a folder, of which all was shown.
    """
    tool, folders, is_printing = call.tool, dict[Scope, str]({(): folder}), call.tool.name == "Grep"
    keys = (*PATH_KEYS, "glob") if tool.name in {"Read", "NotebookRead", "Grep"} else ()
    found = [it + "/" * is_printing for key in keys if isinstance(it := tool.input.get(key), str) and it[:1] != "!"]
    if is_printing and tool.input.get("output_mode", "files_with_matches") == "files_with_matches":
        found += (tool.output or "").splitlines()
    for _, written, scope in call.commands:
        here = next(folders[scope[:end]] for end in range(len(scope), -1, -1) if scope[:end] in folders)
        words = [it if it.isalnum() else _MARKS.sub("", it) for it in written]
        while words[1:] and words[0] == "git":
            _, option, *words = words
            here = join(here, words[0]) if option == "-C" and words else here
            words = ["git", *words[option in {"-C", "-c"} :]] if option[:1] == "-" else [f"git-{option}", *words]
        kind = _kind(words[0]) if words else None
        is_printing = is_printing or kind in {"greps", "compares"}
        if kind == "moves":
            place = next((word for word in words[1:] if word[:2] not in {"", "--"}), "-")
            folders[scope] = "" if place[0] in "-$" else normpath(join(here, place))[-MAX_FOLDER_LENGTH:]
        elif kind != "shows_nothing" or "-exec" in words:
            found += (join(here, name) for name in _named_files(kind, words[bool(kind or words[1:]) :]))
    if is_printing:
        found += (first or join(folders[()], second) for first, second in _PRINTED.findall(tool.output or ""))
    stays = _STAYS.search(tool.output or "") if call.commands and folders[()] else None
    return found, ("" if stays[1] else folder) if stays else folders[()]


def _named_files(kind: str | None, words: list[str]) -> Iterator[str]:
    """The words behind a program that may be files or folders, or patterns of them."""
    plain, is_reader = [word for word in words if not word.startswith("-")], kind not in {None, "shell", "interpreter"}
    # What is looked for, and what is written.
    others = plain[:1] if kind in {"greps", "edits"} else plain[-1:] if kind == "copies" else []
    for before, word in pairwise(["", *words]):
        is_left_out = word in others or word.startswith(_NOT) or _LEAVES_OUT.fullmatch(before)
        if not is_left_out and (is_reader or "/" in word or "." in word):
            for name in dict.fromkeys((word[:MAX_SHOWN_LENGTH], *(it.lstrip("@") for it in PATH_WORD.findall(word)))):
                if (is_reader and _NAME.match(name)) or "/" in name or "." in name:
                    yield f"{name}/" if is_reader else name
