"""What an event asks for, decided from its payload, the runner's variables and the checkout before anything happens."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from zelda_ci.ci.settings import ActionSettings
from zelda_ci.config.files import top_of
from zelda_ci.errors import ConfigError
from zelda_ci.github.kept_text import Comment
from zelda_ci.github.repository import EVENTS, PullRequest
from zelda_ci.workspace.git import SUBMODULE, ask, read_commit, tree_files

DEPENDABOT = "dependabot[bot]"
PAYLOAD = "GITHUB_EVENT_PATH must be the event's payload."
# Events of a branch or a tag, as their sentences begin.
OF_A_BRANCH = {"push": "Push to", "schedule": "Scheduled run on", "workflow_dispatch": "Run on demand on"}

# Phones and pages put other spaces than ours after a word.
_COMMAND = re.compile(r"/zelda(?=\s|\Z)", re.IGNORECASE)
_refused = partial(ConfigError, code="EVENT_REFUSED")
_other_commit = partial(ConfigError, code="OTHER_COMMIT")


@dataclass(frozen=True)
class Checkout:
    """What lies in the workspace: the commit at HEAD and its parents; without a repository, neither."""

    head: str | None = None
    parents: tuple[str, ...] = ()
    project: str | None = None
    """HEAD of the repository that the project lies in: a second checkout has one of its own."""
    nested: str | None = None
    """Top, from the workspace, of another repository that the project lies in: a submodule, or what a step has made."""
    nested_head: str | None = None
    named: str | None = None
    """The commit that the repository around names in its place: it is a submodule."""

    def base_of(self, head: str) -> str | None:
        """The commit into which HEAD merges another one; absent where it does not look like such a merge."""
        return self.parents[0] if len(self.parents) == 2 and self.parents[1] == head else None


async def read_checkout(settings: ActionSettings, environ: Mapping[str, str]) -> Checkout:
    workspace, project = settings.context.workspace.resolve(), settings.project.resolve()
    top = top_of(project)
    outer, own = [await read_commit(folder, environ) for folder in (workspace, project)]
    if top and outer and workspace in top.parents:
        path = top.relative_to(workspace).as_posix()
        named = gitlink(await ask(workspace, environ, "ls-tree", "-z", "--full-tree", "HEAD", "--", path) or b"")
        # A second checkout of the event's repository may be at another commit.
        origin, around = [await origin_of(folder, environ) for folder in (top, workspace)]
        plain, repository = origin.removesuffix("/").removesuffix(".git").lower(), settings.context.repository.lower()
        is_same = origin and (origin == around or plain.endswith((f"/{repository}", f":{repository}")))
        others = [(place, head.sha) for place, head in ((workspace, own), (top, outer)) if head]
        held = [await ask(place, environ, "cat-file", "-e", commit) is not None for place, commit in others]
        if named or not (is_same or any(held)):
            return Checkout(outer.sha, outer.parents, outer.sha, path, own.sha if own else None, named)
    head = outer or own
    return Checkout(head.sha, head.parents, own.sha if own else None) if head else Checkout()


def gitlink(listing: bytes) -> str | None:
    """The commit of the submodule that `git ls-tree` lists; absent where it lists none."""
    return next((entry.content for entry in tree_files(listing) if entry.mode == SUBMODULE), None)


async def origin_of(folder: Path, environ: Mapping[str, str]) -> str:
    """The address from which a repository was cloned; empty where it names none."""
    origin = await ask(folder, environ, "config", "--local", "--get", "remote.origin.url") or b""
    return origin.decode("utf-8", "replace").strip()


class BaselineTarget(NamedTuple):
    """The baseline that fits best: a commit of a branch, or the last one that the branch has in common with a head."""

    branch: str
    commit: str | None = None
    head: str = ""

    def __str__(self) -> str:
        return f"{self.branch}@{self.commit:.7}" if self.commit else f"the commit of {self.branch} on which it is based"


@dataclass(frozen=True)
class Decision:
    """What is done, and in one sentence why."""

    activity: Literal["run", "comment", "skip", "converse", "request"]
    sentence: str
    target: BaselineTarget | None = None
    """Absent where there is nothing to compare with."""
    pull_request: int | None = None
    pull_request_of: str | None = None
    """The commit whose open pull request gets the comment, where the event names none."""
    head_sha: str = ""
    """Of a pull request, its head; empty where the tested commit is nobody's head."""
    base: str | None = None
    """The commit whose configuration gives rights; absent where that is the tested one's own."""
    explain_forks: bool = False
    """Whether the summary says how pull requests of forks can be evaluated."""
    refusal: ConfigError | None = None
    """Why no session of a pull request can run, where that has to be told."""
    is_of_base: bool = False
    """Whether its results become the baseline of others."""


