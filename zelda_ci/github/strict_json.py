"""JSON from outside, read strictly: what two readers could understand differently is refused."""

import json
import math
from typing import Any, NoReturn

DEEPEST = 100


class NotStrictJsonError(ValueError):
    """The text is no JSON, or one that readers disagree about; the message says which."""


def read(data: bytes | str, *, deepest: int = DEEPEST) -> Any:
    """The value in `data`.

    Raises:
        NotStrictJsonError: No UTF-8 or no JSON, a key that stands twice in an object, NaN or an infinite number, or
            containers within containers more than `deepest` times.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_unique)
    except NotStrictJsonError:
        raise
    except RecursionError:
        raise NotStrictJsonError("nested too deeply") from None
    except ValueError as exc:
        raise NotStrictJsonError(f"not JSON ({type(exc).__name__})") from None
    if _depth(value) > deepest:
        raise NotStrictJsonError("nested too deeply")
    return value


def _no_number(name: str) -> NoReturn:
    raise NotStrictJsonError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotStrictJsonError("a number is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrictJsonError("a key stands twice in one object")
    return found


def _depth(value: Any) -> int:
    """How many containers stand within each other; level by level, so that depth costs no stack."""
    depth, level = 0, [value]
    while containers := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [item for each in containers for item in (each.values() if isinstance(each, dict) else each)]
    return depth
