"""What holds for every test: none is measured by a clock, and garbage is not looked for among the tests themselves."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A machine that is busy with something else must not fail a property.
settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand tests are objects that stay, and collecting them makes little else."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
