"""What a server answered, and what a refusal means in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from zelda_ci.errors import GitHubError
from zelda_ci.github import strict_json
from zelda_ci.redact import EMPTY, Redactor, SafeText

LONGEST_DETAIL = 300

RATE_LIMIT_WORDS = "rate limit"
QUOTA_WORDS = "insufficient usage"


@dataclass(frozen=True)
class Answer:
    """A whole answer; `headers` have lower-case names, and `body` is empty where it was streamed to a file."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    asked: str
    """Method and address without the query, for messages."""

    def json(self) -> Any:
        """The value in the body.

        Raises:
            GitHubError: `GITHUB_REFUSED` where the body is no JSON.
        """
        try:
            return strict_json.read(self.body)
        except strict_json.NotStrictJsonError as exc:
            message = f"The answer to {self.asked} cannot be used: {exc}."
            hint = "Something between here and GitHub, like a proxy, may have answered instead."
            raise GitHubError(message, hint=hint, code="GITHUB_REFUSED", status=self.status) from None

    @property
    def said(self) -> str:
        """What the server says went wrong, in its own words; outside text."""
        try:
            told = strict_json.read(self.body)
        except strict_json.NotStrictJsonError:
            return ""
        if not isinstance(told, dict):
            return ""
        more = [each.get("message") for each in _errors(told)]
        return ": ".join(part for part in (told.get("message"), told.get("msg"), *more) if isinstance(part, str))

    @property
    def target(self) -> str:
        """The host that a redirect leads to, which is all of its address that is no secret."""
        try:
            return urlsplit(self.headers.get("location", "")).hostname or "another address there"
        except ValueError:
            return "an address that is none"

    @property
    def is_limited(self) -> bool:
        """Whether the server says "too much", and not "never"."""
        if self.status == 429:
            return True
        signs = "retry-after" in self.headers or self.headers.get("x-ratelimit-remaining") == "0"
        return (self.status == 403 and (signs or RATE_LIMIT_WORDS in self.said.lower())) or self._is_limited_query

    @property
    def _is_limited_query(self) -> bool:
        """Whether this is GraphQL's way to say so: with status 200."""
        if self.status != 200 or b'"errors"' not in self.body:
            return False
        try:
            told = strict_json.read(self.body)
        except strict_json.NotStrictJsonError:
            return False
        return any(
            each.get("type") == "RATE_LIMITED" or RATE_LIMIT_WORDS in str(each.get("message")).lower()
            for each in _errors(told)
        )


def _errors(told: Any) -> list[dict[str, Any]]:
    errors = told.get("errors") if isinstance(told, dict) else None
    return [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []


def refusal(answer: Answer, redact: Redactor) -> GitHubError:
    """The refusal in an answer of status 400 or more, or in a limited query, as an error that says what to do."""
    code, hint = _meaning(answer)
    detail = brief(answer.said, redact)
    message = f"{answer.asked} was answered with {answer.status}{f' ({detail})' if detail else ''}."
    return GitHubError(message, hint=hint, code=code, status=answer.status, detail=detail)


def _meaning(answer: Answer) -> tuple[str, str | None]:
    """Code and hint."""
    if answer.is_limited:
        return "GITHUB_RATE_LIMITED", f"GitHub limits how often it may be asked; run the job again {_when(answer)}."
    if answer.status >= 500:
        return "GITHUB_UNREACHABLE", "GitHub has a problem; run the job again later."
    meanings = {
        401: ("GITHUB_NOT_PERMITTED", "The token is missing, wrong or no longer valid."),
        403: ("GITHUB_NOT_PERMITTED", _permission_hint(answer)),
        404: ("GITHUB_NOT_FOUND", "It does not exist, or the token may not see it."),
        410: ("GITHUB_GONE", None),
    }
    return meanings.get(answer.status, ("GITHUB_REFUSED", None))


def _when(answer: Answer) -> str:
    """When the limit ends."""
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") != "0" or not reset.isdecimal() or len(reset) > 10:
        return "later"
    return f"after {datetime.fromtimestamp(int(reset), UTC):%H:%M} UTC"


def _permission_hint(answer: Answer) -> str:
    wanted = answer.headers.get("x-accepted-github-permissions", "")
    # One of several sets is enough (";"), and each is a list (",").
    lists = [part.strip().replace("=", ": ").replace(",", " and ") for part in wanted.split(";") if part.strip()]
    # From outside, and about to be printed: it names permissions, so it has no other characters.
    safe = [text for text in lists if text.replace("_", "").replace(":", "").replace(" ", "").isalnum()]
    if not safe:
        return "The token may not do this; check `permissions` in the workflow."
    return f"Give the job this under `permissions` in the workflow: {' or '.join(safe)}."


def brief(text: str, redact: Redactor) -> SafeText:
    """Outside text for the middle of a sentence: one line, printable, short, redacted."""
    line = " ".join("".join(char if char.isprintable() else " " for char in redact(text)).split())
    cut = line if len(line) <= LONGEST_DETAIL else f"{line[:LONGEST_DETAIL]}..."
    return redact(cut.rstrip(".")) if cut else EMPTY
