"""What pays for the models: the credentials that people have, by the variables that Claude Code itself reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from zelda_ci.errors import ConfigError
from zelda_ci.redact import Secret

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
    """One way to the models: whose API, and the secrets for it by the variables that held them."""

    platform: Platform
    secrets: Mapping[str, Secret] = field(repr=False)
    base_url: str | None = None
    region: str = ""
    project: str = ""

    @property
    def variable(self) -> str:
        """The variable that a message about it names."""
        return next(iter(self.secrets))


def find_credential(environ: Mapping[str, str], passed: Mapping[str, Secret]) -> ModelCredential | None:
    """The one that counts, in Claude Code's own order; what was passed in another way comes first.

    Raises:
        ConfigError: The one that was asked for cannot be had, or lacks something.
    """
    base_url = _address(environ, "ANTHROPIC_BASE_URL")
    if key := passed.get("ANTHROPIC_API_KEY"):
        return ModelCredential("anthropic", {"ANTHROPIC_API_KEY": key}, base_url)
    if other := next((name for name in OTHER_PLATFORMS if _is_on(environ, name)), None):
        raise _not_had(f"{other} is set, and Zelda does not know that platform", HOW)
    if _is_on(environ, BEDROCK):
        return _bedrock(environ)
    if _is_on(environ, VERTEX):
        return _vertex(environ)
    secrets = _secrets(environ, API_TOKENS)
    return ModelCredential("anthropic", dict([*secrets.items()][:1]), base_url) if secrets else None


def _bedrock(environ: Mapping[str, str]) -> ModelCredential:
    if region := environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION"):
        address = _address(environ, "ANTHROPIC_BEDROCK_BASE_URL")
        secrets = _secrets(environ, [BEDROCK_TOKEN]) or _secrets(environ, AWS_KEYS)
        if BEDROCK_TOKEN in secrets or secrets.keys() >= set(AWS_KEYS[:2]):
            return ModelCredential("bedrock", secrets, address, region=region)
        raise _not_had(
            f"{BEDROCK} is set, but neither {BEDROCK_TOKEN} nor AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY",
            "Zelda reads AWS credentials from variables only, not from profiles, SSO or roles: "
            'eval "$(aws configure export-credentials --format env)" sets them.',
        )
    raise _not_had(f"{BEDROCK} is set, but not AWS_REGION", "Set AWS_REGION to the region of your models.")


def _vertex(environ: Mapping[str, str]) -> ModelCredential:
    project = environ.get("ANTHROPIC_VERTEX_PROJECT_ID") or environ.get("GOOGLE_CLOUD_PROJECT")
    region, secrets = environ.get("CLOUD_ML_REGION"), _secrets(environ, GOOGLE_TOKENS)
    if not (project and region):
        missing = "CLOUD_ML_REGION" if project else "ANTHROPIC_VERTEX_PROJECT_ID"
        raise _not_had(f"{VERTEX} is set, but not {missing}", f"Set {missing} as Claude Code wants it.")
    if not secrets:
        raise _not_had(
            f"{VERTEX} is set, but not CLOUDSDK_AUTH_ACCESS_TOKEN",
            "Zelda takes an access token (good for an hour), not credential files of Google Cloud: "
            'export CLOUDSDK_AUTH_ACCESS_TOKEN="$(gcloud auth print-access-token)"',
        )
    address = _address(environ, "ANTHROPIC_VERTEX_BASE_URL")
    return ModelCredential("vertex", secrets, address, region=region, project=project)


def _secrets(environ: Mapping[str, str], names: Sequence[str]) -> dict[str, Secret]:
    return {name: Secret(environ[name]) for name in names if environ.get(name)}


def _address(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(name, "").rstrip("/") or None


def _is_on(environ: Mapping[str, str], name: str) -> bool:
    """As Claude Code reads a switch."""
    return environ.get(name, "").strip().lower() in {"1", "true", "yes", "on"}


def _not_had(message: str, hint: str) -> ConfigError:
    return ConfigError(f"{message}.", hint=hint, code="CREDENTIAL_MISSING")
