"""The commit that a pull request is merged into: its files, the rights and rules that it gives, and what changes of it.

Commits and files are named by their hashes, and git checks what it fetches: it does not matter who hands them over.
"""

import base64
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio

from zelda_ci.ci.baseline import resolve_baseline
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import gitlink, origin_of
from zelda_ci.ci.stored import Evidence
from zelda_ci.config import project
from zelda_ci.config.files import is_suite, suite_files, top_of
from zelda_ci.config.project import LoadedProject, SettledProject, select
from zelda_ci.config.schema import CONFIG_FILE
from zelda_ci.domain.comparison import NotLoaded
from zelda_ci.domain.kinds import PLUGIN_PARTS, may_steer
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.workspace import SettingFinding
from zelda_ci.errors import ConfigError, WorkspaceError, ZeldaError
from zelda_ci.files import untrusted
from zelda_ci.pipeline.fingerprints import evidence, project_files, read_changes
from zelda_ci.redact import Redactor
from zelda_ci.selection.choice import SuiteChoice, choose, run_if_either, steering_changes, trials_may_tell
from zelda_ci.selection.effects import ChangeSet
from zelda_ci.survey.folder import refused_settings
from zelda_ci.workspace.git import FETCH, LINK, SUBMODULE, Git, TreeFile, borrowing, prepare, tree_files
from zelda_ci.workspace.objects import MAX_TOTAL_BYTES, Objects
from zelda_ci.workspace.source import UNAVAILABLE

