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
    """A failure that Zelda can explain: in one sentence without a secret, what to do next, and a code for programs."""

    default_code: ClassVar[str] = "ZELDA_FAILED"
    exit_code: ClassVar[int] = 2

    def __init_subclass__(cls, code: str = "") -> None:
        cls.default_code = code or cls.default_code

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint, self.code = message, hint, code or self.default_code

    @property
    def user_message(self) -> str:
        """The sentence and, on a line of its own, what to do next."""
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ConfigError(ZeldaError, code="CONFIG_VALIDATION_FAILED"):
    """Files or environment that cannot be used; raised before anything is spent."""


class WorkspaceError(ZeldaError, code="WORKSPACE_FAILED"):
    """The isolated copy of the project could not be made, read or removed."""


class ExecutionError(ZeldaError, code="SESSION_FAILED"):
    """The coding session could not be started or led."""


class ProxyError(ZeldaError, code="MODEL_PROXY_FAILED"):
    """The model proxy could not start, or a cassette cannot be used."""


class JudgeError(ZeldaError, code="JUDGE_FAILED"):
    """The judge gave no usable answer."""


class StorageError(ZeldaError, code="STORAGE_FAILED"):
    """Results could not be written or read."""


class NotStoredError(StorageError, code="RUN_UNKNOWN"):
    """What was asked for is not among the stored runs, or is not clear."""


class LockError(ZeldaError, code="LOCK_FAILED"):
    """A lock that keeps Zelda's processes apart cannot be had: held by another, or something lies in its place."""


class GitHubError(ZeldaError, code="GITHUB_FAILED"):
    """GitHub refused a request, or could not be reached; `status` and `detail` are of its last answer, if any."""

    def __init__(self, message: str, *, status: int | None = None, detail: str = "", **more: str | None) -> None:
        super().__init__(message, **more)
        self.status, self.detail = status, detail


class ArtifactError(GitHubError, code="ARTIFACT_FAILED"):
    """An artifact could not be stored or read."""
