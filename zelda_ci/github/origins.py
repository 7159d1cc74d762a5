"""What a comment says about its baseline, or about why there is none: pure."""

from datetime import timedelta

from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.errors import GitHubError, ZeldaError

WRONG_TOKEN = 401

SHORT = 7
"""Characters of a commit's name that people read."""

_NOT_PERMITTED = {"GITHUB_NOT_PERMITTED", "GITHUB_NOT_FOUND"}


def found(branch: str, commit: str, behind: int | None, age: timedelta | None) -> str:
    """The sentence for a baseline that exists."""
    facts = [f"baseline {branch}@{commit[:SHORT]}"]
    if behind:
        facts.append(f"{_counted(behind, 'commit')} behind")
    if age is not None:
        facts.append(_spelt(age))
    return ", ".join(facts)


def never_stored(branch: str, wanted: str | None) -> BaselineOrigin:
    """Every project starts here."""
    sentence = f"no baseline yet: {branch} has not stored one (push to {branch} or run the workflow there once)"
    return BaselineOrigin(state=BaselineState.NONE_YET, sentence=sentence, branch=branch, wanted=wanted)


def none_related(branch: str, wanted: str) -> BaselineOrigin:
    """The branch stored results, but for commits elsewhere in history."""
    sentence = (
        f"no baseline yet: {branch} has stored some, but none for {wanted[:SHORT]} or a commit shortly before it "
        f"(run the workflow on {branch} once)"
    )
    return BaselineOrigin(state=BaselineState.NONE_YET, sentence=sentence, branch=branch, wanted=wanted)


def all_expired(branch: str, wanted: str | None) -> BaselineOrigin:
    """GitHub deletes artifacts after some weeks."""
    sentence = f"no baseline: what {branch} stored has expired (run the workflow there again, or raise retention-days)"
    return BaselineOrigin(state=BaselineState.EXPIRED, sentence=sentence, branch=branch, wanted=wanted)


def refused(branch: str, wanted: str, commit: str, error: ZeldaError) -> BaselineOrigin:
    """There were results, and none could be used; `error` is about the nearest."""
    if error.code == "ARTIFACT_EXPIRED":
        return all_expired(branch, wanted)
    reason = f"{error.message[:1].lower()}{error.message[1:].rstrip('.')}"
    sentence = f"no usable baseline: the results of {branch}@{commit[:SHORT]} were refused: {reason}"
    return BaselineOrigin(state=BaselineState.INVALID, sentence=sentence, branch=branch, wanted=wanted)


def not_told(branch: str, wanted: str | None, error: GitHubError) -> BaselineOrigin:
    """GitHub did not tell; its own words are left out of a text that a bot will post."""
    if error.status == WRONG_TOKEN:
        sentence = "no baseline: the token is wrong or no longer valid (github-token)"
        return BaselineOrigin(state=BaselineState.NOT_PERMITTED, sentence=sentence, branch=branch, wanted=wanted)
    if error.code in _NOT_PERMITTED:
        sentence = "no baseline: the token may not read artifacts (permissions: actions: read, contents: read)"
        return BaselineOrigin(state=BaselineState.NOT_PERMITTED, sentence=sentence, branch=branch, wanted=wanted)
    limited = error.code == "GITHUB_RATE_LIMITED"
    reason = "GitHub limits how often it may be asked" if limited else "GitHub could not be asked"
    state = BaselineState.UNREACHABLE
    return BaselineOrigin(state=state, sentence=f"no baseline: {reason}", branch=branch, wanted=wanted)


def _spelt(age: timedelta) -> str:
    """In the largest unit of which there are two or more."""
    seconds = age.total_seconds()
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{_counted(int(seconds // size), unit)} old"
    return "just stored"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
