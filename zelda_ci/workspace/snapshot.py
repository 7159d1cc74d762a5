"""Files as they lie there, as a commit in a repository of Zelda's own: a working tree, or a folder without Git.

Nothing of the user's changes: git reads the objects of a repository and writes new ones elsewhere, with a copy of the
index. What may hold credentials stays out, and so do reports of Zelda's own.
"""

import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio.to_thread
import re2

from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.workspace import source
from zelda_ci.workspace.git import Git, borrow_from, create_repository, for_status, join_names, split_names
from zelda_ci.workspace.source import Project, Repository

MAX_FILES = 200_000
MAX_BYTES = 4 << 30
# Neither hooks nor files beside the index that git would share between indexes, and each file with an entry in it.
OVERRIDES = dict.fromkeys(("core.splitIndex", "core.untrackedCache", "index.sparse"), "false")
OVERRIDES["core.hooksPath"] = os.devnull
IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Zelda CI"), ("EMAIL", "zelda-ci@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}
# Every byte as it is.
RAW = "* -text -ident -filter -working-tree-encoding\n"

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


async def of_files(
    project: Project,
    results_dir: Path,
    folder: Path,
    internal_git: Git,
    environ: Mapping[str, str],
    own: Collection[str] = (),
) -> Project:
    """The project with its files as they lie there in place of its last commit, in a repository in a new folder."""
    # Of a folder without Git, repositories inside count as the files that they hold. Zelda's results are no part of it,
    # and `own` files, which no session sees, stay as committed.
    repository, head, changed = project.repository, project.source.commit, project.source.changed
    if head and not changed:
        return project
    top = repository.top
    create_repository(folder, head or "", cut=repository.common_dir / "shallow" if head else None)
    if head:
        index, is_sparse = folder / "index", False
        with suppress(FileNotFoundError):
            # With its times, by which git knows what has not changed.
            await anyio.to_thread.run_sync(shutil.copy2, repository.git_dir / "index", index)
            is_sparse = b"sdir" in await anyio.to_thread.run_sync(index.read_bytes)
        settings = untrusted.git_variables({**repository.overrides, **OVERRIDES})
        git = for_status(internal_git, environ).within(top, GIT_INDEX_FILE=str(index), **settings)
        if is_sparse:
            # It names folders by their trees, for which git would look where it writes.
            await git("read-tree", head)
    else:
        (folder / "info" / "attributes").write_text(RAW)
        git = internal_git.within(top, GIT_DIR=str(folder), GIT_WORK_TREE=str(top))
    own_files = (f":(top,exclude,literal){(project.prefix / name).as_posix()}" for name in own if head)
    untracked = await _untracked(git, *source.all_but(results_dir, top), *own_files, enter=not head)
    chosen, private = await anyio.to_thread.run_sync(_chosen, top, untracked)
    new = {*untracked}
    tracked = [name for name in changed if not name.endswith("/") and name not in new]
    gone = {name for name in tracked if _is_gone(top, name)}
    there = [name for name in tracked if name not in gone]
    kept, decrypted = await _kept(git, there, repository)
    left_out, there = tuple(sorted({*private, *decrypted})), [name for name in there if name not in kept]
    if head and not (gone or there or chosen):
        return replace(project, source=project.source.replace(dirty=False, changed=(), left_out=left_out))
    staging = git.within(top, GIT_OBJECT_DIRECTORY=str(folder / "objects"))
    # Of a submodule only the commit is noted: `git add` would ask it what it holds.
    words = ("update-index", "--add", "--remove", "--replace", "-z")
    for names, options in ((gone, ["--force-remove"]), ([*there, *chosen], [])):
        if names:
            await staging(*words, *options, "--stdin", stdin=join_names(names))
    ours = internal_git.within(folder, GIT_DIR=str(folder), **IDENTITY)
    tree = (await ours("write-tree", "--missing-ok")).decode().strip()
    if head:
        # Not earlier: what git would write, and finds there, it gives a new time.
        borrow_from(folder, repository.common_dir / "objects")
    parent = ("-p", head) if head else ()
    commit = (await ours("commit-tree", *parent, "-m", "The files as they were found", tree)).decode().strip()
    about = {"commit": commit, "parent": head, "dirty": False} if head else {}
    tested = project.source.replace(left_out=left_out, **about)
    return replace(project, source=tested, objects=folder, commit=commit)


