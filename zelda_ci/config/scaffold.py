"""Files for a new project: decided first, written together, each whole or not at all."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from zelda_ci import ownership
from zelda_ci.config import document, templates
from zelda_ci.config.document import lies_in
from zelda_ci.config.messages import Rejected
from zelda_ci.config.schema import CONFIG_FILE, ProjectConfig
from zelda_ci.errors import ConfigError

EXAMPLE = "test-example.yaml"
IGNORE_FILE = ".gitignore"
_NEW_FILE_MODE = 0o666  # less the user's umask


@dataclass(frozen=True)
class FileDraft:
    """A file to be written; `exists` where something is there that it would replace."""

    path: Path
    file: str
    content: bytes
    exists: bool


def config_draft(root: Path) -> FileDraft:
    """The project's configuration, all defaults."""
    return _draft(root, CONFIG_FILE, templates.project_config().encode())


def example_draft(root: Path, test_dir: str) -> FileDraft:
    """The example suite."""
    return _draft(root, f"{test_dir}/{EXAMPLE}", templates.example_suite().encode())


def ignore_draft(root: Path, results_dir: str) -> FileDraft | None:
    """`.gitignore` with a line for the results; absent when it has one."""
    draft = _draft(root, IGNORE_FILE, b"")
    with _explained(IGNORE_FILE):
        content = draft.path.read_bytes() if draft.exists else b""
    if _is_ignored(content, results_dir):
        return None
    line_break = b"\r\n" if b"\r\n" in content else b"\n"
    separator = line_break if content and not content.endswith(b"\n") else b""
    return FileDraft(
        draft.path, IGNORE_FILE, content + separator + f"{results_dir}/".encode() + line_break, draft.exists
    )


def kept_config(root: Path) -> ProjectConfig:
    """What an existing configuration says, as far as it is right."""
    try:
        return document.load_document(root / CONFIG_FILE, CONFIG_FILE, ProjectConfig).config
    except Rejected:
        return ProjectConfig()


def write(drafts: Iterable[FileDraft]) -> None:
    """Write all drafts. First each goes to a temporary file beside its place, so that a full disk changes nothing.

    Raises:
        ConfigError: a file cannot be written.
    """
    with ExitStack() as undo:
        staged = [(_stage(draft, undo), draft) for draft in drafts]
        for temporary, draft in staged:
            with _explained(draft.file):
                temporary.replace(draft.path)
        undo.pop_all()


def _stage(draft: FileDraft, undo: ExitStack) -> Path:
    folder = draft.path.parent
    temporary = folder / f".{draft.path.name}.{os.getpid()}.tmp"
    with _explained(draft.file):
        if not folder.exists():
            ownership.make_folder(folder)
            undo.callback(_quietly, folder.rmdir)
        undo.callback(_quietly, temporary.unlink)
        _write_beside(temporary, draft)
    return temporary


def _quietly(remove: Callable[[], None]) -> None:
    # The failure that led here is the one to be told.
    with suppress(OSError):
        remove()


def _write_beside(temporary: Path, draft: FileDraft) -> None:
    mode = stat.S_IMODE(draft.path.stat().st_mode) if draft.exists else None
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _NEW_FILE_MODE)
    with open(descriptor, "wb") as stream:  # noqa: PTH123 - from a descriptor
        ownership.hand_over(stream.fileno(), temporary.parent)
        if mode is not None:
            os.fchmod(stream.fileno(), mode)
        stream.write(draft.content)
        stream.flush()
        os.fsync(stream.fileno())


def _draft(root: Path, file: str, content: bytes) -> FileDraft:
    path = root / file
    if not lies_in(path.parent, root):
        raise ConfigError(f"{file} would lie outside the project: its folder is a symbolic link.", code="INIT_FAILED")
    with _explained(file):
        exists = os.path.lexists(path)
        if exists and not stat.S_ISREG(path.lstat().st_mode):
            raise ConfigError(
                f"{file} is there already, but it is not a regular file.", hint="Move it away.", code="INIT_FAILED"
            )
    return FileDraft(path, file, content, exists)


def _is_ignored(content: bytes, results_dir: str) -> bool:
    """Whether the last line about the folder ignores it."""
    ignored = False
    for line in content.decode("utf-8", "replace").splitlines():
        pattern = line.strip().removeprefix("!")
        if pattern.removeprefix("**").strip("/").removesuffix("/*").removesuffix("/**") == results_dir:
            ignored = not line.strip().startswith("!")
    return ignored


@contextmanager
def _explained(file: str) -> Iterator[None]:
    """Turn what the system says into a sentence about the file."""
    try:
        yield
    except OSError as exc:
        raise ConfigError(
            f"{file} cannot be written: {exc.strerror or exc}.",
            hint="Check that the folder exists, is yours and has room.",
            code="INIT_FAILED",
        ) from exc
