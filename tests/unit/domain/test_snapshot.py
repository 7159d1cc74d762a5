"""What users wrote is masked before it is stored."""

from tests.builders import result, suite
from tests.unit.storage.test_codec import FULL
from zelda_ci.redact import MASK, Redactor, Secret

redact = Redactor([Secret("hunter22")])


def test_secrets_are_masked_in_everything_a_suite_says() -> None:
    written = suite(
        prompt="use hunter22",
        acceptanceCriteria=["hunter22 works"],
        setupCommand=["login", "hunter22"],
        testCommand="PASSWORD=hunter22 make",
    )
    stored = written.redacted(redact)
    assert stored.prompt == f"use {MASK}"
    assert stored.acceptance_criteria == (f"{MASK} works",)
    assert (stored.setup_command, stored.test_command) == (("login", MASK), f"PASSWORD={MASK} make")
    assert "hunter22" not in stored.model_dump_json()


def test_a_record_without_secrets_stays_equal_in_value_and_type() -> None:
    for record in (result(), FULL):
        stored = record.redacted(redact)
        assert stored == record
        assert type(stored.status) is type(record.status)
        assert stored.model_dump_json() == record.model_dump_json()
