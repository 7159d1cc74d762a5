"""Answers what people write to Zelda in the conversation of a pull request.

Everybody may comment, and the workflow that reads comments has rights. So a command is carried out only if its author
may write to the repository now, if it stands there as it was when it was sent, and only once. Nothing of a comment
becomes more than data: names that fit a grammar, and text that is escaped where it is shown.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from zelda_ci.ci import publish
from zelda_ci.ci.acceptances import AcceptanceRecord, hidden_line, may_write, reply_key, words_of
from zelda_ci.ci.commands import AcceptCriteria, AskHelp, Command, RunAgain, RunCommit, parse_command
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.settings import ActionSettings, Event
from zelda_ci.ci.stored_artifacts import StoredResults, artifacts_of_run, read_stored
from zelda_ci.compare.gate import failing_criteria
from zelda_ci.errors import ArtifactError, ConfigError, GitHubError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.comments import (
    MAX_BODY_LENGTH,
    Comment,
    Thread,
    comment_in,
    length,
    marker,
    order_in,
    react,
    read_comment,
    read_thread,
)
from zelda_ci.github.revisions import newest_run, run_again
from zelda_ci.github.schemas import PullRequest, WorkflowRun, understand
from zelda_ci.redact import Redactor
from zelda_ci.report.markdown import render_reply

# Of one pull request: whoever may not write gets a reaction only from then on, and nobody hears of it.
MAX_REFUSALS = 3
# Runs and artifacts that are looked into for what fails.
MAX_RUNS, MAX_ARTIFACTS = 3, 10

ANSWER, REFUSAL = "<!-- zelda-ci:reply -->", "<!-- zelda-ci:refusal -->"
FAILED = frozenset({"failure", "cancelled", "timed_out"})
EVENTS = frozenset({"pull_request", "pull_request_target", "issue_comment"})


@dataclass(frozen=True)
class AskedComment:
    """The comment that an event brings."""

    id: int
    body: str
    login: str
    pull_request: int

    @classmethod
    def of(cls, event: Event) -> "AskedComment":
        """As it was when it was sent."""
        comment = event.comment
        if comment is None or comment.user is None:
            raise GitHubError("The event names no comment of a person.")
        return cls(id=comment.id, body=comment.body, login=comment.user.login, pull_request=event.issue_number)

    def stands(self, api: Api) -> bool:
        """Whether it is still there with the same words, by the same author."""
        now = read_comment(api, self.id)
        return now is not None and now.author == self.login and words_of(now.body) == words_of(self.body)


@dataclass(frozen=True)
class Response:
    """What a command comes to."""

    reply: str
    is_done: bool = False
    record: AcceptanceRecord | None = None
    runs_again: WorkflowRun | None = None
    """What is run again once the answer stands there."""
    outputs: Mapping[str, str] = field(default_factory=dict)


def converse(case: CiContext) -> int:
    """Carry out the command of a comment and answer it; returns the exit code.

    Raises:
        GitHubError: A request failed, or the token may not do it.
    """
    api, asked = _api(case.api), AskedComment.of(case.settings.event)
    why = "The comment was edited or deleted since it was sent: nothing is done."
    if asked.stands(api):
        talk = _Conversation(case, api, asked, read_thread(api, asked.pull_request))
        why = talk.answer()
    if why:
        case.log.report("notice", why, title="Zelda did nothing")
    return 0


def _api(api: Api | None) -> Api:
    if api is None:
        raise GitHubError("No token was given, so that no comment can be answered.", hint="Pass github-token.")
    return api


@dataclass(frozen=True)
class _Conversation:
    """A command, and the pull request on which it stands."""

    case: CiContext
    api: Api
    asked: AskedComment
    thread: Thread

    def answer(self) -> str:
        """Carry the command out, answer it, and only then run again what the answer changes; returns why not."""
        if self.thread.marked(reply_key(self.asked.id)):
            return "The comment was answered already: nothing is done twice."
        if not may_write(self.api, self.asked.login):
            self._refuse()
            return f"{self.asked.login} may not write to this repository: nothing is done."
        self._show("eyes")
        found = self._carried_out(parse_command(self.asked.body))
        url = self._post(hidden_line(found.record) if found.record else ANSWER, found.reply).url
        if found.runs_again and (problem := _run_again(self.api, found.runs_again)):
            self._post(ANSWER, problem, key=f"{reply_key(self.asked.id)}-run")
        self._show("+1" if found.is_done else "confused")
        publish.tell(
            self.case.log, self.case.settings.context.command_files, outputs={"comment-url": url, **found.outputs}
        )
        self.case.log.say(f"Answered: {url}")
        return ""

    def _show(self, reaction: str) -> None:
        """React to the comment, which costs nobody a notification; without it everything else is the same."""
        with suppress(GitHubError):
            react(self.api, self.asked.id, reaction)

    def _refuse(self) -> None:
        """Say no, a few times for everybody together."""
        self._show("confused")
        if len(_refusals(self.thread)) < MAX_REFUSALS:
            mine = self._post(REFUSAL, render_reply("not_permitted"))
            # Many may have asked at the same moment, and each job sees that it is the first.
            surplus = _refusals(read_thread(self.api, self.asked.pull_request))[MAX_REFUSALS:]
            if mine.id in {comment.id for comment in surplus}:
                with suppress(GitHubError):
                    self.api.delete(f"issues/comments/{mine.id}")

    def _post(self, hidden: str, reply: str, key: str = "") -> Comment:
        key = key or reply_key(self.asked.id)
        path, body = f"issues/{self.asked.pull_request}/comments", {"body": _body(key, hidden, reply)}
        try:
            return comment_in(self.api.post(path, body))
        except GitHubError as error:
            if error.code != "GITHUB_ANSWER_LOST":
                raise
        # It may have been carried out.
        posted = read_thread(self.api, self.asked.pull_request).marked(key)
        return posted[0] if posted else comment_in(self.api.post(path, body))

    def _carried_out(self, command: Command) -> Response:
        """Do what is asked for, as far as it does not have to wait for the answer."""
        if isinstance(command, AskHelp):
            return Response(render_reply("help", problem=command.problem), is_done=not command.problem)
        pull = understand(PullRequest, self.api.get(f"pulls/{self.asked.pull_request}"))
        if pull.state != "open":
            return Response(render_reply("closed"))
        match command:
            case RunAgain(suites=()):
                return self._rerun(pull)
            case AcceptCriteria():
                return self._accept(command, pull)
            case RunAgain() | RunCommit():
                return self._start(command, pull)

    def _rerun(self, pull: PullRequest) -> Response:
        workflow = self.case.settings.workflow
        try:
            run = newest_run(self.api, workflow, pull)
        except GitHubError as error:
            if error.code != "GITHUB_NOT_FOUND":
                raise
            return Response(render_reply("no_workflow", name=workflow))
        if run is None:
            return Response(render_reply("no_run", name=workflow))
        if run.conclusion == "action_required":
            return Response(render_reply("needs_approval", url=run.url))
        if run.status != "completed":
            return Response(render_reply("still_running", url=run.url))
        problem = _run_again(self.api, run)
        said = problem or render_reply("runs_again", url=run.url, only_failed=run.conclusion in FAILED)
        return Response(said, is_done=problem is None)

    def _start(self, command: RunAgain | RunCommit, pull: PullRequest) -> Response:
        """Have the next job of this workflow run a commit."""
        context = self.case.settings.context
        page = f"{context.server_url}/{context.repository}/pull/{pull.number}/files/{pull.head.sha}"
        commit = pinned(command, pull, context.repository_id)
        if commit != pull.head.sha:
            moved = commit is not None
            return Response(render_reply("which_commit", commit=pull.head.sha, page=page, moved=moved))
        said = render_reply("starting", suites=command.suites, url=context.url_of(context.run_id))
        return Response(said, is_done=True, outputs={"run-commit": commit})

    def _accept(self, command: AcceptCriteria, pull: PullRequest) -> Response:
        own = self.case.settings.context.repository_id
        newest = None
        with suppress(GitHubError):
            newest = newest_run(self.api, self.case.settings.workflow, pull)
        runs = list(self._runs(pull, newest))
        # Of a fork's run its author decides what it stores.
        results = (each for run in runs if _is_own(run, own) for each in self._results(run, pull))
        found = (failing_criteria(each.own_trials, command.suite) for each in results)
        failing = next((each for each in found if each is not None), None)
        if failing is None:
            is_foreign = any(not _is_own(run, own) for run in runs)
            stored = render_reply("nothing_stored", suite=command.suite)
            return Response(render_reply("foreign_results") if is_foreign else stored)
        wanted = [name for place, name in failing.items() if command.number in {None, place}]
        if not wanted:
            return Response(render_reply("nothing_fails", suite=command.suite, number=command.number))
        # Where no check is red, the acceptance waits for the next run.
        is_red = newest and newest.status == "completed" and newest.conclusion in FAILED
        run = newest if is_red else None
        record = AcceptanceRecord(
            repository_id=own,
            pull_request=self.asked.pull_request,
            comment=self.asked.id,
            words=words_of(self.asked.body),
            suite=command.suite,
            criteria=tuple(wanted),
            by=self.asked.login,
            at=self.case.now(),
        )
        said = render_reply(
            "accepted",
            suite=command.suite,
            criteria=wanted,
            by=self.asked.login,
            reason=Redactor(self.case.settings.secrets())(command.reason),
            runs_again=run is not None,
            url=run.url if run else "",
        )
        if length(_body(reply_key(self.asked.id), hidden_line(record), said)) > MAX_BODY_LENGTH:
            return Response(render_reply("too_much"))
        return Response(said, is_done=True, record=record, runs_again=run)

    def _runs(self, pull: PullRequest, newest: WorkflowRun | None) -> Iterator[WorkflowRun]:
        """The newest runs of which Zelda's comments tell for this head, and that of the workflow."""
        orders = (order_in(comment.body) for comment in self.thread.comments)
        told = {order.run_id for order in orders if order and order.head_sha == pull.head.sha}
        told |= {newest.id} if newest else set()
        for run_id in sorted(told, reverse=True)[:MAX_RUNS]:
            with suppress(GitHubError):
                run = understand(WorkflowRun, self.api.get(f"actions/runs/{run_id}"))
                if run.event in EVENTS:
                    yield run

    def _results(self, run: WorkflowRun, pull: PullRequest) -> Iterator[StoredResults]:
        """What a run has stored of this pull request's head, the newest first."""
        own = self.case.settings.context.repository_id
        told = {"repository_id": own, "run_id": run.id, "head_sha": pull.head.sha, "pull_request": pull.number}
        for artifact in [it for it in artifacts_of_run(self.api, run.id) if not it.expired][:MAX_ARTIFACTS]:
            # What somebody else's step has stored is no results.
            with suppress(ArtifactError, StorageError):
                yield read_stored(self.api, artifact, told)


