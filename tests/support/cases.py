"""Many small cases in one test, which names all that fail."""

import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest

MAX_EXPLAINED = 3
"""Failures of one test that are shown whole; of the others the name is told."""


def for_each(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a check and all its cases: arguments, in a tuple if there are several.

    A case of its own costs pytest milliseconds, most of them to report that it passed. For a check that takes less,
    that is the larger part of the time.
    """
    arguments = [case if isinstance(case, tuple) else (case,) for case in cases]

    def one_test(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            assert arguments, "there is nothing to check"
            failures = [(case, error) for case in arguments if (error := _failure(check, case))]
            if failures:
                pytest.fail(_told(failures, len(arguments)), pytrace=False)

        test.__name__, test.__module__, test.__doc__ = check.__name__, check.__module__, check.__doc__
        return test

    return one_test


def _failure(check: Callable[..., None], case: tuple[Any, ...]) -> Exception | None:
    try:
        check(*case)
    except Exception as error:  # noqa: BLE001  # whatever it is, the other cases are checked, too
        return error
    except BaseException as end:  # a time-out, say
        end.add_note(_name(case))
        raise
    return None


def _told(failures: list[tuple[tuple[Any, ...], Exception]], total: int) -> str:
    names = "\n".join(f"  {_name(case)}" for case, _ in failures)
    first = (f"{_name(case)}\n{''.join(traceback.format_exception(error))}" for case, error in failures[:MAX_EXPLAINED])
    return "\n\n".join([f"{len(failures)} of {total} cases failed:\n{names}", *first])


def _name(case: tuple[Any, ...]) -> str:
    return ", ".join(str(getattr(value, "name", value)) for value in case)
