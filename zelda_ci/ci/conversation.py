"""Carries out and answers what people write to Zelda in the conversation of a pull request.

Everybody may comment, and the workflow that reads comments has rights. So a command is carried out only if its author
may write to the repository now, if it stands there as it was when it was sent, and only once. Nothing of a comment
becomes more than data: names that fit a grammar, and text that is escaped where it is shown.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.event import is_command
from zelda_ci.ci.settings import ActionSettings, Event
from zelda_ci.ci.stored import StoredResults, read_members, read_stored
from zelda_ci.compare.gate import failing_criteria, is_about_criteria
from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import Acceptance
from zelda_ci.domain.suite import NAME
from zelda_ci.errors import ArtifactError, ConfigError, GitHubError, StorageError, ZeldaError
from zelda_ci.github.api import ABSENT, Api, Tolerating
from zelda_ci.github.kept_text import Comment, CommentOrder, Thread, post_once, read_thread, sealed, visible_text
from zelda_ci.github.repository import EVENTS, PullRequest, WorkflowRun, artifacts_of_run, newest_run, read_run
from zelda_ci.judge.characters import acts
from zelda_ci.redact import Redactor
from zelda_ci.report.builders.comparison import gate_sentence
from zelda_ci.report.markdown import render_reply
from zelda_ci.report.text import json_of, sentence

# Of one pull request: who may not write gets a reaction only from then on, and nobody is notified.
MAX_REFUSALS = 3
# Runs and artifacts that are looked into for what fails.
MAX_RUNS, MAX_ARTIFACTS = 3, 10
# Answers to one comment; what others have posted in our name may be among them.
MAX_ANSWERS = 10
# Of a comment, as much as any command needs; the rest is not read.
MAX_COMMAND_LENGTH = 2_000
MAX_REASON_LENGTH, MAX_SUITES, MAX_SHOWN_LENGTH = 500, 20, 40
RECORD, MAX_RECORD_BYTES = "zelda-accepted.json", 1 << 20
FAILED = frozenset({"failure", "cancelled", "timed_out"})
# GitHub names the branch of a group after the pull request that it adds to those before it.
_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,9})-[0-9a-f]{40,64}")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_SUITE = re.compile(NAME)
_TARGET = re.compile(r"([^#]+)(?:#([1-9][0-9]{0,2}))?")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BECAUSE = re.compile(r"(\S+)\s+because\b[\s:,]*(.*)", re.IGNORECASE | re.DOTALL)


class RunAgain(NamedTuple):
    """Run the pull request's workflow again, or only some suites beside it."""

    suites: tuple[str, ...] = ()


class RunCommit(NamedTuple):
    """Run a commit of a pull request whose own workflow may not."""

    commit: str | None
    """Its full name; absent where none was given, and nothing is run."""
    suites: tuple[str, ...] = ()


class AcceptCriteria(NamedTuple):
    """Take failing criteria of a suite for what they are."""

    suite: str
    number: int | None
    """Of the criterion in the suite, from 1; absent for all that fail now."""
    reason: str


class AskHelp(NamedTuple):
    problem: str = ""
    """What was not understood; empty where help is all that was asked for."""


Command = RunAgain | RunCommit | AcceptCriteria | AskHelp


def parse_command(body: str) -> Command:
    """The command that a comment begins with; what does not fit the grammar is answered with help, never guessed."""
    paragraph = _BLANK_LINE.split(body[: MAX_COMMAND_LENGTH + 1].replace("\r\n", "\n"), 1)[0]
    if len(paragraph) > MAX_COMMAND_LENGTH:
        return AskHelp(f"A command has at most {MAX_COMMAND_LENGTH:,} characters.")
    if sum(map(is_command, body.splitlines())) > 1:
        return AskHelp("A comment holds one command: write a comment for each.")
    words = (paragraph.splitlines() or [""])[0].split()
    match [word.lower() for word in words[1:3]]:
        case [] | ["help", *_]:
            return AskHelp()
        case ["accept", *_]:
            return _parse_accept(paragraph)
        case ["rerun", *_]:
            return _of_suites(words[2:], RunAgain)
        case ["run", commit] if _COMMIT.fullmatch(commit):
            return _of_suites(words[3:], partial(RunCommit, commit))
        case ["run", *_]:
            return RunCommit(None)
        case _:
            return AskHelp(f"There is no command {_shown(words[1])}.")