async def _untracked(git: Git, *pathspecs: str, enter: bool) -> list[str]:
    """List files that the index does not have; those of repositories among them only on demand."""
    printed = await git("ls-files", "--others", "-z", "--exclude-standard", "--", *pathspecs)
    names = split_names(printed)
    files = [name for name in names if not name.endswith("/")]
    for below in names if enter else ():
        if below.endswith("/"):
            inner = git.cwd / below
            inside = git.within(inner, GIT_WORK_TREE=str(inner))
            results = f":(exclude,glob)**/{source.RESULTS}/**"
            files += [below + name for name in await _untracked(inside, results, enter=True)]
    return files


def _is_gone(top: Path, name: str) -> bool:
    """Whether a tracked file is not there, or lies behind a link that has taken the place of its folder."""
    place = top / name
    return not os.path.lexists(place) or os.path.realpath(place.parent) != str(place.parent)


async def _kept(git: Git, names: Sequence[str], repository: Repository) -> tuple[set[str], list[str]]:
    """Find changed files that stay as they are in the index, and which of them a filter has decrypted."""
    # The others are those of Git LFS that differ only because no filter was run.
    if not names or not any(setting.startswith("filter.") for setting in repository.overrides):
        return set(), []
    fields = (await git("check-attr", "-z", "--stdin", "filter", stdin=join_names(names))).split(b"\0")
    filters = {os.fsdecode(name): value for name, value in zip(fields[::3], fields[2::3], strict=False)}
    decrypted = [name for name in names if b"crypt" in filters[name]]
    top, has_pointers = repository.top, b"lfs" in filters.values()
    pointers = await source.pointers(git, repository.common_dir) if has_pointers else []
    chosen = [it for it in pointers if it.path in filters]
    same = await anyio.to_thread.run_sync(lambda: {it.path for it in chosen if it.is_content(top, it.path)})
    return {*decrypted, *same}, decrypted


def _chosen(top: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files that no commit has and that belong into one, and what of the others may hold credentials."""
    private = {name: part for name in names if (part := _private_part(top, Path(name)))}
    chosen = [name for name in names if name not in private and not _is_report(top / name)]
    size = sum((top / name).lstat().st_size for name in chosen)
    if len(chosen) > MAX_FILES or size > MAX_BYTES:
        # Nobody would commit them.
        message = f"{len(chosen)} uncommitted files with {size >> 20} MB are too large to be copied."
        hint = "Name in .gitignore what does not belong to the project, and commit the rest (first `git init`)."
        raise WorkspaceError(message, hint=hint, code="TOO_LARGE")
    return chosen, sorted({str(part) for part in private.values()})


def _is_report(place: Path) -> bool:
    return place.suffix in {".html", ".json", ".xml"} and bool(REPORT.search(_head(place)))


def is_private(place: Path, *, is_folder: bool) -> bool:
    """Whether an entry may hold credentials, by its name or by how it begins."""
    name = place.name
    if EXAMPLE.search(name):
        return False
    if is_folder:
        return name in FOLDERS or name.startswith(".env")
    return bool(NAMES.fullmatch(name) or (TELLING.fullmatch(name) and PRIVATE.search(_head(place))))


def _private_part(top: Path, path: Path) -> Path | None:
    """The outermost folder on the way to a file, or the file itself, that may hold credentials."""
    parts = (*list(reversed(path.parents))[1:], path)
    return next((part for part in parts if is_private(top / part, is_folder=part != path)), None)


def _head(place: Path) -> bytes:
    with suppress(OSError):
        return untrusted.read_head(place, HEAD_BYTES)
    return b""