def undecided(settings: ActionSettings) -> Decision:
    """What is known before it is decided: of a pull request, whose comment may have to say why nothing can be."""
    pull = settings.event.pull_request
    if pull is None or settings.comment == "off" or settings.context.event_name not in EVENTS:
        return Decision("skip", "")
    return Decision("skip", "", pull_request=pull.number, head_sha=pull.head.sha)


def decide(settings: ActionSettings, checkout: Checkout) -> Decision:
    """Decide, or raise `ConfigError` for what would be unsafe, is not known, is not checked out, or lacks its key.

    Of a pull request that lacks the key, the decision says so: what it changes can be told all the same.
    """
    event, context, mode = settings.event, settings.context, settings.mode
    name, sha = context.event_name, context.sha
    if settings.is_sharded and name in {"workflow_run", "issue_comment"}:
        hint = "Give the workflow that is started by it one job, without the inputs mode, shard and plan."
        raise _refused(f"A run for {name} cannot be shared by several jobs.", hint=hint)
    if mode == "comment" or (name == "workflow_run" and mode == "auto"):
        return _comment(settings)
    if name == "issue_comment" and event.comment:
        return _commented(settings, event.comment)
    if name in EVENTS:
        return _run(settings, checkout, _pull_request(settings, checkout))
    if name == "merge_group" and (queue := event.merge_group):
        target = _target(settings, queue.base_ref.removeprefix("refs/heads/"), sha, queue.base_sha)
        return _run(settings, checkout, Decision("run", "Merge queue", target))
    other = [head for head in (checkout.head, checkout.project) if head != sha]
    # Events that Zelda does not know: only when asked to run, and only what the event itself stands for.
    if name not in OF_A_BRANCH and mode != "run":
        raise _refused(
            f"Zelda does not know what {name} asks for.",
            hint="It knows pull_request, push, merge_group, schedule, workflow_dispatch, workflow_run and the comments "
            "of issue_comment; with mode: run the commit of any other event is evaluated.",
        )
    if name not in OF_A_BRANCH and other:
        raise _refused(
            f"{_named(other[0])} is checked out, but {name} stands for {sha[:7]}. Such a workflow has "
            "secrets, and code that anybody may have written must not run with them.",
            hint="Evaluate pull requests in a workflow that is started by pull_request.",
        )
    return _run(settings, checkout, _branch(settings))


def _comment(settings: ActionSettings) -> Decision:
    name, ended = settings.context.event_name, settings.event.workflow_run
    if name != "workflow_run":
        why = f"mode: comment works in a workflow that is started by workflow_run, and this one was by {name}."
        raise _refused(why, hint="docs/action.md shows the two workflows.")
    if ended is None:
        raise _refused("The event says workflow_run, but names none.", hint=PAYLOAD)
    if not (event := ended.event).startswith("pull_request"):
        return Decision("skip", f"The workflow that ended was started by {event}: there is nothing to comment on.")
    why = "The workflow of a pull request has ended: its stored results are compared and posted as a comment."
    return Decision("comment", why, head_sha=ended.head_sha)


def is_command(body: str) -> bool:
    """Whether a comment speaks to Zelda at all."""
    return _COMMAND.match(body) is not None


