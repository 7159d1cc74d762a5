"""Which files of a folder without git stay behind: what may hold credentials, and what git would ignore."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

LARGEST_LIST = 1 << 20
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
TELLING = re.compile(r".*\.(pem|crt|cer|json|ya?ml)|\.npmrc|\.yarnrc(\.yml)?|pip\.conf|\.?[^.]*", re.DOTALL)
"""Files whose head decides."""

PRIVATE = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY|^PuTTY-User-Key-File|"
    rb'"type"\s*:\s*"service_account"|"auths"\s*:\s*\{\s*"|^\s*(?:-\s+)?client-key-data:|'
    rb"^[^#;\n]*(?:_authToken|_auth|_password|npmAuthToken|npmAuthIdent)[\"']?\s*[=:]\s*[\"']?(?!\$\{)[^\s\"']{6}|"
    rb"^[^#;\n]*(?:index-url|registry)[^\n]*://[^\s/@]+:[^\s/@$]+@",
    re.MULTILINE,
)


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
        found = _head(folder / ".gitignore", LARGEST_LIST)
        spec = GitIgnoreSpec(tuple(_patterns(found)), backend="simple")
        return Ignored(((folder, spec), *self.lists)) if found else self

    def names(self, place: Path, *, is_folder: bool) -> bool:
        """Whether git would ignore an entry of a folder that it does not ignore."""
        for folder, spec in self.lists:
            path = place.relative_to(folder).as_posix() + ("/" if is_folder else "")
            decided = spec.check_file(path).include
            if decided is not None:
                return bool(decided)
        return False


def _patterns(text: bytes) -> Iterator[Any]:
    """Those that can be understood; git passes over the others too."""
    for line in os.fsdecode(text.removeprefix(b"\xef\xbb\xbf")).split("\n"):
        try:
            yield from GitIgnoreSpec.from_lines([line.removesuffix("\r")]).patterns
        except GitIgnorePatternError:
            continue


def _head(place: Path, size: int = HEAD_BYTES) -> bytes:
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, size) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)
