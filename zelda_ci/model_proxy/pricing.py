"""Models, their list prices as Claude Code charges them, and the tokens that an answer reports."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tokens:
    """What one response used and what its price depends on."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    web_searches: int = 0
    fast: bool = False
    us_only: bool = False

    @property
    def prompt(self) -> int:
        """Everything the model read, cached or not."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h


def merged(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """A stream's usage so far with that of a later event: counts are cumulative, null and zero mean "as before"."""
    return {**earlier, **{key: value for key, value in later.items() if value}}


def from_usage(usage: Mapping[str, Any]) -> Tokens:
    """Read a `usage` object; whatever is missing or not a count is zero."""
    split = _object(usage.get("cache_creation"))
    one_hour = _count(split.get("ephemeral_1h_input_tokens"))
    cache_writes = max(
        _count(usage.get("cache_creation_input_tokens")), one_hour + _count(split.get("ephemeral_5m_input_tokens"))
    )
    return Tokens(
        input=_count(usage.get("input_tokens")),
        output=_count(usage.get("output_tokens")),
        cache_read=_count(usage.get("cache_read_input_tokens")),
        cache_write_5m=cache_writes - one_hour,
        cache_write_1h=one_hour,
        web_searches=_count(_object(usage.get("server_tool_use")).get("web_search_requests")),
        fast=usage.get("speed") == "fast",
        us_only=usage.get("inference_geo") == "us",
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


CACHE_WRITE_5M = 1.25
# Price of a cache write as a multiple of the input price; the same for every model.
CACHE_WRITE_1H = 2.0

WEB_SEARCH_USD = 0.01
# Factor for inference that stays in the United States.
US_ONLY = 1.1


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


def costs_no_more(model: str, other: str) -> bool:
    """Whether both models are known, and this one's tokens are no dearer than the other's."""
    if not (is_known(model) and is_known(other)):
        return False
    price, limit = PRICES[base_name(model)], PRICES[base_name(other)]
    # Both prices: a model with cheap input and dear output would else pass for a smaller one.
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


@dataclass(frozen=True)
class Models:
    """The models of one run, `main` being the session's own.

    Claude Code's built-in sub-agents inherit the session's model; those of the project can name another. A smaller one
    is theirs to choose, a dearer one is the suite's.
    """

    main: str
    more: frozenset[str] = frozenset()

    @classmethod
    def of(cls, main: str, more: Iterable[str] = ()) -> "Models":
        """The models in the spelling of requests, where the mark of a long context does not appear."""
        return cls(plain(main), frozenset(map(plain, more)))

    def allow(self, name: object) -> bool:
        """Whether a request may name this model."""
        if not isinstance(name, str):
            return False
        model = plain(name)
        return model == self.main or model in self.more or self._is_smaller(model)

    def _is_smaller(self, model: str) -> bool:
        same_provider = _provider(model) == _provider(self.main)
        # A name with another provider is another way through the gateway, perhaps to somebody else's account.
        return same_provider and costs_no_more(model, self.main)


def plain(model: str) -> str:
    """A model's name as requests spell it: without the mark of a long context."""
    return model.removesuffix("[1m]")


def _provider(model: str) -> str:
    """What stands before the name: a gateway routes by it."""
    return model[: model.find(base_name(model))]