def _commented(settings: ActionSettings, comment: Comment) -> Decision:
    """Only a new comment on a pull request that a person begins with `/zelda` is a command."""
    event, user = settings.event, comment.user
    if not is_command(comment.body):
        return Decision("skip", "The comment does not begin with /zelda: nothing is asked for.")
    if event.action != "created":
        return Decision("skip", f"A comment was {event.action or 'touched'}: only new ones are commands.")
    if event.issue_pull_request is None:
        return Decision("skip", "The comment is on an issue, and commands are for pull requests.")
    if user is None or user.kind != "User" or user.login.endswith("[bot]"):
        return Decision("skip", "A program wrote the comment: commands are for people.")
    sentence = f"A comment of {user.login} on pull request {event.issue_number} is a command."
    return Decision("request" if settings.mode == "run" else "converse", sentence, pull_request=event.issue_number)


def _pull_request(settings: ActionSettings, checkout: Checkout) -> Decision:
    """Of a fork with a token that may write and secrets, as pull_request_target has them, nothing is run."""
    context, pull = settings.context, settings.event.pull_request
    if pull is None:
        raise _refused("The event says pull_request, but names none.", hint=PAYLOAD)
    what = f"Pull request {pull.number}"
    if settings.event.action == "closed":
        return Decision("skip", f"{what} was closed: there is nothing to evaluate.")
    is_of_fork = pull.head.repository_id != context.repository_id
    if is_of_fork and context.event_name == "pull_request_target":
        why = "the base branch is checked out, so that nothing of the pull request would be tested."
        if checkout.head != context.sha:
            why = (
                "other code than the base branch's is checked out: sessions, build and tests would run a stranger's "
                "code with this repository's secrets and a token that may write."
            )
        hint = "Use pull_request, and a second workflow with mode: comment for the comment; docs/action.md shows both."
        raise _refused(f"This workflow was started by pull_request_target for a fork, and {why}", hint=hint)
    whose = "of this repository"
    if is_of_fork or context.actor == DEPENDABOT:
        whose = "comes from a fork" if is_of_fork else "was opened by Dependabot"
        if not _can_run(settings):
            why = f"{what} {whose}, and without secrets no session can run: nothing was evaluated."
            known = replace(undecided(settings), sentence=why, head_sha=pull.head.sha)
            return replace(known, base=_base(settings, checkout), explain_forks=True)
    return _run_of(pull, f"{what} {whose}", settings, checkout)


def decide_requested(settings: ActionSettings, checkout: Checkout) -> Decision:
    """Decide for a head that somebody who may asked for; raises `ConfigError` where that is not checked out."""
    pull, found = settings.event.pull_request, checkout.project or checkout.head
    assert pull  # noqa: S101 - what was asked for is one
    if found != pull.head.sha:
        hint = "Check out the output run-commit of the job that answers: examples/zelda-commands.yml shows how."
        raise _other_commit(f"{_named(found)} is checked out, but the comment asks for {pull.head.sha[:7]}.", hint=hint)
    what = f"Pull request {pull.number} at {pull.head.sha[:7]}, asked for in a comment"
    return _run(settings, checkout, _run_of(pull, what, settings, checkout))


def _run_of(pull: PullRequest, what: str, settings: ActionSettings, checkout: Checkout) -> Decision:
    """Compare with the first parent of the merge commit that is checked out by default, else where history parts."""
    head = pull.head.sha
    target = _target(settings, pull.base.ref or settings.context.default_branch, head, checkout.base_of(head))
    return Decision("run", what, target, pull_request=pull.number, head_sha=head)


def _branch(settings: ActionSettings) -> Decision:
    """What is no pull request: a push to the base branch, or a run on it, follows on results that it has stored."""
    context, event = settings.context, settings.event
    name, ref, sha = context.event_name, context.ref_name, context.sha
    branch = settings.baseline_branch or context.default_branch
    what = f"{OF_A_BRANCH.get(name, f'Run for {name} on')} {'the tag ' * (context.ref_type == 'tag')}{ref}"
    if event.deleted:
        return Decision("skip", f"{ref} was deleted: there is nothing to evaluate.")
    if context.ref_type == "tag":
        return Decision("run", what, BaselineTarget(branch, sha))
    if ref == branch and name in OF_A_BRANCH:
        before = event.before if event.before.strip("0") else sha
        return Decision("run", what, BaselineTarget(branch, before), head_sha=sha, is_of_base=True)
    pull_request_of = sha if name == "workflow_dispatch" else None
    return Decision("run", what, BaselineTarget(branch, head=sha), pull_request_of=pull_request_of, head_sha=sha)