def _of_suites(words: Sequence[str], make: Callable[[tuple[str, ...]], Command]) -> Command:
    names = tuple(dict.fromkeys(name for word in words for name in word.split(",") if name))
    if len(names) > MAX_SUITES:
        return AskHelp(f"A command names at most {MAX_SUITES} suites.")
    strange = next((name for name in names if not _SUITE.fullmatch(name)), None)
    return make(names) if strange is None else AskHelp(f"{_shown(strange)} is not the name of a suite.")


def _parse_accept(paragraph: str) -> Command:
    parts = _BECAUSE.fullmatch(" ".join(paragraph.split()[2:]))
    if parts is None or not parts[2]:
        return AskHelp("To accept something, name one suite and say why: accept SUITE because REASON.")
    target, reason = _TARGET.fullmatch(parts[1]), parts[2]
    if target is None or not _SUITE.fullmatch(target[1]):
        return AskHelp(f"{_shown(parts[1])} is neither a suite nor a criterion of one, as in greeting#2.")
    if len(reason) > MAX_REASON_LENGTH:
        return AskHelp(f"A reason has at most {MAX_REASON_LENGTH} characters.")
    if not any(char.isalnum() for char in reason):
        return AskHelp("The reason says nothing.")
    return AcceptCriteria(target[1], int(target[2]) if target[2] else None, reason)


def _shown(word: str) -> str:
    """A word of a comment within a sentence; the renderer escapes it."""
    hidden = " (with characters that cannot be seen)" if any(map(acts, word)) else ""
    return f"“{word if len(word) <= MAX_SHOWN_LENGTH else word[:MAX_SHOWN_LENGTH] + '…'}”{hidden}"


class AcceptanceRecord(Record):
    """What one `/zelda accept` accepts."""

    words: str
    """A hash of what the comment said."""
    accepted: tuple[Acceptance, ...]


@dataclass(frozen=True)
class Response:
    """What a command comes to."""

    reply: str
    is_done: bool = False
    runs_again: WorkflowRun | None = None
    """What is run again once the answer stands there."""
    outputs: Mapping[str, str] = field(default_factory=dict)


def converse(case: CiContext) -> int:
    """Carry out the command of a comment and answer it; returns the exit code, or raises `GitHubError`."""
    if why := _answer(case):
        case.log.report("notice", why, title="Zelda did nothing")
    return 0


def _asked(case: CiContext) -> Comment | None:
    """The comment of an event, if it is still there with the same words, by the same author."""
    sent = case.settings.event.comment
    with Tolerating(ABSENT):
        now = Comment.of(case.github.get(f"issues/comments/{sent.id if sent else 0}"))
        return sent if sent and (now.author, words_of(now.body)) == (sent.author, words_of(sent.body)) else None
    return None


