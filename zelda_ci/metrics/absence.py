"""Claims that something is absent: a judge cannot quote what is not there, so Zelda looks itself.

What cannot be looked through is not known to be without it: then the claim does not hold, and the reason says why.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

from zelda_ci.domain.session import ToolCall
from zelda_ci.judge.characters import spelled
from zelda_ci.judge.workspace import MAX_SEARCHED_BYTES, FinalTree, LookupFailedError, expression
from zelda_ci.metrics.citable import added
from zelda_ci.metrics.citations import CitedPlace

MIN_PATTERN_LENGTH = 2
MAX_NAME_LENGTH = 100

# What stands for everything, besides `**`.
EVERYWHERE = {"", ".", "./", "*", "/", "**/*"}
# Instead of paths. A file of that name is written as a path: ./patch
PATCH, CALLS = ("patch",), ("calls",)

# A text that was probably meant as an expression: it would be absent everywhere.
_LIKE_AN_EXPRESSION = re.compile(r"\\[a-zA-Z().\[\]{}*+?|^$/]|\.[*+?]|\||^\^|\$$|\[[^\]]+\][*+?]?")
# What a criterion names.
_NAMED = re.compile(r"""`([^`]+)`|"([^"]+)"|“([^”]+)”""")
_BINARY = re.compile(r"^(?:GIT binary patch$|Binary files .* differ$)", re.MULTILINE)

NOT_NAMED = "the criterion does not name in backticks or quotation marks {}, so it needs a fact beside it"


def objection(tree: FinalTree | None, patch: str | None, calls: Sequence[ToolCall], place: CitedPlace) -> str | None:
    """Why something is not absent from the final tree, the calls or the patch, which is None where not known whole."""
    try:
        finds = _finder(place) if place.pattern.strip() else None
        contents = _contents(tree, patch, calls, place)
        return next((why for why, data in contents if finds is None or finds(data)), None)
    except LookupFailedError as problem:
        return str(problem)


def _contents(
    tree: FinalTree | None, patch: str | None, calls: Sequence[ToolCall], place: CitedPlace
) -> Iterator[tuple[str, bytes]]:
    """All that is looked through, each with the sentence for where it has what should be absent."""
    if place.paths in (PATCH, CALLS) and not place.pattern.strip():
        raise LookupFailedError("it has no pattern")
    if place.paths == CALLS:
        for call in calls:
            why = f"a call of {_named(call.name)} has it"
            yield from ((why, text.encode("utf-8", "replace")) for text in (call.name, *_texts(dict(call.input))))
    elif place.paths == PATCH:
        if patch is None:
            raise LookupFailedError("the whole patch is not known")
        if _BINARY.search(patch):
            raise LookupFailedError("the patch has binary files, whose content it does not show")
        yield from (("the patch adds it", line.encode("utf-8", "replace")) for line in added(patch))
    elif tree is None:
        raise LookupFailedError("the final files are gone")
    elif not tree.is_whole:
        raise LookupFailedError("there are too many files to look through, or folders that cannot be entered")
    else:
        yield from _files(tree, _globs(place.paths), is_read=bool(place.pattern.strip()))


def _named(name: str) -> str:
    return spelled(name)[:MAX_NAME_LENGTH]


def _files(tree: FinalTree, patterns: Sequence[str], *, is_read: bool) -> Iterator[tuple[str, bytes]]:
    files, others = tree.files(patterns), tree.others(patterns)
    if not is_read:
        yield from ((f"{_named(path)} is there", b"") for path in (*files, *others))
        return
    for path in others:
        raise LookupFailedError(f"{_named(path)} is a link or no regular file, and was not looked into")
    read = filled = 0
    for path in files:
        try:
            data = tree.read(path)
        except OSError as problem:
            raise LookupFailedError(f"{_named(path)} could not be looked through ({problem.strerror})") from None
        read += len(data)
        filled += bool(data.strip())
        yield f"{_named(path)} has it", data
        if read > MAX_SEARCHED_BYTES:
            raise LookupFailedError("there is too much to look through; name fewer paths")
    if not filled:
        raise LookupFailedError("the files are empty" if files else "no file has such a path")


def shortcoming(place: CitedPlace, criterion: str) -> str | None:
    """Why an absence is no proof by itself; nothing where the criterion names what is absent, and where it must be.

    A text that nobody ever wrote is absent everywhere, and so would prove anything.
    """
    if place.paths in (PATCH, CALLS):
        return f"an absence in {place.paths[0]} needs a fact beside it"
    named = {next(filter(None, found)) for found in _NAMED.findall(criterion)}
    paths = {name.removeprefix("./").removesuffix("/**").rstrip("/") for name in named}
    if place.pattern and (place.is_regex or not any(place.pattern in name for name in named)):
        return NOT_NAMED.format("what is absent")
    globs = (glob for glob in _globs(place.paths) if not place.pattern or glob != "**")
    if any(glob.removesuffix("/**").rstrip("/") not in paths for glob in globs):
        return NOT_NAMED.format("where it was searched")
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from chain.from_iterable(map(_texts, chain(value.keys(), value.values())))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_texts, value))
    else:
        yield str(value)


def _globs(paths: Sequence[str]) -> list[str]:
    return ["**" if path in EVERYWHERE else path.removeprefix("./") for path in map(str.strip, paths)]


def _finder(place: CitedPlace) -> Callable[[bytes], bool]:
    """Whether a content has it, in any coding in which files are written."""
    pattern = place.pattern
    if len(pattern.strip()) < MIN_PATTERN_LENGTH:
        raise LookupFailedError(f"a pattern has at least {MIN_PATTERN_LENGTH} characters")
    meant = [expression(pattern, is_regex=place.is_regex)]
    if place.is_regex and meant[0].search(""):
        raise LookupFailedError("the pattern is found in every text")
    if not place.is_regex and _LIKE_AN_EXPRESSION.search(pattern):
        with suppress(LookupFailedError):
            meant.append(expression(pattern))
    forms = [] if place.is_regex else [pattern.encode(coding, "replace") for coding in ("utf-16-le", "utf-16-be")]

    def finds(data: bytes) -> bool:
        codings = ["utf-8", *(["utf-16"] if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else [])]
        texts = [data.decode(coding, "replace") for coding in codings]
        return any(form in data for form in forms) or any(each.search(text) for each in meant for text in texts)

    return finds
