"""With what sessions and judges ask the models: the user's credential, or the judge's gateway."""

from pathlib import Path
from urllib.parse import urlsplit

from zelda_ci import metrics
from zelda_ci.config.environment import AWS_KEYS, HOW, EnvironmentSettings
from zelda_ci.errors import ConfigError
from zelda_ci.model_proxy.modes import API_URL, LiveMode, Mode, RecordMode, ReplayMode, Upstream
from zelda_ci.model_proxy.platforms import AwsKeys, Vertex
from zelda_ci.pipeline.invocation import Prepared


def direct(settings: EnvironmentSettings, who: str) -> Upstream:
    """The way to the models with the credential of the environment; raises `ConfigError` where it is not usable."""
    credential = settings.credential()
    if credential is None:
        raise ConfigError(f"ANTHROPIC_API_KEY is not set, and {who} needs it.", hint=HOW, code="API_KEY_MISSING")
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
        message = "PORTKEY_API_KEY is not set, and the judge behind the gateway needs it."
        raise ConfigError(message, hint=hint, code="JUDGE_KEY_MISSING")
    return Upstream.with_portkey(settings.portkey_api_key, gateway, settings.portkey_routing, settings.environ)


def session_mode(prepared: Prepared) -> Mode:
    """Where the answers of sessions come from: the folder of a recording, or the models."""
    order = prepared.order
    if order.record and order.replay:
        raise ConfigError("--record and --replay exclude each other.", hint="Give one of them.", code="USAGE")
    return ReplayMode(order.replay) if order.replay else _recorded(direct(prepared.settings, "a session"), order.record)


def judge_mode(prepared: Prepared) -> Mode:
    """Where the answers of judges come from."""
    order, settings = prepared.order, prepared.settings
    if order.replay:
        return ReplayMode(order.replay)
    asked = next((suite for suite in prepared.suites if metrics.ask_judge(suite.metrics)), None)
    origin = str(prepared.given.get("gatewayUrl") or prepared.loaded.layer.origin("gatewayUrl"))
    return _recorded(
        of_judge(asked.gateway_url, settings, origin) if asked else direct(settings, "a session"), order.record
    )


def _recorded(upstream: Upstream, record: Path | None) -> Mode:
    return RecordMode(upstream, record) if record else LiveMode(upstream)