def _body(key: str, hidden: str, reply: str) -> str:
    return f"{marker(key)}\n{hidden}\n{reply}"


def _refusals(thread: Thread) -> list[Comment]:
    return [comment for comment in thread.comments if comment.body.split("\n")[1:2] == [REFUSAL]]


def _run_again(api: Api, run: WorkflowRun) -> str | None:
    """Have it run again; returns what to say where GitHub does not take it."""
    try:
        run_again(api, run.id, only_failed=run.conclusion in FAILED)
    except GitHubError as error:
        # Where the answer was lost, it may run all the same: its page shows it.
        if error.code not in {"GITHUB_NOT_PERMITTED", "GITHUB_REFUSED", "GITHUB_NOT_FOUND", "GITHUB_ANSWER_LOST"}:
            raise
        is_permitted = error.code != "GITHUB_NOT_PERMITTED"
        why = error.detail or error.message
        return render_reply("cannot_run_again", why=why, url=run.url, is_permitted=is_permitted)
    return None


def _is_own(run: WorkflowRun, repository_id: int) -> bool:
    """Whether no fork's author decides what it stores."""
    return run.head_repository is not None and run.head_repository.id == repository_id


def pinned(command: RunAgain | RunCommit, pull: PullRequest, repository_id: int) -> str | None:
    """The commit that a command means; absent where it has to name one.

    No time that GitHub tells says what somebody has seen: a branch can be pushed to, and back, at any moment. So the
    command names the commit, with all digits, since another one with the same first digits is found in seconds. On a
    branch of this repository, whoever pushes may write, and could ask for the run, too.
    """
    if isinstance(command, RunCommit):
        return command.commit
    return pull.head.sha if pull.head.is_of(repository_id) else None


