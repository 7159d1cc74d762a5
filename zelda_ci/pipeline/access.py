"""With what sessions and judges ask the models: the user's credential, or the judge's gateway."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from zelda_ci import metrics
from zelda_ci.config.environment import AWS_KEYS, HOW, EnvironmentSettings, ModelCredential
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import ConfigError
from zelda_ci.model_proxy.modes import API_URL, LiveMode, Mode, RecordMode, ReplayMode, Upstream
from zelda_ci.model_proxy.platforms import AwsKeys, Vertex

JUDGE_KEY_MISSING = "PORTKEY_API_KEY is not set, and the judge behind the gateway needs it."


def direct(settings: EnvironmentSettings, who: str) -> Upstream:
    """The way to the models with the credential of the environment.

    Raises:
        ConfigError: There is none, or it lacks something.
    """
    credential = settings.credential()
    if credential is None:
        raise ConfigError(f"ANTHROPIC_API_KEY is not set, and {who} needs it.", hint=HOW, code="API_KEY_MISSING")
    return _upstream(credential, settings)


def _upstream(credential: ModelCredential, settings: EnvironmentSettings) -> Upstream:
    variable, environ = credential.variable, settings.environ
    secret, address = credential.secrets[variable], credential.base_url
    match credential.platform:
        case "bedrock" if variable == AWS_KEYS[0]:
            token = credential.secrets.get(AWS_KEYS[2])
            keys = AwsKeys(secret, credential.secrets[AWS_KEYS[1]], token)
            return Upstream.with_bedrock(keys, credential.region, address, environ)
        case "bedrock":
            return Upstream.with_bedrock(secret, credential.region, address, environ)
        case "vertex":
            return Upstream.with_vertex(secret, Vertex(credential.project, credential.region), address, environ)
        case "anthropic" if variable == "ANTHROPIC_API_KEY":
            return Upstream.with_api_key(secret, address or API_URL, environ)
        case "anthropic":
            subscription = variable == "CLAUDE_CODE_OAUTH_TOKEN"
            return Upstream.with_token(secret, address or API_URL, environ, subscription=subscription)


def keep_back(suites: Sequence[ResolvedSuite], settings: EnvironmentSettings) -> None:
    """See to it that no session gets what pays for it.

    Raises:
        ConfigError: A suite passes on a variable of the credential.
    """
    try:
        credential = settings.credential()
    except ConfigError:  # whoever wants to use it will say so
        return
    for suite in suites if credential else ():
        for name in suite.execution.env:
            if credential and name in credential.secrets:
                raise ConfigError(
                    f"{suite.file}: execution.env: {name} must not be passed on: it pays for the models here, and "
                    "sessions never hold such a credential.",
                    hint="Give the session's commands another credential, under another name.",
                    code="CREDENTIAL_PASSED_ON",
                )


def of_judge(gateway: str | None, settings: EnvironmentSettings, origin: str) -> Upstream:
    """The gateway where one is configured, with its own key; the credential of sessions never goes there.

    Args:
        gateway: Its address.
        settings: With the hosts that may get the key.
        origin: Where the address is given, for messages.

    Raises:
        ConfigError: The gateway is not allowed, or there is no key for it.
    """
    if gateway is None:
        return direct(settings, "the judge")
    host = urlsplit(gateway).hostname or ""
    if settings.gateway_hosts is not None and host not in settings.gateway_hosts:
        raise ConfigError(
            f"{origin}: gatewayUrl is at {host}, a host that your environment does not allow to get PORTKEY_API_KEY.",
            hint="Nothing was run, and the key was sent nowhere. If you trust the host, allow it where the key is set: "
            f"ZELDA_GATEWAY_HOSTS={host}.",
            code="GATEWAY_REFUSED",
        )
    if settings.portkey_api_key is None:
        hint = "Set it in the environment, or unset gatewayUrl and PORTKEY_GATEWAY_URL to ask the API directly."
        raise ConfigError(JUDGE_KEY_MISSING, hint=hint, code="JUDGE_KEY_MISSING")
    return Upstream.with_portkey(settings.portkey_api_key, gateway, settings.portkey_routing, settings.environ)


def session_mode(record: Path | None, replay: Path | None, settings: EnvironmentSettings) -> Mode:
    """Where the answers of sessions come from: the folder of a recording, or the models.

    Raises:
        ConfigError: There is no credential, or both folders were given.
    """
    if record and replay:
        raise ConfigError("--record and --replay exclude each other.", hint="Give one of them.", code="USAGE")
    return ReplayMode(replay) if replay else _recorded(direct(settings, "a session"), record)


def judge_mode(
    record: Path | None,
    replay: Path | None,
    suites: Sequence[ResolvedSuite],
    settings: EnvironmentSettings,
    gateway_origin: str,
) -> Mode:
    """Where the answers of judges come from.

    Raises:
        ConfigError: There is no credential, or the gateway cannot be used.
    """
    if replay:
        return ReplayMode(replay)
    wanted = [suite for suite in suites if metrics.ask_judge(suite.metrics)]
    upstream = of_judge(wanted[0].gateway_url, settings, gateway_origin) if wanted else direct(settings, "a session")
    return _recorded(upstream, record)


def _recorded(upstream: Upstream, record: Path | None) -> Mode:
    return RecordMode(upstream, record) if record else LiveMode(upstream)
