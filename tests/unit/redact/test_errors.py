"""Every explainable failure has a sentence, a code and an exit code."""

import re

import pytest

from zelda_ci import errors
from zelda_ci.errors import ZeldaError

KINDS: list[type[ZeldaError]] = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ZeldaError)
]


def test_each_kind_has_a_code_of_its_own() -> None:
    assert len({kind.default_code for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_is_zeldas_own_and_has_a_code(kind: type[ZeldaError]) -> None:
    failure = kind("It went wrong.")
    assert failure.exit_code == 2
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)+", failure.code)
    assert str(failure) == failure.user_message == "It went wrong."


def test_what_to_do_next_stands_on_its_own_line() -> None:
    failure = errors.StorageError("The disk is full.", hint="Free some space.", code="STORAGE_FULL")
    assert failure.user_message == "The disk is full.\nFree some space."
    assert (failure.message, failure.code) == ("The disk is full.", "STORAGE_FULL")
