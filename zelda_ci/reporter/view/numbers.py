"""Numbers as people read them."""

MINUTE = 60
HOUR = 3600


def score(value: float) -> str:
    """Points of 100, with one decimal."""
    return f"{value + 0.0:.1f}".replace("-0.0", "0.0")


def whole(value: float) -> str:
    """`12,345`."""
    return f"{value:,.0f}"


def average(value: float) -> str:
    """`9.8`, but `9` where it is whole."""
    return score(value).removesuffix(".0")


def money(usd: float, *, known: bool = True) -> str:
    """`$0.0123`; `known` is false where the price is a guess."""
    shown = "less than $0.0001" if 0 < usd < 0.00005 else f"${usd:,.4f}"
    return shown if known else f"about {shown}"


def duration(seconds: float) -> str:
    """`0.4 s`, `1m 23s` or `2h 05m`: the finest unit that still matters."""
    if round(seconds, 1) < MINUTE:
        return f"{max(seconds, 0.0):.1f} s"
    if round(seconds) < HOUR:
        minutes, rest = divmod(round(seconds), MINUTE)
        return f"{minutes}m {rest:02d}s"
    hours, minutes = divmod(round(seconds / MINUTE), MINUTE)
    return f"{hours}h {minutes:02d}m"


def clock(seconds: float) -> str:
    """`0:42` or `1:02:03`: of steady width, for time that is still running."""
    minutes, rest = divmod(int(seconds), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `3 files`."""
    return f"{whole(number)} {noun if number == 1 else plural or noun + 's'}"
