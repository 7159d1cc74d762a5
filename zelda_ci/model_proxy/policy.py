"""What a request may be: its keys and headers, the models and the addresses that it names.

What was judged is what is sent: the body is read once and written anew.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.pricing import PRICES, base_name, plain
from zelda_ci.model_proxy.wire import Headers, RefusedHereError

MAX_NAME_LENGTH = 100

SETTING = "execution.requestKeys or ZELDA_REQUEST_KEYS"

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


@dataclass(frozen=True)
class Allowed:
    """What the requests of a run may be."""

    model: str | None = None
    """The session's own; None where any may be asked."""
    more_models: Collection[str] = ()
    web: bool = True
    """Whether they may make the API turn to addresses, or run code."""
    keys: Collection[str] = ()
    """Beside those that Zelda knows."""

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


def read(data: bytes) -> dict[str, Any]:
    """The object in a body; of a key that is given twice the last counts, and only that is sent.

    Raises:
        RefusedHereError: There is none.
    """
    value = wire.read_object(data)
    if value is None:
        raise RefusedHereError(400, "invalid_request_error", "the body is not a JSON object")
    return value


def check(body: dict[str, Any], allowed: Allowed) -> None:
    """Refuse a request that its run may not send.

    Raises:
        RefusedHereError: It has a key that Zelda does not know, names a model that the run may not ask, or would make
            the API turn to an address.
    """
    for key in body:
        if key not in KEYS and key not in allowed.keys:
            name = key[:MAX_NAME_LENGTH] if key.isidentifier() and key.isascii() else ascii(key[:MAX_NAME_LENGTH])
            # The first words are the API's own: Claude Code leaves out an option that is refused with them.
            why = f"{name}: Extra inputs are not permitted. This version of Zelda does not know the key: allow it with "
            remark = f"a request had the key {name}, which this version of Zelda does not know"
            remark += ": see execution.requestKeys"
            raise RefusedHereError(400, "invalid_request_error", why + SETTING, remark=remark)
    for model in models(body):
        if not allowed.allows_model(model):
            name = str(model)[:MAX_NAME_LENGTH]
            why = f"this run may not ask {name!r}: its model is {allowed.model}; others that are dearer or "
            why += "not known have to be named in the suite's execution.extraModels"
            remark = f"the session may not ask the model {name}: see execution.extraModels"
            raise RefusedHereError(403, "permission_error", why, remark=remark)
    if not allowed.web and (feature := external_address(body)):
        raise RefusedHereError(403, "permission_error", f"this run may not use {feature}")


def allowed_headers(headers: Headers) -> Headers:
    """Those that go on."""
    lower = [(name.lower(), value) for name, value in headers]
    return [(name, value) for name, value in lower if name in HEADERS or name.startswith(HEADER_PREFIX)]


API_TOOLS = ("web_", "mcp_", "code_execution")

TOOL_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def models(body: dict[str, Any]) -> Iterator[object]:
    """Every model that a request names: its own, those to fall back on, those of tools that ask one."""
    yield body.get("model")
    for place in _structure(body):
        if place is not body and "model" in place:
            yield place["model"]


def external_address(body: dict[str, Any]) -> str | None:
    """The first thing that makes the API's servers turn to an address, in a few words."""
    return next(filter(None, map(_reached, _structure(body))), None)


def _reached(place: dict[str, Any]) -> str | None:
    if place.get("mcp_servers"):
        return "MCP servers that the API connects to"
    kind, source = str(place.get("type", "")), place.get("source")
    if kind.startswith(API_TOOLS) and not _is_history(kind):
        return f"the API's own tool {kind[:50]}"
    if kind == "url" or (isinstance(source, dict) and "url" in source):
        return "content that the API fetches from an address"
    return None


def _is_history(kind: str) -> bool:
    """Whether a block tells what a tool did earlier."""
    return kind.endswith(("_tool_use", "_result", "_error", "_location", "_output"))


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
            waiting += (value for key, value in place.items() if not _is_data(key, place, body))


def _is_data(key: str, place: dict[str, Any], body: dict[str, Any]) -> bool:
    """Whether a value is the user's or a tool's own, of any form."""
    if key in {"input_schema", "input_examples"}:
        return True
    if key == "schema":
        return place.get("type") == "json_schema"
    return (key == "input" and place.get("type") in TOOL_CALLS) or (key == "metadata" and place is body)
