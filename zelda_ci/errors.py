"""Every explainable failure: a sentence for the user, a code for programs, an exit code for the shell."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

# As a shell reports a command that SIGINT ended: 128 and the number of the signal.
EXIT_INTERRUPTED: Final = 130


@dataclass(frozen=True)
class Explanation:
    """What an error code means, and what to do; both in Markdown."""

    group: str
    meaning: str
    action: str


@cache
def explanations() -> dict[str, Explanation]:
    """Every error code, from the table beside this module."""
    groups = tomllib.loads(Path(__file__).with_name("error_codes.toml").read_text("utf-8"))
    return {code: Explanation(group, *both) for group, codes in groups.items() for code, both in codes.items()}


class ZeldaError(Exception):
    """A failure that Zelda can explain.

    Args:
        message: One clear sentence, without a trailing traceback or secret.
        hint: What to do next, in one sentence.
        code: Machine-readable, like `CONFIG_VALIDATION_FAILED`; the class has a default.
    """

    default_code: ClassVar[str] = "ZELDA_FAILED"
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.default_code

    @property
    def user_message(self) -> str:
        """The sentence and, on a line of its own, what to do next."""
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ConfigError(ZeldaError):
    """Files or environment that cannot be used; raised before anything is spent."""

    default_code = "CONFIG_VALIDATION_FAILED"


class WorkspaceError(ZeldaError):
    """The isolated copy of the project could not be made, read or removed."""

    default_code = "WORKSPACE_FAILED"


class ExecutionError(ZeldaError):
    """The coding session could not be started or led."""

    default_code = "SESSION_FAILED"


class ProxyError(ZeldaError):
    """The model proxy could not start, or a cassette cannot be used."""

    default_code = "MODEL_PROXY_FAILED"


class JudgeError(ZeldaError):
    """The judge gave no usable answer."""

    default_code = "JUDGE_FAILED"


class StorageError(ZeldaError):
    """Results could not be written or read."""

    default_code = "STORAGE_FAILED"


class NotStoredError(StorageError):
    """What was asked for is not among the stored runs, or is not clear."""

    default_code = "RUN_UNKNOWN"


class LockError(ZeldaError):
    """A lock that keeps Zelda's processes apart cannot be had: held by another, or something lies in its place."""

    default_code = "LOCK_FAILED"


class GitHubError(ZeldaError):
    """GitHub refused a request, or could not be reached.

    Args:
        message: As that of `ZeldaError`.
        status: Of GitHub's last answer; absent where there was none.
        detail: What GitHub said itself.
        more: Hint and code of a `ZeldaError`.
    """

    default_code = "GITHUB_FAILED"

    def __init__(self, message: str, *, status: int | None = None, detail: str = "", **more: str | None) -> None:
        super().__init__(message, **more)
        self.status = status
        self.detail = detail


class ArtifactError(GitHubError):
    """An artifact could not be stored or read."""

    default_code = "ARTIFACT_FAILED"
