"""What a step says to the runner: commands on standard output. Text of others must never become one."""

import io
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TextIO

from zelda_ci.redact import SHORTEST_SECRET, Secret

Severity = Literal["error", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "notice")

MOST_PER_LEVEL = 9
"""The runner keeps ten of each level per step; the tenth says how many more there are."""

LONGEST_MESSAGE = 4000

# The runner compares as people read: what cannot be seen may stand between two signs of a command.
_DOUBLE_COLON = re.compile(r":(?=[^ -~]*:)")
_BRACKET = re.compile(r"#([^ -~]*)#([^ -~]*)\[")


@dataclass(frozen=True)
class Annotation:
    """A remark on a file; `file` is relative to the workspace."""

    level: Severity
    message: str
    title: str = ""
    file: str = ""
    line: int | None = None


def command(name: str, message: str = "", **properties: object) -> str:
    """One command in one line; properties without a value are left out."""
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value not in {None, ""})
    return f"::{name}{' ' + given if given else ''}::{_data(message)}"


def neutralise(line: str) -> str:
    """A line of outside text that no runner takes for a command, in either of its two syntaxes.

    What cannot be seen is taken out first, since the runner may ignore it; line breaks of any kind become blanks.
    """
    visible = "".join(_shown(char) for char in line)
    return _BRACKET.sub(r"# \1#\2[", _DOUBLE_COLON.sub(": ", visible))


def _shown(char: str) -> str:
    if char == "\t" or (char.isascii() and char.isprintable()):
        return char
    category = unicodedata.category(char)
    if category in {"Cc", "Zl", "Zp"}:
        return " "
    return "" if category in {"Cf", "Cs", "Cn"} else char


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


class Neutral(io.TextIOBase):
    """A stream on which whatever is printed stays text; whole lines only reach the real one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._rest, self.lock = stream, "", threading.RLock()

    def write(self, text: str) -> int:
        """Print text; an unfinished line waits for its end."""
        with self.lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._stream.write(neutralise(line) + "\n")
        return len(text)

    def flush(self) -> None:
        """Send on what is whole."""
        self._stream.flush()

    def finish(self) -> None:
        """End a line that was begun, so that what comes next stands at the start of its own."""
        if self._rest:
            self.write("\n")
        self.flush()

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """Of the real stream."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Of the real stream."""
        return self._stream.encoding


class Log:
    """The log of a step: text is neutralised, commands are made here and nowhere else."""

    def __init__(self, stream: TextIO, *, masking: bool = True) -> None:
        self.text = Neutral(stream)
        self._stream = stream
        self._masking = masking
        self._grouped = False

    def say(self, text: str) -> None:
        """Print text, however many lines."""
        self.text.write(text + "\n")
        self.text.flush()

    def mask(self, secrets: Iterable[Secret]) -> None:
        """Have the runner hide values. Short ones stay: they would wreck the log, and are nobody's key.

        Where no runner listens, nothing is said: to ask for a mask is to print the value.
        """
        for secret in secrets if self._masking else ():
            value = secret.reveal()
            if len(value.strip()) >= SHORTEST_SECRET:
                self._command("add-mask", value)

    def tell(self, severity: Severity, message: str, title: str = "") -> None:
        """A remark that the run's page shows, too."""
        self.annotate(Annotation(severity, message, title))

    def annotate(self, remark: Annotation) -> None:
        """A remark on a file."""
        message = remark.message[:LONGEST_MESSAGE]
        place = {"file": remark.file, "line": remark.line if remark.file else None}
        self._command(remark.level, message, title=remark.title, **place)

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Fold what is printed meanwhile; groups do not nest, so an inner one only prints its title."""
        if self._grouped:
            self.say(title)
            yield
            return
        self._grouped = True
        self._command("group", neutralise(title))
        try:
            yield
        finally:
            self._grouped = False
            self._command("endgroup")

    def _command(self, name: str, message: str = "", **properties: object) -> None:
        with self.text.lock:
            self.text.finish()
            self._stream.write(command(name, message, **properties) + "\n")
            self._stream.flush()


def worst(remarks: Iterable[Annotation]) -> Iterator[Annotation]:
    """As many of each level as the runner keeps, in their order, and how many more there are."""
    kept = list(remarks)
    for severity in SEVERITIES:
        of_level = [remark for remark in kept if remark.level == severity]
        yield from of_level[:MOST_PER_LEVEL]
        more = len(of_level) - MOST_PER_LEVEL
        if more > 0:
            yield Annotation(severity, f"and {more} more: the summary of this run has all of them")
