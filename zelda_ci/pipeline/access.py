"""With what sessions and judges ask the models: the user's credential, or the judge's gateway."""

from urllib.parse import urlsplit

from zelda_ci.config.credentials import AWS_KEYS, HOW, ModelCredential
from zelda_ci.config.settings import EnvironmentSettings
from zelda_ci.errors import ConfigError
from zelda_ci.model_proxy.modes import API_URL, Upstream
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
            keys = AwsKeys(secret.reveal(), credential.secrets[AWS_KEYS[1]], token)
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


def of_judge(gateway: str | None, settings: EnvironmentSettings) -> Upstream:
    """The gateway where one is configured, with its own key; the credential of sessions never goes there.

    Raises:
        ConfigError: The gateway is not allowed, or there is no key for it.
    """
    if gateway is None:
        return direct(settings, "the judge")
    host = urlsplit(gateway).hostname or ""
    if settings.gateway_hosts is not None and host not in settings.gateway_hosts:
        raise ConfigError(
            f"The judge's gateway is {host}, which is none of ZELDA_GATEWAY_HOSTS.",
            hint="Nothing was run. Set gatewayUrl to an allowed one, or add the host to the variable.",
            code="GATEWAY_REFUSED",
        )
    if settings.portkey_api_key is None:
        hint = "Set it in the environment, or unset gatewayUrl and PORTKEY_GATEWAY_URL to ask the API directly."
        raise ConfigError(JUDGE_KEY_MISSING, hint=hint, code="JUDGE_KEY_MISSING")
    return Upstream.with_portkey(settings.portkey_api_key, gateway, settings.portkey_routing, settings.environ)
