"""With what sessions and judges ask the models: the user's credential, or the judge's gateway."""

from collections.abc import Callable
from urllib.parse import urlsplit

from zelda_ci import metrics
from zelda_ci.config.environment import AWS_KEYS, HOW, EnvironmentSettings
from zelda_ci.errors import ConfigError
from zelda_ci.model_proxy.modes import API_URL, LiveMode, Mode, RecordMode, ReplayMode, Upstream
from zelda_ci.model_proxy.platforms import AwsKeys, Vertex
from zelda_ci.pipeline.invocation import Prepared, RunOrder


def direct(settings: EnvironmentSettings, who: str) -> Upstream:
    """The way to the models with the credential of the environment; raises `ConfigError` where it is not usable."""
    credential = settings.credential()
    if credential is None:
        raise ConfigError(f"ANTHROPIC_API_KEY is not set, and {who} needs it.", hint=HOW, code="API_KEY_MISSING")
    secret, address, environ = credential.secrets[credential.variable], credential.base_url, settings.environ
    match credential.platform:
        case "bedrock":
            key, its_secret, token = map(credential.secrets.get, AWS_KEYS)
            access = AwsKeys(key, its_secret, token) if key and its_secret else secret
            return Upstream.with_bedrock(access, credential.region, address, environ)
        case "vertex":
            return Upstream.with_vertex(secret, Vertex(credential.project, credential.region), address, environ)
        case "anthropic" if credential.variable == "ANTHROPIC_API_KEY":
            return Upstream.with_api_key(secret, address or API_URL, environ)
        case "anthropic":
            subscription = credential.variable == "CLAUDE_CODE_OAUTH_TOKEN"
            return Upstream.with_token(secret, address or API_URL, environ, subscription=subscription)


def of_judge(gateway: str | None, settings: EnvironmentSettings, origin: str) -> Upstream:
    """The gateway where one is configured, with its own key; the credential of sessions never goes there.

    Raises `ConfigError` where its host is not allowed to get a key, or there is none. Where its address is given, the
    `origin`, is for messages.
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
    return _mode(prepared.order, lambda: direct(prepared.settings, "a session"))


def judge_mode(prepared: Prepared) -> Mode:
    """Where the answers of judges come from."""
    suite = next((suite for suite in prepared.suites if metrics.ask_judge(suite.metrics)), None)
    if suite is None:
        return session_mode(prepared)
    origin = str(prepared.given.get("gatewayUrl") or prepared.loaded.layer.origin("gatewayUrl"))
    return _mode(prepared.order, lambda: of_judge(suite.gateway_url, prepared.settings, origin))


def _mode(order: RunOrder, upstream: Callable[[], Upstream]) -> Mode:
    if order.replay:
        return ReplayMode(order.replay)
    return RecordMode(upstream(), order.record) if order.record else LiveMode(upstream())
