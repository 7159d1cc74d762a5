"""Settings files and plugins that a pull request's head does not load and its base did: no session is needed."""

from pathlib import Path

from zelda_ci.ci import publish
from zelda_ci.ci.base import BaseSource
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.inputs import Mode
from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.errors import ZeldaError
from zelda_ci.github.workflow_commands import Log
from zelda_ci.pipeline.survey import not_loaded, refused_settings
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.markdown import render_not_loaded


def newly_refused(base: str | None, source: BaseSource, root: Path, log: Log) -> tuple[NotLoaded, ...]:
    """Return what is refused of the checked-out files and not of those of the base."""
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


def report_skipped(case: CiContext, text: str, *, in_comment: bool = False) -> int:
    """Tell why no session ran, behind what is refused all the same; returns the exit code."""
    text = f"{render_not_loaded(map(gate_sentence, case.refused))}{text}"
    for each in case.refused:
        case.log.report("error", f"{gate_sentence(each)}.", "Zelda: not loaded", each.file, 1)
    outputs = {"verdict": "failed" if case.refused else "skipped"}
    if case.settings.mode is Mode.PLAN:
        outputs |= {"shards": "0", "matrix": "[]"}
    case.log.record(text, outputs)
    if in_comment:
        publish.replace_comment(case, text)
    return 1 if case.refused else 0
