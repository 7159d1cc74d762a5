"""Text from outside, made harmless for terminal and Markdown, and cut to a length."""

import re
from collections.abc import Callable

from zelda_ci.domain.base import Record
from zelda_ci.domain.numbers import MINUTE
from zelda_ci.judge.characters import acts, spelled


def visible(text: str, limit: int = 200) -> str:
    """One line in which nothing acts and nothing hides; what is left out of the middle is marked."""
    half = limit // 2
    return one_line(text if len(text) <= limit else f"{text[:half]}…{text[-half:]}")


def sentence(text: str, limit: int = 600) -> str:
    """Prose as one line: white space of any kind folds into single blanks; a long end is cut and marked."""
    words = " ".join(text[: 8 * limit].split())
    return one_line(words if len(words) <= limit else _LAST_WORD.sub("", words[: limit + 1])[:limit] + " …")


# Of a text that is cut, the word in which it is; what is longer than words are is cut itself.
_LAST_WORD = re.compile(r"\s\S{0,30}$")
# Where a run's own copy of the files lies.
_WORKSPACE = re.compile(r"/[^\s'\"]*/runs/[^\s/'\"]+/ws\b(/?)")


def in_workspace(text: str) -> str:
    """The text with paths of a run's workspace as they are called from there."""
    return _WORKSPACE.sub(lambda match: "" if match[1] else ".", text)


def inert(text: str) -> str:
    """The text as it leaves for a terminal: line breaks and tabs stay, all else that acts is spelt out."""
    return one_line(text, keep="\n\t")


def text_lines(text: str) -> list[str]:
    """Lines as an editor would show them; only a line feed ends one, everything else that acts is spelled out."""
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    return [visible(expanded, len(expanded)) for line in lines for expanded in [line.expandtabs(4)]]


def json_of(record: Record) -> str:
    """A record for programs; what acts on a terminal or hides is escaped beyond U+001F, too, where JSON stops."""
    text = record.model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n"
    if text.isascii() and "\x7f" not in text:
        return text
    units = {char: char.encode("utf-16-be", "surrogatepass") for char in set(text) if char > "~" and acts(char)}
    return text.translate({ord(char): "\\u" + code.hex(" ", 2).replace(" ", "\\u") for char, code in units.items()})


def one_line(text: str, keep: str = "") -> str:
    """One line in which nothing acts, be it on a terminal or in the log of a CI service."""
    # There `##[` would be a command anywhere in a line.
    return spelled(text, keep=keep).replace("##[", "# #[")


