"""What is said about a baseline, or about why there is none, and where its commits are asked for."""

from datetime import UTC, datetime, timedelta

import pytest

from zelda_ci.ci import baseline
from zelda_ci.ci.base import over_https
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState
from zelda_ci.errors import ArtifactError, GitHubError, StorageError, ZeldaError

SHA = "abc1234" + "0" * 33
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("behind", "age", "sentence"),
    [
        (3, timedelta(days=2, hours=5), "baseline main@abc1234, 3 commits behind, 2 days old"),
        (1, timedelta(hours=47), "baseline main@abc1234, 1 commit behind, 47 hours old"),
        (0, timedelta(minutes=119), "baseline main@abc1234, 119 minutes old"),
        (None, timedelta(seconds=5), "baseline main@abc1234, just stored"),
        (None, timedelta(seconds=-30), "baseline main@abc1234, just stored"),
        (2, None, "baseline main@abc1234, 2 commits behind"),
    ],
)
def test_a_found_baseline_is_named_with_distance_and_age(
    behind: int | None, age: timedelta | None, sentence: str
) -> None:
    stored_at = None if age is None else NOW - age
    origin = BaselineOrigin(state=BaselineState.FOUND, sentence="", branch="main", commit=SHA, behind=behind)
    assert baseline.with_sentence(origin.replace(created_at=stored_at), NOW).sentence == sentence


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ArtifactError("it names another run than GitHub"), "refused: it names another run than GitHub"),
        (StorageError("The results are damaged."), "refused: the results are damaged"),
        (StorageError("GitHub gave no archive."), "refused: GitHub gave no archive"),
    ],
)
def test_a_refused_baseline_is_told_with_its_reason(error: ZeldaError, said: str) -> None:
    origin = baseline.missing("main", SHA, error, SHA)
    assert origin.state is BaselineState.INVALID
    assert origin.sentence.endswith(said)
    assert "main@abc1234" in origin.sentence


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        ("GITHUB_NOT_PERMITTED", BaselineState.NOT_PERMITTED, "permissions: actions: read"),
        ("GITHUB_NOT_FOUND", BaselineState.NOT_PERMITTED, "knows no such run"),
        ("GITHUB_RATE_LIMITED", BaselineState.UNREACHABLE, "limits how often"),
        ("GITHUB_UNREACHABLE", BaselineState.UNREACHABLE, "could not be asked"),
        ("GITHUB_REFUSED", BaselineState.UNREACHABLE, "could not be asked"),
    ],
)
def test_what_github_does_not_tell_is_told_without_its_words(code: str, state: BaselineState, said: str) -> None:
    origin = baseline.missing("main", SHA, GitHubError("foreign words", code=code))
    assert origin.state is state
    assert said in origin.sentence
    assert "foreign" not in origin.sentence


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
