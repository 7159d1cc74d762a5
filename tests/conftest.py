"""What holds for every test: none is measured by a clock, and garbage is not looked for among them."""

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A machine that is busy with something else must not fail a property.
settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")

# Whoever starts the tests in the background of a script has them ignore SIGINT, and all that they start: restored,
# since a test that interrupts a process would wait for its end in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand tests are objects that stay, and collecting them makes little else."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