def _answer(case: CiContext) -> str:
    """Carry the command out, answer it, and only then run again what the answer changes; returns why not."""
    api, asked, pull_request = case.github, _asked(case), case.decision.pull_request or 0
    if asked is None:
        return "The comment was edited or deleted since it was sent: nothing is done."
    thread = read_thread(api, pull_request)
    if thread.marked(reply_key(asked.id)):
        return "The comment was answered already: nothing is done twice."

    def post(reply: str, key: str = reply_key(asked.id)) -> Comment:
        order = CommentOrder(case.run_id, case.settings.context.run_attempt, "", int(case.now().timestamp()))
        return post_once(api, pull_request, key, sealed(key, order, reply))

    def show(reaction: str) -> None:
        # It costs nobody a notification; without it everything else is the same.
        with suppress(GitHubError):
            api.post(f"issues/comments/{asked.id}/reactions", {"content": reaction})

    if not may_write(api, asked.author):
        show("confused")
        # Say no, a few times for everybody together.
        if len(_refusals(thread)) < MAX_REFUSALS:
            mine = post(render_reply("not_permitted"))
            # Many may have asked at the same moment, and each job sees that it is the first.
            if mine.id in {comment.id for comment in _refusals(read_thread(api, pull_request))[MAX_REFUSALS:]}:
                with suppress(GitHubError):
                    api.delete(f"issues/comments/{mine.id}")
        return f"{asked.author} may not write to this repository: nothing is done."
    show("eyes")
    try:
        found = _carried_out(case, asked, thread)
    except ZeldaError as failed:
        show("confused")
        with suppress(GitHubError):
            post(render_reply("failed", why=failed.message, url=case.settings.context.url_of(case.run_id)))
        raise
    url = post(found.reply).url
    # Nothing that costs before the answer stands there: without it, the command would be carried out once more.
    problem = _run_again(api, found.runs_again) if found.runs_again else None
    if problem:
        post(problem, f"{reply_key(asked.id)}-run")
    show("confused" if problem or not found.is_done else "+1")
    case.log.record(outputs={"comment-url": url, **found.outputs})
    case.log.say(f"Answered: {url}")
    return ""


def _refusals(thread: Thread) -> list[Comment]:
    return [each for each in thread.comments if visible_text(each.body) == render_reply("not_permitted").rstrip()]


def _carried_out(case: CiContext, asked: Comment, thread: Thread) -> Response:
    """Do what is asked for, as far as it does not have to wait for the answer."""
    command = parse_command(asked.body)
    if isinstance(command, AskHelp):
        return Response(render_reply("help", problem=command.problem), is_done=not command.problem)
    pull = PullRequest.of(case.github.get(f"pulls/{case.decision.pull_request}"))
    if pull.state != "open":
        return Response(render_reply("closed"))
    match command:
        case RunAgain(suites=()):
            return _rerun(case, pull)
        case AcceptCriteria():
            return _accept(case, command, asked, thread, pull)
        case RunAgain() | RunCommit():
            return _start(case, command, pull)


def _rerun(case: CiContext, pull: PullRequest) -> Response:
    workflow = case.settings.workflow
    with Tolerating({"GITHUB_NOT_FOUND"}):
        run = newest_run(case.github, workflow, pull)
        if run is None:
            return Response(render_reply("no_run", name=workflow))
        if run.conclusion == "action_required":
            return Response(render_reply("needs_approval", url=run.url))
        if run.status != "completed":
            return Response(render_reply("still_running", url=run.url))
        said = render_reply("runs_again", url=run.url, only_failed=run.conclusion in FAILED)
        return Response(said, is_done=True, runs_again=run)
    return Response(render_reply("no_workflow", name=workflow))


def _start(case: CiContext, command: RunAgain | RunCommit, pull: PullRequest) -> Response:
    """Have the next job of this workflow run a commit."""
    context = case.settings.context
    commit = pinned(command, pull, context.repository_id)
    if commit != pull.head.sha:
        page = f"{context.server_url}/{context.repository}/pull/{pull.number}/files/{pull.head.sha}"
        return Response(render_reply("which_commit", commit=pull.head.sha, page=page, moved=commit is not None))
    said = render_reply("starting", suites=command.suites, url=context.url_of(context.run_id))
    return Response(said, is_done=True, outputs={"run-commit": commit})


