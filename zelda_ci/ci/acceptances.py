"""What people have accepted on a pull request: recorded in Zelda's replies, and believed only after a look at each.

The source of truth is the conversation itself. A record counts only in a comment of Zelda's own that nobody has edited
or hidden, as long as the comment that asked for it stands there with the same words, and its author may write now.
Anybody can type a record into a comment; nobody else can be its author.
"""

import base64
import binascii
import hashlib
import re
from functools import cache
from typing import Final

from pydantic import AwareDatetime, ValidationError

from zelda_ci.ci.commands import AcceptCriteria, parse_command
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.settings import Event
from zelda_ci.compare.gate import is_about_criteria
from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import Acceptance
from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.comments import ListedComment, marker, permission_of, read_thread
from zelda_ci.redact import Redactor
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.text import sentence

WRITERS = frozenset({"admin", "maintain", "write"})
# The newest; each may ask for the permission of one more person.
MAX_RECORDS = 100
UNKNOWN: Final = "what was accepted on this pull request is not known, and counts for nothing"

# GitHub names the branch of a group after the pull request that it adds to those before it.
_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,9})-[0-9a-f]{40,64}")
_RECORD = re.compile(r"<!-- zelda-ci:accepted:v1 ([A-Za-z0-9+/=]{1,60000}) -->")


class AcceptanceRecord(Record):
    """What a reply of Zelda's records of one `/zelda accept`."""

    repository_id: int
    pull_request: int
    comment: int
    """The one that asked for it."""
    words: str
    """A hash of what it said."""
    suite: str
    criteria: tuple[str, ...]
    """Their texts at that time."""
    by: str
    at: AwareDatetime


def reply_key(comment_id: int) -> str:
    """The key of the reply to a comment."""
    return f"reply-{comment_id}"


def words_of(body: str) -> str:
    """What tells the words of a comment from others."""
    return hashlib.sha256(body.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()


def hidden_line(record: AcceptanceRecord) -> str:
    """The record as the second line of a reply: letters that end no comment of HTML."""
    return f"<!-- zelda-ci:accepted:v1 {base64.b64encode(record.model_dump_json(by_alias=True).encode()).decode()} -->"


def may_write(api: Api, login: str) -> bool:
    """Whether somebody may write to the repository at this moment."""
    return permission_of(api, login) in WRITERS


def read_acceptances(api: Api, number: int, repository_id: int, redact: Redactor) -> tuple[Acceptance, ...]:
    """The acceptances on a pull request that hold now, the oldest first."""
    thread, allowed = read_thread(api, number), cache(lambda login: may_write(api, login))
    asked = {comment.id: comment for comment in thread.of_people}
    records = [record for reply in thread.comments if (record := _record(reply))]
    found: list[Acceptance] = []
    for record in records[-MAX_RECORDS:]:
        comment = asked.get(record.comment)
        if comment is None or (record.repository_id, record.pull_request) != (repository_id, number):
            continue
        command = parse_command(comment.body)
        if not isinstance(command, AcceptCriteria):
            continue
        is_same = (comment.author, words_of(comment.body), command.suite) == (record.by, record.words, record.suite)
        if is_same and allowed(record.by):
            url, because = comment.url, redact(command.reason)
            found += (
                Acceptance(suite=record.suite, criterion=it, by=record.by, because=because, url=url, at=record.at)
                for it in record.criteria
            )
    return tuple(found)


def _record(reply: ListedComment) -> AcceptanceRecord | None:
    """The record in one of our comments; nothing where it has none, or somebody has touched it."""
    first, _, rest = reply.body.replace("\r\n", "\n").partition("\n")
    match = None if reply.edited_at else _RECORD.fullmatch(rest.partition("\n")[0])
    if match is None:
        return None
    try:
        record = AcceptanceRecord.model_validate_json(base64.b64decode(match[1], validate=True))
    except (binascii.Error, ValidationError, ValueError):
        return None
    return record if first == marker(reply_key(record.comment)) else None


def pull_request_in(event: Event) -> int | None:
    """The pull request whose acceptances count for an event: in a merge queue, the one that is about to be merged."""
    queued = _QUEUED.fullmatch(event.merge_group.head_ref) if event.merge_group else None
    return int(queued[1]) if queued else event.pull_request.number if event.pull_request else None


def apply_acceptances(case: CiContext, result: CiResult, pull_request: int | None) -> None:
    """Take what was accepted on the pull request out of what turns the check red; without GitHub's word nothing is."""
    if case.api is None or pull_request is None or not is_about_criteria(result.gate):
        return
    try:
        redact = Redactor(case.settings.secrets())
        result.acceptances = read_acceptances(case.api, pull_request, case.settings.context.repository_id, redact)
    except GitHubError as problem:
        result.notes.append(f"{UNKNOWN}: {problem.message}")
        case.log.say(f"{UNKNOWN}: {problem.message}")
        return
    for noted in result.gate.accepted:
        by, because = noted.acceptance.by, noted.acceptance.because
        case.log.say(sentence(f"accepted by {by}: {gate_sentence(noted.reason)}; because {because}"))
