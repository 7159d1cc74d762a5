"""What people have accepted on a pull request: recorded in artifacts of Zelda's answers, and believed after a look.

An acceptance holds as long as the comment that asked for it stands there with the same words, Zelda's answer to it
stands there untouched, and its author may write now. The criteria are in an artifact of the run that answered. It was
started by a comment, so that it ran on the default branch, and no pull request had a say in what it stored. In comments
anybody can type, and other workflows post in our name what forks have written: they only say which run that was.
"""

import hashlib
import re
from functools import cache, partial
from typing import Final
from urllib.parse import quote

from pydantic import ValidationError

from zelda_ci.ci.commands import AcceptCriteria, parse_command
from zelda_ci.ci.context import CiResult
from zelda_ci.ci.settings import Event
from zelda_ci.ci.stored_artifacts import read_members
from zelda_ci.compare.gate import is_about_criteria
from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import Acceptance
from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.api import ABSENT, Api
from zelda_ci.github.kept_text import Comment, ListedComment, read_thread
from zelda_ci.github.repository import artifacts_of_run, read_run
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.text import sentence

# Of one comment; what others have posted in our name may be among them.
MAX_ANSWERS = 10
RECORD = "zelda-accepted.json"
MAX_BYTES = 1 << 20
UNKNOWN: Final = "what was accepted on this pull request is not known, and counts for nothing"

# GitHub names the branch of a group after the pull request that it adds to those before it.
_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,9})-[0-9a-f]{40,64}")


class AcceptanceRecord(Record):
    """What one `/zelda accept` accepts."""

    words: str
    """A hash of what the comment said."""
    accepted: tuple[Acceptance, ...]


def record_name(comment_id: int, attempt: int) -> str:
    """Name of the artifact with the record of a comment."""
    return f"zelda-accepted.{comment_id}.{attempt}"


def reply_key(comment_id: int) -> str:
    """The key of the reply to a comment."""
    return f"reply-{comment_id}"


def words_of(body: str) -> str:
    """What tells the words of a comment from others."""
    return hashlib.sha256(body.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()


def may_write(api: Api, login: str) -> bool:
    """Whether somebody may write to the repository at this moment."""
    try:
        found = api.get(f"collaborators/{quote(login, safe='')}/permission")
    except GitHubError as error:
        if error.code != "GITHUB_NOT_FOUND":
            raise
        return False
    return isinstance(found, dict) and found.get("permission") in {"admin", "maintain", "write"}


def read_acceptances(api: Api, number: int) -> tuple[Acceptance, ...]:
    """The acceptances on a pull request that hold now, the oldest first."""
    thread, allowed = read_thread(api, number), cache(partial(may_write, api))
    found: list[Acceptance] = []
    for asked in thread.of_people:
        is_asked = isinstance(parse_command(asked.body), AcceptCriteria)
        answers = thread.marked(reply_key(asked.id))[:MAX_ANSWERS] if is_asked else []
        records = (record for answer in answers if (record := _record(api, answer, asked)))
        if answers and allowed(asked.author) and (record := next(records, None)):
            found += record.accepted
    return tuple(found)


def _record(api: Api, answer: ListedComment, asked: Comment) -> AcceptanceRecord | None:
    """What the run of which an answer tells has stored for the comment that was answered."""
    order = answer.order
    if order is None or answer.edited_at:
        return None
    try:
        stored = artifacts_of_run(api, order.run_id) if read_run(api, order.run_id).event == "issue_comment" else []
        for artifact in stored:
            if artifact.name == record_name(asked.id, order.run_attempt):
                data = read_members(api, artifact, {RECORD}, MAX_BYTES).get(RECORD, b"")
                record = AcceptanceRecord.model_validate_json(data)
                return record if record.words == words_of(asked.body) else None
    except (ArtifactError, ValidationError):
        return None
    except GitHubError as error:
        if error.code not in ABSENT:
            raise
    return None


def pull_request_in(event: Event) -> int | None:
    """The pull request whose acceptances count for an event: in a merge queue, the one that is about to be merged."""
    queued = _QUEUED.fullmatch(event.merge_group.head_ref) if event.merge_group else None
    return int(queued[1]) if queued else event.pull_request.number if event.pull_request else None


def apply_acceptances(result: CiResult, pull_request: int | None = None) -> None:
    """Take what was accepted on a pull request, by default the event's, out of what turns the check red."""
    case = result.case
    pull_request = pull_request or pull_request_in(case.settings.event)
    if case.api is None or pull_request is None or not is_about_criteria(result.gate):
        return
    try:
        result.acceptances = read_acceptances(case.api, pull_request)
    except GitHubError as problem:
        result.note(f"{UNKNOWN}: {problem.message}")
    for noted in result.gate.accepted:
        by, because = noted.acceptance.by, noted.acceptance.because
        case.log.say(sentence(f"accepted by {by}: {gate_sentence(noted.reason)}; because {because}"))
