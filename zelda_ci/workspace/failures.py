"""What the system refuses, as an error that a person understands."""

from collections.abc import Iterator
from contextlib import contextmanager

from zelda_ci.domain.workspace import Phase
from zelda_ci.errors import WorkspaceError
from zelda_ci.process import Completed
from zelda_ci.process.launches import Launch
from zelda_ci.workspace import git

LONGEST_REASON = 500


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


def check_launch(launch: Launch, done: Completed, phase: Phase, limit: str | None) -> None:
    """See to it that what came back is the command's own doing.

    Raises:
        WorkspaceError: It never began, or its supervisor did not live to see its end.
    """
    said = limit or " ".join(done.output.split())[:LONGEST_REASON]
    if not launch.begun:
        how = "in time" if done.timed_out else f"(exit code {done.exit_code})"
        raise WorkspaceError(
            f"The {phase} command did not run, because it could not be confined {how}: {said or 'no reason was given'}",
            hint="This is no failure of the code. docs/workspace.md has the levels of isolation and what each needs.",
            code="COMMAND_NOT_CONFINED",
        )
    if not done.timed_out and launch.exit_code != done.exit_code:
        raise WorkspaceError(
            f"How the {phase} command ended is not known: its supervisor was ended (code {done.exit_code}). {said}",
            hint="See whether memory ran out, or whether the command kills processes that are not its own.",
            code="SUPERVISOR_LOST",
        )
