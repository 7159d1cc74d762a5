"""What values of settings must be beyond their type: each check returns the value, or says in words what is wrong."""

import re
from typing import Any

from pydantic_core import PydanticCustomError

USER_AND_PASSWORD = re.compile(r"://[^\s/@:]*:[^\s/@$]+@")
# Variables that never reach a session: the model proxy holds the key in its stead.
MODEL_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "PORTKEY_API_KEY")


def not_a_model_credential(name: str) -> str:
    """The name of a variable that may be passed on."""
    if name.upper() in MODEL_CREDENTIALS:
        raise PydanticCustomError("model_credential", "must not be passed on: sessions never hold the key itself")
    return name


def not_a_credential(value: str) -> str:
    """A text without user name and password."""
    if USER_AND_PASSWORD.search(value):
        raise PydanticCustomError(
            "credential", "holds a credential, which does not belong in a file: leave the value out, to pass on yours"
        )
    return value


def inside(path: str) -> str:
    """A path inside the project."""
    if path.startswith(("/", "~")) or ".." in path.split("/") or "\\" in path or not path.isprintable():
        raise PydanticCustomError(
            "outside", "must be a path inside the project, with forward slashes, not absolute and without '..'"
        )
    return path


def absolute(path: str) -> str:
    """An absolute path."""
    if not path.startswith("/"):
        raise PydanticCustomError("not_absolute", "must be absolute: begin it with a slash")
    return path


def program_folder(path: str) -> str:
    """A folder of programs."""
    parts = path.split("/")
    if ":" in path or "\\" in path or not path.isprintable() or path.startswith("~") or ".." in parts:
        raise PydanticCustomError(
            "program_folder",
            "must be a folder of the project, such as .venv/bin, or an absolute one of the machine; without '..', '~' "
            "and ':'",
        )
    return path


def outside_git(path: str) -> str:
    """A path that is not git's own."""
    # Some file systems do not tell upper from lower case.
    if ".git" in path.lower().split("/"):
        raise PydanticCustomError("git", "must not lead into .git, where git keeps what is its own")
    return path


def listed(value: Any) -> Any:
    """One text as a list of one."""
    return (value,) if isinstance(value, str) else value


def no_boolean(value: Any) -> Any:
    """A value that is no boolean."""
    # To Python, True equals 1, so that a choice among numbers would take it.
    return None if isinstance(value, bool) else value


def startable(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """A command that begins with a program."""
    if isinstance(command, tuple) and command and not command[0].strip():
        raise PydanticCustomError("no_program", "must begin with the program to start")
    return command