MAX_NAMED = 20
# Of the base that are laid out: a repository has a few dozen.
MAX_FILES = 10_000
FETCH_SECONDS = 300.0
_LIST = ("ls-tree", "-r", "-z", "--full-tree")
# How git reaches the network; nothing else of the job's environment is passed on.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy")
# Of these, git reads only the first.
_CERTIFICATES = ("GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class BaseSource:
    """The base of a pull request, read in the checkout, or in repositories of our own that git fills.

    Of a project in a submodule it is the commit that the base names for that. To one in any other repository of its
    own the base is foreign: it has nothing of the project.
    """

    def __init__(self, case: CiContext, folder: Path, loaded: LoadedProject | None = None) -> None:
        """Find out which commit it is, or raise `ConfigError`; `folder` is an empty one, for what is fetched."""
        self.settings, self.environ, self._folder = case.settings, case.environ, folder.resolve()
        self.redact, self._found = Redactor(case.settings.credentials.values()), dict[str, Git]()
        self._suites, self._submodule = frozenset[str](), ""
        self.commit, self.top = case.decision.base, case.settings.context.workspace.resolve()
        self.git = prepare(self._folder, self.environ, self.redact).within(self.top)
        nested = case.checkout.nested
        if self.commit and nested and case.checkout.named:
            git = anyio.run(self.at, self.commit)
            named = gitlink(anyio.run(git, "ls-tree", "-z", "--full-tree", self.commit, "--", nested))
            self.commit, self._submodule = (named, nested) if named else (self.commit, "")
        self.is_foreign = nested is not None and not self._submodule
        if not self.is_foreign:
            self.top = top_of(case.settings.project.resolve()) or self.top
            self.git = self.git.within(self.top)
        if loaded:
            # What may have been fetched so far came without them.
            self._suites = frozenset(project.places(loaded, self.top).values())
            self._found.clear()

    async def at(self, commit: str) -> Git:
        """Git in a repository that has a commit, its folders, and of its files those that anybody reads."""
        if commit in self._found:
            return self._found[commit]
        # A checkout may lack steering files: then what changed is not known, but who decides over rights is.
        if await self._has(self.git, commit):
            return self._found.setdefault(commit, self.git)
        folder = self._folder / commit
        await self.git("init", "-q", "--bare", str(folder))
        git = self._networked(self.git.within(folder, GIT_DIR=str(folder)))
        for address in await self._addresses():
            if await self._has(git, commit, (*_fetch(address), "--filter=blob:none")):
                return self._found.setdefault(commit, git)
        rule, why = "On a pull request, rights come from the commit that it is merged into", f", and {commit[:7]} could"
        hint = "Give actions/checkout `fetch-depth: 2`, or let the step fetch it, with github-token and contents: read."
        if self._submodule:
            why = f". It names {commit[:7]} of the submodule {self._submodule}, which could"
            hint = "Give actions/checkout `submodules: recursive` and `fetch-depth: 0`, or a github-token for it."
        raise ConfigError(f"{rule}{why} not be read.", hint=hint, code="BASE_UNREADABLE")

    async def _has(self, git: Git, commit: str, fetch: tuple[str, ...] = ()) -> bool:
        """Whether a repository has a commit, and of its files those that are read; first it may fetch them."""
        if fetch:
            # What does not come is found lacking.
            await git.attempt(*fetch, "--depth=1", "origin", commit)
        listing = await git.attempt(*_LIST, commit)
        if listing.exit_code != 0 or listing.truncated:
            return False
        files = (it for it in self._files(listing.stdout) if self._is_laid_out(it) or (fetch and may_steer(it.path)))
        blobs = "".join(f"{blob}\n" for blob in dict.fromkeys(it.content for it in files)).encode()
        if fetch and blobs:
            # All at once: git would ask for each by itself.
            await git.attempt(*fetch, "--stdin", "origin", stdin=blobs)
        checked = await git.attempt("cat-file", "--batch-check", stdin=blobs)
        return checked.exit_code == 0 and b" missing\n" not in checked.stdout

    def _files(self, listing: bytes) -> Iterator[TreeFile]:
        """Files that matter: suites wherever they lie, but below another configuration they are another project's."""
        for it in tree_files(listing):
            name = PurePosixPath(it.path).name
            matters = it.path in self._suites or _is_steering(it.path) or name == CONFIG_FILE or is_suite(name)
            if matters and it.mode != SUBMODULE:
                yield it

    def _is_laid_out(self, file: TreeFile) -> bool:
        """Whether what is in a file matters here, and not only that it is there."""
        if file.path in self._suites or PurePosixPath(file.path).name == CONFIG_FILE:
            return True
        return _is_steering(file.path) and (file.mode == LINK or file.path.endswith(".json"))

    def _networked(self, git: Git) -> Git:
        """Git that may ask servers, with the token for GitHub's own address and no other."""
        # As variables: arguments can be seen by everybody.
        variables = {"GIT_ALLOW_PROTOCOL": "https:http:file"}
        if token := self.settings.github_token:
            basic = base64.b64encode(f"x-access-token:{token.reveal()}".encode()).decode()
            header = f"http.{self.settings.context.server_url}/.extraheader"
            variables |= untrusted.git_variables({header: f"AUTHORIZATION: basic {basic}"})
        variables |= {name: self.environ[name] for name in _PROXIES if name in self.environ}
        if certificate := next(filter(None, map(self.environ.get, _CERTIFICATES)), None):
            variables["GIT_SSL_CAINFO"] = certificate
        return replace(git.within(git.cwd, **variables), timeout_seconds=FETCH_SECONDS)

    async def _addresses(self) -> list[str]:
        """Where the repository may be had; one of another kind is not GitHub's for us."""
        context = self.settings.context
        place = over_https(await origin_of(self.top, self.environ), context.server_url)
        places = [place, f"{context.server_url}/{context.repository}"]
        return [each for each in dict.fromkeys(places) if each.startswith(("https://", "http://", "file://"))]

    async def _lay_out(self, commit: str) -> Path:
        """A folder with the files of the base that matter; what is in them only where that is read."""
        git, folder = await self.at(commit), self._folder / "files"
        if folder.exists():
            return folder
        # Zelda's search for a project ends at the top of a repository.
        (folder / ".git").mkdir(parents=True)
        files = [*self._files(await git(*_LIST, commit))]
        async with Objects(git) as objects:
            texts = await objects.read((it.content for it in files if self._is_laid_out(it)), MAX_TOTAL_BYTES)
        for file in sorted(files, key=lambda it: it.content not in texts)[:MAX_FILES]:
            target = folder / file.path
            if {"..", ".git"} & set(PurePosixPath(file.path).parts) or not target.is_relative_to(folder):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.mode != LINK:
                target.write_bytes(texts.get(file.content, b""))
            elif _is_steering(file.path):
                target.symlink_to(os.fsdecode(texts[file.content]))
        return folder

    async def fetch(self, git: Git, commit: str) -> None:
        """Fetch the whole of a commit, for trials beside those of the pull request."""
        networking, reason = self._networked(git), "the repository has no address that could be asked"
        for address in await self._addresses():
            arguments = (*_fetch(address), "--depth=1", "origin", f"+{commit}:refs/zelda/base")
            outcome = await networking.attempt(*arguments)
            if outcome.exit_code == 0:
                return
            reason = networking.failure(arguments, outcome).message
        hint = "Give actions/checkout `fetch-depth: 2`, or the step its github-token and the job contents: read."
        message = f"The base commit {commit[:7]} could not be had: {reason}"
        raise WorkspaceError(message, hint=hint, code=UNAVAILABLE)

    def settle(self, loaded: LoadedProject) -> SettledProject:
        """The project with no more rights than the base gives, if that can be had; without a base, as it is."""
        if self.commit is None:
            return SettledProject(loaded)
        files = anyio.run(self._lay_out, self.commit)
        folder = files / self.settings.project.resolve().relative_to(self.top)
        return project.settle(loaded, self.top, files, folder, self.commit)

    def alone(self, root: Path) -> LoadedProject:
        """The checked-out project with nothing but the base's settings; raises `ConfigError` where these are wrong."""
        return replace(project.without_suites(self._folder_of(root)), root=root)

    def has_suites(self, root: Path) -> bool:
        """Whether the base has suites of the project."""
        loaded = project.without_suites(self._folder_of(root))
        return bool(suite_files(loaded.root, loaded.config.test_dir))

    def _folder_of(self, root: Path) -> Path:
        """The project's folder among the files of the base that are laid out."""
        assert self.commit  # noqa: S101 - who asks has a base
        folder = anyio.run(self._lay_out, self.commit) / root.resolve().relative_to(self.top)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def newly_refused(self, root: Path) -> tuple[NotLoaded, ...]:
        """Settings files and plugins that the checked-out project does not load and the base did."""
        if self.commit is None or self.is_foreign or not (here := refused_settings(root, self.redact)):
            return ()
        folder, files = self._folder_of(root), self._folder / "files"
        known = {(it.file, it.key, it.problem) for it in refused_settings(folder, self.redact, files)}
        new = [it for it in here if (it.file, it.key, it.problem) not in known]
        return tuple(NotLoaded(file=it.file, effect=it.effect) for it in new)


def over_https(address: str, server_url: str) -> str:
    """An address for SSH on GitHub's own server as one that the job's token can be used for; any other as it is."""
    server = re.escape(urlsplit(server_url).hostname or "")
    return re.sub(rf"^(ssh://)?git@{server}[:/]", f"{server_url}/", address, count=1) if server else address


def _fetch(address: str) -> tuple[str, ...]:
    """What begins the arguments of a fetch from `origin`, which has an address for that time."""
    return ("-c", f"remote.origin.url={address}", "-c", "fetch.negotiationAlgorithm=noop", *FETCH)


def _is_steering(path: str) -> bool:
    return may_steer(path) or not {".claude-plugin", *PLUGIN_PARTS}.isdisjoint(path.split("/"))


class ChosenSuites(NamedTuple):
    """Whether the suites of a pull request run, the baseline that was looked at for that, and what of it steers."""

    choices: tuple[SuiteChoice, ...] = ()
    """Empty where nobody knows what is changed, so that all run."""
    baseline: Evidence | None = None
    """Absent where the changes alone decided."""
    steering: tuple[SteeringChange, ...] = ()
    others: tuple[str, ...] = ()
    """Files that it changes and that steer nothing."""


def choose_suites(case: CiContext, loaded: LoadedProject, source: BaseSource) -> ChosenSuites:
    """Which suites run, by what is changed and what stored trials of the base felt; and what of the changes steers."""
    settings, base = case.settings, source.commit
    if base is None or source.is_foreign:
        return ChosenSuites()
    pull = settings.event.pull_request
    has_label = pull is not None and settings.run_all_label in {label["name"] for label in pull.labels}
    if has_label and not settings.run_all:
        case.log.say(f"All suites run: the pull request has the label {settings.run_all_label}.")
    suites = select(loaded, settings.suites)
    project, stored = project_files(loaded, loaded.root.resolve().relative_to(source.top).as_posix()), None
    changes = _changes(case, source, base, project.folder)
    known = evidence(suites, project.folder, (), source.environ)
    choices = choose(changes, known, project)
    if settings.run_all or has_label:
        choices = tuple(SuiteChoice(it.resolved.name, runs=True, reason="all were asked for") for it in suites)
    elif trials_may_tell(choices, changes, project):
        stored = resolve_baseline(case)
        before, trials = stored.origin.commit, stored.trials_of_base
        # Of an artifact that names no commit, each trial has to say that it is of the base.
        if before or all(run.source is not None and run.source.commit == base for run in trials):
            known = evidence(suites, project.folder, trials, source.environ)
        choices = choose(changes, known, project)
        if before and before != base:
            # What has changed since the last commit with results counts, too: trials tell of that commit. But alone it
            # would hide what takes back a change that the base has made since.
            choices = run_if_either(choices, choose(_changes(case, source, before, project.folder), known, project))
    steering = steering_changes(changes, known, project)
    paths = {it.path for it in steering}
    return ChosenSuites(choices, stored, steering, tuple(it.path for it in changes.files if it.path not in paths))


def changed_steering(case: CiContext, source: BaseSource) -> tuple[SteeringChange, ...]:
    """What the pull request changes of the files that steer, whatever suites there are."""
    if source.commit is None or source.is_foreign:
        return ()
    loaded = source.alone(case.root)
    project = project_files(loaded, loaded.root.resolve().relative_to(source.top).as_posix())
    return steering_changes(_changes(case, source, source.commit, project.folder), (), project)


def _changes(case: CiContext, source: BaseSource, before: str, folder: str) -> ChangeSet:
    """What differs between the state that results are compared with and the checkout; if unknown, everything runs."""

    async def read() -> ChangeSet:
        git = await source.at(before)
        head = (await source.git("rev-parse", "--verify", "HEAD^{commit}")).decode().strip()
        here = await source.git("rev-parse", "--path-format=absolute", "--git-common-dir")
        both = borrowing(git, Path(os.fsdecode(here.removesuffix(b"\n"))))
        return await read_changes(both, before, head, folder)

    try:
        return anyio.run(read)
    except ZeldaError as problem:
        case.log.say(f"What the pull request changes is not known: {problem.message}")
        return ChangeSet(problem=f"what changed since {before[:7]} is not known")


def findings(settled: SettledProject, redact: Redactor) -> dict[str, tuple[SettingFinding, ...]]:
    """By suite, what the pull request changes of the rights that the base gives."""
    return {
        suite.resolved.name: tuple(
            SettingFinding(file=redact(it.origin.file or CONFIG_FILE), setting=redact(it.key), effect=it.effect)
            for it in settled.changes
            if not it.is_judging and it.suite in (None, suite.resolved.name)
        )
        for suite in settled.project.suites
    }


def notes(settled: SettledProject, commit: str) -> tuple[str, ...]:
    """What readers should know of the settings that count, in sentences."""
    rights, rules = [
        [*dict.fromkeys(f"{it.key} ({it.origin})" for it in settled.changes if it.is_judging is kind)]
        for kind in (False, True)
    ]
    base, are = f"of the base, {commit[:7]};", "is new and has" if len(settled.new) == 1 else "are new and have"
    found = (
        (rights, f"Settings that give rights are those {base} what the pull request says was not taken: {{}}"),
        (rules, f"Results are judged by settings {base} what the pull request changes counts once it is merged: {{}}"),
        (settled.gone, "The pull request removes suites, and nothing tests any more what they tested: {}"),
        (settled.new, f"{{}} {are} the rights that the base's project gives"),
    )
    return tuple(words.format(some_of(names, MAX_NAMED)) for names, words in found if names)
