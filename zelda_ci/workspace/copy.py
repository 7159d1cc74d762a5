"""The copy of a folder that is in no repository, without files that may hold credentials."""

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.from_thread
import re2
from pathspec import GitIgnoreSpec

from zelda_ci.domain.globs import gitignore_patterns
from zelda_ci.domain.workspace import Listing, SuiteFinder, Withheld
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace.folder import CheckoutIndex
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.store import Start, Store, create, notes, some
from zelda_ci.workspace.withholding import MAX_TEXT_BYTES

MAX_LIST_BYTES = 1 << 20
HEAD_BYTES = 8192

EXAMPLE = re.compile(r"(^|[._-])(example|sample|template|dist)s?($|[._-])", re.IGNORECASE)

FOLDERS = {".aws", ".azure", ".gnupg", ".kube", ".password-store", ".ssh"}

_DATA = r"(\.(json|ya?ml|toml|ini|cfg|conf|csv|xml|properties|txt|enc|db))?"
NAMES = re.compile(
    r"\.env.*|.*\.env|"
    r".*\.(key|p12|pfx|p8|jks|keystore|kdbx|ppk|ovpn|tfstate|tfstate\.backup|tfvars|kubeconfig)|"
    r"id_(rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk|xmss)(?!.*\.pub$)([._-].*)?|"
    rf"[._]?(credentials?|secrets?){_DATA}|client_secrets?.*\.json|"
    r"(.*[._-])?service[._-]?account([._-].*)?\.json|application_default_credentials\.json|"
    r"[._]netrc|\.pypirc|\.git-credentials|\.pgpass|pgpass\.conf|\.my\.cnf|\.htpasswd|\.dockercfg|\.boto|\.s3cfg|"
    r"\.vault[-_]?(token|pass.*)|kubeconfig(\.ya?ml)?|secring\..*",
    re.IGNORECASE | re.DOTALL,
)
# Files whose head decides.
TELLING = re.compile(r".*\.(pem|crt|cer|json|ya?ml)|\.npmrc|\.yarnrc(\.yml)?|pip\.conf|\.?[^.]*", re.DOTALL)

# RE2 takes no longer for a text that was made to be searched slowly. A text need not be UTF-8.
BYTES = re2.Options()
BYTES.encoding = re2.Options.Encoding.LATIN1
PRIVATE = re2.compile(
    rb"(?m)-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY|^PuTTY-User-Key-File|"
    rb'"type"\s*:\s*"service_account"|"auths"\s*:\s*\{\s*"|^\s*(?:-\s+)?client-key-data:|'
    rb"^[^#;\n]*(?:_authToken|_auth|_password|npmAuthToken|npmAuthIdent)[\"']?\s*[=:]\s*[\"']?"
    rb"(?:[^\s\"'$][^\s\"']{5}|\$[^\s\"'{][^\s\"']{4})|"
    rb"^[^#;\n]*(?:index-url|registry)[^\n]*://[^\s/@]+:[^\s/@$]+@",
    BYTES,
)

# How what Zelda has printed into a file begins. It says what sessions are judged by.
REPORT = re2.compile(
    rb'<meta name="generator" content="zelda">|^\s*\{\s*"schemaVersion":\s*\d+,\s*"(?:batchId|runId)":|'
    rb'<property name="runId" value="',
    BYTES,
)


def is_report(place: Path) -> bool:
    """Whether a file is a report of Zelda's, by how it begins."""
    return place.suffix in {".html", ".json", ".xml"} and bool(REPORT.search(_head(place)))


def is_private(place: Path, *, is_folder: bool) -> bool:
    """Whether an entry may hold credentials, by its name or by how it begins."""
    name = place.name
    if EXAMPLE.search(name):
        return False
    if is_folder:
        return name in FOLDERS or name.startswith(".env")
    if NAMES.fullmatch(name):
        return True
    return bool(TELLING.fullmatch(name)) and bool(PRIVATE.search(_head(place)))


