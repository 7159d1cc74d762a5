"""Files that stay out of a snapshot: what may hold credentials, and reports of Zelda's own."""

import re
from contextlib import suppress
from pathlib import Path

import re2

from zelda_ci.files import untrusted

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
    return bool(NAMES.fullmatch(name) or (TELLING.fullmatch(name) and PRIVATE.search(_head(place))))


def private_part(top: Path, path: Path) -> Path | None:
    """The outermost folder on the way to a file, or the file itself, that may hold credentials."""
    parts = (*list(reversed(path.parents))[1:], path)
    return next((part for part in parts if is_private(top / part, is_folder=part != path)), None)


def _head(place: Path) -> bytes:
    with suppress(OSError):
        return untrusted.read_head(place, HEAD_BYTES)
    return b""
