"""The configuration of a project: what it says, what is wrong with it, and on a pull request, whose settings count."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from zelda_ci.config import files, suites
from zelda_ci.config.document import DEFAULT, Layer, Model, Origin, across, load_document
from zelda_ci.config.files import OwnFiles, find_root, lies_in, suite_files
from zelda_ci.config.schema import CONFIG_FILE, ProjectConfig, SuiteConfig, keys
from zelda_ci.config.source import ConfigProblem, Rejected, Source, config_problem, nearest, ordered, printable, shown
from zelda_ci.config.suites import LoadedSuite, SuiteFile
from zelda_ci.domain.base import HEAD, Decider, KeyDecision
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import ConfigError

# The code of a project that is right, but has none.
NO_SUITES = "NO_SUITES"


@dataclass(frozen=True)
class LoadedProject:
    """A project whose configuration is right: every suite resolved, in the order of their files."""

    root: Path
    layer: Layer[ProjectConfig]
    suites: tuple[LoadedSuite, ...]
    notices: tuple[str, ...] = ()
    """What the user should know and that stops nothing: files that are no suites, broken suites nobody asked for."""
    resting: tuple[tuple[LoadedSuite, str], ...] = ()
    """The suites that do not run for now, each with a sentence that says why."""

    @property
    def config(self) -> ProjectConfig:
        return self.layer.config

    @property
    def results_dir(self) -> Path:
        return self.root / self.config.results_dir

    def own_files(self, recordings: Iterable[Path | None]) -> OwnFiles:
        """The finder of all that belongs to its suites, recordings of sessions included."""
        kept = {path.resolve() for path in recordings if path}
        found = {path.relative_to(self.root).as_posix() for path in kept if path.is_relative_to(self.root)} - {"."}
        named = {str(file) for it in self.suites for file in (it.resolved.file, it.provenance["prompt"].file)}
        return OwnFiles(self.config.test_dir, self.config.results_dir, frozenset(found | named))


class InvalidConfigError(ConfigError):
    """The configuration is wrong; carries each problem, by file and place."""

    def __init__(self, problems: Iterable[ConfigProblem], code: str | None = None) -> None:
        self.problems = ordered(problems)
        count = "one problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        heading = [] if code == NO_SUITES else [f"{count} in the configuration:"]
        hint = "Nothing was run. Correct the configuration, then check it with `zelda validate`." if heading else None
        super().__init__("\n".join([*heading, *map(str, self.problems)]), hint=hint, code=code)


def without_suites(folder: Path) -> LoadedProject:
    """Read the settings of the project that a folder lies in, with one suite that has them and asks for nothing.

    Raises InvalidConfigError where there is no such folder, or its own file is wrong.
    """
    root = find_root(folder)
    config = _read_config(root)
    if problems := config.problems if folder.is_dir() else (config_problem(str(folder), None, "is not a folder"),):
        raise InvalidConfigError(problems)
    nothing = SuiteFile("context", "Hi", Origin(CONFIG_FILE), Layer(CONFIG_FILE, SuiteConfig.model_construct()))
    suite = suites.resolve(nothing, config)
    return LoadedProject(root, config, (replace(suite, resolved=suite.resolved.replace(setup_command=None)),))


def active(loaded: LoadedProject, *, is_ci: bool = False) -> LoadedProject:
    """The project without suites that are skipped, and without those beside which others say `only`; with notices.

    Raises ConfigError where no suite is left; or one says `only` in CI, where that would hide all others.
    """
    skipped = ((it, it.resolved) for it in loaded.suites if it.skip)
    resting = [(suite, f"{it.name} is skipped: {suite.skip} ({it.file})") for suite, it in skipped]
    suites, notices = [it for it in loaded.suites if not it.skip], [why for _, why in resting]
    alone = [it for it in suites if it.only]
    if alone and is_ci:
        message = f"{alone[0].resolved.file}: only is for your own machine: here it would hide every other suite."
        raise ConfigError(message, hint="Nothing was run. Take it out.")
    if alone and (others := len(suites) - len(alone)):
        names = ", ".join(it.resolved.name for it in alone)
        notices.append(f"only {names} runs, as `only` says; {others} of {len(suites)} suites are left out")
        resting += [(it, f"{it.resolved.name} is left out: {names} says `only`") for it in suites if not it.only]
    if not suites:
        raise ConfigError("Every suite is skipped: nothing to run.", hint="\n".join(notices), code="NO_SUITE_SELECTED")
    return replace(loaded, suites=tuple(alone or suites), notices=(*loaded.notices, *notices), resting=tuple(resting))


def results_folder(folder: Path) -> Path:
    """Where the results of a folder's project lie, whatever is wrong with its suites, but not with its own file."""
    root = find_root(folder)
    config = _read_config(root)
    if config.problems:
        raise InvalidConfigError(config.problems)
    return root / config.config.results_dir


