"""Models, their list prices as Claude Code charges them, the cost of a `usage`, and estimates of tokens without an API.

The estimates go by words, letters and other signs. They are fitted to 49 Markdown files that steer or document, with
the counts of ctok as the truth (sanderland/ctok, which rebuilds Claude's tokenizers). Of files that were not fitted,
all are within 10 % of it, where characters alone (2.67 a token for Claude 4.7 and 5, 3.72 for Claude 3 to 4.6) err by
up to 24 %.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.wire import ApiAnswer, Call, dicts, texts


def count(usage: Mapping[str, Any], *keys: str) -> int:
    """Return the count under nested keys of a `usage` object; 0 where there is none, and a trillion at most."""
    value: Any = usage
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    # Some gateways write whole numbers with a fraction, and what is too large for 64 bits is read as a float.
    is_count = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(min(value, 10**12)) if is_count and value > 0 else 0


def cache_writes(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Return the tokens written to the cache for five minutes, and those for an hour."""
    one_hour = count(usage, "cache_creation", "ephemeral_1h_input_tokens")
    five_minutes = count(usage, "cache_creation", "ephemeral_5m_input_tokens")
    return max(count(usage, "cache_creation_input_tokens") - one_hour, five_minutes), one_hour


# Prices of cache writes as multiples of the input price; the same for every model.
CACHE_WRITE_5M, CACHE_WRITE_1H = 1.25, 2.0
WEB_SEARCH_USD = 0.01
# Factor for inference that stays in the United States.
US_ONLY = 1.1


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens; all times `fast` in fast mode, and `long` for a prompt above `long_above`."""

    input: float
    output: float
    cache_read: float
    fast: float = 1.0
    long_above: int | None = None
    long: float = 1.0


PRICES = {
    "claude-sonnet-5-5": Price(2, 10, 0.1),
    "claude-opus-5-5": Price(4, 20, 0.2, fast=2),
    "claude-haiku-5-5": Price(0.1, 0.5, 0.01, long_above=100_000, long=5),
    "claude-fable-5-2": Price(8, 40, 0.2, fast=2),
    "claude-fable-5-1": Price(10, 50, 0.25),
    "claude-fable-5": Price(10, 50, 1),
    "claude-mythos-5-2": Price(8, 40, 0.2, fast=2),
    "claude-mythos-5-1": Price(10, 50, 0.25),
    "claude-mythos-5": Price(10, 50, 1),
    "claude-sonnet-5": Price(2, 10, 0.2),
    "claude-opus-5": Price(5, 25, 0.5, fast=2),
    "claude-opus-4-8": Price(5, 25, 0.5, fast=2),
    "claude-opus-4-7": Price(5, 25, 0.5, fast=6),
    "claude-opus-4-6": Price(5, 25, 0.5, fast=6),
    "claude-opus-4-5": Price(5, 25, 0.5),
    "claude-opus-4-1": Price(15, 75, 1.5),
    "claude-opus-4-0": Price(15, 75, 1.5),
    "claude-opus-4": Price(15, 75, 1.5),
    "claude-sonnet-4-6": Price(3, 15, 0.3),
    "claude-sonnet-4-5": Price(3, 15, 0.3),
    "claude-sonnet-4-0": Price(3, 15, 0.3),
    "claude-sonnet-4": Price(3, 15, 0.3),
    "claude-3-7-sonnet": Price(3, 15, 0.3),
    "claude-3-5-sonnet": Price(3, 15, 0.3),
    "claude-haiku-4-5": Price(1, 5, 0.1),
    "claude-3-5-haiku": Price(0.8, 4, 0.08),
}

# What the CLI assumes of a model that it does not know: the price of its default model.
GUESS = PRICES["claude-opus-5-5"]
_SPELLING = re.compile(
    r"^(?:.*/)?(?:[a-z-]+\.)?(?:anthropic\.)?"  # gateway, region and provider
    r"(?P<name>claude-[a-z0-9-]+?)"
    r"(?:[-@]\d{8}|-latest)?(?:-v\d+(?::\d+)?)?(?:\[1m\])?$"  # date, provider's version, long context
)


def base_name(model: str) -> str:
    """The model's name without date and provider: `us.anthropic.claude-x-20260101-v1:0` → `claude-x`."""
    match = _SPELLING.match(model)
    return match["name"] if match else model