@dataclass(frozen=True)
class Ignored:
    """The `.gitignore` files from the top down to a folder; the nearest that says anything decides."""

    lists: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    def inside(self, folder: Path) -> "Ignored":
        """With that of a folder below, if it has one."""
        text = os.fsdecode(_head(folder / ".gitignore", MAX_LIST_BYTES).removeprefix(b"\xef\xbb\xbf"))
        patterns = gitignore_patterns(line.removesuffix("\r") for line in text.split("\n"))
        return Ignored(((folder, GitIgnoreSpec(patterns, backend="simple")), *self.lists)) if text else self

    def names(self, place: Path, *, is_folder: bool) -> bool:
        """Whether git would ignore an entry of a folder that it does not ignore."""
        for folder, spec in self.lists:
            path = place.relative_to(folder).as_posix() + ("/" if is_folder else "")
            decided = spec.check_file(path).include
            if decided is not None:
                return bool(decided)
        return False


def _head(place: Path, size: int = HEAD_BYTES) -> bytes:
    with suppress(OSError):
        return untrusted.read_head(place, size)
    return b""


MAX_FILES = 200_000
MAX_BYTES = 4 << 30
TOO_LARGE = "Put the project under Git (git init, .gitignore, one commit): then only the commit is copied."

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Zelda CI"), ("EMAIL", "zelda-ci@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}


@dataclass(frozen=True)
class CopyOrder:
    """What is to be copied."""

    project: Path
    results_dir: Path
    finder: SuiteFinder | None = None
    """Finds what to withhold; without it nothing is."""
    whole: bool = False
    """Whether to keep what is withheld, for build and test commands."""


@dataclass
class _Copy:
    left_out: Path
    """Zelda's own results."""
    files: int = 0
    size: int = 0
    skipped: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def count(self, status: os.stat_result) -> None:
        self.files += 1
        self.size += status.st_size
        if self.files > MAX_FILES or self.size > MAX_BYTES:
            raise WorkspaceError(
                f"The folder is too large to be copied for every run (more than {MAX_FILES} files or 4 GB).",
                hint=TOO_LARGE,
                code="TOO_LARGE",
            )


async def make_copy(folder: WorkspaceFolder, order: CopyOrder, plumbing: Git) -> Start:
    """Copy the folder without what must stay behind, and commit it.

    Raises:
        WorkspaceError: The folder is too large, or there is no room.
    """
    draft = folder.path / "draft"
    copy = _Copy(left_out=order.results_dir)
    # A copy first, which nobody else changes, so that what is searched is what is committed.
    await anyio.to_thread.run_sync(_copy_tree, order.project, draft, copy)
    finder = order.finder
    withheld = await anyio.to_thread.run_sync(_find_suites, draft, finder) if finder else Withheld()
    whole = None
    if order.whole:
        whole = await _commit(Store(folder.path / "whole"), draft, plumbing)
        # It holds the suites, which no session may see.
        whole.folder.chmod(0o700)
    await anyio.to_thread.run_sync(_remove, draft, withheld.paths)
    store = Store(folder.path / "store", withheld=withheld, notes=(*_notes(copy), *notes(withheld)))
    store = await _commit(store, draft, plumbing)
    await _hang_up(folder, draft, store, plumbing)
    index = await anyio.to_thread.run_sync(CheckoutIndex.read, folder.session_index)
    return Start(store.commit, index, store, "sha1", {}, whole)


async def _commit(store: Store, tree: Path, plumbing: Git) -> Store:
    create(store.folder)
    git = plumbing.within(tree, GIT_DIR=str(store.folder), GIT_WORK_TREE=str(tree), **IDENTITY)
    await git("add", "-A")
    tree_id = (await git("write-tree")).decode().strip()
    commit = (await git("commit-tree", "-m", "The folder as it was found", tree_id)).decode().strip()
    return replace(store, commit=commit)


def _find_suites(tree: Path, finder: SuiteFinder) -> Withheld:
    files, texts, links = set[str](), dict[str, list[bytes]](), dict[str, list[str]]()
    for folder, names, file_names in os.walk(tree):
        for name in (*names, *file_names):
            place = Path(folder, name)
            path = place.relative_to(tree).as_posix()
            if place.is_symlink():
                links[path] = [str(place.readlink())]
            elif name in names:
                continue
            elif finder.reads(name) and place.stat().st_size <= MAX_TEXT_BYTES:
                texts[path] = [place.read_bytes()]
            files.add(path)
    return finder.find(Listing(frozenset(files), texts, links), "")


