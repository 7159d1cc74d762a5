"""Dates and spans as people type them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from zelda_ci.cli.options import moment as read

NOW = datetime(2026, 2, 13, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30m", NOW - timedelta(minutes=30)),
        ("24h", NOW - timedelta(hours=24)),
        ("7d", NOW - timedelta(days=7)),
        ("2 w", NOW - timedelta(weeks=2)),
        ("2026-02-01", datetime(2026, 2, 1, tzinfo=UTC)),
        ("2026-02-01T12:30", datetime(2026, 2, 1, 12, 30, tzinfo=UTC)),
        ("2026-02-01T12:30+02:00", datetime(2026, 2, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_a_moment_is_understood(text: str, moment: datetime) -> None:
    assert read(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7y", "-7d", "2026-02-30", "999999999w", "d", "\u0667d"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="allowed are"):
        read(text, NOW)
