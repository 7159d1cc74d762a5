"""The server of the tests is itself held to GitHub's description, and says so when a client is not."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.support.github_clients import api_of
from tests.support.github_server import GitHubServer
from tests.support.patience import PATIENCE
from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api

SHA = "a" * 40


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda api: api.get("actions/artifact"), "is not documented"),
        (lambda api: api.get("actions/artifacts", nam="x"), "query parameter nam"),
        (lambda api: api.post("issues/1/comments", {"text": "x"}), "'body' is a required property"),
    ],
)
def test_a_request_that_github_does_not_know_fails_the_test(ask: Callable[[Api], Any], why: str) -> None:
    with pytest.raises(AssertionError) as caught, GitHubServer() as github:  # noqa: PT012 - the end of the block raises
        with pytest.raises(GitHubError) as refused:
            ask(api_of(github))
        assert refused.value.status == 599
    assert why in str(caught.value)


def test_an_answer_that_github_would_not_give_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="answer 200"), GitHubServer() as github:  # noqa: PT012 - see above
        run = github.repository.add_run(SHA)
        run.event = None  # type: ignore[assignment]
        with pytest.raises(GitHubError):
            api_of(github).get(f"actions/runs/{run.id}")


def test_storage_wants_a_signature_and_no_token() -> None:
    with GitHubServer() as github:
        run = github.repository.add_run(SHA)
        address = github.storage.address_of(github.repository.add_artifact("zelda", {"x": b""}, run=run))
        for ask in (requests.get, requests.put):
            assert ask(address, headers={"Authorization": "Bearer x"}, timeout=PATIENCE).status_code == 400
            assert ask(address.replace("sig=", "sig=0"), timeout=PATIENCE).status_code == 403
