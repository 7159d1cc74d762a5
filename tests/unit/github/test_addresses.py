"""Addresses of repositories that the job's token can be used for."""

import pytest

from zelda_ci.ci.base import over_https

GITHUB = "https://github.com"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("git@github.com:octo/shop.git", f"{GITHUB}/octo/shop.git"),
        ("ssh://git@github.com/octo/shop", f"{GITHUB}/octo/shop"),
        (f"{GITHUB}/octo/shop", f"{GITHUB}/octo/shop"),
        ("git@github.com.evil.example:octo/shop", "git@github.com.evil.example:octo/shop"),
        ("git@githubXcom:octo/shop", "git@githubXcom:octo/shop"),
        ("https://evil.example/git@github.com:octo", "https://evil.example/git@github.com:octo"),
    ],
)
def test_only_githubs_own_server_is_asked_over_https(address: str, expected: str) -> None:
    assert over_https(address, GITHUB) == expected
