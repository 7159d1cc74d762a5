"""Dates and spans as people type them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from zelda_ci.cli.options import moment as read


@pytest.mark.parametrize(
    ("text", "ago"),
    [("30m", timedelta(minutes=30)), ("24h", timedelta(hours=24)), ("7d", timedelta(7)), ("2 w", timedelta(14))],
)
def test_a_span_is_understood(text: str, ago: timedelta) -> None:
    before, found, after = datetime.now(UTC), read(text), datetime.now(UTC)
    assert before - ago <= found <= after - ago


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-01", datetime(2026, 2, 1, tzinfo=UTC)),
        ("2026-02-01T12:30", datetime(2026, 2, 1, 12, 30, tzinfo=UTC)),
        ("2026-02-01T12:30+02:00", datetime(2026, 2, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_a_moment_is_understood(text: str, moment: datetime) -> None:
    assert read(text) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7y", "-7d", "2026-02-30", "999999999w", "d", "\u0667d"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="allowed are"):
        read(text)
