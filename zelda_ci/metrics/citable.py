"""What can be cited of a patch and of a session, as lines that know what they prove. Pure.

Facts are what somebody else than the session vouches for: what tools returned, what lies in files, what git compared,
and that a call was made. Words are what the session says: its texts and thoughts, its lists and plans, the reports of
its sub-agents, and what a command prints only because the session wrote it into that command or into a file before.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from zelda_ci.domain.session import Noticed, SessionTranscript, ToolCall, Turn, UserSaid
from zelda_ci.judge.rendering import preface, units
from zelda_ci.metrics.quotes import Line, Standing, without_numbers

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADINGS = ("diff --git ", "index ", "--- ", "+++ ", "similarity index ", "dissimilarity index ", "GIT binary patch")
_ESCAPED = re.compile(r'\\([0-7]{3}|[abfnrtv"\\])')
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", '"': '"', "\\": "\\"}


def unquoted(path: str) -> str:
    """A path as git may write it, in quotation marks and with escapes, as it is."""
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    return c_unescaped(path[1:-1])


def c_unescaped(path: str) -> str:
    """A path without git's escapes; what is not UTF-8 becomes a replacement character, as everywhere."""

    def character(found: re.Match[str]) -> bytes:
        word = found[1]
        return bytes([int(word, 8) & 0xFF]) if word.isdigit() else _LETTERS[word].encode()

    pieces, end = list[bytes](), 0
    for found in _ESCAPED.finditer(path):
        pieces += [path[end : found.start()].encode("utf-8", "replace"), character(found)]
        end = found.end()
    return b"".join([*pieces, path[end:].encode("utf-8", "replace")]).decode("utf-8", "replace")


def sections(patch: str) -> dict[str, str]:
    """The parts of a git patch by the path of the file after the change; of a file that is gone, by its last one."""
    parts: dict[str, str] = {}
    # Within a hunk every line begins with a sign.
    for section in re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE):
        if section.startswith("diff --git "):
            parts[_path_of(section)] = section
    return parts


def _walked(patch: str) -> Iterator[tuple[str, bool]]:
    """Every line, and whether it is a line of a file; within a hunk, one that looks like a heading is."""
    before = after = 0
    for line in patch.removesuffix("\n").split("\n"):
        sign = line[:1]
        if sign not in {"+", "-", " ", "", "\\"}:
            hunk = _HUNK.match(line)
            before, after = (int(hunk[1] or 1), int(hunk[2] or 1)) if hunk else (0, 0)
            yield line, False
        elif before > 0 or after > 0:
            before -= sign in {"-", " ", ""}
            after -= sign in {"+", " ", ""}
            yield line, sign != "\\"
        else:
            yield line, sign in {"+", "-", " "} and not line.startswith(("+++ ", "--- "))


def _path_of(section: str) -> str:
    names: dict[str, str] = {}
    for line, is_content in _walked(section):
        if is_content or line.startswith("@@"):
            break
        for start in ("+++ ", "--- ", "rename to ", "copy to "):
            if line.startswith(start):
                names[start] = unquoted(line.removeprefix(start).rstrip("\t"))
    for start in ("rename to ", "copy to "):
        if start in names:
            return names[start]
    named = next((names[start] for start in ("+++ ", "--- ") if names.get(start, "/dev/null") != "/dev/null"), None)
    return named[2:] if named else _from_heading(section.partition("\n")[0])


