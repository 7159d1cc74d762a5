"""Numbers as people read them."""

from collections.abc import Sequence

MINUTE = 60


def format_score(value: float) -> str:
    """Points of 100, with one decimal."""
    return f"{value + 0.0:.1f}".replace("-0.0", "0.0")


def whole(value: float) -> str:
    """`12,345`."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"


def average(value: float) -> str:
    """`9.8`, but `9` where it is whole."""
    return format_score(value).removesuffix(".0")


def money(usd: float, *, exact: bool = True) -> str:
    """`$0.0123`; `exact` is false where the price is a guess."""
    shown = "less than $0.0001" if 0 < usd < 0.00005 else f"${usd:,.4f}"
    return shown if exact else f"about {shown}"


def duration(seconds: float) -> str:
    """`0.4 s`, `1m 23s` or `2h 05m`: the finest unit that still matters."""
    if round(seconds, 1) < MINUTE:
        return f"{max(seconds, 0.0):.1f} s"
    if round(seconds) < MINUTE**2:
        minutes, rest = divmod(round(seconds), MINUTE)
        return f"{minutes}m {rest:02d}s"
    hours, minutes = divmod(round(seconds / MINUTE), MINUTE)
    return f"{hours}h {minutes:02d}m"


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `3 files`."""
    return f"{whole(number)} {noun if number == 1 else plural or noun + 's'}"


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def brief_money(usd: float) -> str:
    """`$0.12` or `$0.0042`: for a narrow column."""
    return f"${usd:,.2f}" if not 0 < usd < 0.01 else f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"


def brief_count(number: float) -> str:
    """`940`, `12.3k` or `1.2M`: for a narrow column."""
    divisor, unit = (1, "") if abs(number) < 999.5 else (1_000, "k") if abs(number) < 999_500 else (1_000_000, "M")
    part = number / divisor
    return f"{part:.0f}{unit}" if not unit or abs(part) >= 99.95 else f"{part:.1f}{unit}"
