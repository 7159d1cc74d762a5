"""The configuration of the commit that a pull request is merged into: from the workspace, or else fetched by git.

Commits and files are named by their hashes, and git checks what it fetches: it does not matter who hands them over.
"""

import base64
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import anyio

from zelda_ci.ci.nested import NestedRepository, repository_top
from zelda_ci.config import trust
from zelda_ci.config.document import MAX_FILE_BYTES
from zelda_ci.config.files import DEFAULT_TEST_DIR, is_suite
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.schema import CONFIG_FILE
from zelda_ci.config.trust import BaseSettings, KeyChange, SettledProject
from zelda_ci.domain.workspace import SettingFinding
from zelda_ci.errors import ConfigError
from zelda_ci.redact import Redactor, Secret
from zelda_ci.report.told import NOTHING_CHANGED, PullRequestChanges, RuleChange
from zelda_ci.workspace.git import Git, prepare

MAX_NAMED = 20
MAX_SUITES = 5_000
FETCH_SECONDS = 300.0

_REGULAR = (b"100644", b"100755")
# How git reaches the network; nothing else of the job's environment is passed on.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy")
# Of these, git reads only the first.
_CERTIFICATES = ("GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@dataclass(frozen=True)
class BaseSource:
    """Where the base can be had."""

    project: Path
    """Folder where the search for the project begins."""
    workspace: Path
    server_url: str
    repository: str
    token: Secret | None
    environ: Mapping[str, str]
    nested: NestedRepository | None = None
    """Where the project lies in another repository than the event's."""

    @property
    def is_foreign(self) -> bool:
        """Whether the repository of the project is none of which the base names a commit."""
        return self.nested is not None and self.nested.named is None

    @property
    def top(self) -> Path:
        """Of the repository that has the base: the one in which the project lies, unless that is a foreign one."""
        own = None if self.is_foreign else repository_top(self.project)
        return own or self.workspace.resolve()


def read_base(commit: str, source: BaseSource, loaded: LoadedProject, redact: Redactor) -> BaseSettings:
    """What counts of a base commit's files: its configuration.

    Args:
        commit: The base.
        source: Where it can be had.
        loaded: The project of the pull request.
        redact: For what git says.

    Raises:
        ConfigError: The commit cannot be had.
        WorkspaceError: There is no git, or it did not end.
    """
    with tempfile.TemporaryDirectory(prefix="zelda-base-") as name:
        folder = Path(name).resolve()
        files = folder / "files"
        # Zelda's search for a project ends at the top of a repository.
        (files / ".git").mkdir(parents=True)
        git = prepare(folder, source.environ, redact)
        suites = frozenset(trust.places(loaded, source.top).values())
        inner = source.project.resolve().relative_to(source.top)
        chosen = _Chosen(frozenset(map(str, (inner, *inner.parents))), suites)
        anyio.run(_gather, git, commit, source, chosen, files)
        return trust.base_settings(files / inner, files, commit, suites)


@dataclass(frozen=True)
class _Chosen:
    """Which files of a commit are read."""

    folders: frozenset[str]
    """In which the project may begin."""
    suites: frozenset[str]
    """Files that are suites in the pull request."""

    def has(self, path: PurePosixPath) -> bool:
        folder = path.parent
        begins = str(folder) in self.folders and path.name == CONFIG_FILE
        # One suite in the usual place makes a folder a project.
        holds = folder.name == DEFAULT_TEST_DIR and str(folder.parent) in self.folders and is_suite(path.name)
        return str(path) in self.suites or begins or holds


async def _gather(git: Git, commit: str, source: BaseSource, chosen: _Chosen, files: Path) -> None:
    if not await _write_files(git.within(source.top), commit, chosen, files):
        fetched = await _fetch(git, commit, source, chosen, files.with_name("fetched"))
        if fetched and await _write_files(fetched, commit, chosen, files):
            return
        raise missing(commit, source)


def missing(commit: str, source: BaseSource) -> ConfigError:
    """The error for a base that cannot be had."""
    base = commit[:7]
    if source.nested and source.nested.named:
        return ConfigError(
            "On a pull request, rights come from the commit that it is merged into. It names the commit "
            f"{base} of the submodule {source.nested.path}, which could not be read.",
            hint="Give actions/checkout `submodules: recursive` and `fetch-depth: 0`, or a github-token that may read "
            "the submodule's repository.",
            code="BASE_UNREADABLE",
        )
    return ConfigError(
        f"On a pull request, rights come from the commit that it is merged into, and {commit[:7]} could not be read.",
        hint="Give actions/checkout `fetch-depth: 2`. Or let the step fetch it: with github-token, and contents: read.",
        code="BASE_UNREADABLE",
    )


async def _write_files(git: Git, commit: str, chosen: _Chosen, folder: Path) -> bool:
    """Write what was chosen of a commit; false where the repository does not have all of it."""
    listing = await git.attempt("ls-tree", "-r", "-z", "--full-tree", commit)
    if listing.exit_code != 0 or listing.truncated:
        return False
    blobs = dict(_files(listing.stdout, chosen))
    contents = await git.attempt("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs.values()).encode())
    texts = dict(_batch(contents.stdout))
    if contents.exit_code != 0 or contents.truncated or not texts.keys() >= set(blobs.values()):
        return False
    for path in islice(_suites(listing.stdout), MAX_SUITES):
        # What is in them does not matter: which suites the base has is known by their names.
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    for path, blob in blobs.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # One byte more than is read of a file, so that one that is too large stays too large.
        file.write_bytes(texts[blob][: MAX_FILE_BYTES + 1])
    return True


def _files(listing: bytes, chosen: _Chosen) -> Iterator[tuple[str, str]]:
    """Path and blob of every regular file that was chosen."""
    yield from ((str(path), blob) for path, blob in _regular(listing) if chosen.has(path))


def _suites(listing: bytes) -> Iterator[str]:
    """Suites wherever they lie, and configurations: below one of those, suites are another project's."""
    yield from (str(path) for path, _ in _regular(listing) if is_suite(path.name) or path.name == CONFIG_FILE)


def _regular(listing: bytes) -> Iterator[tuple[PurePosixPath, str]]:
    for entry in listing.split(b"\0"):
        about, _, name = entry.partition(b"\t")
        mode, _, blob = about.partition(b" ")
        path = PurePosixPath(name.decode("utf-8", "surrogateescape"))
        safe = not {"..", ".git"} & set(path.parts) and not path.is_absolute()
        if mode in _REGULAR and safe:
            yield path, blob.split()[-1].decode()


def _batch(output: bytes) -> Iterator[tuple[str, bytes]]:
    """What `git cat-file --batch` prints of blobs that are there."""
    start = 0
    while (end := output.find(b"\n", start)) >= 0:
        name, kind, *size = output[start:end].split(b" ")
        start = end + 1
        if kind == b"blob":
            length = int(size[0])
            yield name.decode(), output[start : start + length]
            start += length + 1


async def _fetch(git: Git, commit: str, source: BaseSource, chosen: _Chosen, folder: Path) -> Git | None:
    """A repository of our own with a commit, its folders, and the files that matter; absent where none can be had."""
    await git("init", "-q", "--bare", str(folder))
    fetching = networked(git.within(folder, GIT_DIR=str(folder)), source)
    for address in await addresses(git.within(source.top), source):
        for setting in (("remote.origin.url", address), ("remote.origin.promisor", "true")):
            await fetching("config", *setting)
        if await _fetched(fetching, "--depth=1", "origin", commit) and await _complete(fetching, commit, chosen):
            return fetching
    return None


@dataclass(frozen=True)
class _Wanted(_Chosen):
    """Files by what somebody says of their paths."""

    wanted: Callable[[PurePosixPath], bool]

    def has(self, path: PurePosixPath) -> bool:
        return self.wanted(path)


async def fetch_files(
    git: Git, commit: str, source: BaseSource, folder: Path, wanted: Callable[[PurePosixPath], bool]
) -> Git | None:
    """A repository of our own with a commit, its folders, and wanted files; absent where none can be had."""
    return await _fetch(git, commit, source, _Wanted(frozenset(), frozenset(), wanted), folder)


def networked(git: Git, source: BaseSource) -> Git:
    """Git that may ask servers, with the token for GitHub's own."""
    variables = {**_credentials(source), "GIT_ALLOW_PROTOCOL": "https:http:file"}
    variables |= {name: source.environ[name] for name in _PROXIES if name in source.environ}
    certificates = [source.environ[name] for name in _CERTIFICATES if source.environ.get(name)]
    variables |= {"GIT_SSL_CAINFO": certificates[0]} if certificates else {}
    return replace(git.within(git.cwd, **variables), timeout_seconds=FETCH_SECONDS)


async def addresses(git: Git, source: BaseSource) -> list[str]:
    """Where the repository may be had; one of another kind is not GitHub's for us."""
    origin = await git.attempt("config", "--local", "--get", "remote.origin.url")
    place = over_https(origin.stdout.decode("utf-8", "replace").strip(), source.server_url)
    places = [place, f"{source.server_url}/{source.repository}"]
    return [each for each in dict.fromkeys(places) if each.startswith(("https://", "http://", "file://"))]


def over_https(address: str, server_url: str) -> str:
    """An address for SSH on GitHub's own server as one that the job's token can be used for; any other as it is."""
    server = re.escape(urlsplit(server_url).hostname or "")
    return re.sub(rf"^(ssh://)?git@{server}[:/]", f"{server_url}/", address, count=1) if server else address


async def _fetched(git: Git, *what: str, stdin: bytes = b"") -> bool:
    options = ("--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--no-recurse-submodules")
    outcome = await git.attempt("-c", "fetch.negotiationAlgorithm=noop", "fetch", "-q", *options, *what, stdin=stdin)
    return outcome.exit_code == 0


async def _complete(git: Git, commit: str, chosen: _Chosen) -> bool:
    """Fetch the files that matter, all at once: git would ask for each by itself."""
    listing = await git.attempt("ls-tree", "-r", "-z", "--full-tree", commit)
    blobs = dict.fromkeys(dict(_files(listing.stdout, chosen)).values())
    wanted = "".join(f"{blob}\n" for blob in blobs).encode()
    return listing.exit_code == 0 and (not blobs or await _fetched(git, "--stdin", "origin", stdin=wanted))


def _credentials(source: BaseSource) -> dict[str, str]:
    """The token for GitHub's own address and no other, as variables: arguments can be seen by everybody."""
    if source.token is None:
        return {}
    basic = base64.b64encode(f"x-access-token:{source.token.reveal()}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{source.server_url}/.extraheader",
        "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {basic}",
    }


@dataclass(frozen=True)
class Overruled:
    """What a pull request changes and may not, for results and for readers."""

    project: LoadedProject
    findings: Mapping[str, tuple[SettingFinding, ...]]
    """By suite."""
    notes: tuple[str, ...]
    changes: PullRequestChanges = NOTHING_CHANGED
    """What it changes of the rules by which it is judged, and which suites it removes."""


def overrule(loaded: LoadedProject, top: Path, base: BaseSettings, redact: Redactor) -> Overruled:
    """The project with the base's rights, and what is to be told about it.

    Raises:
        ConfigError: The base's configuration cannot be used.
    """
    settled = trust.settle(loaded, top, base)
    findings = {
        each.suite.resolved.name: tuple(_finding(change, redact) for change in (*settled.changes, *each.changes))
        for each in settled.suites
    }
    notes = tuple(_notes(settled, base.commit))
    changes = PullRequestChanges(rules=tuple(_rule_changes(settled)), removed_suites=settled.gone)
    return Overruled(settled.project, findings, notes, changes)


def _rule_changes(settled: SettledProject) -> Iterator[RuleChange]:
    """Each key once, wherever it is given: the project's file gives it to many suites."""
    changes = dict.fromkeys(change for each in settled.suites for change in each.judging_changes)
    return (RuleChange(change.key, str(change.origin), change.loosens) for change in changes)


def _named(changes: Iterable[KeyChange]) -> str:
    return _some(list(dict.fromkeys(f"{change.key} ({change.origin})" for change in changes)))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"


def _finding(change: KeyChange, redact: Redactor) -> SettingFinding:
    return SettingFinding(
        file=redact(change.origin.file or CONFIG_FILE), setting=redact(change.key), effect=change.effect
    )


def _notes(settled: SettledProject, commit: str) -> Iterator[str]:
    if named := _named([*settled.changes, *(change for each in settled.suites for change in each.changes)]):
        yield (
            f"Settings that give rights are those of the base, {commit[:7]}; what the pull request says was not taken: "
            f"{named}"
        )
    if named := _named(change for each in settled.suites for change in each.judging_changes):
        yield (
            f"Results are judged by the settings of the base, {commit[:7]}; what the pull request changes of them "
            f"counts once it is merged: {named}"
        )
    if gone := settled.gone:
        yield f"The pull request removes suites, and nothing tests any more what they tested: {_some(gone)}"
    new = [each.suite.resolved.file for each in settled.suites if each.is_new]
    if new:
        are = "is new and has" if len(new) == 1 else "are new and have"
        yield f"{_some(new)} {are} the rights that the base's project gives"
