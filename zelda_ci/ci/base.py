"""The commit that a pull request is merged into: its files, and the rights and rules that it gives.

Commits and files are named by their hashes, and git checks what it fetches: it does not matter who hands them over.
"""

import base64
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import anyio

from zelda_ci.ci.nested import NestedRepository, gitlink
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.config import trust
from zelda_ci.config.files import is_suite, top_of
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.schema import CONFIG_FILE
from zelda_ci.config.trust import KeyChange, SettledProject
from zelda_ci.domain.kinds import PLUGIN_PARTS, may_steer
from zelda_ci.domain.workspace import SettingFinding
from zelda_ci.errors import ConfigError, WorkspaceError
from zelda_ci.redact import Redactor
from zelda_ci.report.told import NOTHING_CHANGED, PullRequestChanges, RuleChange
from zelda_ci.workspace.base_commit import UNAVAILABLE
from zelda_ci.workspace.git import Git, prepare

MAX_NAMED = 20
# Of the base that are laid out: a repository has a few dozen.
MAX_FILES = 10_000
FETCH_SECONDS = 300.0

_LIST = ("ls-tree", "-r", "-z", "--full-tree")
_LINK = b"120000"
_QUIET = ("-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
# How git reaches the network; nothing else of the job's environment is passed on.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy")
# Of these, git reads only the first.
_CERTIFICATES = ("GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class BaseSource:
    """Where the base of a pull request is read: in the checkout, or in repositories of our own that git fills."""

    def __init__(
        self, settings: ActionSettings, nested: NestedRepository | None, environ: Mapping[str, str], folder: Path
    ) -> None:
        """Read nothing yet; `folder` is an empty one, for what is fetched."""
        self.settings, self.nested, self.environ, self._folder = settings, nested, environ, folder.resolve()
        self.redact = Redactor(settings.secrets())
        # Whether the repository of the project is none of which the base names a commit.
        self.is_foreign = nested is not None and nested.named is None
        own = None if self.is_foreign else top_of(settings.project.resolve())
        self._found: dict[str, Git] = {}
        self.top = own or settings.context.workspace.resolve()

    @cached_property
    def git(self) -> Git:
        """Git in the repository that has the base: the project's, unless that is a foreign one."""
        return prepare(self._folder, self.environ, self.redact).within(self.top)

    async def at(self, commit: str, also: Collection[str] = ()) -> Git:
        """Return git in a repository that has a commit, its folders, and of its files those that anybody reads.

        Raises:
            ConfigError: It cannot be had.
            WorkspaceError: There is no git, or it did not end.
        """
        if commit not in self._found:
            self._found[commit] = await self._having(commit, also)
        return self._found[commit]

    async def _having(self, commit: str, also: Collection[str]) -> Git:
        # A checkout may lack steering files: then what changed is not known, but who decides over rights is.
        if await _is_whole(self.git, await _read(self.git, commit, also, _is_content_read)):
            return self.git
        folder = self._folder / commit
        await self.git("init", "-q", "--bare", str(folder))
        fetched = self._networked(self.git.within(folder, GIT_DIR=str(folder)))
        for address in await self._addresses(self.git):
            for setting in (("remote.origin.url", address), ("remote.origin.promisor", "true")):
                await fetched("config", *setting)
            await _fetch(fetched, "--depth=1", "origin", commit)
            if blobs := await _read(fetched, commit, also, lambda it: _is_content_read(it) or may_steer(it)):
                # All at once: git would ask for each by itself.
                await _fetch(fetched, "--stdin", "origin", stdin=blobs)
            if await _is_whole(fetched, blobs):
                return fetched
        raise self._missing(commit)

    def _missing(self, commit: str) -> ConfigError:
        if self.nested and self.nested.named:
            return ConfigError(
                "On a pull request, rights come from the commit that it is merged into. It names the commit "
                f"{commit[:7]} of the submodule {self.nested.path}, which could not be read.",
                hint="Give actions/checkout `submodules: recursive` and `fetch-depth: 0`, or a github-token that may "
                "read the submodule's repository.",
                code="BASE_UNREADABLE",
            )
        return ConfigError(
            f"On a pull request, rights come from the commit that it is merged into, and {commit[:7]} could not be "
            "read.",
            hint="Give actions/checkout `fetch-depth: 2`. Or let the step fetch it: with github-token, and "
            "contents: read.",
            code="BASE_UNREADABLE",
        )

    def _networked(self, git: Git) -> Git:
        """Git that may ask servers, with the token for GitHub's own address and no other.

        As variables: arguments can be seen by everybody.
        """
        variables = {"GIT_ALLOW_PROTOCOL": "https:http:file"}
        if token := self.settings.github_token:
            basic = base64.b64encode(f"x-access-token:{token.reveal()}".encode()).decode()
            variables["GIT_CONFIG_COUNT"] = "1"
            variables["GIT_CONFIG_KEY_0"] = f"http.{self.settings.context.server_url}/.extraheader"
            variables["GIT_CONFIG_VALUE_0"] = f"AUTHORIZATION: basic {basic}"
        variables |= {name: self.environ[name] for name in _PROXIES if name in self.environ}
        certificates = [self.environ[name] for name in _CERTIFICATES if self.environ.get(name)]
        variables |= {"GIT_SSL_CAINFO": certificates[0]} if certificates else {}
        return replace(git.within(git.cwd, **variables), timeout_seconds=FETCH_SECONDS)

    async def _addresses(self, git: Git) -> list[str]:
        """Where the repository may be had; one of another kind is not GitHub's for us."""
        context = self.settings.context
        here = git.within(self.top, GIT_DIR=str(self.top / ".git"))
        origin = await here.attempt("config", "--local", "--get", "remote.origin.url")
        place = over_https(origin.stdout.decode("utf-8", "replace").strip(), context.server_url)
        places = [place, f"{context.server_url}/{context.repository}"]
        return [each for each in dict.fromkeys(places) if each.startswith(("https://", "http://", "file://"))]

    def files(self, commit: str, also: Collection[str] = ()) -> Path:
        """Return a folder with the files of a commit that matter; what is in them only where that is read.

        Raises:
            ConfigError: The commit cannot be had.
            WorkspaceError: There is no git, or it did not end.
        """
        folder = self._folder / f"{commit}-files"
        if not folder.exists():
            # Zelda's search for a project ends at the top of a repository.
            (folder / ".git").mkdir(parents=True)
            anyio.run(self._lay_out, commit, also, folder)
        return folder

    async def _lay_out(self, commit: str, also: Collection[str], folder: Path) -> None:
        git = await self.at(commit, also)
        entries = [each for each in _entries(await git(*_LIST, commit)) if _matters(each[1]) or each[1] in also]
        wanted = {blob for mode, path, blob in entries if mode == _LINK or _is_content_read(path) or path in also}
        texts = dict(_batch(await git("cat-file", "--batch", stdin=b"\n".join(wanted) + b"\n"))) if wanted else {}
        for mode, path, blob in sorted(entries, key=lambda each: each[2] not in wanted)[:MAX_FILES]:
            target = folder / path
            if {"..", ".git"} & set(PurePosixPath(path).parts) or not target.is_relative_to(folder):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if mode != _LINK:
                target.write_bytes(texts.get(blob, b""))
            elif _is_steering(path):
                target.symlink_to(os.fsdecode(texts[blob]))

    async def bring(self, git: Git, commit: str) -> str:
        """Fetch the whole of a commit, for trials beside those of the pull request."""
        networking, reason = self._networked(git), "the repository has no address that could be asked"
        for address in await self._addresses(git):
            refspec = f"+{commit}:refs/zelda/base"
            arguments = ("fetch", *_QUIET, "--no-auto-maintenance", "--depth=1", "--", address, refspec)
            outcome = await networking.attempt(*arguments)
            if outcome.exit_code == 0:
                return commit
            reason = networking.failure(arguments, outcome).message
        hint = "Give actions/checkout `fetch-depth: 2`, or the step its github-token and the job contents: read."
        message = f"The base commit {commit[:7]} could not be had: {reason}"
        raise WorkspaceError(message, hint=hint, code=UNAVAILABLE)

    async def submodule_at(self, commit: str, path: str) -> str | None:
        """The commit that a commit of the repository around it names for a submodule; absent where it has none."""
        git = await self.at(commit)
        return gitlink(await git("ls-tree", "-z", "--full-tree", commit, "--", path))


def over_https(address: str, server_url: str) -> str:
    """An address for SSH on GitHub's own server as one that the job's token can be used for; any other as it is."""
    server = re.escape(urlsplit(server_url).hostname or "")
    return re.sub(rf"^(ssh://)?git@{server}[:/]", f"{server_url}/", address, count=1) if server else address


async def _fetch(git: Git, *what: str, stdin: bytes = b"") -> None:
    """What does not come is found lacking."""
    options = (*_QUIET, "--filter=blob:none")
    await git.attempt("-c", "fetch.negotiationAlgorithm=noop", "fetch", *options, *what, stdin=stdin)


async def _read(git: Git, commit: str, also: Collection[str], is_read: Callable[[str], bool]) -> bytes | None:
    """Of a commit's files those that are read, a blob a line; absent where a repository lacks the commit."""
    listing = await git.attempt(*_LIST, commit)
    if listing.exit_code != 0 or listing.truncated:
        return None
    entries = _entries(listing.stdout)
    blobs = (blob for _, path, blob in entries if is_read(path) or path in also)
    return b"".join(blob + b"\n" for blob in dict.fromkeys(blobs))


async def _is_whole(git: Git, blobs: bytes | None) -> bool:
    if blobs is None:
        return False
    checked = await git.attempt("cat-file", "--batch-check", stdin=blobs)
    return checked.exit_code == 0 and b" missing\n" not in checked.stdout


def _entries(listing: bytes) -> Iterator[tuple[bytes, str, bytes]]:
    """Mode, path and blob of every regular file and link."""
    for entry in listing.split(b"\0"):
        about, _, name = entry.partition(b"\t")
        mode, _, blob = about.partition(b" ")
        if mode in {b"100644", b"100755", _LINK}:
            yield mode, os.fsdecode(name), blob.split()[-1]


def _batch(output: bytes) -> Iterator[tuple[bytes, bytes]]:
    """What `git cat-file --batch` prints of blobs that are there."""
    start = 0
    while (end := output.find(b"\n", start)) >= 0:
        name, kind, *size = output[start:end].split(b" ")
        start = end + 1
        if kind == b"blob":
            length = int(size[0])
            yield name, output[start : start + length]
            start += length + 1


def _is_steering(path: str) -> bool:
    return may_steer(path) or not {".claude-plugin", *PLUGIN_PARTS}.isdisjoint(path.split("/"))


def _is_content_read(path: str) -> bool:
    return path.endswith(".json") if _is_steering(path) else PurePosixPath(path).name == CONFIG_FILE


def _matters(path: str) -> bool:
    """Suites wherever they lie, and configurations: below one of those, suites are another project's."""
    name = PurePosixPath(path).name
    return _is_steering(path) or name == CONFIG_FILE or is_suite(name)


# --- rights and rules ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overruled:
    """What a pull request changes and may not, for results and for readers."""

    project: LoadedProject
    findings: Mapping[str, tuple[SettingFinding, ...]]
    """By suite."""
    notes: tuple[str, ...]
    changes: PullRequestChanges = NOTHING_CHANGED
    """What it changes of the rules by which it is judged, and which suites it removes."""


def overrule(loaded: LoadedProject, source: BaseSource, commit: str) -> Overruled:
    """The project with no more rights than a base commit gives, and what is to be told about it.

    Raises:
        ConfigError: The commit cannot be had, or its configuration cannot be used.
        WorkspaceError: There is no git, or it did not end.
    """
    suites = frozenset(trust.places(loaded, source.top).values())
    files = source.files(commit, suites)
    inner = files / source.settings.project.resolve().relative_to(source.top)
    settled = trust.settle(loaded, source.top, trust.base_settings(inner, files, commit, suites))
    findings = {
        each.suite.resolved.name: tuple(
            SettingFinding(
                file=source.redact(change.origin.file or CONFIG_FILE),
                setting=source.redact(change.key),
                effect=change.effect,
            )
            for change in (*settled.changes, *each.changes)
        )
        for each in settled.suites
    }
    # Each key once, wherever it is given: the project's file gives it to many suites.
    judging = dict.fromkeys(change for each in settled.suites for change in each.judging_changes)
    rules = tuple(RuleChange(change.key, str(change.origin), change.loosens) for change in judging)
    changes = PullRequestChanges(rules=rules, removed_suites=settled.gone)
    return Overruled(settled.project, findings, tuple(_notes(settled, judging, commit[:7])), changes)


def _notes(settled: SettledProject, judging: Iterable[KeyChange], commit: str) -> Iterator[str]:
    if named := _named([*settled.changes, *(change for each in settled.suites for change in each.changes)]):
        yield (
            f"Settings that give rights are those of the base, {commit}; what the pull request says was not taken: "
            f"{named}"
        )
    if named := _named(judging):
        yield (
            f"Results are judged by the settings of the base, {commit}; what the pull request changes of them counts "
            f"once it is merged: {named}"
        )
    if gone := settled.gone:
        yield f"The pull request removes suites, and nothing tests any more what they tested: {_some(gone)}"
    if new := [each.suite.resolved.file for each in settled.suites if each.is_new]:
        are = "is new and has" if len(new) == 1 else "are new and have"
        yield f"{_some(new)} {are} the rights that the base's project gives"


def _named(changes: Iterable[KeyChange]) -> str:
    return _some(list(dict.fromkeys(f"{change.key} ({change.origin})" for change in changes)))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"
