"""The answer of `zelda why`, in words."""

import pytest

from zelda_ci.domain.attribution import Attribution, ChangeUnit, Round, Suspicion
from zelda_ci.redact import Redactor
from zelda_ci.report.builders.steering import attribution_line
from zelda_ci.report.model import plain

safe = Redactor()


@pytest.mark.parametrize(
    ("sessions", "end"), [(58, "More money may tell, up to 60"), (60, "More sessions would hardly")]
)
def test_more_money_is_asked_for_only_where_more_sessions_may_run(sessions: int, end: str) -> None:
    units = (ChangeUnit(kind="file", files=(safe("a.md"),)), ChangeUnit(kind="file", files=(safe("b.md"),)))
    found = Attribution(
        batch_id="b",
        suite=safe("greeting"),
        subject=safe("It greets."),
        units=units,
        suspicions=(Suspicion(unit=0, probability=0.6), Suspicion(unit=1, probability=0.2)),
        rounds=(Round(reverted=(0,), passed=3, sessions=sessions),),
        verdict="undecided",
    )
    assert end in plain(attribution_line(found))
