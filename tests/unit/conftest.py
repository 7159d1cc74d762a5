"""Guard of the quick tests: one that starts a process, talks to a socket or takes long is an error."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import find
from hypothesis import strategies as st

ELSEWHERE = "tests that start a program, git or a server belong into tests/integration"
FORBIDDEN = {
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.system",
    "pty.spawn",
    "socket.bind",
    "socket.connect",
    "subprocess.Popen",
}
MAX_CPU_SECONDS = 2.0
"""Of the processor, since a busy machine is no reason to fail: a second, and another for caches that are shared."""

_violations: list[str] | None = None


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _violations is not None and event in FORBIDDEN and not _is_a_file(arguments):
        _violations.append(f"{event}{arguments[:2]!r}")


sys.addaudithook(_watch)


def _is_a_file(arguments: tuple[Any, ...]) -> bool:
    """Whether what is bound is a socket with a path, which is how such a file is made."""
    return bool(arguments) and isinstance(arguments[0], socket.socket) and arguments[0].family == socket.AF_UNIX


def _is_traced() -> bool:
    return sys.gettrace() is not None or "COVERAGE_PROCESS_CONFIG" in os.environ


@pytest.fixture(scope="session", autouse=True)
def characters() -> None:
    """Have hypothesis read its table of characters before a test is measured."""
    find(st.text(), lambda _: True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Watch set-up, call and tear-down."""
    global _violations  # noqa: PLW0603  # an audit hook stays for ever and has no other way to know its test
    _violations = []
    try:
        return (yield)
    finally:
        _violations = None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Fail a test for what it did, however it went on from there."""
    begun = time.process_time()
    outcome = yield
    seconds = time.process_time() - begun
    if _violations:
        pytest.fail(f"{_violations[0]} in a unit test: {ELSEWHERE}", pytrace=False)
    if seconds > MAX_CPU_SECONDS and not _is_traced():
        pytest.fail(
            f"a unit test took {seconds:.1f} s of the processor, over {MAX_CPU_SECONDS:g}: make it smaller, or move it "
            "to tests/slow",
            pytrace=False,
        )
    return outcome
