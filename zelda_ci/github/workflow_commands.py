"""What a step says to the runner, by commands on standard output and by files. Text of others never becomes one."""

import io
import os
import re
import threading
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal, TextIO, get_args

from zelda_ci.files import untrusted
from zelda_ci.redact import MIN_SECRET_LENGTH, Secret

Severity = Literal["error", "warning", "notice"]
# The runner keeps ten of each level per step; the tenth says how many more there are.
MAX_PER_LEVEL = 9
MAX_MESSAGE_LENGTH = 4000
# Bytes; from 1 MiB on the runner takes nothing at all.
MAX_SUMMARY_BYTES = 1_000_000
CUT = "\n\n(The rest did not fit; the results of this run have everything.)\n"

# The runner compares as people read: what cannot be seen may stand between two signs of a command.
_DOUBLE_COLON = re.compile(r":(?=[^ -~]*:)")
_BRACKET = re.compile(r"#([^ -~]*)#([^ -~]*)\[")
# Categories of characters of which only a blank, or nothing, is printed.
SHOWN = {"Cc": " ", "Zl": " ", "Zp": " ", "Cf": "", "Cs": "", "Cn": ""}


def command(name: str, message: str = "", **properties: object) -> str:
    """One command in one line; properties without a value are left out."""
    given = {key: _data(str(value)) for key, value in properties.items() if value}
    arguments = ",".join(f"{key}={text.replace(':', '%3A').replace(',', '%2C')}" for key, text in given.items())
    return f"::{name}{' ' + arguments if arguments else ''}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def neutralise(line: str) -> str:
    """A line of outside text that no runner takes for a command, in either of its two syntaxes.

    What cannot be seen is taken out first, since the runner may ignore it; line breaks of any kind become blanks.
    """
    visible = "".join(
        char if char == "\t" or " " <= char <= "~" else SHOWN.get(unicodedata.category(char), char) for char in line
    )
    return _BRACKET.sub(r"# \1#\2[", _DOUBLE_COLON.sub(": ", visible))


class Log(io.TextIOBase):
    """The log of a step: what is printed stays text, in whole lines, and commands are made here and nowhere else."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str]) -> None:
        self._stream, self._masking = stream, environ.get("GITHUB_ACTIONS") == "true"
        names = ("STEP_SUMMARY", "OUTPUT", "ENV", "PATH", "STATE")
        self._files = {name: Path(path) for name in names if (path := environ.get(f"GITHUB_{name}"))}
        self._rest, self._lock = "", threading.RLock()

    def write(self, text: str) -> int:
        """Print text; an unfinished line waits for its end."""
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._stream.write(neutralise(line) + "\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def say(self, text: str) -> None:
        """Print text, however many lines."""
        self.write(text + "\n")
        self.flush()

    def mask(self, secrets: Iterable[Secret]) -> None:
        """Have the runner hide values; short ones would wreck the log. Where none listens, asking only prints them."""
        for secret in secrets if self._masking else ():
            value = secret.reveal()
            if len(value.strip()) >= MIN_SECRET_LENGTH:
                self._command("add-mask", value)

    def report(self, level: Severity, message: str, title: str = "", file: str = "", line: int | None = None) -> None:
        """A remark that the run's page shows, too; one on a file also beside its line."""
        self._command(level, message[:MAX_MESSAGE_LENGTH], title=title, file=file, line=line if file else None)

    def report_worst(self, remarks: Sequence[tuple[Severity, str, str, str, int | None]]) -> None:
        """As many remarks of each level as the runner keeps, in their order, and how many more there are."""
        for level in get_args(Severity):
            of_level = [remark for remark in remarks if remark[0] == level]
            for remark in of_level[:MAX_PER_LEVEL]:
                self.report(*remark)
            if (more := len(of_level) - MAX_PER_LEVEL) > 0:
                self.report(level, f"and {more} more: the summary of this run has all of them")

    def record(
        self, markdown: str = "", outputs: Mapping[str, str] | None = None, *, anew: bool = False, quiet: bool = False
    ) -> None:
        """Write to the step's summary, and outputs for later steps; what cannot be written costs a warning."""
        for name, path in self._files.items():
            try:
                if name == "STEP_SUMMARY" and markdown:
                    write_summary(path, markdown, anew=anew)
                elif name == "OUTPUT" and outputs:
                    write_outputs(path, outputs)
            except OSError as problem:
                if not quiet:
                    why = problem.strerror or problem
                    self.report("warning", f"GITHUB_{name} could not be written: {why}.", title="Zelda")

    def forget_files(self) -> None:
        """Empty what others wrote for the runner in this step's name: a session may have found the files."""
        for path in self._files.values():
            with suppress(OSError), _opened(path, 0) as file:
                file.truncate(0)

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Fold what is printed meanwhile; the runner does not nest groups."""
        self._command("group", neutralise(title))
        try:
            yield
        finally:
            self._command("endgroup")

    def _command(self, name: str, message: str = "", **properties: object) -> None:
        with self._lock:
            # A line that was begun ends, so that the command stands at the start of its own.
            self.write("\n" if self._rest else "")
            self._stream.write(command(name, message, **properties) + "\n")
            self.flush()


def write_outputs(path: Path, outputs: Mapping[str, str]) -> None:
    """Add outputs to GITHUB_OUTPUT, as here documents whose ends nobody can guess."""
    with _opened(path, os.O_APPEND | os.O_CREAT) as file:
        for name, value in outputs.items():
            end, text = f"ghadelimiter_{uuid.uuid4()}", value.replace("\r\n", "\n")
            file.write(f"{name}<<{end}\n{text}\n{end}\n".encode("utf-8", "replace"))


def write_summary(path: Path, markdown: str, *, anew: bool = False) -> None:
    """Add Markdown to GITHUB_STEP_SUMMARY, or replace it, cut between two lines where the runner would take nothing."""
    with _opened(path, os.O_CREAT | (0 if anew else os.O_APPEND)) as file:
        room = MAX_SUMMARY_BYTES - (0 if anew else os.fstat(file.fileno()).st_size)
        data = (markdown.rstrip("\n") + "\n").encode("utf-8", "replace")
        if len(data) > room:
            start = data[: max(0, room - len(CUT.encode()))].rpartition(b"\n")[0]
            data = start + CUT.encode() if start else b""
        file.write(data)
        if anew:
            file.truncate()


def _opened(path: Path, flags: int) -> BinaryIO:
    return open(untrusted.open_regular(path, os.O_WRONLY | flags, 0o644), "wb")  # noqa: PTH123  # a descriptor
