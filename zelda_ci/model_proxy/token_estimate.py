"""Sizes of texts and requests in tokens without an API: estimates from their length.

Measured on 169 CLAUDE.md, AGENTS.md and SKILL.md files of seven public repositories, with ctok (sanderland/ctok) as the
truth: Claude 3 to 4.6 have 3.72 characters per token, Claude 4.7 and 5 have 2.67, and 5 to 95 % of the files lie within
13 % of that. Characters beyond ASCII are counted by their bytes, of which tokenizers make tokens where they know none.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.answer import dicts, texts
from zelda_ci.model_proxy.wire import ApiAnswer, Call

BYTES_PER_TOKEN, OLD_BYTES_PER_TOKEN = 2.67, 3.72
# The first version with the newer tokenizer.
NEWER = (4, 7)
# What the API puts around a request, each of its texts, and the definitions of its tools as a whole.
REQUEST_TOKENS, BLOCK_TOKENS, TOOLS_TOKENS = 7, 3, 350
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def bytes_per_token(model: str) -> float:
    """Return how many bytes of a text make a token for a model; for one that is not known, as for the newest."""
    found = _VERSION.search(model)
    is_old = found and (int(found[1]), int(found[2] or 0)) < NEWER
    return OLD_BYTES_PER_TOKEN if is_old else BYTES_PER_TOKEN


def estimate_text(text: str, model: str) -> int:
    """Estimate the tokens of a text alone."""
    return round(len(text.encode("utf-8", "surrogatepass")) / bytes_per_token(model))


def estimate_request(body: Mapping[str, Any]) -> int:
    """Estimate the tokens of a request as the API counts it, with what it puts around texts and tools."""
    model, tools = str(body.get("model", "")), dicts(body.get("tools"))
    blocks = [text for message in dicts(body.get("messages")) for text in texts(message.get("content"))]
    blocks += texts(body.get("system"))
    defined = [wire.write(tool).decode("utf-8", "replace") for tool in tools]
    size = sum(estimate_text(text, model) + BLOCK_TOKENS for text in [*blocks, *defined])
    return REQUEST_TOKENS + size + (TOOLS_TOKENS if defined else 0)


@asynccontextmanager
async def estimated(call: Call) -> AsyncIterator[ApiAnswer]:
    """Answer a request for a token count with an estimate."""
    body = wire.write({"input_tokens": estimate_request(call.body)})
    yield ApiAnswer(200, [wire.JSON], wire.once(body))