def _remove(tree: Path, paths: Iterable[str]) -> None:
    for path in paths:
        place = tree / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


async def _hang_up(folder: WorkspaceFolder, draft: Path, store: Store, plumbing: Git) -> None:
    """Give the copied files the `.git` of a work tree, with an index that knows them."""
    create(folder.git_dir, borrow=store.objects)
    git = plumbing.within(folder.git_dir, GIT_DIR=str(folder.git_dir))
    options = ("worktree", "add", "-q", "--detach", "--no-checkout")
    await git(*options, str(folder.root), store.commit, inherit=(folder.number,))
    await anyio.to_thread.run_sync(_put_in_place, folder, draft, store)


def _put_in_place(folder: WorkspaceFolder, draft: Path, store: Store) -> None:
    (folder.root / ".git").rename(draft / ".git")
    folder.root.rmdir()
    draft.rename(folder.root)
    # The index was made for these very files, so git need not read them all again.
    shutil.copy2(store.folder / "index", folder.session_index)


def _copy_tree(source: Path, target: Path, copy: _Copy) -> None:
    folders = []
    for original, twin in _walk(source, target, copy):
        anyio.from_thread.check_cancelled()
        status = original.lstat()
        if stat.S_ISDIR(status.st_mode):
            twin.mkdir()
            folders.append((twin, status))
        elif stat.S_ISLNK(status.st_mode):
            copy.count(status)
            twin.symlink_to(original.readlink())
        elif untrusted.is_regular(status):
            copy.count(status)
            _copy_file(original, twin, copy)
        else:
            copy.skipped.append(f"{original.relative_to(source)} (not a file)")
    # Last, and the deepest first: making an entry changes the times of its folder.
    for twin, status in reversed(folders):
        os.utime(twin, ns=(status.st_atime_ns, status.st_mtime_ns))


def _walk(source: Path, target: Path, copy: _Copy) -> Iterator[tuple[Path, Path]]:
    """Every entry and its place in the copy, folders before their contents; no `.git`, no results, nothing private."""
    waiting = [(source, target, Ignored())]
    while waiting:
        folder, twin, above = waiting.pop()
        yield folder, twin
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            copy.skipped.append(f"{folder.relative_to(source)} ({error.strerror})")
            continue
        ignored = above.inside(folder)
        for entry in entries:
            place, is_folder = folder / entry.name, entry.is_dir(follow_symlinks=False)
            if entry.name in {".git", ".zelda"} or place == copy.left_out:
                continue
            if not is_folder and is_report(place):
                continue
            if is_private(place, is_folder=is_folder):
                copy.private.append(str(place.relative_to(source)))
            elif ignored.names(place, is_folder=is_folder):
                copy.ignored.append(str(place.relative_to(source)))
            elif is_folder:
                waiting.append((place, twin / entry.name, ignored))
            else:
                yield place, twin / entry.name


def _copy_file(source: Path, target: Path, copy: _Copy) -> None:
    try:
        # Tried first: copying would leave an empty file behind.
        with source.open("rb"):
            pass
    except OSError as error:
        copy.skipped.append(f"{source.name} ({error.strerror})")
        return
    shutil.copy2(source, target, follow_symlinks=False)
    # A file that is read-only in the project is copied as such, and the session could not change it.
    target.chmod(target.stat().st_mode | stat.S_IRUSR | stat.S_IWUSR)


def _notes(copy: _Copy) -> Iterator[str]:
    """What is not in the copy, by its names as far as they are few."""
    if copy.skipped:
        yield f"Left out of the copy: {some(copy.skipped)}."
    if copy.private:
        yield f"Left out of the copy, since credentials may be in them: {some(sorted(copy.private))}."
    if copy.ignored:
        yield f"Left out of the copy, since a .gitignore names them: {some(sorted(copy.ignored))}."