def load(folder: Path, asked_for: Sequence[str] = ()) -> LoadedProject:
    """Read a folder's project without broken suites that none of `asked_for` means; raises InvalidConfigError."""
    if not folder.is_dir():
        raise InvalidConfigError([config_problem(str(folder), None, "is not a folder")])
    root = find_root(folder)
    config = _read_config(root)
    tracked, read, problems = cache(lambda: files.tracked(root)), list[SuiteFile](), list[ConfigProblem]()
    for path in files.suite_files(root, config.config.test_dir):
        try:
            read.append(suites.load_suite(path, root, tracked))
            problems += read[-1].layer.problems
        except Rejected as exc:
            problems += exc.problems
    problems += _shared_names(read)
    left_out: tuple[ConfigProblem, ...] = ()
    if problems and asked_for and not config.problems:
        called = {suite.layer.file: suite.name for suite in read}
        broken = {problem.file for problem in problems}
        names = {file: called.get(file) or suites.usual_name(file) for file in broken}
        wanted = {file for file in broken if any(suites.is_meant(name, names[file], file) for name in asked_for)}
        read = [suite for suite in read if suite.layer.file not in broken - wanted]
        left_out = ordered(problem for problem in problems if problem.file not in wanted)
        problems = [problem for problem in problems if problem.file in wanted]
    problems += config.problems
    problems += across(config, [suite.layer for suite in read], complete=not (problems or left_out))
    if problems:
        raise InvalidConfigError(problems)
    if not read:
        raise InvalidConfigError([files.no_suites(root, config.config.test_dir)], NO_SUITES)
    resolved = tuple(suites.resolve(each, config) for suite in read for each in suites.combinations(suite))
    notices = [f"left out, since it is broken: {problem}" for problem in left_out]
    notices += files.lookalikes(root, config.config.test_dir)
    return LoadedProject(root, config, resolved, tuple(notices))


def select(loaded: LoadedProject, names: Iterable[str], tags: Iterable[str] = ()) -> tuple[LoadedSuite, ...]:
    """The suites that one of the names means and that have one of the tags, in the order of their files.

    Without names all are meant, and without tags any. Raises ConfigError where nothing is left; or where no suite has a
    name or tag, with what was said of the files, such as of one that looks like a suite and is none.
    """
    names, tags = list(names), list(tags)
    resolved = [suite.resolved for suite in loaded.suites]
    # Where a suite has this very name, no folder and no file of that name is meant.
    exact = {suite.name for suite in resolved}
    meant, strangers = set[str](), list[str]()
    for name in names:
        found = {name} if name in exact else {it.name for it in resolved if suites.is_meant(name, it.name, it.file)}
        why = [f"{why}." for it, why in loaded.resting if suites.is_meant(name, it.resolved.name, it.resolved.file)]
        about = [f"{told}." for told in loaded.notices if PurePosixPath(name).stem in told]
        strangers += [] if found else why or [_unknown(name, loaded), *about]
        meant |= found
    known = sorted({tag for suite in resolved for tag in suite.tags})
    there = f"; there are {', '.join(known)}" if known else "; no suite has tags"
    strangers += [f'No suite has the tag "{printable(shown(tag))}"{there}.' for tag in tags if tag not in known]
    if strangers:
        hint = "`zelda validate` shows every suite." if resolved else None
        raise ConfigError("\n".join(dict.fromkeys(strangers)), hint=hint, code="UNKNOWN_SUITE")
    wanted = meant if names else exact
    tagged = (it for it in loaded.suites if not tags or set(tags) & set(it.resolved.tags))
    chosen = tuple(it for it in tagged if it.resolved.name in wanted)
    if not chosen:
        raise ConfigError("None of the named suites has one of the tags.", code="NO_SUITE_SELECTED")
    return chosen


def _unknown(name: str, loaded: LoadedProject) -> str:
    """Why a name means no suite: it is the path of something else, or nothing is called so."""
    if suites.GLOB.search(name):
        return f'No suite matches "{printable(shown(name))}".'
    path, what = Path(name), f'No suite is called "{printable(shown(name))}"'
    if ("/" in name or name.endswith(files.ENDINGS)) and os.path.exists(path):  # noqa: PTH110 - never raises
        place = next(filter(files.is_project, (path.resolve(), *path.resolve().parents)), None)
        if place and place != loaded.root.resolve():
            other = printable(os.path.relpath(place))
            return f"{what} here: it belongs to another project (--project {other}, or the input working-directory)."
        return f"{what}: it exists, but suites are the files {loaded.config.test_dir}/test-NAME.yaml."
    near = nearest(name, [text for suite in loaded.suites for text in (suite.resolved.name, suite.resolved.file)])
    return f"{what}{f' (did you mean {near}?)' if near else ''}."