def _from_heading(heading: str) -> str:
    """The second of two equal paths: nothing else names a file that is binary, empty or of another mode."""
    both = heading.removeprefix("diff --git ").rstrip("\r")
    if both.endswith('"'):
        return unquoted('"' + both.rpartition(' "')[2])[2:]
    return both[len(both) // 2 + 1 :][2:]


def patch_lines(text: str) -> Iterator[Line]:
    """The lines of a patch, or of a part of it that begins with a heading."""
    for line, is_content in _walked(text):
        # With white space behind the sign, which copies have more or less of.
        yield Line(f"{line[:1]} {line[1:]}" if is_content else line, _standing_in_patch(line, is_content=is_content))


def bare_patch_lines(text: str) -> Iterator[Line]:
    """The same lines of files without the marks of the patch."""
    for line, is_content in _walked(text):
        if is_content:
            yield Line(line[1:], _standing_in_patch(line, is_content=True))


def _standing_in_patch(line: str, *, is_content: bool) -> Standing:
    if is_content:
        return {"+": Standing.FACT, "-": Standing.REMOVED}.get(line[:1], Standing.CONTEXT)
    # What git says of a file in its headings is a fact where it is more than names: new, deleted, renamed, its mode.
    return Standing.FRAME if line.startswith((*_HEADINGS, "@@", "\\")) else Standing.FACT


# Tools whose input and output are words: lists, plans, messages.
TALKING = {"TodoWrite", "TodoRead", "ExitPlanMode", "EnterPlanMode", "SendMessage", "StructuredOutput"}
TALKING |= {"TaskCreate", "TaskUpdate", "TaskList", "TaskGet"}
# Their output is what a sub-agent says of its own work.
AGENTS = {"Agent", "Task"}
# Tools that show or change files themselves: what they return is not made of what they were given.
FILE_TOOLS = {"Read", "Grep", "Glob", "LS", "Edit", "Write", "MultiEdit", "NotebookRead", "NotebookEdit"}
WRITING = {"Edit", "Write", "MultiEdit", "NotebookEdit"}
PATHS = ("file_path", "notebook_path", "path")
# Fields in which a session explains itself.
SPOKEN = {"description", "prompt", "todos", "plan", "thought", "summary", "subject", "explanation", "reason"}
SPOKEN |= {"reasoning", "activeForm", "title", "message"}

# Words, and signs like ✓, which distinguish a runner's line from the name of a test.
_WORDS = re.compile(r"\w+|[^\w\s\x00-\x7f]")
_TOKEN = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|(#.*$)|(\|\|?|&&?|[;\n()])|([^\s'"|&;()]+)|(\s+)""", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?[ \t]*['\"\\]?(\w+)['\"]?[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
# Output that goes where other output goes.
_DESCRIPTORS = re.compile(r"\d?>&\d|&>|\d?>\s*/dev/\w+")
_SPEAKERS = {"echo", "printf", ":", "true", "say", "print"}
_SEARCHERS = {"grep", "egrep", "fgrep", "rg", "ag", "ack", "git", "find", "ls", "test", "diff"}
_SETTING = re.compile(r"\w+=")
# Ways in which a command writes a file, from which a later one can repeat it.
_WRITES = re.compile(r">|<<|\btee\b")


@dataclass(frozen=True)
class Speech:
    """What is said in a shell command."""

    spoken: frozenset[str]
    """Words that the command could print because they are in it."""
    done: frozenset[str]
    """Words that do something."""
    written: frozenset[str]
    """Words that are said into a file."""


@functools.lru_cache(maxsize=500)
def speech(command: str) -> Speech:
    """Tell apart what a command says and what it does."""
    spoken = {word for _, body in _HEREDOC.findall(command) for word in _WORDS.findall(body)}
    done, written = set[str](), set[str]()
    for words, literals, comments in _simple_commands(_DESCRIPTORS.sub(" ", _HEREDOC.sub(" ", command))):
        program = next((word.rpartition("/")[2] for word in words if not _SETTING.match(word)), "")
        if program in _SEARCHERS:
            done.update(_said(words), _said(literals))
        elif program in _SPEAKERS:
            spoken.update(_said(words), _said(literals))
            if any(word.startswith((">", "1>")) for word in words):
                written.update(_said(words), _said(literals))
        else:
            done |= _said(words)
            spoken |= _said(literals)
        spoken |= _said(comments)
    return Speech(frozenset(spoken), frozenset(done), frozenset(written))


def _simple_commands(command: str) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Words, texts in quotation marks, and comments of each command between separators."""
    words, literals, comments = list[str](), list[str](), list[str]()
    for single, double, comment, separator, word, _ in _TOKEN.findall(command):
        if separator:
            yield words, literals, comments
            words, literals, comments = [], [], []
        for found, kind in ((single or double, literals), (comment, comments), (word, words)):
            if found:
                kind.append(found)
    yield words, literals, comments


def _said(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in _WORDS.findall(text.replace("\\n", " ").replace("\\t", " "))}


def written_by(call: ToolCall) -> str:
    """What a call may have written into files, as words: a later command could print it."""
    if call.name in WRITING:
        return _phrase(" ".join(value for name, value in _texts(call.input) if name not in PATHS))
    command = call.input.get("command")
    # What a command in the background prints is told by a later call.
    repeats = isinstance(command, str) and (_WRITES.search(command) or call.input.get("run_in_background"))
    return _phrase(str(command).replace("\\n", " ")) if repeats else ""


def _phrase(text: str) -> str:
    """Words between blanks, so that one phrase can be looked for in another."""
    return f" {' '.join(_WORDS.findall(text))} "


def _texts(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Fields as they are shown: texts as they are, everything else as JSON."""
    for name, value in values.items():
        yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class CallSources:
    """What is known beside a call."""

    earlier: Callable[[], Sequence[str]]
    """Phrases that earlier calls have written into files."""
    still: Callable[[str, str], bool]
    """Whether a text that was written into a file at a path is still there, as far as that is known."""


def call_lines(call: ToolCall, heading: str, around: CallSources, *, numbers: bool) -> Iterator[Line]:
    """The lines of a call as they are shown; without numbers, without those that a tool has put before the lines."""
    yield Line(heading, Standing.FRAME)
    for name, text in _texts(call.input):
        given = _given(call, name, around)
        for line in f"{name}: {text}".split("\n"):
            yield Line(line, *given)
    if call.output is None:
        yield Line("[it never returned]", Standing.FRAME)
        return
    how = f"{' an error' if call.is_error else ''}{', denied' if call.denied else ''}"
    yield Line(f"[returned{how}]", Standing.FRAME)
    returned = _returned(call, around)
    for line in (call.output if numbers else _unnumbered(call)).split("\n"):
        yield Line(line, *returned)


Told = tuple[Standing, Callable[[str], Standing] | None]


def _given(call: ToolCall, name: str, around: CallSources) -> Told:
    """What the input of a call proves: that it was made, if it was."""
    if call.name in TALKING or name in SPOKEN or call.denied or call.output is None:
        return Standing.WORDS, None
    if call.name in WRITING and name not in PATHS:
        if call.is_error:
            return Standing.WORDS, None
        path = next((str(call.input[key]) for key in PATHS if key in call.input), "")
        return Standing.FACT, lambda text: Standing.FACT if around.still(path, _field(text, name)) else Standing.UNDONE
    command = call.input.get("command")
    if name == "command" and isinstance(command, str):
        known = speech(command)
        return Standing.FACT, lambda text: Standing.FACT if _is_done(_field(text, name), known) else Standing.WORDS
    return Standing.FACT, None


def _is_done(text: str, command: Speech) -> bool:
    words = set(_WORDS.findall(text))
    return bool((words - command.spoken) & command.done) or words <= command.written


def _field(text: str, name: str) -> str:
    return text.removeprefix(f"{name}:").strip()


def _returned(call: ToolCall, around: CallSources) -> Told:
    """What the output of a call proves: what it says, unless the session had put it there."""
    if call.name in TALKING | AGENTS:
        return Standing.WORDS, None
    if call.name in FILE_TOOLS:
        return Standing.FACT, None
    command = call.input.get("command")
    own = speech(command).spoken if isinstance(command, str) else frozenset(_WORDS.findall(json.dumps(call.input)))
    return Standing.FACT, lambda text: Standing.ECHO if _is_echo(text, own, around.earlier()) else Standing.FACT


def _is_echo(text: str, own: frozenset[str], earlier: Sequence[str]) -> bool:
    words = _WORDS.findall(text)
    if not words or own.issuperset(words):
        return True
    # A single word may be in any file by chance.
    return len(words) > 1 and any(_phrase(text) in phrase for phrase in earlier)


def _unnumbered(call: ToolCall) -> str:
    """An output without the numbers of its lines: those of `Read`, and those that count up."""
    output = str(call.output)
    return without_numbers(output) if call.name in FILE_TOOLS or _counts_up(output) else output


_COUNTED = re.compile(r"^\s*(\d{1,9})(?:\t|→| \|)", re.MULTILINE)


def _counts_up(output: str) -> bool:
    found = [int(number) for number in _COUNTED.findall(output)]
    return len(found) > 1 and all(after == before + 1 for before, after in itertools.pairwise(found))


def turn_lines(turn: Turn, around: CallSources, *, numbers: bool = True, call: int = 0) -> Iterator[Line]:
    """The lines of a turn, or of one of its calls."""
    if not call:
        yield Line(f"[turn {turn.index}]", Standing.FRAME)
        for name, said in (("(thinking) ", turn.thinking), ("", turn.text)):
            for line in f"{name}{said}".split("\n") if said else ():
                yield Line(line, Standing.WORDS)
    for number, made in enumerate(turn.tool_calls, start=1):
        if call in {0, number}:
            heading = f"[turn {turn.index} call {number}: {made.name}]"
            yield from call_lines(made, heading, around, numbers=numbers)


def other_lines(transcript: SessionTranscript, mark: str) -> Iterator[Line]:
    """What happened around the turns, which has no number: hooks, denials, notices, what was said to the model."""
    others = [entry for entry in transcript.entries if not isinstance(entry, Turn)]
    # Before what happened stands what the session had to do without.
    texts = [*preface(transcript, mark), *units(transcript.replace(entries=tuple(others)), mark)]
    known = [None] * (len(texts) - len(others))
    for entry, text in zip([*known, *others], texts, strict=True):
        standing = Standing.WORDS if isinstance(entry, UserSaid | Noticed) else Standing.FACT
        for position, line in enumerate(text.replace(f"[{mark} ", "[").split("\n")):
            yield Line(line, standing if position else Standing.FRAME)
