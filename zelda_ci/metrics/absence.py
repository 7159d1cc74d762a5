"""Claims that something is absent, `PATTERN in PATHS`: a judge cannot quote what is not there, so Zelda looks itself.

What cannot be looked through is not known to be without it: then the claim does not hold, and the reason says why.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import re2

from zelda_ci.domain.session import ToolCall
from zelda_ci.files import globs, untrusted
from zelda_ci.judge.characters import spelled
from zelda_ci.metrics.citable import bare_patch_lines
from zelda_ci.metrics.quotes import Standing

MAX_ENTRIES = 50_000
MAX_FILE_BYTES = 20_000_000
MAX_TOTAL_BYTES = 100_000_000
MAX_PATTERN_LENGTH = 300
MIN_PATTERN_LENGTH = 2
MAX_NAME_LENGTH = 100

# What stands for everything, besides `**`.
EVERYWHERE = {".", "./", "*", "/", "**/*", "everything", "workspace"}
# Instead of a pattern: that no file has such a path at all.
ANY_FILE = {"any file", "file", "files"}
# Instead of paths. A file of that name is written as a path: ./patch
PATCH = "patch"
CALLS = "calls"

_PATHS = re.compile(r"""`([^`]+)`|"([^"]+)"|'([^']+)'|([^\s,]+)""")
_EXPRESSION = re.compile(r"/(.+)/(i?)", re.DOTALL)
_LIKE_AN_EXPRESSION = re.compile(r"\\[a-zA-Z().\[\]{}*+?|^$/]|\.[*+?]|\||^\^|\$$|\[[^\]]+\][*+?]?")
_QUOTED = re.compile(r"""(["'`])(.+)\1""", re.DOTALL)

# What a criterion names.
_NAMED = re.compile(r"""`([^`]+)`|"([^"]+)"|“([^”]+)”""")
_BINARY = re.compile(r"^(?:GIT binary patch$|Binary files .* differ$)", re.MULTILINE)

NOT_NAMED = "the criterion does not name in backticks or quotation marks {}, so it needs a fact beside it"

Finds = Callable[[bytes], bool]


class NotShownError(Exception):
    """Why an absence is not shown."""


@dataclass(frozen=True)
class LookedThrough:
    """Where an absence can be shown."""

    root: Path | None
    """The final workspace."""
    patch: str | None
    """All of it; nothing where it is not known whole."""
    calls: Callable[[], Iterable[ToolCall]]

    def objection(self, claim: str) -> str | None:
        """Why something is not absent, or not known to be; nothing where it is."""
        pattern, separator, places = claim.rpartition(" in ")
        if not separator:
            return "it must have the form PATTERN in PATHS"
        try:
            self._check(pattern.strip(), places.strip())
        except NotShownError as problem:
            return str(problem)
        return None

    def _check(self, pattern: str, places: str) -> None:
        if places.lower() == PATCH:
            self._in_patch(_finder(pattern))
        elif places.lower() == CALLS:
            self._in_calls(_finder(pattern))
        elif self.root is None:
            raise NotShownError("the final files are gone")
        elif pattern.lower() in ANY_FILE:
            _no_file(self.root, _globs(places))
        else:
            _in_files(self.root, _globs(places), _finder(pattern))

    def _in_patch(self, finds: Finds) -> None:
        if self.patch is None:
            raise NotShownError("the whole patch is not known")
        if _BINARY.search(self.patch):
            raise NotShownError("the patch has binary files, whose content it does not show")
        for line in bare_patch_lines(self.patch):
            if line.standing is Standing.FACT and finds(line.text.encode("utf-8", "replace")):
                raise NotShownError("the patch adds it")

    def _in_calls(self, finds: Finds) -> None:
        for call in self.calls():
            given = (str(call.name), *_texts(dict(call.input)))
            if any(finds(text.encode("utf-8", "replace")) for text in given):
                raise NotShownError(f"a call of {spelled(call.name)[:MAX_NAME_LENGTH]} has it")


def shortcoming(claim: str, criterion: str) -> str | None:
    """Why an absence is no proof by itself; nothing where the criterion names what is absent, and where it must be.

    A text that nobody ever wrote is absent everywhere, and so would prove anything.
    """
    pattern, _, places = (part.strip() for part in claim.rpartition(" in "))
    if places.lower() in {PATCH, CALLS}:
        return f"an absence in {places.lower()} needs a fact beside it"
    named = {next(filter(None, found)) for found in _NAMED.findall(criterion)}
    paths = {name.removeprefix("./").removesuffix("/**").rstrip("/") for name in named}
    is_any = pattern.lower() in ANY_FILE
    if not is_any and not any(_literal(pattern) in name for name in named):
        return NOT_NAMED.format("what is absent")
    if any(is_any or glob != "**" for glob in _globs(places) if glob.removesuffix("/**").rstrip("/") not in paths):
        return NOT_NAMED.format("where it was searched")
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    else:
        yield str(value)


def _globs(places: str) -> Sequence[str]:
    names = [next(filter(None, found)) for found in _PATHS.findall(places)]
    names = [name for name in names if name not in {"and", "or"}]
    if not names or places.lower() in {"all files", "the workspace", "the final workspace"}:
        return ("**",)
    return ["**" if name.lower() in EVERYWHERE else name.removeprefix("./") for name in names]


def _finder(pattern: str) -> Finds:
    """Whether a content has it: a text as it is, or between slashes an expression of RE2."""
    if expression := _EXPRESSION.fullmatch(pattern):
        return _expression(expression[1], ignores_case=bool(expression[2]))
    literal = _literal(pattern)
    if not MIN_PATTERN_LENGTH <= len(literal.strip()) <= MAX_PATTERN_LENGTH:
        raise NotShownError(f"a pattern has {MIN_PATTERN_LENGTH} to {MAX_PATTERN_LENGTH} characters")
    forms = {literal.encode(coding, "replace") for coding in ("utf-8", "utf-16-le", "utf-16-be")}
    meant: Finds | None = None
    if _LIKE_AN_EXPRESSION.search(literal):
        # Meant as one, though without slashes: as a text it would be absent everywhere.
        with suppress(NotShownError):
            meant = _expression(literal, ignores_case=False)
    return lambda data: any(form in data for form in forms) or bool(meant and meant(data))


def _literal(pattern: str) -> str:
    quoted = _QUOTED.fullmatch(pattern)
    return quoted[2] if quoted else pattern


def _expression(text: str, *, ignores_case: bool) -> Finds:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignores_case
    options.max_mem = 1 << 24
    try:
        expression = re2.compile(f"(?m:{text})" if len(text) <= MAX_PATTERN_LENGTH else "(", options)
    except re2.error:
        raise NotShownError("the pattern is no expression that RE2 understands") from None
    if expression.search(""):
        raise NotShownError("the pattern is found in every text")
    return lambda data: any(expression.search(text) for text in _decoded(data))


def _decoded(data: bytes) -> Iterator[str]:
    yield data.decode("utf-8", "replace")
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        yield data.decode("utf-16", "replace")


def _matching(root: Path, patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Regular files, and what is neither a file nor a folder, of all but git's own."""
    tree = untrusted.tree(root, MAX_ENTRIES, leave_out=(".git",))
    if not tree.is_whole:
        raise NotShownError("there are too many files to look through, or folders that cannot be entered")
    files = (path for path, _ in tree.files)
    regular, others = ([path for path in paths if globs.matches(patterns, path)] for paths in (files, tree.others))
    return regular, others


def _no_file(root: Path, patterns: Sequence[str]) -> None:
    for path in itertools.chain(*_matching(root, patterns)):
        raise NotShownError(f"{spelled(path)[:MAX_NAME_LENGTH]} is there")


def _in_files(root: Path, patterns: Sequence[str], finds: Finds) -> None:
    files, others = _matching(root, patterns)
    for path in others:
        raise NotShownError(f"{spelled(path)[:MAX_NAME_LENGTH]} is a link or no regular file, and was not looked into")
    read = filled = 0
    for path in files:
        name = spelled(path)[:MAX_NAME_LENGTH]
        try:
            data = untrusted.read_below(root, path, MAX_FILE_BYTES)
        except OSError as problem:
            raise NotShownError(f"{name} could not be looked through ({problem.strerror})") from None
        if len(data) > MAX_FILE_BYTES:
            raise NotShownError(f"{name} could not be looked through (it is too large)")
        read += len(data)
        filled += bool(data.strip())
        if finds(data):
            raise NotShownError(f"{name} has it")
        if read > MAX_TOTAL_BYTES:
            raise NotShownError("there is too much to look through; name fewer paths")
    if not filled:
        raise NotShownError("the files are empty" if files else "no file has such a path")
