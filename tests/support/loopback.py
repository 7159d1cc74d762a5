"""An HTTP server on a free port of the loopback address, for as long as a test needs it."""

import socketserver
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

POLL_SECONDS = 0.05


class Loopback(socketserver.ThreadingTCPServer):
    """Answers in threads of its own; what fails in them is told to `complain`, unless the client has just gone."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler], complain: Callable[[str], object]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._complain = complain
        self._thread = threading.Thread(target=self.serve_forever, args=(POLL_SECONDS,), daemon=True)

    @property
    def url(self) -> str:
        """Without a trailing slash."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when nothing is answered any more."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, *_: Any) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self._complain(f"the server failed: {error!r}")