_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
# What GitHub makes a link, a notification or a picture of. It looks in what was rendered, where escapes are gone, and
# leaves out what is code.
_LINKING = re.compile(
    r"@\w|#(?=\w)|:[\w+-]+:|://|\b(?:www\.|mailto:|xmpp:|GH-\d)|(?<![^\W_])[0-9a-f]{7,64}(?![^\W_])", re.IGNORECASE
)
_BACKTICKS = re.compile(r"`+")
_UNUSUAL = re.compile(r"(?=[\x00-\x7f])[^\w ,.:;()/-]|_")
# Other programs read what was written, not what is shown: for them, no code holds `@bot command`.
_SPLIT_CODE = re.compile(r"([|<]|(?<!\w)@(?=[\w-]+\s))")
_BETWEEN = {"|": r"\|", "<": "&lt;", "@": "&#64;"}
# Code by the author's own wish, between blanks, so that it touches no other code.
_QUOTED = re.compile(r"(?:(?<!\S)|(?<=^\u201c)|(?<=\s\u201c))`([^`|\s](?:[^`|]*[^`|\s])?)`(?=[.,;:)\u201d]*(?:\s|$))")
# Of a word, what belongs to the sentence around it.
_OPENING, _CLOSING = "([{<\"'", ")]}>\"'.,;:!?"
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:-]{1,200}(?:/[A-Za-z0-9._~/@%?=&#+:-]{0,1000})?")
_LEADING = re.compile(r"^([-+](?=\s|$)|-(?=-)|=|#(?=[\s#]|$)|\d+(?=[.)](?:\s|$)))")


def escape_markdown(text: str) -> str:
    """One line that is safe in a sentence, a list and a table's cell; words that would link or notify become code."""
    pieces = _QUOTED.split(" ".join(inert(text).split()))
    escaped = "".join(_span(piece) if place % 2 else _words(piece, _plain, _span) for place, piece in enumerate(pieces))
    # What begins a list, a heading or a rule does so only at the start of a line.
    return _LEADING.sub(lambda match: f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}", escaped)


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text).translate(_ENTITIES)


def _span(text: str) -> str:
    """A code span in which nothing acts; a bar, which ends a cell even there, and `<` stand between two of them."""
    return "".join(_BETWEEN.get(part) or (_fenced(part) if part else "") for part in _SPLIT_CODE.split(text))


def _fenced(text: str) -> str:
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    # Of a blank at both ends Markdown takes one away, and two fences beside each other would be one.
    blank = " " * (text[0] in "` " or text[-1] in "` ")
    return f"{fence}{blank}{text}{blank}{fence}" if text.strip() else "&nbsp;"


# A character without width. Titles of issues cannot hold code.
SPLIT = "\u200b"


def plain_title(text: str, limit: int) -> str:
    """One line that GitHub shows as it is: no code, no mention, no link to a commit or an issue."""
    title = sentence(text, limit).replace("`", "'")
    # Seven hexadecimal digits in a row are enough for a link.
    title = _TITLE_LINKING.sub(rf"\g<0>{SPLIT}", title)
    return _TITLE_HASH.sub(lambda match: SPLIT.join(re.findall(".{1,6}", match[0])), title)


_TITLE_LINKING = re.compile(r"@|#(?=\w)|:(?=[\w/+-])|\bwww(?=\.)|\bGH(?=-\d)", re.IGNORECASE)
_TITLE_HASH = re.compile(r"\b[0-9a-f]{7,64}\b", re.IGNORECASE)


def html(text: str) -> str:
    """One line that is safe between tags on lines that GitHub takes for HTML, where escapes of Markdown would show."""
    return _words(" ".join(inert(text).split()), _entities, lambda word: f"<code>{_entities(word)}</code>")


def code(text: str) -> str:
    """The text as code; several lines as a block, which must begin a line."""
    lines = inert(text).splitlines()
    # A line break of its own would end the list, or begin what a hostile line wants to begin.
    return f"<pre>{'&#10;'.join(map(_entities, lines))}</pre>" if len(lines) > 1 else _span("".join(lines))


def address(url: str) -> str | None:
    """A web address as the target of a link; nothing where a character of it could end the link."""
    return url if _ADDRESS.fullmatch(url) else None


def _entities(text: str) -> str:
    return _UNUSUAL.sub(lambda char: f"&#{ord(char[0])};", text)


def _words(line: str, escape: Callable[[str], str], as_code: Callable[[str], str]) -> str:
    """The words of a line, those that act as code; blanks at its ends are kept."""
    return " ".join(_word(word, escape, as_code) for word in line.split(" "))


def _word(word: str, escape: Callable[[str], str], as_code: Callable[[str], str]) -> str:
    if not _LINKING.search(word):
        return escape(word)
    rest = word.lstrip(_OPENING)
    core = rest.rstrip(_CLOSING)
    # A bracket or a stop belongs to the sentence, but not where it is what makes the word act.
    if not _LINKING.search(core):
        return as_code(word)
    opening, closing = word[: len(word) - len(rest)], rest[len(core) :]
    return f"{escape(opening)}{as_code(core)}{escape(closing)}"


def clock(seconds: float) -> str:
    """`0:42` or `1:02:03`: of steady width, for time that is still running."""
    minutes, rest = divmod(int(seconds), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def written(write: Callable[[float], str], value: float) -> str:
    """The value as a row of the registry writes it; as a plain number where that fails."""
    try:
        return str(write(value))
    except Exception:  # noqa: BLE001  # a fault in a row costs this number, not the report
        return f"{value:g}"
