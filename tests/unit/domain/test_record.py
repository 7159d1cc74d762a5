"""A record is frozen; a copy with other values is checked as a new one is."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import NoneType
from typing import get_args

import pytest

from zelda_ci import domain
from zelda_ci.domain.base import Record
from zelda_ci.domain.suite import ExecutionSettings, JudgeSettings


def test_other_values_replace_what_was_there_and_the_rest_stays_as_it_was_given() -> None:
    settings = ExecutionSettings(max_turns=5)
    copy = settings.replace(max_cost_usd=2.5)
    assert (copy.max_turns, copy.max_cost_usd, settings.max_cost_usd) == (5, 2.5, None)
    assert copy.model_fields_set == {"max_turns", "max_cost_usd"}


@pytest.mark.parametrize("values", [{"votes": 2}, {"vote": 3}, {"maxTokens": 5}, {"max_tokens": "many"}])
def test_what_a_new_record_would_not_take_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        JudgeSettings().replace(**values)


def records(kind: type[Record] = Record) -> Iterator[type[Record]]:
    for each in kind.__subclasses__():
        yield each
        yield from records(each)


def test_whatever_may_be_absent_may_be_left_out() -> None:
    """Files leave out what is absent, so a field that has to be given cannot be read again."""
    for module in pkgutil.iter_modules(domain.__path__, "zelda_ci.domain."):
        importlib.import_module(module.name)
    fields = [(kind, name, field) for kind in records() for name, field in kind.model_fields.items()]
    assert len(fields) > 300
    required = [
        f"{kind.__name__}.{name}"
        for kind, name, field in fields
        if field.is_required() and NoneType in get_args(field.annotation)
    ]
    assert required == []