def _accept(case: CiContext, command: AcceptCriteria, asked: Comment, thread: Thread, pull: PullRequest) -> Response:
    """Store which of the suite's failing criteria are accepted."""
    settings, newest = case.settings, None
    with suppress(GitHubError):
        newest = newest_run(case.github, settings.workflow, pull)
    runs = list(_runs(case.github, thread, pull, newest))
    # Of a fork's run its author decides what it stores.
    own = [run for run in runs if run.head_repository_id == settings.context.repository_id]
    found = (failing_criteria(it.own_trials, command.suite) for run in own for it in _results(case, run, pull))
    failing = next((each for each in found if each is not None), None)
    if failing is None:
        stored = render_reply("nothing_stored", suite=command.suite)
        return Response(stored if own == runs else render_reply("foreign_results"))
    wanted = [name for place, name in failing.items() if command.number in {None, place}]
    if not wanted:
        return Response(render_reply("nothing_fails", suite=command.suite, number=command.number))
    # Where no check is red, the acceptance waits for the next run.
    run = newest if newest and newest.status == "completed" and newest.conclusion in FAILED else None
    suite, by, because = command.suite, asked.author, Redactor(settings.credentials.values())(command.reason)
    words = {"suite": suite, "criteria": wanted, "by": by, "reason": because, "runs_again": run is not None}
    said = render_reply("accepted", **words, url=run.url if run else "")
    accepted = tuple(
        Acceptance(suite=suite, criterion=it, by=by, because=because, url=asked.url, at=case.now()) for it in wanted
    )
    record = AcceptanceRecord(words=words_of(asked.body), accepted=accepted)
    name, members = record_name(asked.id, settings.context.run_attempt), {RECORD: json_of(record).encode()}
    try:
        case.artifacts(None).upload(name, members, retention_days=settings.retention_days)
    except GitHubError as problem:
        return Response(render_reply("not_stored", why=problem.message))
    return Response(said, is_done=True, runs_again=run)


def _runs(api: Api, thread: Thread, pull: PullRequest, newest: WorkflowRun | None) -> Iterator[WorkflowRun]:
    """The newest runs of which Zelda's comments tell for this head, and that of the workflow."""
    run_ids = {it.run_id for each in thread.comments if (it := each.order) and it.head_sha == pull.head.sha}
    run_ids |= {newest.id} if newest else set()
    for run_id in sorted(run_ids, reverse=True)[:MAX_RUNS]:
        with suppress(GitHubError):
            run = read_run(api, run_id)
            if run.event in EVENTS | {"issue_comment"}:
                yield run


def _results(case: CiContext, run: WorkflowRun, pull: PullRequest) -> Iterator[StoredResults]:
    """What a run has stored of this pull request's head, the newest first."""
    own = case.settings.context.repository_id
    claims = {"repository_id": own, "run_id": run.id, "head_sha": pull.head.sha, "pull_request": pull.number}
    for artifact in [it for it in artifacts_of_run(case.github, run.id) if not it.expired][:MAX_ARTIFACTS]:
        # What somebody else's step has stored is no results.
        with suppress(ArtifactError, StorageError):
            yield read_stored(case.github, artifact, claims)


def _run_again(api: Api, run: WorkflowRun) -> str | None:
    """Run the jobs that failed again, with those that need them, or all; returns what to say where GitHub refuses."""
    try:
        api.post(f"actions/runs/{run.id}/{'rerun-failed-jobs' if run.conclusion in FAILED else 'rerun'}", {})
    except GitHubError as error:
        # Where the answer was lost, it may run all the same: its page shows it.
        is_permitted = error.code != "GITHUB_NOT_PERMITTED"
        why = error.detail or error.message
        return render_reply("cannot_run_again", why=why, url=run.url, is_permitted=is_permitted)
    return None


def pinned(command: RunAgain | RunCommit, pull: PullRequest, repository_id: int) -> str | None:
    """The commit that a command means; absent where it has to name one.

    No time that GitHub tells says what somebody has seen: a branch can be pushed to, and back, at any moment. So the
    command names the commit, with all digits, since another one with the same first digits is found in seconds. On a
    branch of this repository, whoever pushes may write, and could ask for the run, too.
    """
    if isinstance(command, RunCommit):
        return command.commit
    return pull.head.sha if pull.head.repository_id == repository_id else None


