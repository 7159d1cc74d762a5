"""What the environment, which is given and never fetched, says: credentials, addresses, habits."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from zelda_ci.domain.suite import WEB_ADDRESS, has_port
from zelda_ci.errors import ConfigError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import write_whole
from zelda_ci.named_secrets import is_secret_name
from zelda_ci.redact import MIN_SECRET_LENGTH, Secret

Platform = Literal["anthropic", "bedrock", "vertex"]
BEDROCK, VERTEX = "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"
# In the order in which Claude Code takes them.
API_TOKENS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
BEDROCK_TOKEN = "AWS_BEARER_TOKEN_BEDROCK"  # noqa: S105  # the name of its variable
AWS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
GOOGLE_TOKENS = ("CLOUDSDK_AUTH_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN")
ADDRESSES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL")
OTHER_PLATFORMS = ("CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_MANTLE")
HOW = (
    "Set one of ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, CLAUDE_CODE_OAUTH_TOKEN (a subscription: `claude "
    "setup-token`), or CLAUDE_CODE_USE_BEDROCK=1 or CLAUDE_CODE_USE_VERTEX=1 with the variables of that cloud. "
    "(`zelda demo` and `zelda run --replay` need none.)"
)


@dataclass(frozen=True)
class ModelCredential:
    """One way to the models: whose API, and the key or token for it."""

    platform: Platform
    variable: str = ""
    """Which held the secret."""
    secret: Secret | None = field(default=None, repr=False)
    """None where the cloud's own library finds the credentials."""
    base_url: str | None = None
    region: str = ""
    project: str = ""

    @property
    def variables(self) -> frozenset[str]:
        """Variables that pay, as far as they are known."""
        of_cloud = AWS_KEYS if self.platform == "bedrock" else ("GOOGLE_APPLICATION_CREDENTIALS",)
        return frozenset([self.variable] if self.secret else of_cloud)


def find_credential(environ: Mapping[str, str], passed: Mapping[str, Secret]) -> ModelCredential | None:
    """The one that counts, in Claude Code's order, after what was passed; raises ConfigError where it is unusable."""

    def found(*names: str) -> tuple[str, Secret | None]:
        name = next((name for name in names if environ.get(name)), "")
        return name, Secret(environ[name]) if name else None

    def missing(what: str, hint: str) -> ConfigError:
        return ConfigError(f"{what}.", hint=hint, code="CREDENTIAL_MISSING")

    direct, bedrock, vertex = (environ.get(name, "").rstrip("/") or None for name in ADDRESSES)
    # As Claude Code reads a switch.
    on = {name for name, value in environ.items() if value.strip().lower() in {"1", "true", "yes", "on"}}
    if key := passed.get("ANTHROPIC_API_KEY"):
        return ModelCredential("anthropic", "ANTHROPIC_API_KEY", key, direct)
    if other := next((name for name in OTHER_PLATFORMS if name in on), None):
        raise missing(f"{other} is set, and Zelda does not know that platform", HOW)
    if BEDROCK in on:
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise missing(f"{BEDROCK} is set, but not AWS_REGION", "Set AWS_REGION to the region of your models.")
        return ModelCredential("bedrock", *found(BEDROCK_TOKEN), bedrock, region=region)
    if VERTEX in on:
        project = environ.get("ANTHROPIC_VERTEX_PROJECT_ID") or environ.get("GOOGLE_CLOUD_PROJECT")
        region = environ.get("CLOUD_ML_REGION")
        if not (project and region):
            lacking = "CLOUD_ML_REGION" if project else "ANTHROPIC_VERTEX_PROJECT_ID"
            raise missing(f"{VERTEX} is set, but not {lacking}", f"Set {lacking} as Claude Code wants it.")
        return ModelCredential("vertex", *found(*GOOGLE_TOKENS), vertex, region=region, project=project)
    variable, secret = found(*API_TOKENS)
    return ModelCredential("anthropic", variable, secret, direct) if secret else None


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
    secrets: tuple[Secret, ...]
    """Every value of the environment that must not appear anywhere, known to Zelda or not."""
    _passed: Mapping[str, Secret] = field(default_factory=dict, repr=False, compare=False)

    def credential(self) -> ModelCredential | None:
        """What the models are asked with; raises as `find_credential` does."""
        return find_credential(self.environ, self._passed)


