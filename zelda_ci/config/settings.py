"""What the environment says: credentials, addresses, habits. The environment is given, never fetched."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from zelda_ci.config.credentials import (
    ADDRESSES,
    API_TOKENS,
    AWS_KEYS,
    BEDROCK_TOKEN,
    GOOGLE_TOKENS,
    ModelCredential,
    find_credential,
)
from zelda_ci.domain.suite import WEB_ADDRESS, has_port
from zelda_ci.errors import ConfigError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import replacing
from zelda_ci.redact import MIN_SECRET_LENGTH, Secret

_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_CREDENTIALS", "_PAT")
_WHOLE_NAMES = frozenset({"TOKEN", "PASSWORD", "SECRET", "API_KEY", "APIKEY"})
_AWS_HARMLESS = re.compile(
    r"AWS_(DEFAULT_)?(REGION|PROFILE|OUTPUT|PAGER|CONFIG_FILE|SHARED_CREDENTIALS_FILE|CA_BUNDLE|ENDPOINT_URL\w*"
    r"|ROLE_\w+|\w+_(MODE|ATTEMPTS|DISABLED|FILE|ENV|TIMEOUT|CONFIG)|STS_REGIONAL_ENDPOINTS)"
)
PORTKEY_HOST = "api.portkey.ai"
_ROUTING = {"PORTKEY_PROVIDER": "provider", "PORTKEY_VIRTUAL_KEY": "virtual-key", "PORTKEY_CONFIG": "config"}


@dataclass(frozen=True)
class EnvironmentSettings:
    """The environment variables that Zelda knows; absent where they are not set or empty."""

    portkey_api_key: Secret | None
    portkey_routing: Mapping[str, str]
    """What tells Portkey where to send a request: `provider`, `virtual-key`, `config`, as far as they are set."""
    gateway_hosts: frozenset[str] | None
    """Hosts that the judge's gateway may have, and that may get its key; absent where any may."""
    unsafe: bool
    """Whether runs without isolation are allowed on this machine."""
    environ: Mapping[str, str] = field(repr=False, compare=False)
    """All variables: what suites, git and proxies may ask for."""
    _secrets: tuple[Secret, ...]
    _passed: Mapping[str, Secret] = field(default_factory=dict, repr=False, compare=False)

    def credential(self) -> ModelCredential | None:
        """What the models are asked with.

        Raises:
            ConfigError: The one that was asked for cannot be had, or lacks something.
        """
        return find_credential(self.environ, self._passed)

    def secrets(self) -> tuple[Secret, ...]:
        """Every value of the environment that must not appear anywhere, known to Zelda or not."""
        return self._secrets


def read_environment(
    environ: Mapping[str, str], passed: Mapping[str, Secret] | None = None, *, trusts_files: bool = False
) -> EnvironmentSettings:
    """Read the settings.

    Args:
        environ: The environment.
        passed: Credentials that came in another way, by the variable that each stands for, which is then not read.
        trusts_files: Whether the project's files may send the gateway's key to any host. On a laptop they may be a
            stranger's; in CI they are those of the base.

    Raises:
        ConfigError: values that cannot be used, all at once; the values themselves are not shown.
    """
    passed = passed or {}
    problems = [*_problems({name: value for name, value in environ.items() if name not in passed})]
    if problems:
        raise ConfigError(
            "\n".join(problems), hint="Set it again, without what does not belong.", code="ENVIRONMENT_INVALID"
        )
    return EnvironmentSettings(
        portkey_api_key=passed.get("PORTKEY_API_KEY") or _secret(environ, "PORTKEY_API_KEY"),
        portkey_routing={name: environ[variable] for variable, name in _ROUTING.items() if environ.get(variable)},
        gateway_hosts=_hosts(environ) or (None if trusts_files else _hosts_of_the_key(environ)),
        unsafe=environ.get("ZELDA_UNSAFE") == "1",
        environ=environ,
        _secrets=(*passed.values(), *map(Secret, dict.fromkeys(_worth_masking(environ)))),
        _passed=passed,
    )