def _read_config(root: Path) -> Layer[ProjectConfig]:
    if os.path.lexists(root / CONFIG_FILE):
        config = load_document(root / CONFIG_FILE, CONFIG_FILE, ProjectConfig)
    else:
        config = Layer(CONFIG_FILE, ProjectConfig(), problems=tuple(files.misnamed_config(root)))
    return replace(config, problems=(*config.problems, *folder_problems(config, root)))


def folder_problems(layer: Layer[ProjectConfig], root: Path) -> Iterator[ConfigProblem]:
    """Folders that the configuration names must lie in the project, links followed, and not be each other."""
    test_dir, results_dir = root / layer.config.test_dir, root / layer.config.results_dir
    if not lies_in(test_dir, root):
        yield layer.problem("testDir", "leads out of the project through a symbolic link")
    elif os.path.exists(test_dir) and not os.path.isdir(test_dir):  # noqa: PTH110, PTH112 - never raise
        yield layer.problem("testDir", "is not a folder")
    is_same = lies_in(results_dir, test_dir) and lies_in(test_dir, results_dir)
    is_own = not is_same and ".git" not in results_dir.relative_to(root).parts
    steps = [step for step in (*reversed(results_dir.parents), results_dir) if root in step.parents]
    if not (is_own and lies_in(results_dir, root)) or lies_in(root, results_dir):
        yield layer.problem("resultsDir", "must be a folder of its own in the project, outside .git")
    elif link := next((step for step in steps if step.is_symlink()), None):
        place = link.relative_to(root).as_posix()
        yield layer.problem("resultsDir", f"leads through {place}, a symbolic link, and Zelda writes through none")


def _shared_names(read: Sequence[SuiteFile]) -> Iterator[ConfigProblem]:
    """Names become folder names, and some file systems do not tell upper from lower case."""
    taken: dict[str, str] = {}
    for suite in read:
        for made in (suite,) if suite.layer.problems else suites.combinations(suite):
            first = taken.setdefault(made.name.casefold(), made.layer.file)
            if first != made.layer.file:
                message = f"the name {shown(made.name)} is that of {first} already: every suite needs its own"
                yield config_problem(made.layer.file, made.layer.places.get("name"), message)


# Key → whose value counts.
DECISIONS: Mapping[str, KeyDecision] = {
    key.dotted: key.decision for model in (ProjectConfig, SuiteConfig) for key in keys(model) if key.group is None
}


@dataclass(frozen=True)
class KeyChange:
    """A key that the pull request changes, and that stayed what it was."""

    key: str
    origin: Origin
    """Where the pull request gives it, or the base did where the pull request left it out."""
    loosens: bool = False
    """Of a key that says how results are judged, whether less would be red."""
    suite: str | None = None
    """Name of the suite that has it; absent of a key that belongs to none."""

    @property
    def is_judging(self) -> bool:
        """Whether it says how results are judged, and counts once the pull request is merged; else it gives rights."""
        return DECISIONS[self.key].by is Decider.JUDGING

    @property
    def effect(self) -> str:
        return f"It {DECISIONS[self.key].effect}; it was not taken from the pull request."


@dataclass(frozen=True)
class SettledProject:
    """A pull request's project with the rights that its base gives."""

    project: LoadedProject
    changes: tuple[KeyChange, ...] = ()
    new: tuple[str, ...] = ()
    """Files of suites that the base lacks."""
    gone: tuple[str, ...] = ()
    """Files of suites that only the base has, by path in the repository."""


def places(loaded: LoadedProject, top: Path) -> Mapping[str, str]:
    """Suite → where its file is in the repository, links followed."""
    files = {it.resolved.name: os.path.realpath(loaded.root / it.resolved.file) for it in loaded.suites}
    return {name: Path(os.path.relpath(file, os.path.realpath(top))).as_posix() for name, file in files.items()}