def requested(api: Api | None, settings: ActionSettings) -> tuple[ActionSettings, str] | None:
    """What the comment of the event asks to run: settings with the pull request, and the commit.

    This is asked anew in the job that runs, whatever an earlier job has put out: hours may lie between, if somebody has
    to approve the job.

    Returns:
        Nothing where the comment asks for no run.

    Raises:
        ConfigError: It may not be run, or not any more.
        GitHubError: GitHub did not tell.
    """
    api, asked = _api(api), AskedComment.of(settings.event)
    command = parse_command(asked.body)
    if not isinstance(command, RunAgain | RunCommit) or command == RunAgain():
        return None
    if not asked.stands(api):
        raise _refused("The comment that asks for this run was edited or deleted.")
    if not may_write(api, asked.login):
        raise _refused(f"{asked.login}, who asks for this run, may not write to this repository.")
    pull = understand(PullRequest, api.get(f"pulls/{asked.pull_request}"))
    commit = pinned(command, pull, settings.context.repository_id)
    if pull.state != "open" or commit is None or commit != pull.head.sha:
        raise _refused("The commit that this run is for is not (any more) the newest of an open pull request.")
    chosen = settings.replace(event=Event.model_validate({**dict(settings.event), "pull_request": pull}))
    if command.suites:
        # Some suites do not speak for all: what they show must not take the place of what all have shown.
        name = f"{settings.comment_id} {', '.join(command.suites)}".strip()
        chosen = chosen.replace(suites=command.suites, comment_id=name[:100], run_all=True)
    return chosen, commit


def _refused(message: str) -> ConfigError:
    hint = "Nothing was run. Look at the pull request again, and write a new comment."
    return ConfigError(message, hint=hint, code="EVENT_REFUSED")
