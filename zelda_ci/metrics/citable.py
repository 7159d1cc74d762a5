"""What can be cited of a patch and of a session, as lines that know what they prove. Pure.

Facts are what somebody else than the session vouches for: what tools returned, what lies in files, what git compared,
and that a call was made. Words are what the session says: its texts and thoughts, its lists and plans, the reports of
its sub-agents. A result proves nothing where it only repeats what the session had typed or written before.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from zelda_ci.domain.session import Noticed, SessionTranscript, ToolCall, Turn, UserSaid
from zelda_ci.judge.rendering import fields, preface, units
from zelda_ci.metrics.quotes import Line, Standing, lines_of, without_numbers

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADINGS = ("diff --git ", "index ", "--- ", "+++ ", "similarity index ", "dissimilarity index ", "GIT binary patch")


def unquoted(path: str) -> str:
    """A path as git may write it, in quotation marks and with escapes, as it is."""
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    characters = path[1:-1].encode("utf-8", "replace").decode("unicode_escape", "replace")
    return characters.encode("latin-1", "replace").decode("utf-8", "replace")


def sections(patch: str) -> dict[str, str]:
    """The parts of a git patch by the path of the file after the change; of a file that is gone, by its last one."""
    # Within a hunk every line begins with a sign.
    parts = re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)
    return {_path_of(part): part for part in parts if part.startswith("diff --git ")}


def _path_of(section: str) -> str:
    head = re.split(r"^(?:@@|GIT binary patch)", section, maxsplit=1, flags=re.MULTILINE)[0]
    named = dict(re.findall(r"^(rename to|copy to|\+\+\+|---) (.*?)\t?$", head, re.MULTILINE))
    for start, prefix in (("rename to", ""), ("copy to", ""), ("+++", "b/"), ("---", "a/")):
        if named.get(start, "/dev/null") != "/dev/null":
            return unquoted(named[start]).removeprefix(prefix)
    # The second of two equal paths: nothing else names a file that is binary, empty or of another mode.
    both = section.partition("\n")[0].removeprefix("diff --git ").rstrip("\r")
    return unquoted('"' + both.rpartition(' "')[2])[2:] if both.endswith('"') else both[len(both) // 2 + 1 :][2:]


def patch_lines(patch: str, *, is_bare: bool = False, removed: bool = False) -> Iterator[Line]:
    """The lines of a patch, or of a part of it; bare, only those of files without signs; or what proves a removal.

    Within a hunk, a line that looks like a heading is a line of the file.
    """
    before = after = 0
    for line in patch.removesuffix("\n").split("\n"):
        sign = line[:1]
        if sign in {"+", "-", " ", ""} and (before > 0 or after > 0):
            before -= sign != "+"
            after -= sign != "-"
            is_content = True
        else:
            if sign != "\\":
                hunk = _HUNK.match(line)
                before, after = (int(hunk[1] or 1), int(hunk[2] or 1)) if hunk else (0, 0)
            is_content = sign in {"+", "-", " "} and not line.startswith(("+++ ", "--- "))
        # What git says of a file in its headings is a fact where it is more than names: new, deleted, its mode.
        standing = Standing.FRAME if line.startswith((*_HEADINGS, "@@", "\\")) else Standing.FACT
        if is_content:
            standing = {"+": Standing.FACT, "-": Standing.REMOVED}.get(sign, Standing.CONTEXT)
        if removed:
            standing = Standing.FACT if standing is Standing.REMOVED else Standing.FRAME
        if is_content or not is_bare:
            # With white space behind the sign, which copies have more or less of.
            yield Line(line if not is_content else line[1:] if is_bare else f"{sign} {line[1:]}", standing)


def added(patch: str) -> Iterator[str]:
    """The lines that a patch adds."""
    return (line.text for line in patch_lines(patch, is_bare=True) if line.standing is Standing.FACT)


# Tools whose input and output are words: lists, plans, messages.
TALKING = {"TodoWrite", "TodoRead", "ExitPlanMode", "EnterPlanMode", "SendMessage", "StructuredOutput"}
TALKING |= {"TaskCreate", "TaskUpdate", "TaskList", "TaskGet"}
# Their output is what a sub-agent says of its own work.
AGENTS = {"Agent", "Task"}
WRITING = {"Edit", "Write", "MultiEdit", "NotebookEdit"}
PATHS = {"file_path", "notebook_path", "path"}
# Fields in which a session explains itself.
SPOKEN = {"description", "prompt", "todos", "plan", "thought", "summary", "subject", "explanation", "reason"}
SPOKEN |= {"reasoning", "activeForm", "title", "message"}

# Of a command that is taken apart; all beyond counts as said. A session could write one that takes hours.
MAX_COMMAND_LENGTH = 10_000
# Words, and signs like ✓, which distinguish a runner's line from the name of a test.
_WORDS = re.compile(r"\w+|[^\w\s\x00-\x7f]")
# What a command says instead of doing it: here-documents, texts in quotation marks, comments, what is echoed.
_SAID = re.compile(
    r"<<-?[ \t]*['\"\\]?(?P<end>\w+)[^\n]*\n.*?(?:^[ \t]*(?P=end)[ \t]*$|\Z)"
    r"|\b(?:echo|printf)\b(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\d?>&\d|&>|[^;&|>\n'\"])*"
    r"|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<!\S)#[^\n]*",
    re.MULTILINE | re.DOTALL,
)


def phrase(text: str) -> str:
    """Words between blanks, so that one phrase can be looked for in another; escaped line breaks are blanks, too."""
    words = _WORDS.findall(text.replace("\\n", " ").replace("\\t", " "))
    return f" {' '.join(words)} "


def typed_in(call: ToolCall) -> str:
    """What a call was given, as a phrase: it or a later one could print it."""
    return phrase(" ".join(text for name, text in fields(call.input) if name not in PATHS))


def turn_lines(turn: Turn, call: int, typed: Sequence[str], added: str, *, numbers: bool) -> Iterator[Line]:
    """The lines of a turn, or of one of its calls, without headings; or without numbers that a tool put before them.

    `typed` are phrases that the session had typed by then; `added` is what the patch adds, as a `plain` text.
    """
    if not call:
        for start, said in (("(thinking) ", turn.thinking), ("", turn.text)):
            yield from lines_of(f"{start}{said}", Standing.WORDS) if said else ()
    for made in turn.tool_calls[call - 1 : call] if call else turn.tool_calls:
        for name, text in fields(made.input):
            yield from lines_of(f"{name}: {text}", _given(made, name, text, added))
        if made.output is not None:
            found = [int(number) for number in re.findall(r"^\s*(\d{1,9})(?:\t|→| \|)", made.output, re.MULTILINE)]
            counts_up = len(found) > 1 and all(after == before + 1 for before, after in itertools.pairwise(found))
            output = without_numbers(made.output) if counts_up and not numbers else made.output
            yield from lines_of(output, _returned(made, typed))


def _given(call: ToolCall, name: str, text: str, added: str) -> Standing | Callable[[str], Standing]:
    """What the input of a call proves: that it was made, if it was."""
    if call.name in TALKING or name in SPOKEN or call.denied or call.output is None:
        return Standing.WORDS
    if call.name in WRITING and name not in PATHS:
        written = Standing.WORDS if call.is_error else Standing.UNDONE
        return lambda piece: Standing.FACT if piece.removeprefix(f"{name}: ") in added else written
    if name != "command":
        return Standing.FACT
    done = set(_WORDS.findall(_SAID.sub(" ", text[:MAX_COMMAND_LENGTH]))) - _said(text)

    def standing(piece: str) -> Standing:
        return Standing.WORDS if done.isdisjoint(_WORDS.findall(piece.removeprefix("command: "))) else Standing.FACT

    return standing


def _said(command: str) -> set[str]:
    said = [found[0] for found in _SAID.finditer(command[:MAX_COMMAND_LENGTH])]
    return {word for text in (*said, command[MAX_COMMAND_LENGTH:]) for word in phrase(text).split()}


def _returned(call: ToolCall, typed: Sequence[str]) -> Standing | Callable[[str], Standing]:
    """What the output of a call proves: what it says, unless the session had written it itself."""
    if call.name in TALKING | AGENTS:
        return Standing.WORDS
    own, said = typed_in(call), _said(str(call.input.get("command", "")))

    def standing(piece: str) -> Standing:
        repeated = phrase(piece)
        words = repeated.split()
        # A single word may be in any earlier text by chance.
        is_typed = repeated in own or (len(words) > 1 and any(repeated in earlier for earlier in typed))
        return Standing.ECHO if is_typed or said.issuperset(words) else Standing.FACT

    return standing


def other_lines(transcript: SessionTranscript, mark: str) -> Iterator[Line]:
    """What happened around the turns, which has no number: hooks, denials, notices, what was said to the model."""
    others = [entry for entry in transcript.entries if not isinstance(entry, Turn)]
    # Before what happened stands what the session had to do without.
    texts = [*preface(transcript, mark), *units(transcript.replace(entries=tuple(others)), mark)]
    known = [None] * (len(texts) - len(others))
    for entry, text in zip([*known, *others], texts, strict=True):
        standing = Standing.WORDS if isinstance(entry, UserSaid | Noticed) else Standing.FACT
        yield from lines_of(text.partition("\n")[2], standing)