def _secret(environ: Mapping[str, str], name: str) -> Secret | None:
    return Secret(environ[name]) if environ.get(name) else None


def _hosts(environ: Mapping[str, str]) -> frozenset[str]:
    return frozenset(filter(None, re.split(r"[\s,]+", environ.get("ZELDA_GATEWAY_HOSTS", "").lower())))


def _hosts_of_the_key(environ: Mapping[str, str]) -> frozenset[str]:
    """Whose key it is, and where the environment itself sends it."""
    return frozenset({PORTKEY_HOST, urlsplit(environ.get("PORTKEY_GATEWAY_URL", "")).hostname or PORTKEY_HOST})


def key_problem(value: str) -> str | None:
    """What makes a text unfit to be sent as a key; None where nothing does."""
    if value != value.strip():
        return "begins or ends with blanks or a line break, as after a careless paste"
    if value[0] == value[-1] and value[0] in "'\"":
        return "is in quotes, which have become part of it"
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        return "holds blanks or characters that no key has"
    return None


def _address_problem(value: str) -> str | None:
    if value != value.strip():
        return "begins or ends with blanks or a line break, as after a careless paste"
    if not re.fullmatch(WEB_ADDRESS, value) or not has_port(value):
        return "is not an http:// or https:// address without user name, query and fragment"
    return None


def _folder_problem(value: str) -> str | None:
    if value != value.strip() or not value.isprintable():
        return "begins or ends with blanks, or holds a line break"
    return None if Path(value).is_absolute() else "is not an absolute path"


_CHECKS: dict[str, Callable[[str], str | None]] = {
    **dict.fromkeys((*API_TOKENS, BEDROCK_TOKEN, *AWS_KEYS, *GOOGLE_TOKENS), key_problem),
    **dict.fromkeys(ADDRESSES, _address_problem),
    "PORTKEY_API_KEY": key_problem,
    "PORTKEY_GATEWAY_URL": _address_problem,
    "PORTKEY_PROVIDER": key_problem,
    "PORTKEY_VIRTUAL_KEY": key_problem,
    "PORTKEY_CONFIG": key_problem,
    "ZELDA_WORKSPACES": _folder_problem,
}


def _problems(environ: Mapping[str, str]) -> Iterator[str]:
    for name, check in _CHECKS.items():
        value = environ.get(name)
        wrong = check(value) if value else None
        if wrong:
            yield f"The environment variable {name} {wrong}."


def _worth_masking(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        # The inputs of an action are variables whose names keep their hyphens.
        if _names_a_secret(name.upper().replace("-", "_")) and len(value) >= MIN_SECRET_LENGTH:
            yield value
        password = _password_in(value)
        if password and len(password) >= MIN_SECRET_LENGTH:
            yield password


def _names_a_secret(name: str) -> bool:
    if name.startswith("AWS_"):
        return not _AWS_HARMLESS.fullmatch(name)
    return name.endswith(_ENDINGS) or name in _WHOLE_NAMES


def _password_in(value: str) -> str | None:
    """Of an address with user name and password, as databases and package registries use."""
    if "://" not in value or "@" not in value:
        return None
    try:
        return urlsplit(value).password
    except ValueError:
        return None


MAX_WORD_BYTES = 100


def accepted_isolation(environ: Mapping[str, str]) -> str | None:
    """The weak isolation level that the user has accepted for this machine, in a file of their own."""
    file = _accepted_file(environ)
    try:
        return untrusted.read_head(file, MAX_WORD_BYTES).decode("ascii", "replace").strip() if file else None
    except OSError:
        return None


def accept_isolation(environ: Mapping[str, str], level: str) -> Path | None:
    """Remember it; the file, or nothing where the user has no folder for settings.

    Raises:
        OSError: It cannot be written.
    """
    file = _accepted_file(environ)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as new:
            new.write(f"{level}\n".encode())
    return file


def _accepted_file(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME", "")
    folder = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    return Path(folder, "zelda", "accepted-isolation") if Path(folder).is_absolute() else None
