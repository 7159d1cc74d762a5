"""What a pull request changes of the context of every session: measured before any session, without a key, too."""

from dataclasses import replace
from pathlib import Path

from zelda_ci.app import Invocation
from zelda_ci.ci.base import BaseSource
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.settings import environment
from zelda_ci.domain.check import ContextReport
from zelda_ci.errors import ZeldaError
from zelda_ci.events import Emit
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report.builders.context import context_line, too_large
from zelda_ci.report.comment.folds import context_details
from zelda_ci.report.markdown import render_context
from zelda_ci.report.model import plain
from zelda_ci.workspace.source import BaseOrder


def with_context_size(case: CiContext, root: Path, source: BaseSource, emit: Emit) -> CiContext:
    """Measure both sides by the settings of the base; what cannot be measured is said, and stops nothing.

    More than these settings allow is a finding of the gate.
    """
    if source.commit is None or source.is_foreign:
        return case
    try:
        order = RunOrder(overrides=case.settings.overrides, against=BaseOrder(source.commit, source.fetch))
        invocation = Invocation(source.alone(root), order, environment(case.environ, case.settings))
        size = invocation.context(emit)
    except ZeldaError as problem:
        note = f"What steering takes of the context is not known: {problem.message}"
        case.log.say(note)
        return replace(case, notes=(*case.notes, note))
    case.log.say(plain(context_line(size)))
    found = too_large(size.head, invocation.suites[0].gate.max_always_on_tokens)
    return replace(case, context_size=size, refused=(*case.refused, *([found] if found else [])))


def context_text(size: ContextReport | None) -> str:
    """The size for a comment that tells of no session; empty where nothing was measured."""
    return f"{render_context(context_line(size), context_details(size))}\n" if size else ""
