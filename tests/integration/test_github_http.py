"""Requests to a server that is slow, busy, broken or gone."""

import gzip
import logging
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.github_clients import Sleeper, patient_http
from tests.support.github_server import (
    GitHubServer,
    answered,
    hang_up,
    lose_answer,
    secondary_limit,
    slow,
    too_many_requests,
    truncated,
)
from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Answer, Http, HttpRequest

SIGNED = "sig=c2VjcmV0&token=abc"


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.repository.add_pull(head_sha="a" * 40)
        yield server


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port that nobody listens on, and nobody else gets meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def headers(github: GitHubServer) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {github.token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }


def get(github: GitHubServer, http: Http, path: str = "/rate_limit", **more: float) -> Answer:
    return http.send(HttpRequest("GET", f"{github.api_url}{path}", headers(github), **more))  # type: ignore[arg-type]


def post(github: GitHubServer, http: Http, **more: float) -> Answer:
    url = f"{github.api_url}/repos/octo/zelda/issues/1/comments"
    return http.send(HttpRequest("POST", url, headers(github), json={"body": "hello"}, **more))  # type: ignore[arg-type]


def error_of(github: GitHubServer, http: Http, path: str = "/rate_limit", **more: float) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        get(github, http, path, **more)
    return caught.value


def test_patience_is_shared_by_all_requests(github: GitHubServer) -> None:
    sleeper = Sleeper()
    http = patient_http(sleeper, patience_seconds=100)
    github.script_failures([secondary_limit()])
    assert get(github, http).status == 200
    github.script_failures([secondary_limit()])
    assert error_of(github, http).code == "GITHUB_RATE_LIMITED"
    assert sleeper.seconds == pytest.approx(60)


@pytest.mark.parametrize(
    "failure", [answered(502, b"<html>"), hang_up(), lose_answer(), truncated(), too_many_requests(retry_after=7)]
)
def test_a_question_is_asked_again(github: GitHubServer, failure: object) -> None:
    github.script_failures([failure, failure])  # type: ignore[list-item]
    assert get(github, patient_http()).status == 200
    assert len(github.requests) == 3


@pytest.mark.parametrize("failure", [lose_answer(), truncated(), slow(60)])
def test_what_may_have_happened_is_not_done_again(github: GitHubServer, failure: object) -> None:
    github.script_failures([failure])  # type: ignore[list-item]
    with pytest.raises(GitHubError) as caught:
        post(github, patient_http(), timeout=0.5)
    assert caught.value.code == "GITHUB_ANSWER_LOST"
    assert len(github.requests) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_dead_server_is_tried_again_and_then_told(dead_port: int, method: str) -> None:
    sleeper = Sleeper()
    with pytest.raises(GitHubError) as caught:
        patient_http(sleeper).send(HttpRequest(method, f"http://127.0.0.1:{dead_port}/x?{SIGNED}", {}, json={}))
    assert caught.value.code == "GITHUB_UNREACHABLE"
    assert caught.value.message == f"{method} 127.0.0.1:{dead_port}/x got no answer: nothing listens there."
    assert sleeper.seconds == pytest.approx(1 + 2 + 4 + 8)


@pytest.mark.parametrize("url", ["", "ftp://x/", "http://", "http://[::1", "no address"])
def test_an_address_that_is_none_is_told_without_trying_again(url: str) -> None:
    sleeper = Sleeper()
    with pytest.raises(GitHubError):
        patient_http(sleeper).send(HttpRequest("GET", url))
    assert sleeper.seconds == 0


def test_a_token_with_a_line_break_is_not_told(github: GitHubServer) -> None:
    with pytest.raises(GitHubError) as caught:
        patient_http().send(HttpRequest("GET", github.url, {"Authorization": "Bearer fake\nsecret"}))
    assert "secret" not in str(caught.value)
    assert github.requests == []


def test_a_server_that_is_silent_is_left_when_patience_ends(github: GitHubServer) -> None:
    github.script_failures([slow(60)])
    assert error_of(github, Http(patience_seconds=0.5), timeout=900).message.endswith("it timed out.")


def test_a_server_that_drips_is_left_when_patience_ends() -> None:
    """Each byte comes in time, so that only the whole can take too long."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def drip() -> None:
            while not over.is_set():
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                    while not over.wait(0.05):
                        connection.sendall(b"x")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(GitHubError) as caught:
            Http(patience_seconds=0.5).send(HttpRequest("GET", url, {}, timeout=5))
        over.set()
        thread.join()
    assert caught.value.message.endswith("/ got no answer: it took too long.")


def test_a_large_answer_is_not_read_to_its_end(github: GitHubServer) -> None:
    github.script_failures([answered(200, b"x" * 1_000_000)])
    error = error_of(github, patient_http(), max_bytes=1000)
    assert error.code == "GITHUB_TOO_LARGE"
    assert len(github.requests) == 1


def test_a_bomb_is_not_unpacked(github: GitHubServer) -> None:
    bomb = gzip.compress(b"\0" * 20_000_000)
    github.script_failures([answered(200, bomb, headers={"content-encoding": "gzip"})])
    assert error_of(github, patient_http(), max_bytes=len(bomb) + 1).code == "GITHUB_TOO_LARGE"


def test_the_log_holds_no_address_and_no_token(github: GitHubServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    github.script_failures([hang_up(), answered(502)])
    with pytest.raises(GitHubError) as caught:
        patient_http().send(HttpRequest("GET", f"{github.url}/storage/x?{SIGNED}", headers(github)))
    assert len(github.requests) == 3
    for text in (caplog.text, str(caught.value), repr(caught.value.__context__), repr(caught.value.__cause__)):
        assert "sig=" not in text
        assert github.token not in text


def test_the_runners_netrc_does_not_replace_the_token(
    github: GitHubServer, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = f"{tmp_path}/netrc"
    with open(netrc, "w") as file:  # noqa: PTH123 - a fixture's path
        file.write("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", netrc)
    assert get(github, patient_http()).status == 200