def _target(settings: ActionSettings, base: str, head: str, commit: str | None = None) -> BaselineTarget:
    """A commit of the base; of another branch that the workflow names, the one where the head begins."""
    branch = settings.baseline_branch or base
    return BaselineTarget(branch, commit) if commit and branch == base else BaselineTarget(branch, head=head)


def _run(settings: ActionSettings, checkout: Checkout, draft: Decision) -> Decision:
    """Check a decision to run, of which the sentence is only begun, and complete it as the inputs want it."""
    if draft.activity != "run":
        return draft
    _need_asked_commit(settings, checkout)
    beside = (settings.baseline or draft.target) if settings.compare else "nothing"
    after = ", and become the baseline" if draft.is_of_base else ""
    sentence = f"{draft.sentence}: suites run and are compared with {beside}{after}."
    decision = replace(draft, sentence=sentence, base=_base(settings, checkout))
    if not _can_run(settings):
        refusal = ConfigError(
            f"{sentence} But the input anthropic-api-key is empty, and no session can run without a key.",
            hint="Store the key as a secret of the repository and pass it: "
            "anthropic-api-key: ${{ secrets.ANTHROPIC_API_KEY }} "
            "(other credentials are variables of the step, such as CLAUDE_CODE_OAUTH_TOKEN).",
            code="API_KEY_MISSING",
        )
        if settings.context.event_name != "pull_request" or settings.is_sharded:
            raise refusal
        decision = replace(decision, refusal=refusal)
    decision = decision if settings.compare else replace(decision, target=None)
    return replace(decision, pull_request=None, pull_request_of=None) if settings.comment == "off" else decision


def _need_asked_commit(settings: ActionSettings, checkout: Checkout) -> None:
    """What is tested must be what the event asks for: else a green check says nothing of it."""
    if (named := checkout.named) and checkout.nested_head != named:
        at = checkout.nested_head[:7] if checkout.nested_head else "no commit"
        raise _other_commit(
            f"The submodule {checkout.nested} is at {at}, but the commit that is checked out names {named[:7]}.",
            hint="In the step with actions/checkout, write `submodules: recursive` under `with:`, and let no later "
            "step move the submodule.",
        )
    context, event, pull = settings.context, settings.event, settings.event.pull_request
    found = checkout.project or checkout.head
    # A tag may be an object of its own, which a push names beside its commit.
    asked = {event.after, event.pushed_commit, pull.head.sha if pull else ""}
    if context.event_name != "pull_request_target":
        # There it is the base branch.
        asked.add(context.sha)
    is_merge = pull and found == checkout.head and checkout.base_of(pull.head.sha)
    if found is None or is_merge or found in asked:
        return
    wanted, line, nothing = f"{context.event_name} asks for {context.sha[:7]}", "ref: ${{ github.sha }}", ""
    if pull:
        wanted = f"pull request {pull.number} asks for its head, {pull.head.sha[:7]}, or for its merge into its base"
        line = "ref: refs/pull/${{ github.event.pull_request.number }}/merge"
        if found == pull.base.sha:
            nothing = " That is the base branch: nothing of the pull request would be tested."
    hint = f"In the step that checks out the project (actions/checkout), write under `with:` the line `{line}`."
    raise _other_commit(f"{_named(found)} is checked out, but {wanted}.{nothing}", hint=hint)


def _base(settings: ActionSettings, checkout: Checkout) -> str | None:
    """Of a pull request or a merge queue, whatever the event is called; branches are their authors' own."""
    event = settings.event
    if event.merge_group:
        return event.merge_group.base_sha
    if event.pull_request is None:
        return None
    # GitHub's own merge commit says best what it was merged into. Of any other, the parents are what its author wanted.
    merged = checkout.base_of(event.pull_request.head.sha) if checkout.head == settings.context.sha else None
    return merged or event.pull_request.base.sha


def _named(commit: str | None) -> str:
    return f"The commit {commit[:7]}" if commit else "No commit that git could name"


def _can_run(settings: ActionSettings) -> bool:
    return settings.has_credential or settings.replay is not None or settings.mode == "merge"