def settle(head: LoadedProject, top: Path, base: Path, folder: Path, commit: str) -> SettledProject:
    """Take the base's settings where these count for the pull request's project, in whose repository `top` is.

    The files of the base commit lie in `base`, and those of the project in its `folder`. Raises ConfigError where the
    settings of the base are invalid, or do not fit the files of the pull request.
    """
    root, paths = find_root(folder), places(head, top)
    layer = _base_layer(root / CONFIG_FILE, CONFIG_FILE, ProjectConfig)
    own = {it: _base_layer(base / it, it, SuiteConfig) for it in {*paths.values()} if (base / it).exists()}
    if problems := (*layer.problems, *(problem for suite in own.values() for problem in suite.problems)):
        message = f"On a pull request, security settings are taken from the base commit {commit[:7]}."
        message = "\n".join([f"{message} Its configuration is invalid:", *map(str, ordered(problems))])
        hint = "Nothing was run. Correct it on the base branch first."
        raise ConfigError(message, hint=hint, code="BASE_CONFIGURATION_INVALID")
    changes, results_dir = list[KeyChange](), layer.config.results_dir
    if results_dir != head.config.results_dir:
        place = head.layer.origin("resultsDir") or layer.origin("resultsDir") or DEFAULT
        changes.append(KeyChange("resultsDir", place))
    suites = tuple(_settled(it, own.get(paths[it.resolved.name]), layer, changes) for it in head.suites)
    config = head.config.replace(results_dir=results_dir)
    settled = replace(head, layer=replace(head.layer, config=config), suites=suites)
    if unfit := tuple(folder_problems(replace(settled.layer, source=Source()), head.root)):
        raise InvalidConfigError(unfit)
    new = dict.fromkeys(it.resolved.file for it in head.suites if paths[it.resolved.name] not in own)
    held = {Path(os.path.relpath(file, base)).as_posix() for file in suite_files(root, layer.config.test_dir)}
    # Names need not be text.
    gone = (os.fsencode(file).decode("utf-8", "backslashreplace") for file in sorted(held - {*paths.values()}))
    return SettledProject(settled, tuple(changes), tuple(new), tuple(gone))


def _base_layer(path: Path, file: str, model: type[Model]) -> Layer[Model]:
    """What a file gives, with the problems of that part of it that counts."""
    read = load_document(path, file, model) if os.path.lexists(path) else Layer(file, model())
    counting = {name.partition(".")[0] for name, decision in DECISIONS.items() if decision.by is not Decider.HEAD}
    tops = [(at.line, str(path[0])) for path, at in read.source.keys.items() if len(path) == 1]
    above = {it: max((top for top in tops if top[0] <= (it.line or 0)), default=None) for it in read.problems}
    return replace(read, problems=tuple(it for it, top in above.items() if top is None or top[1] in counting))


def _settled(
    head: LoadedSuite, own: Layer[SuiteConfig] | None, base: Layer[ProjectConfig], changes: list[KeyChange]
) -> LoadedSuite:
    """One suite of the pull request with the base's settings, to which that suite's `own` belong; notes the changes."""
    suite = head.resolved
    layer = own or Layer(suite.file, SuiteConfig())
    trusted = suites.resolve(SuiteFile(suite.name, suite.prompt, DEFAULT, layer), base)
    origins = dict(head.provenance)
    for key in keys(ResolvedSuite):
        decision = HEAD if key.group else DECISIONS.get(key.dotted, HEAD)
        is_judging = decision.by is Decider.JUDGING
        # Where nothing that was agreed on is changed by it, the pull request decides how a suite is judged.
        is_new = own is None and origins.get(key.dotted, DEFAULT).file == suite.file
        is_free = is_new or (key.dotted == "coverageThreshold" and suite.test_command is None)
        if decision.by is Decider.HEAD or (is_judging and is_free):
            continue
        wanted, counting = (attrgetter(".".join(key.attributes))(each.resolved) for each in (head, trusted))
        if decision.by is Decider.LOWER:
            counting = min((value for value in (wanted, counting) if value is not None), default=None)
        if counting != wanted:
            suite = suites.with_value(suite, key.attributes, counting)
            loosens = is_judging and lets_more_pass(key.dotted, wanted, counting)
            given = [side.provenance.get(key.dotted, DEFAULT) for side in (head, trusted)]
            place = next((each for each in given if each != DEFAULT), DEFAULT)
            changes.append(KeyChange(key.dotted, place, loosens, suite.name))
            origins[key.dotted] = trusted.provenance[key.dotted]
    if head.skip != trusted.skip:
        changes.append(KeyChange("skip", Origin(suite.file), suite=suite.name))
    return replace(head, resolved=suite, provenance=origins, skip=trusted.skip)


def lets_more_pass(key: str, wanted: Any, given: Any) -> bool:
    """Whether a value of a key that says how results are judged lets more pass than another."""
    if key == "gate.failOn":
        return not set(given) <= set(wanted)
    if key == "undecided":
        return bool(wanted == "ignore")
    if key.startswith("metrics."):
        return not wanted
    lower_is_stricter = key.startswith(("gate.tolerance", "gate.maxAlwaysOn", "efficiencyTargets"))
    if given is None or wanted is None:
        # Without a tolerance of its own the ordinary limits hold; without a minimum or a target none does.
        return wanted is None and not key.startswith("gate.tolerance")
    if isinstance(wanted, int | float) and isinstance(given, int | float):
        return wanted > given if lower_is_stricter else wanted < given
    return False