def read_environment(
    environ: Mapping[str, str], passed: Mapping[str, Secret] | None = None, *, trusts_files: bool = False
) -> EnvironmentSettings:
    """Read the settings; raises ConfigError for all unusable values at once, which are not shown.

    Credentials that are passed came in another way, by the variable that each stands for, which is then not read. Files
    that are trusted may send the gateway's key to any host: in CI they are the base's, else perhaps a stranger's.
    """
    passed = passed or {}
    given = {name: value for name, value in environ.items() if value and name not in passed}
    checked = {name: check(given[name]) for name, check in _CHECKS.items() if name in given}
    if wrong := "\n".join(f"The environment variable {name} {why}." for name, why in checked.items() if why):
        raise ConfigError(wrong, hint="Set it again, without what does not belong.", code="ENVIRONMENT_INVALID")
    # Whose key it is, and where the environment itself sends it.
    usual = {PORTKEY_HOST, urlsplit(environ.get("PORTKEY_GATEWAY_URL", "")).hostname or PORTKEY_HOST}
    hosts = set(re.findall(r"[^\s,]+", environ.get("ZELDA_GATEWAY_HOSTS", "").lower()))
    key = passed.get("PORTKEY_API_KEY") or (Secret(given["PORTKEY_API_KEY"]) if "PORTKEY_API_KEY" in given else None)
    return EnvironmentSettings(
        portkey_api_key=key,
        portkey_routing={name: environ[variable] for variable, name in _ROUTING.items() if environ.get(variable)},
        gateway_hosts=frozenset(hosts) or (None if trusts_files else frozenset(usual)),
        unsafe=environ.get("ZELDA_UNSAFE") == "1",
        environ=environ,
        secrets=(*passed.values(), *map(Secret, dict.fromkeys(_worth_masking(environ)))),
        _passed=passed,
    )


def key_problem(
    value: str,
    fits: Callable[[str], object] = re.compile(r"[\x21-\x7e]+").fullmatch,
    otherwise: str = "holds blanks or characters that no key has",
) -> str | None:
    """What makes a text unfit, which is a key unless it says otherwise; None where nothing does."""
    if value != value.strip():
        return "begins or ends with blanks or a line break, as after a careless paste"
    if value[0] == value[-1] and value[0] in "'\"":
        return "is in quotes, which have become part of it"
    return None if fits(value) else otherwise


_address_problem = partial(
    key_problem,
    fits=lambda value: re.fullmatch(WEB_ADDRESS, value) and has_port(value),
    otherwise="is not an http:// or https:// address without user name, query and fragment",
)
_folder_problem = partial(
    key_problem, fits=lambda value: value.isprintable() and value[0] == "/", otherwise="is not an absolute path"
)
_KEYS = (*API_TOKENS, BEDROCK_TOKEN, *AWS_KEYS, *GOOGLE_TOKENS, "PORTKEY_API_KEY", *_ROUTING)
_CHECKS: Mapping[str, Callable[[str], str | None]] = {
    **dict.fromkeys(_KEYS, key_problem),
    **dict.fromkeys((*ADDRESSES, "PORTKEY_GATEWAY_URL"), _address_problem),
    "ZELDA_WORKSPACES": _folder_problem,
}
# Of an address, as databases and package registries use it.
_PASSWORD = re.compile(r"://[^\s/?#@:]*:([^\s/?#]+)@")


def _worth_masking(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        is_named = not _AWS_HARMLESS.fullmatch(name) if name.startswith("AWS_") else is_secret_name(name)
        passwords = _PASSWORD.findall(value)
        yield from (each for each in (*([value] if is_named else []), *passwords) if len(each) >= MIN_SECRET_LENGTH)


def accepted_isolation(environ: Mapping[str, str]) -> str | None:
    """The weak isolation level that the user has accepted for this machine, in a file of their own."""
    file = _accepted_file(environ)
    try:
        return untrusted.read_head(file, 100).decode("ascii", "replace").strip() if file else None
    except OSError:
        return None


def accept_isolation(environ: Mapping[str, str], level: str) -> Path | None:
    """Remember it; the file, or nothing where the user has no folder for settings. Raises `StorageError`."""
    file = _accepted_file(environ)
    if file:
        write_whole(file, [f"{level}\n".encode()])
    return file


def _accepted_file(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME", "")
    folder = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    return Path(folder, "zelda", "accepted-isolation") if Path(folder).is_absolute() else None