def is_known(model: str) -> bool:
    """Whether the table has a price for the model."""
    return base_name(model) in PRICES


def cost_usd(model: str, usage: Mapping[str, Any]) -> float:
    """Return the cost of one answer in US dollars; of an unknown model, a guess."""
    # The counts of the answer are without those of an advisor and of a summary that the API wrote for it.
    beside = (it for it in dicts(usage.get("iterations")) if it.get("type") in ("advisor_message", "compaction"))
    own = {"iterations": None, "inference_geo": usage.get("inference_geo")}
    more = sum(cost_usd(str(it.get("model") or model), it | own) for it in beside)
    price = PRICES.get(base_name(model), GUESS)
    uncached, cached = count(usage, "input_tokens"), count(usage, "cache_read_input_tokens")
    five_minutes, one_hour = cache_writes(usage)
    written = five_minutes * CACHE_WRITE_5M + one_hour * CACHE_WRITE_1H
    output = count(usage, "output_tokens") * price.output
    cost = ((uncached + written) * price.input + cached * price.cache_read + output) / 1e6
    if usage.get("speed") == "fast":
        cost *= price.fast
    if price.long_above is not None and uncached + cached + five_minutes + one_hour > price.long_above:
        cost *= price.long
    if usage.get("inference_geo") == "us":
        cost *= US_ONLY
    return cost + more + count(usage, "server_tool_use", "web_search_requests") * WEB_SEARCH_USD


def plain(model: str) -> str:
    """A model's name as requests spell it: without the mark of a long context."""
    return model.removesuffix("[1m]")


# Tokens for each word, each letter of it, and each other sign but blanks; Latin letters beyond ASCII count as signs.
WEIGHTS, OLD_WEIGHTS = (0.0, 0.345, 1.19), (0.769, 0.087, 0.958)
# For each sign of Cyrillic, of other alphabets and kana, Han, South Asia, Hangul, and pictures, whatever the model.
SCRIPTS = {
    "[\u0400-\u052f]": 0.4, "[\u0370-\u03ff\u0530-\u08ff\u10a0-\u10ff\u3040-\u30ff]": 0.79, "[\u3400-\u9fff]": 1.12,
    "[\u0900-\u109f\u1100-\u1dff]": 0.92, "[\uac00-\ud7a3]": 1.37, "[\u2600-\u27bf\U0001f000-\U0001ffff]": 3.0,
}  # fmt: skip
# The first version with the newer tokenizer.
NEWER = (4, 7)
# What the API puts around a request, each of its texts, and the definitions of its tools as a whole.
REQUEST_TOKENS, BLOCK_TOKENS, TOOLS_TOKENS = 7, 3, 350
_WORD, _SIGN = re.compile("[A-Za-z]+"), re.compile(r"[^A-Za-z\s]")
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def estimate_text(text: str, model: str) -> int:
    """Estimate the tokens of a text alone; of a model that is not known, as the newest would have them."""
    found = _VERSION.search(model)
    is_old = found and (int(found[1]), int(found[2] or 0)) < NEWER
    of_word, of_letter, of_sign = OLD_WEIGHTS if is_old else WEIGHTS
    words, signs = _WORD.findall(text), "".join(_SIGN.findall(text))
    beyond = sum((weight - of_sign) * len(re.findall(script, signs)) for script, weight in SCRIPTS.items())
    return round(of_word * len(words) + of_letter * sum(map(len, words)) + of_sign * len(signs) + beyond)


def estimate_request(body: Mapping[str, Any]) -> int:
    """Estimate the tokens of a request as the API counts it, with what it puts around texts and tools."""
    defined = [wire.write(tool).decode("utf-8", "replace") for tool in dicts(body.get("tools"))]
    contents = [*(message.get("content") for message in dicts(body.get("messages"))), body.get("system")]
    told = [*(text for content in contents for text in texts(content)), *defined]
    size = sum(estimate_text(text, str(body.get("model", ""))) + BLOCK_TOKENS for text in told)
    return REQUEST_TOKENS + size + (TOOLS_TOKENS if defined else 0)


@asynccontextmanager
async def estimated(call: Call) -> AsyncIterator[ApiAnswer]:
    """Answer a request for a token count with an estimate."""
    yield ApiAnswer(200, [wire.JSON], wire.once(wire.write({"input_tokens": estimate_request(call.body)})))
