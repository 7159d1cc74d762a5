"""Servers that do not speak HTTP, or speak it badly."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.github_clients import patient_http
from tests.support.patience import PATIENCE
from zelda_ci.errors import GitHubError
from zelda_ci.github.api import HttpRequest

GARBAGE = {
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "nothing": b"",
    "binary": bytes(range(256)) * 4,
    "no number": b"HTTP/1.1 two hundred OK\r\n\r\n",
    "an impossible number": b"HTTP/1.1 99999 Odd\r\nContent-Length: 0\r\n\r\n",
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 2000,
    "a long header": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "a broken chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\nabc",
    "a cut chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc",
    "no gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "a location that is none": b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n",
    "only the beginning": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "only continue": b"HTTP/1.1 100 Continue\r\n\r\n",
}


@contextmanager
def saying(words: bytes) -> Iterator[str]:
    """A server that says the same to everybody and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                connection, _ = listener.accept()
                # Who hears garbage may hang up first.
                with connection, suppress(ConnectionError):
                    if not connection.recv(100_000):
                        return
                    connection.sendall(words)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/?sig=secret"
        # A caller without a request ends it.
        socket.create_connection(listener.getsockname()).close()
        thread.join()


@pytest.mark.parametrize("words", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_an_error_with_a_sentence(words: bytes) -> None:
    with saying(words) as url:
        for method in ("GET", "POST"):
            with pytest.raises(GitHubError) as caught:
                patient_http().send(HttpRequest(method, url, {}, data=b"x", timeout=PATIENCE)).json()
            assert caught.value.message
            assert "secret" not in caught.value.user_message
