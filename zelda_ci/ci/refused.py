"""Settings files and plugins that a pull request's head does not load and its base did: no session is needed."""

import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath

import anyio

from zelda_ci.ci import publish
from zelda_ci.ci.base import BaseSource, fetch_files, missing
from zelda_ci.ci.outputs import skipped_outputs
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.domain.kinds import PLUGIN_PARTS, may_steer
from zelda_ci.domain.manifest import RefusedSetting
from zelda_ci.errors import ZeldaError
from zelda_ci.github.workflow_commands import Log
from zelda_ci.pipeline.survey import not_loaded, refused_settings
from zelda_ci.redact import Redactor
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.markdown import render_not_loaded
from zelda_ci.workspace.git import Git, prepare

# Of the base that are laid out: a repository has a few dozen.
MAX_FILES = 5_000


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
        log.say(f"Which settings files and plugins are newly refused is not known: {problem.message}")
        return ()
    known = {(each.file, each.key, each.problem) for each in before}
    new = [each for each in here if (each.file, each.key, each.problem) not in known]
    return tuple(NotLoaded(file=each.file, effect=each.effect) for each in new)


def _refused_before(base: str, source: BaseSource, root: Path, redact: Redactor) -> Iterable[RefusedSetting]:
    with tempfile.TemporaryDirectory(prefix="zelda-settings-") as name:
        git, tree = prepare(Path(name), source.environ, redact), Path(name).resolve() / "tree"
        folder = tree / root.resolve().relative_to(source.top)
        folder.mkdir(parents=True)
        anyio.run(_lay_out, git, base, source, tree)
        return not_loaded(tree, folder, redact)


async def _lay_out(git: Git, base: str, source: BaseSource, tree: Path) -> None:
    """Write the files as the base has them, as far as they may be settings or parts of a plugin; only JSON is read."""
    at_base: Git | None = git.within(source.top)
    if (await git.within(source.top).attempt("rev-parse", "-q", "--verify", f"{base}^{{tree}}")).exit_code != 0:
        at_base = await fetch_files(
            git, base, source, git.cwd / "fetched", lambda path: _matters(path) and _is_read(path)
        )
    if at_base is None:
        raise missing(base, source)
    listing = (await at_base("ls-tree", "-r", "-z", "--full-tree", base)).decode("utf-8", "surrogateescape")
    entries = (entry.partition("\t") for entry in listing.split("\0") if entry)
    for about, _, name in [entry for entry in entries if _matters(PurePosixPath(entry[2]))][:MAX_FILES]:
        mode, _, blob = about.split()
        target = tree / name
        if ".." in target.parts or not target.parent.resolve().is_relative_to(tree):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        is_link = mode == "120000"
        content = await at_base("cat-file", "blob", blob) if is_link or _is_read(target) else b""
        if is_link:
            target.symlink_to(content.decode("utf-8", "surrogateescape"))
        elif mode.startswith("100"):
            target.write_bytes(content)


def _matters(path: PurePosixPath) -> bool:
    return may_steer(str(path)) or not {".claude-plugin", *PLUGIN_PARTS}.isdisjoint(path.parts)


def _is_read(path: PurePath) -> bool:
    return path.suffix == ".json"


def with_refused(text: str, refused: Iterable[NotLoaded]) -> str:
    """Put what is refused before a Markdown text about something else."""
    return f"{render_not_loaded(map(gate_sentence, refused))}{text}"


def report_skipped(settings: ActionSettings, log: Log, text: str, refused: tuple[NotLoaded, ...]) -> int:
    """Tell why no session ran, and what is refused all the same; returns the exit code."""
    for each in refused:
        log.report("error", f"{gate_sentence(each)}.", "Zelda: not loaded", each.file, 1)
    publish.warn(log, publish.summarise(settings.context, text))
    outputs = skipped_outputs(settings) | ({"verdict": "failed"} if refused else {})
    publish.warn(log, publish.hand_over(settings.context, outputs))
    return 1 if refused else 0
