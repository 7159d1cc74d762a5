"""The hold on a session's supervisor: ending it ends every process of the session."""

import os
import signal
import sys
from contextlib import suppress


class Supervisor:
    """A process known by its id, and on Linux by a descriptor, so that a recycled id is never hit.

    A signal sent before the process is known reaches it as soon as it is.
    """

    def __init__(self) -> None:
        self._pid: int | None = None
        self._descriptor: int | None = None
        self._waiting: signal.Signals | None = None

    def introduce(self, line: str) -> bool:
        """Take the process id from the first line on standard error that is one; false for any other line."""
        if self._pid is not None or not line.isdecimal():
            return False
        self._pid = int(line)
        if sys.platform == "linux":
            with suppress(ProcessLookupError):
                self._descriptor = os.pidfd_open(self._pid)
        if self._waiting:
            self.send(self._waiting)
        return True

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens where the process has ended."""
        with suppress(ProcessLookupError):
            if self._pid is None:
                self._waiting = number
            elif sys.platform != "linux":
                os.kill(self._pid, number)
            elif self._descriptor is not None:
                signal.pidfd_send_signal(self._descriptor, number)

    def close(self) -> None:
        """Let go of the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
