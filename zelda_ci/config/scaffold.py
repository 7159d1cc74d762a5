"""Files for a new project: decided first, written together, each whole or not at all."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from zelda_ci.config import document, templates
from zelda_ci.config.document import lies_in
from zelda_ci.config.messages import Rejected
from zelda_ci.config.schema import CONFIG_FILE, ProjectConfig
from zelda_ci.config.templates import CommandLine
from zelda_ci.errors import ConfigError
from zelda_ci.files import ownership, untrusted
from zelda_ci.files.atomic import replacing, sync

IGNORE_FILE = ".gitignore"
UNSAID = "it did not work; `zelda check` says why."


@dataclass(frozen=True)
class FileDraft:
    """A file to be written; `exists` where something is there that it would replace."""

    path: Path
    file: str
    content: bytes
    exists: bool


def config_text(found: Sequence[str], commands: Sequence[CommandLine], programs: Sequence[str] = ()) -> str:
    """A configuration that loads: what was found is left away where it could be taken for a credential."""
    text = templates.project_config(found, commands, programs)
    if document.is_sound(text, ProjectConfig):
        return text
    unsaid = [replace(line, source="", remark=line.remark and UNSAID) for line in commands]
    return templates.project_config((), unsaid, programs)


def draft(root: Path, file: str, text: str) -> FileDraft:
    """A file of the project with this text.

    Raises:
        ConfigError: Something is in the way.
    """
    return _draft(root, file, text.encode())


def ignore_draft(root: Path, results_dir: str) -> FileDraft | None:
    """`.gitignore` with a line for the results; absent when it has one."""
    draft = _draft(root, IGNORE_FILE, b"")
    with _explained(IGNORE_FILE):
        content = untrusted.read(draft.path) if draft.exists else b""
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
    with ExitStack() as written:
        for draft in drafts:
            written.enter_context(_explained(draft.file))
            written.enter_context(_folder(draft.path.parent))
            mode = stat.S_IMODE(draft.path.stat().st_mode) if draft.exists else None
            file = written.enter_context(replacing(draft.path, mode=mode))
            file.write(draft.content)
            sync(file)


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """A folder, made where it is missing, and removed again where that turns out to be for nothing."""
    is_new = not folder.exists()
    ownership.make_folder(folder)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            if is_new:
                folder.rmdir()
        raise


def _draft(root: Path, file: str, content: bytes) -> FileDraft:
    path = root / file
    if not lies_in(path.parent, root):
        raise ConfigError(f"{file} would lie outside the project: its folder is a symbolic link.", code="INIT_FAILED")
    with _explained(file):
        exists = os.path.lexists(path)
        if exists and not untrusted.is_regular(path.lstat()):
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
