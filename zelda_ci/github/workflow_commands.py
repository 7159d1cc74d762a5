"""What a step says to the runner, by commands on standard output and by files. Text of others never becomes one."""

import io
import os
import re
import threading
import unicodedata
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from zelda_ci.files import untrusted
from zelda_ci.redact import MIN_SECRET_LENGTH, Secret

Severity = Literal["error", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "notice")

# The runner keeps ten of each level per step; the tenth says how many more there are.
MAX_PER_LEVEL = 9

MAX_MESSAGE_LENGTH = 4000

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
    arguments = ",".join(
        f"{key}={_property(str(value))}" for key, value in properties.items() if value not in {None, ""}
    )
    return f"::{name}{' ' + arguments if arguments else ''}::{_data(message)}"


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
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
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
            if len(value.strip()) >= MIN_SECRET_LENGTH:
                self._command("add-mask", value)

    def report(self, severity: Severity, message: str, title: str = "") -> None:
        """A remark that the run's page shows, too."""
        self.annotate(Annotation(severity, message, title))

    def annotate(self, remark: Annotation) -> None:
        """A remark on a file."""
        message = remark.message[:MAX_MESSAGE_LENGTH]
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
    annotations = list(remarks)
    for severity in SEVERITIES:
        of_level = [remark for remark in annotations if remark.level == severity]
        yield from of_level[:MAX_PER_LEVEL]
        more = len(of_level) - MAX_PER_LEVEL
        if more > 0:
            yield Annotation(severity, f"and {more} more: the summary of this run has all of them")


# Bytes; from 1 MiB on the runner takes nothing at all.
MAX_SUMMARY_BYTES = 1_000_000

CUT = "\n\n(The rest did not fit; the results of this run have everything.)\n"


class OutputFile:
    """GITHUB_OUTPUT: values in here documents whose end nobody can guess."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def write(self, name: str, value: str) -> None:
        """Hand over one output. Without a file, as outside a workflow, nothing happens.

        Raises:
            ValueError: The name is none.
        """
        end = f"ghadelimiter_{uuid.uuid4()}"
        clean = value.replace("\r\n", "\n")
        if not name or set(name) & set("=\r\n") or "<<" in name or end in clean:
            raise ValueError(f"{name!r} is no name of an output")
        _append(self._path, f"{name}<<{end}\n{clean}\n{end}\n".encode("utf-8", "replace"))


class StepSummary:
    """GITHUB_STEP_SUMMARY: Markdown on the run's page."""

    def __init__(self, path: Path | None, limit: int = MAX_SUMMARY_BYTES) -> None:
        self._path, self._limit = path, limit

    def write(self, markdown: str) -> None:
        """Add Markdown; what would not fit is cut between two lines, since too much would be taken as nothing."""
        _append(self._path, _fitting(markdown, self._limit - _size(self._path)))

    def replace(self, markdown: str) -> None:
        """Write Markdown in the place of what is there; at no time is there nothing."""
        if self._path is None:
            return
        descriptor = untrusted.open_regular(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
        with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor
            file.write(_fitting(markdown, self._limit))
            file.truncate()


def empty(paths: Iterable[Path]) -> None:
    """Forget what others wrote for the runner in this step's name: a session may have found the files."""
    for path in paths:
        with suppress(OSError):
            handle = untrusted.open_regular(path, os.O_WRONLY)
            try:
                os.ftruncate(handle, 0)
            finally:
                os.close(handle)


def _fitting(markdown: str, room: int) -> bytes:
    data = (markdown.rstrip("\n") + "\n").encode("utf-8", "replace")
    if len(data) <= room:
        return data
    start = data[: max(0, room - len(CUT.encode()))].rpartition(b"\n")[0]
    return start + CUT.encode() if start else b""


def _append(path: Path | None, data: bytes) -> None:
    if path is None:
        return
    descriptor = untrusted.open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor
        file.write(data)


def _size(path: Path | None) -> int:
    with suppress(OSError):
        return path.stat().st_size if path else 0
    return 0
