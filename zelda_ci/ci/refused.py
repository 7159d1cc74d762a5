"""Settings files that Claude Code refuses on the head of a pull request and took on its base: no session is needed."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import anyio

from zelda_ci.ci import publish
from zelda_ci.ci.base import BaseSource, fetch_files, missing
from zelda_ci.ci.outputs import skipped_outputs
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.domain.manifest import RefusedSetting
from zelda_ci.errors import ZeldaError
from zelda_ci.execution.doctor import refusals
from zelda_ci.execution.manifest.settings import settings_files
from zelda_ci.github.workflow_commands import Annotation, Log
from zelda_ci.pipeline.survey import refused_settings
from zelda_ci.redact import Redactor
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.markdown import render_not_loaded
from zelda_ci.workspace.git import Git, prepare


def newly_refused(
    base: str | None, source: BaseSource, root: Path, settings: ActionSettings, log: Log
) -> tuple[NotLoaded, ...]:
    """Return what is refused of the checked-out files and not of those of the base.

    Args:
        base: The commit that the pull request is merged into; absent for other events.
        source: Where the base can be had.
        root: Of the project, where sessions would work.
        settings: With the secrets that nothing may show.
        log: Is told where that cannot be known.
    """
    if base is None or source.is_foreign:
        return ()
    redact = Redactor(settings.secrets())
    try:
        here = refused_settings(root, redact)
        before = _refused_before(base, source, root, redact) if here else ()
    except ZeldaError as problem:
        log.say(f"Which settings files are newly refused is not known: {problem.message}")
        return ()
    known = {(each.file, each.problem) for each in before}
    return tuple(
        NotLoaded(file=each.file, effect=each.effect) for each in here if (each.file, each.problem) not in known
    )


def _refused_before(base: str, source: BaseSource, root: Path, redact: Redactor) -> Iterable[RefusedSetting]:
    below = root.resolve().relative_to(source.top)
    folder = "" if below == Path() else below.as_posix()
    with tempfile.TemporaryDirectory(prefix="zelda-settings-") as name:
        git = prepare(Path(name), source.environ, redact)
        return refusals(anyio.run(_texts, git, base, source, tuple(settings_files(folder))), folder, redact)


async def _texts(git: Git, base: str, source: BaseSource, files: tuple[str, ...]) -> Mapping[str, str]:
    """The files as the base has them; a link is none of them."""
    at_base: Git | None = git.within(source.top)
    if (await git.within(source.top).attempt("rev-parse", "-q", "--verify", f"{base}^{{tree}}")).exit_code != 0:
        at_base = await fetch_files(git, base, source, git.cwd / "fetched", lambda path: str(path) in files)
    if at_base is None:
        raise missing(base, source)
    found = {}
    for file in files:
        listed = (await at_base.attempt("ls-tree", "--full-tree", base, "--", file)).stdout
        if listed.startswith(b"100"):
            shown = await at_base("cat-file", "blob", listed.split()[2].decode())
            found[file] = shown.decode("utf-8", "replace")
    return found


def with_refused(text: str, refused: Iterable[NotLoaded]) -> str:
    """Put what is refused before a Markdown text about something else."""
    return f"{render_not_loaded(map(gate_sentence, refused))}{text}"


def report_skipped(settings: ActionSettings, log: Log, text: str, refused: tuple[NotLoaded, ...]) -> int:
    """Tell why no session ran, and what is refused all the same; returns the exit code."""
    for each in refused:
        log.annotate(Annotation("error", f"{gate_sentence(each)}.", "Zelda: a settings file", each.file, 1))
    publish.warn(log, publish.summarise(settings.context, text))
    outputs = skipped_outputs(settings) | ({"verdict": "failed"} if refused else {})
    publish.warn(log, publish.hand_over(settings.context, outputs))
    return 1 if refused else 0
