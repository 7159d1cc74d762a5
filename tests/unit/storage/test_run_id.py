"""Names of runs."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zelda_ci.storage.result_store import is_run_id, run_id

AT = datetime(2026, 2, 13, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("rest-endpoint", "rest-endpoint"),
        ("../../etc/passwd", "etc-passwd"),
        ("-rf", "rf"),
        (".hidden", "hidden"),
        ("a/b\\c:d\n\0e", "a-b-c-d-e"),
        ("Überprüfung", "berpr-fung"),
        ("\u65e5\u672c", "suite"),
        ("", "suite"),
        ("x" * 500, "x" * 80),
    ],
)
def test_what_does_not_belong_in_a_file_name_is_replaced(suite: str, name: str) -> None:
    assert run_id(suite, AT) == f"{name}-2026-02-13T14-30-00"
    tokyo = AT.astimezone(timezone(timedelta(hours=9)))
    assert run_id(suite, tokyo, 2) == f"{name}-2026-02-13T14-30-00-2"


moments = st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@settings(deadline=None)
@given(st.text(), moments, st.integers(1, 99))
def test_every_name_is_one_harmless_path_component(suite: str, at: datetime, number: int) -> None:
    name = run_id(suite, at, number)
    assert is_run_id(name)
    assert len(name) <= 120
    assert not set(name) & set("/\\\0\n ")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".lock", "../a-2026-02-13T14-30-00", "a/b-2026-02-13T14-30-00", "a", "2026-02-13T14-30-00", "a-0"],
)
def test_other_names_are_no_runs(name: str) -> None:
    assert not is_run_id(name)
