"""A record is frozen; a copy with other values is checked as a new one is."""

import pytest

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