def requested(case: CiContext) -> ActionSettings | None:
    """What the comment of the event asks to run, if anything: settings with the pull request, whose head it names.

    Hours may lie between, if somebody has to approve this job: `ConfigError` where it may not be run, or not any more.
    """
    settings, event = case.settings, case.settings.event
    command = parse_command(event.comment.body if event.comment else "")
    if not isinstance(command, RunAgain | RunCommit) or command == RunAgain():
        return None
    asked = _asked(case)
    if asked is None:
        why = "The comment that asks for this run was edited or deleted."
    elif not may_write(case.github, asked.author):
        why = f"{asked.author}, who asks for this run, may not write to this repository."
    else:
        pull = PullRequest.of(case.github.get(f"pulls/{case.decision.pull_request}"))
        commit = pinned(command, pull, settings.context.repository_id)
        if pull.state == "open" and commit == pull.head.sha:
            chosen = settings.replace(event=Event.model_validate({**dict(event), "pull_request": pull}))
            if command.suites:
                # Some suites do not speak for all: what they show must not take the place of what all have shown.
                name = f"{settings.comment_id} {', '.join(command.suites)}".strip()
                chosen = chosen.replace(suites=command.suites, comment_id=name[:100], run_all=True)
            return chosen
        why = "The commit that this run is for is not (any more) the newest of an open pull request."
    hint = "Nothing was run. Look at the pull request again, and write a new comment."
    raise ConfigError(why, hint=hint, code="EVENT_REFUSED")


def record_name(comment_id: int, attempt: int) -> str:
    return f"zelda-accepted.{comment_id}.{attempt}"


def reply_key(comment_id: int) -> str:
    return f"reply-{comment_id}"


def words_of(body: str) -> str:
    """A hash of the words of a comment."""
    return hashlib.sha256(body.replace("\r\n", "\n").encode("utf-8", "surrogatepass")).hexdigest()


def may_write(api: Api, login: str) -> bool:
    """Whether somebody may write to the repository at this moment."""
    with Tolerating({"GITHUB_NOT_FOUND"}):
        found = api.get(f"collaborators/{quote(login, safe='')}/permission")
        return isinstance(found, dict) and found.get("permission") in {"admin", "maintain", "write"}
    return False


def read_acceptances(api: Api, number: int) -> tuple[Acceptance, ...]:
    """The acceptances on a pull request that hold now, the oldest first.

    One holds as long as the comment that asked for it stands there with the same words, Zelda's answer to it stands
    there untouched, and its author may write now. The criteria are in an artifact of the run that answered: that was
    started by a comment, so that it ran on the default branch, and no pull request had a say in what it stored. In
    comments anybody can type, and other workflows post in our name what forks have written: they only name the run.
    """
    thread, allowed = read_thread(api, number), cache(partial(may_write, api))
    found: list[Acceptance] = []
    for asked in thread.of_people:
        is_asked = isinstance(parse_command(asked.body), AcceptCriteria)
        answers = thread.marked(reply_key(asked.id))[:MAX_ANSWERS] if is_asked else []
        records = (record for it in answers if not it.edited_at and (record := _record(api, it, asked)))
        if answers and allowed(asked.author) and (record := next(records, None)):
            found += record.accepted
    return tuple(found)


def _record(api: Api, answer: Comment, asked: Comment) -> AcceptanceRecord | None:
    """What the run of which an answer tells has stored for the comment that was answered."""
    order = answer.order
    if order is None:
        return None
    with suppress(ArtifactError, ValidationError), Tolerating(ABSENT):
        stored = artifacts_of_run(api, order.run_id) if read_run(api, order.run_id).event == "issue_comment" else []
        for artifact in stored:
            if artifact.name == record_name(asked.id, order.run_attempt):
                data = read_members(api, artifact, {RECORD}, MAX_RECORD_BYTES).get(RECORD, b"")
                record = AcceptanceRecord.model_validate_json(data)
                return record if record.words == words_of(asked.body) else None
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
        unknown = "what was accepted on this pull request is not known, and counts for nothing"
        result.note(f"{unknown}: {problem.message}")
    for noted in result.gate.accepted:
        by, because = noted.acceptance.by, noted.acceptance.because
        case.log.say(sentence(f"accepted by {by}: {gate_sentence(noted.reason)}; because {because}"))
