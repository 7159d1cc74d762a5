"""Secrets that lie about: in passed-on variables, in `.env` files, in what git and CI keep, in files that name them.

Nobody needs them here but the redactor. Files are read as they are, small and regular, no link followed.
"""

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from zelda_ci import named_secrets
from zelda_ci.files import untrusted
from zelda_ci.redact import MIN_SECRET_LENGTH, Secret, spellings

MAX_FILE_BYTES = 256_000
MAX_FILES = 20
# Characters in all spellings of all secrets: less than a redactor takes, which has Zelda's own keys to know, too.
MAX_SPELLINGS = 300_000

_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?[A-Za-z_][\w.-]*\s*[=:]\s?(.*)")
_GIT_SETTING = re.compile(r"\s*([A-Za-z][\w.-]*)\s*=\s*(.*)")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"']+", re.IGNORECASE)
_WORDS = re.compile(
    r"[A-Za-z]{1,15}(?:[-_. ,/][A-Za-z]{1,15}|[-_.]\d{1,3})*|\d{1,9}|(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?"
)
_PATHS = re.compile(r"(?:~|\.{0,2}/)[^:]*(?::(?:~|\.{0,2}/)[^:]*)*")
# Without user and query, and with no part long enough to be a key.
_PLAIN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]*(?:/[\w.-]{0,15})*", re.IGNORECASE)

MAX_TREE_FILES = 2_000
MAX_TREE_BYTES = 32 << 20
MAX_ENTRIES = 50_000
# Of secrets that committed files name. What goes beyond is masked where it is named, but not by itself.
MAX_TREE_SECRETS = 1_000
MAX_TREE_SPELLINGS = 150_000

_LIKELY = re.compile(
    r"\.env.*|.*\.(env|ya?ml|json|toml|ini|cfg|conf|config|cnf|properties|xml|tf|tfvars|sh|bash|php|gradle)|"
    r"(Docker|Container|Make|Proc)file.*|\.(npmrc|pypirc|netrc|yarnrc|pgpass|dockercfg)|_netrc|"
    r"[._]?(credentials?|secrets?)(\..*)?|.*(settings|config|secrets?|credentials?)\.[a-z]{1,4}|[^.]*rc",
    re.IGNORECASE,
)
_FOREIGN = {".git", ".hg", ".zelda", "node_modules", ".venv", "venv", ".tox", "__pycache__"}
_EXAMPLES = (".example", ".sample", ".template", ".dist")


class FoundSecrets(NamedTuple):
    """What was found; of too much, the first, and how many are left."""

    secrets: tuple[Secret, ...]
    left_out: int = 0


def find_secrets(root: Path, environ: Mapping[str, str], passed_on: Iterable[str]) -> FoundSecrets:
    """Look in every place; git's configuration may lie above the project. Variables are passed on by suites."""
    named = [environ[name] for name in passed_on if name in environ]
    files = list[Path]()
    with suppress(OSError):
        files = sorted(root / entry.name for entry in islice(os.scandir(root), 10_000) if _is_env(entry.name))
    texts = [*map(_env_values, _texts(files)), *map(_git_values, _texts(_git_files(root, environ)))]
    values = [*named, *(value for secrets in texts for value in secrets)]
    known = dict.fromkeys(secret for value in values for secret in _worth_masking(value))
    kept = tuple(_within(known, MAX_SPELLINGS))
    committed = (value for value in dict.fromkeys(_committed(root)) if value not in known)
    tree = _within(islice(committed, MAX_TREE_SECRETS), MAX_TREE_SPELLINGS)
    return FoundSecrets(tuple(map(Secret, (*kept, *tree))), len(known) - len(kept))


def _within(values: Iterable[str], room: int) -> Iterator[str]:
    for value in values:
        size = sum(map(len, set(spellings(value))))
        if size <= room:
            room -= size
            yield value


def _committed(root: Path) -> Iterator[str]:
    """What files of the tree name a secret, those near its top first: a session may print it without the name."""
    top, room = next(untrusted.repositories(root), root), MAX_TREE_BYTES
    names = untrusted.tree(top, MAX_ENTRIES, leave_out=_FOREIGN).files
    likely = (it for it in names if _LIKELY.fullmatch(it.rpartition("/")[2]) and not it.endswith(_EXAMPLES))
    for name in islice(likely, MAX_TREE_FILES):
        text = next(_texts([top / name]), "")
        room -= len(text)
        if room < 0:
            return
        yield from named_secrets.values(text)
        for value in _env_values(text) if _is_env(name.rpartition("/")[2]) else ():
            yield from _worth_masking(value)


def _worth_masking(value: str) -> Iterator[str]:
    """The value, unless masking it would only blot out ordinary words, paths and addresses; and passwords inside."""
    for address in _ADDRESS.findall(value):
        yield from _passwords(address)
    harmless = any(shape.fullmatch(value) for shape in (_WORDS, _PATHS, _PLAIN_ADDRESS))
    if not harmless and len(value) >= MIN_SECRET_LENGTH:
        yield value


def _passwords(address: str) -> Iterator[str]:
    with suppress(ValueError):
        parts = urlsplit(address)
        part = parts.password or (parts.username if parts.password is None else None)
        if part and len(part) >= MIN_SECRET_LENGTH and part != "x-access-token":
            yield from {part, unquote(part)}


def _env_values(text: str) -> Iterator[str]:
    for assignment in filter(None, map(_ASSIGNMENT.fullmatch, text.splitlines())):
        value = assignment[1].strip()
        quoted = re.match(r"""(["'])(.*?)\1""", value)
        yield quoted[2] if quoted else value.split(" #")[0].strip()


def _git_values(text: str) -> Iterator[str]:
    """Headers with which git authenticates, and passwords in addresses; everything else is no secret."""
    for address in _ADDRESS.findall(text):
        yield from _passwords(address)
    for setting in filter(None, map(_GIT_SETTING.fullmatch, text.splitlines())):
        name = setting[1].lower()
        if name.endswith(("extraheader", "token")) or "password" in name:
            # `AUTHORIZATION: basic dXNlcjp0b2tlbg==`: as it stands, and what it means.
            credential = setting[2].strip().strip('"').rpartition(" ")[2]
            yield credential
            with suppress(ValueError):
                user, _, password = base64.b64decode(credential, validate=True).decode().partition(":")
                yield password or user


def _is_env(name: str) -> bool:
    return name == ".env" or (name.startswith(".env.") and not name.endswith(_EXAMPLES))


def _git_files(root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    if top := next(untrusted.repositories(root), None):
        for folder in untrusted.git_folders(top):
            yield from (folder / "config", folder / "config.worktree")
    if runner := environ.get("RUNNER_TEMP"):
        yield from sorted(islice(Path(runner).glob("git-credentials-*.config"), MAX_FILES))


def _texts(files: Iterable[Path]) -> Iterator[str]:
    for file in islice(files, MAX_FILES):
        with suppress(OSError):
            yield untrusted.read_head(file, MAX_FILE_BYTES).decode("utf-8", "replace")
