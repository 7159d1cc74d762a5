"""What signals ask for: first an end in good order, then the quickest one that leaves nothing behind."""

import os
import signal

import anyio
import anyio.to_thread

from zelda_ci.events import Emit, Warned
from zelda_ci.workspace import strays

INTERRUPTED = 130
CLEANING_SECONDS = 30.0
"""How long what runs have made is removed after a second signal; what is left then, the next start sweeps."""

POLL_SECONDS = 0.1


class Interruption:
    """Of one invocation."""

    def __init__(self) -> None:
        self.asked, self.urgent = anyio.Event(), anyio.Event()

    async def cancel(self, scope: anyio.CancelScope) -> None:
        """Cancel what is under way as soon as it is asked for."""
        await self.asked.wait()
        scope.cancel()

    async def heed_signals(self, emit: Emit) -> None:
        """The first ends the sessions in good order, the second kills them, the third ends Zelda where it stands."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                if self.urgent.is_set():
                    _quit()
                elif self.asked.is_set():
                    self.urgent.set()
                    emit(Warned("interrupted again: killing the sessions and removing what they made"))
                else:
                    self.asked.set()
                    emit(Warned("interrupted: ending the sessions and keeping what they did; once more to kill them"))

    async def hasten(self) -> None:
        """Have all processes of runs killed, also those that are started while their runs end."""
        await self.urgent.wait()
        with anyio.move_on_after(CLEANING_SECONDS):
            while True:
                await anyio.to_thread.run_sync(strays.kill_supervised)
                await anyio.sleep(POLL_SECONDS)
        _quit()


def _quit() -> None:
    _show_cursor()
    os._exit(INTERRUPTED)


def _show_cursor() -> None:
    """A live display may have hidden it, and will not come to show it again."""
    for stream in (1, 2):
        if os.isatty(stream):
            os.write(stream, b"\x1b[?25h\n")
