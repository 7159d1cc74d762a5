"""What a request may be: its keys, headers, models and addresses. What was judged is sent: the body is written anew."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.pricing import PRICES, base_name, plain
from zelda_ci.model_proxy.wire import Call, Headers, RefusedHereError

MAX_NAME_LENGTH = 100

# By the API's reference (versions 2023-06-01 and 2026-10-21), the SDK and Claude Code, for both endpoints: what only
# one of them takes, the API refuses itself. Those that say who pays (`billing_policy`, `tags`, `user_profile_id`,
# `workspace_id`) are missing: that is not for a session to choose.
KEYS = frozenset({
    "cache_control", "compaction", "container", "context_hint", "context_management", "data_flow", "diagnostics",
    "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens", "mcp_servers", "messages", "metadata", "model",
    "output_config", "output_format", "resumption", "safeguards", "service_tier", "speed", "stop_sequences", "stream",
    "system", "temperature", "thinking", "thread", "tool_choice", "tools", "top_k", "top_p",
})  # fmt: skip

# What Claude Code and the SDK send. Others are left out, `anthropic-workspace-id` and its like among them.
HEADERS = frozenset({
    b"accept", b"anthropic-beta", b"anthropic-dangerous-direct-browser-access", b"anthropic-version", b"content-type",
    b"user-agent", b"x-app", b"x-claude-code-agent-id", b"x-claude-code-parent-agent-id", b"x-claude-code-session-id",
    b"x-client-request-id",
})  # fmt: skip
HEADER_PREFIX = b"x-stainless-"
QUERY = "beta=true"
API_TOOLS = ("web_", "mcp_", "code_execution")
# How the kinds of blocks end that tell what such a tool did earlier.
TOLD = ("_tool_use", "_result", "_error", "_location", "_output")
# Keys whose values are data, by the kind of the object that has them.
DATA = {"tool_use": ("input",), "server_tool_use": ("input",), "mcp_tool_use": ("input",), "json_schema": ("schema",)}


@dataclass(frozen=True)
class Allowed:
    """What the requests of a run may be: for its `model`, or any where there is none, and smaller or named ones.

    They may have `keys` beside those that Zelda knows, and with `web` make the API turn to addresses, or run code.
    Without `messages` they are only kept, and token counts estimated.
    """

    model: str | None = None
    more_models: Collection[str] = ()
    web: bool = True
    keys: Collection[str] = ()
    messages: bool = True

    def allows_model(self, asked: object) -> bool:
        """Whether a request may name a model: a smaller one is the project's to choose, a dearer one is the suite's."""
        if self.model is None:
            return True
        if not isinstance(asked, str):
            return False
        model, main = plain(asked), plain(self.model)
        if model in {main, *map(plain, self.more_models)}:
            return True
        name, main_name = base_name(model), base_name(main)
        if name not in PRICES or main_name not in PRICES:
            return False
        # What stands before the name leads a gateway to a provider, perhaps to somebody else's account.
        same_provider = model[: model.find(name)] == main[: main.find(main_name)]
        price, limit = PRICES[name], PRICES[main_name]
        # Both prices: a model with cheap input and dear output would else pass for a smaller one.
        return same_provider and price.input <= limit.input and price.output <= limit.output


def judged(path: str, headers: Headers, data: bytes, allowed: Allowed) -> Call:
    """Return what a request asks, its headers in lower case; of a key that its body gives twice the last is sent."""
    if (body := wire.read_object(data)) is None:
        raise RefusedHereError(400, "invalid_request_error", "the body is not a JSON object")
    check(body, allowed)
    kept = [(name, value) for name, value in headers if name in HEADERS or name.startswith(HEADER_PREFIX)]
    try:
        return Call(f"{path}?{QUERY}", kept, wire.write(body), body)
    except RecursionError:
        raise RefusedHereError(400, "invalid_request_error", "the body nests values too deeply") from None


def check(body: dict[str, Any], allowed: Allowed) -> None:
    """Refuse a key that Zelda does not know, a model that the run may not ask, and what has the API turn elsewhere."""
    for key in body:
        if key not in KEYS and key not in allowed.keys:
            name = key[:MAX_NAME_LENGTH] if key.isidentifier() and key.isascii() else ascii(key[:MAX_NAME_LENGTH])
            # The first words are the API's own: Claude Code leaves out an option that is refused with them.
            why = f"{name}: Extra inputs are not permitted. This version of Zelda does not know the key: allow it with "
            why += "execution.requestKeys or ZELDA_REQUEST_KEYS"
            remark = f"a request had the key {name}, which this version of Zelda does not know: see "
            raise RefusedHereError(400, "invalid_request_error", why, remark=f"{remark}execution.requestKeys")
    for place in _structure(body):
        # A model is named by the request, by what it falls back on, and by tools that ask one.
        model = place.get("model")
        if (place is body or "model" in place) and not allowed.allows_model(model):
            name = str(model)[:MAX_NAME_LENGTH]
            why = f"this run may not ask {name!r}: its model is {allowed.model}; others that are dearer or "
            why += "not known have to be named in the suite's execution.extraModels"
            remark = f"the session may not ask the model {name}: see execution.extraModels"
            raise RefusedHereError(403, "permission_error", why, remark=remark)
        if not allowed.web and (feature := _reached(place)):
            raise RefusedHereError(403, "permission_error", f"this run may not use {feature}")


def _reached(place: dict[str, Any]) -> str | None:
    """What makes the API's servers turn to an address, in a few words."""
    if place.get("mcp_servers"):
        return "MCP servers that the API connects to"
    kind, source = str(place.get("type", "")), place.get("source")
    if kind.startswith(API_TOOLS) and not kind.endswith(TOLD):
        return f"the API's own tool {kind[:50]}"
    if kind == "url" or (isinstance(source, dict) and "url" in source):
        return "content that the API fetches from an address"
    return None


def _structure(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every object of a request that the API gives a meaning, wherever it is; not those that are data."""
    # A list of what is left to look at, not recursion: whoever writes the body chooses how deep it is.
    waiting: list[Any] = [body]
    while waiting:
        place = waiting.pop()
        if isinstance(place, list):
            waiting += place
        elif isinstance(place, dict):
            yield place
            # The user's or a tool's own, of any form.
            data = {"input_schema", "input_examples", *DATA.get(str(place.get("type")), ())}
            data |= {"metadata"} if place is body else set()
            waiting += (value for key, value in place.items() if key not in data)
