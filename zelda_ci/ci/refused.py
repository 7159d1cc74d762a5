"""Settings files and plugins that a pull request's head does not load and its base did: no session is needed."""

from collections.abc import Iterable
from pathlib import Path

from zelda_ci.ci import publish
from zelda_ci.ci.base import BaseSource
from zelda_ci.ci.outputs import skipped_outputs
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.errors import ZeldaError
from zelda_ci.github.workflow_commands import Annotation, Log
from zelda_ci.pipeline.survey import not_loaded, refused_settings
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.markdown import render_not_loaded


def newly_refused(base: str | None, source: BaseSource, root: Path, log: Log) -> tuple[NotLoaded, ...]:
    """Return what is refused of the checked-out files and not of those of the base.

    Args:
        base: The commit that the pull request is merged into; absent for other events.
        source: Where the base can be had.
        root: Of the project, where sessions would work.
        log: Is told where that cannot be known.
    """
    if base is None or source.is_foreign:
        return ()
    try:
        here = refused_settings(root, source.redact)
        if not here:
            return ()
        tree = source.files(base)
        folder = tree / root.resolve().relative_to(source.top)
        folder.mkdir(parents=True, exist_ok=True)
        before = not_loaded(tree, folder, source.redact)
    except ZeldaError as problem:
        log.say(f"Which settings files and plugins are newly refused is not known: {problem.message}")
        return ()
    known = {(each.file, each.key, each.problem) for each in before}
    new = [each for each in here if (each.file, each.key, each.problem) not in known]
    return tuple(NotLoaded(file=each.file, effect=each.effect) for each in new)


def with_refused(text: str, refused: Iterable[NotLoaded]) -> str:
    """Put what is refused before a Markdown text about something else."""
    return f"{render_not_loaded(map(gate_sentence, refused))}{text}"


def report_skipped(settings: ActionSettings, log: Log, text: str, refused: tuple[NotLoaded, ...]) -> int:
    """Tell why no session ran, and what is refused all the same; returns the exit code."""
    for each in refused:
        log.annotate(Annotation("error", f"{gate_sentence(each)}.", "Zelda: not loaded", each.file, 1))
    outputs = skipped_outputs(settings) | ({"verdict": "failed"} if refused else {})
    publish.tell(log, settings.context.command_files, text, outputs)
    return 1 if refused else 0
