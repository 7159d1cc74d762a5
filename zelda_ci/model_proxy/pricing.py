"""List prices of models, as Claude Code charges them; a test compares the table with the CLI's own results."""

import re
from dataclasses import dataclass

from zelda_ci.model_proxy.tokens import Tokens

CACHE_WRITE_5M = 1.25
CACHE_WRITE_1H = 2.0
"""Price of a cache write as a multiple of the input price; the same for every model."""

WEB_SEARCH_USD = 0.01
US_ONLY = 1.1
"""Factor for inference that stays in the United States."""


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens.

    `fast` multiplies everything in fast mode, `long` when a prompt (cached or not) is above `long_above` tokens.
    """

    input: float
    output: float
    cache_read: float
    fast: float = 1.0
    long_above: int | None = None
    long: float = 1.0


_OPUS_5 = Price(5, 25, 0.5)
_SONNET_4 = Price(3, 15, 0.3)
_FABLE_5_2 = Price(8, 40, 0.2, fast=2)
_FABLE_5_1 = Price(10, 50, 0.25)
_FABLE_5 = Price(10, 50, 1)

PRICES = {
    "claude-sonnet-5-5": Price(2, 10, 0.1),
    "claude-opus-5-5": Price(4, 20, 0.2, fast=2),
    "claude-haiku-5-5": Price(0.1, 0.5, 0.01, long_above=100_000, long=5),
    "claude-fable-5-2": _FABLE_5_2,
    "claude-fable-5-1": _FABLE_5_1,
    "claude-fable-5": _FABLE_5,
    "claude-mythos-5-2": _FABLE_5_2,
    "claude-mythos-5-1": _FABLE_5_1,
    "claude-mythos-5": _FABLE_5,
    "claude-sonnet-5": Price(2, 10, 0.2),
    "claude-opus-5": Price(5, 25, 0.5, fast=2),
    "claude-opus-4-8": Price(5, 25, 0.5, fast=2),
    "claude-opus-4-7": Price(5, 25, 0.5, fast=6),
    "claude-opus-4-6": Price(5, 25, 0.5, fast=6),
    "claude-opus-4-5": _OPUS_5,
    "claude-opus-4-1": Price(15, 75, 1.5),
    "claude-opus-4-0": Price(15, 75, 1.5),
    "claude-opus-4": Price(15, 75, 1.5),
    "claude-sonnet-4-6": _SONNET_4,
    "claude-sonnet-4-5": _SONNET_4,
    "claude-sonnet-4-0": _SONNET_4,
    "claude-sonnet-4": _SONNET_4,
    "claude-3-7-sonnet": _SONNET_4,
    "claude-3-5-sonnet": _SONNET_4,
    "claude-haiku-4-5": Price(1, 5, 0.1),
    "claude-3-5-haiku": Price(0.8, 4, 0.08),
}

GUESS = PRICES["claude-opus-5-5"]
"""What the CLI assumes of a model that it does not know: the price of its default model."""

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


def costs_no_more(model: str, other: str) -> bool:
    """Whether both models are known, and this one's tokens are no dearer than the other's."""
    if not (is_known(model) and is_known(other)):
        return False
    price, limit = PRICES[base_name(model)], PRICES[base_name(other)]
    return price.input <= limit.input and price.output <= limit.output


def cost_usd(model: str, tokens: Tokens) -> float:
    """Cost of one response in US dollars; of an unknown model, a guess."""
    price = PRICES.get(base_name(model), GUESS)
    per_million = (
        tokens.input * price.input
        + tokens.output * price.output
        + tokens.cache_read * price.cache_read
        + tokens.cache_write_5m * price.input * CACHE_WRITE_5M
        + tokens.cache_write_1h * price.input * CACHE_WRITE_1H
    )
    return per_million / 1e6 * _factor(price, tokens) + tokens.web_searches * WEB_SEARCH_USD


def _factor(price: Price, tokens: Tokens) -> float:
    factor = price.fast if tokens.fast else 1.0
    if price.long_above is not None and tokens.prompt > price.long_above:
        factor *= price.long
    return factor * (US_ONLY if tokens.us_only else 1.0)
