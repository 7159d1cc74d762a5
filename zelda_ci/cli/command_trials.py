"""The commands that a project suggests, tried as `zelda check` does it, until some of them work."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zelda_ci import app
from zelda_ci.cli import report
from zelda_ci.config.environment import EnvironmentSettings
from zelda_ci.config.init import CommandLine
from zelda_ci.domain.check import Check, CheckReport
from zelda_ci.errors import ConfigError
from zelda_ci.pipeline.detect import Proposal
from zelda_ci.pipeline.invocation import RunOrder

SETUP = "setupCommand"
SKIPPED = "not tried, since one before it failed"
# What a command begins with that needs the virtual environment which setup makes, and what serves without it.
WITHOUT_SETUP = {
    f"{start} ": "python3 "
    for start in (
        ".venv/bin/python",
        "uv run --no-sync python",
        "poetry run python",
        "pdm run python",
        "pipenv run python",
    )
}


def untried(proposals: Mapping[str, Proposal]) -> Iterator[CommandLine]:
    """Proposals as they are to stand in the configuration."""
    return (CommandLine(key, proposal.command, proposal.source) for key, proposal in proposals.items())


@dataclass(frozen=True)
class Trial:
    """Tries the commands of a project whose files are written."""

    root: Path
    names: Sequence[str]
    """Suites whose commands are tried; without any, all."""
    settings: EnvironmentSettings
    asks: bool

    def of(self, commands: Sequence[CommandLine], write: Callable[[Sequence[CommandLine]], None]) -> list[CommandLine]:
        """The commands, each with a remark where it does not work; what follows one that fails is tried without it.

        Raises:
            ZeldaError: Nothing could be tried.
        """
        found: dict[str, CommandLine] = {}
        waiting = list(commands)
        while True:
            judged = _judged(waiting, self._checked())
            found |= {line.key: line for line in judged if line.remark != SKIPPED}
            failed = {line.key for line in judged if line.remark}
            waiting = [_without(line, failed) for line in judged if line.remark == SKIPPED]
            if not waiting:
                return [found[line.key] for line in commands]
            still = {line.key: line for line in waiting}
            write([still.get(line.key) or found[line.key] for line in commands])

    def _checked(self) -> CheckReport:
        loaded = app.load(self.root, self.names)
        order = RunOrder(self.names, working_tree=True)
        invocation = app.Invocation(loaded, order, self.settings)
        if self.asks:
            report.ask_about_isolation(invocation)
        with report.progress(as_json=False) as emit:
            return invocation.check(emit, asks_models=False)


def _without(line: CommandLine, failed: Collection[str]) -> CommandLine:
    """A command that is to be tried where those before it failed, and so are left out."""
    line = replace(line, remark=None)
    for start, instead in WITHOUT_SETUP.items():
        if SETUP in failed and line.command.startswith(start):
            return replace(line, command=f"{instead}{line.command.removeprefix(start)}")
    return line


def _judged(commands: Sequence[CommandLine], found: CheckReport) -> list[CommandLine]:
    """What did not go well gets a remark: tests that fail without a session would fail after each, too."""
    checks = {check.subject: check for check in found.checks}
    missing = [line for line in commands if line.key not in checks]
    if missing:
        problem = next((check for check in found.failures), None)
        raise ConfigError(problem.message if problem and problem.message else "the check ended early.",
                          hint=problem.hint if problem else None, code="INIT_FAILED")  # fmt: skip
    return [
        replace(line, remark=_remark(checks[line.key]), detail=_telling_line(checks[line.key])) for line in commands
    ]


def _remark(check: Check) -> str | None:
    if check.status == "passed":
        return None
    if check.status == "skipped":
        return SKIPPED
    said = (check.message or "it did not succeed").removesuffix(
        " That is right only for a suite whose task is to mend it."
    )
    said = said.removeprefix("on the tested commit, before any session: ").partition(" PATH in the run: ")[0]
    for name in (f"{check.subject} `{check.about}` ", f"{check.subject} "):
        said = f"it {said.removeprefix(name)}" if said.startswith(name) else said
    return said


def _telling_line(check: Check) -> str | None:
    """What helps where a program is missing; else the first line of the output's end that speaks of an error."""
    if check.hint and "cannot be run" in (check.message or ""):
        return check.hint
    lines = [line.strip() for line in (check.output or "").splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else None)
