"""What the system refuses, as an error that a person understands."""

from collections.abc import Iterator
from contextlib import contextmanager

from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import git


@contextmanager
def explained() -> Iterator[None]:
    """A full disk or a missing permission, told as what it is."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise WorkspaceError(
            f"The workspace cannot be used: {where}{error.strerror or error}.",
            hint=git.MAKE_ROOM,
        ) from error
