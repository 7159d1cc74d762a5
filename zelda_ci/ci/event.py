"""What an event asks for, decided from its payload, the runner's variables and the checkout before anything happens."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from zelda_ci.ci.checkout import Checkout, NestedRepository
from zelda_ci.ci.commands import is_command
from zelda_ci.ci.inputs import CommentWhen, Mode
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.errors import ConfigError


def path_in(event: Mapping[str, Any], *path: str) -> Any:
    """What lies at a path of keys; nothing where any of them is missing."""
    value: Any = event
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text(event: Mapping[str, Any], *path: str) -> str:
    """Text at a path; empty where there is none."""
    value = path_in(event, *path)
    return value if isinstance(value, str) else ""


def number(event: Mapping[str, Any], *path: str) -> int | None:
    """A whole number at a path."""
    value = path_in(event, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


DEPENDABOT = "dependabot[bot]"
_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class BaselineTarget:
    """The baseline that fits best: a commit, or where two lines of history meet, or the newest of the branch."""

    branch: str
    commit: str | None = None
    meeting: tuple[str, str] | None = None
    """Base and head, whose last common commit is wanted."""


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
    nested: NestedRepository | None = None
    """Where the project lies in another repository than the event's."""
    explain_forks: bool = False
    """Whether the summary says how pull requests of forks can be evaluated."""
    is_of_base: bool = False
    """Whether its results become the baseline of others."""

    @property
    def comments(self) -> bool:
        """Whether there may be a pull request to tell."""
        return self.pull_request is not None or self.pull_request_of is not None


def decide(settings: ActionSettings, checkout: Checkout) -> Decision:
    """Decide.

    Raises:
        ConfigError: What is asked for would be unsafe, is not known, is not what is checked out, or lacks the key that
            it needs.
    """
    decision = _by_event(settings, checkout)
    if decision.activity == "run":
        _need_asked_commit(settings, checkout)
        _need_key(settings, decision)
        decision = replace(decision, base=_base(settings, checkout), nested=checkout.nested)
    return _as_wanted(settings, decision)


def decide_requested(settings: ActionSettings, checkout: Checkout, commit: str) -> Decision:
    """Decide for a commit that somebody who may asked for; the event has its pull request, as GitHub's API tells it.

    Raises:
        ConfigError: Anything else is checked out, or the key is missing.
    """
    pull, found = number(settings.event, "pull_request", "number"), checkout.project or checkout.head
    if found != commit:
        raise ConfigError(
            f"{_named(found)} is checked out, but the comment asks for {commit[:7]}.",
            hint="Check out the output run-commit of the job that answers: examples/zelda-commands.yml shows how.",
            code="OTHER_COMMIT",
        )
    target, how = _pull_baseline(settings, checkout, commit)
    sentence = f"Pull request {pull}, asked for in a comment: suites run at {commit[:7]} and are compared with {how}."
    decision = Decision("run", sentence, target=target, pull_request=pull, head_sha=commit)
    _need_key(settings, decision)
    return _as_wanted(settings, replace(decision, base=_base(settings, checkout), nested=checkout.nested))


def _as_wanted(settings: ActionSettings, decision: Decision) -> Decision:
    """Without what the inputs switch off."""
    if not settings.compare:
        decision = replace(decision, target=None)
    if settings.comment is CommentWhen.OFF and decision.activity == "run":
        decision = replace(decision, pull_request=None, pull_request_of=None)
    return decision


def _by_event(settings: ActionSettings, checkout: Checkout) -> Decision:
    name = settings.context.event_name
    if settings.is_sharded and name in {"workflow_run", "issue_comment"}:
        raise _refused(
            f"A run for {name} cannot be shared by several jobs.",
            "Give the workflow that is started by it one job, without the inputs mode, shard and plan.",
        )
    if settings.mode is Mode.COMMENT or (name == "workflow_run" and settings.mode is Mode.AUTO):
        return _comment(settings)
    if name == "issue_comment" and path_in(settings.event, "comment") is not None:
        return _commented(settings)
    decisions = {
        "pull_request": _pull_request,
        "pull_request_target": _pull_request_target,
        "push": _push,
        "merge_group": _merge_group,
        "schedule": _on_demand,
        "workflow_dispatch": _on_demand,
    }
    return decisions.get(name, _other)(settings, checkout)


def _comment(settings: ActionSettings) -> Decision:
    event, name = settings.event, settings.context.event_name
    if name != "workflow_run":
        raise _refused(
            f"mode: comment works in a workflow that is started by workflow_run, and this one was by {name}.",
            "docs/action.md shows the two workflows.",
        )
    cause = text(event, "workflow_run", "event")
    if not cause.startswith("pull_request"):
        return Decision(
            "skip",
            f"The workflow that ended was started by {cause or 'nobody knows what'}, not by a pull "
            "request: there is nothing to comment on.",
        )
    sentence = "The workflow of a pull request has ended: its stored results are compared and posted as a comment."
    return Decision("comment", sentence, head_sha=text(event, "workflow_run", "head_sha"))


def _commented(settings: ActionSettings) -> Decision:
    """Only a new comment on a pull request that a person begins with `/zelda` is a command."""
    event = settings.event
    pull, action = number(event, "issue", "number"), text(event, "action")
    login = text(event, "comment", "user", "login")
    if not is_command(text(event, "comment", "body")):
        return Decision("skip", "The comment does not begin with /zelda: nothing is asked for.")
    if action != "created":
        return Decision("skip", f"A comment was {action or 'touched'}: only new ones are commands.")
    if path_in(event, "issue", "pull_request") is None or pull is None:
        return Decision("skip", "The comment is on an issue, and commands are for pull requests.")
    if text(event, "comment", "user", "type") != "User" or login.endswith("[bot]"):
        return Decision("skip", "A program wrote the comment: commands are for people.")
    activity: Literal["converse", "request"] = "request" if settings.mode is Mode.RUN else "converse"
    return Decision(activity, f"A comment of {login} on pull request {pull} is a command.", pull_request=pull)


def _pull_request(settings: ActionSettings, checkout: Checkout) -> Decision:
    event = settings.event
    pull, head = number(event, "pull_request", "number"), text(event, "pull_request", "head", "sha")
    if pull is None or not head:
        raise _refused("The event says pull_request, but names none.", "GITHUB_EVENT_PATH must be the event's payload.")
    if text(event, "action") == "closed":
        return Decision("skip", f"Pull request {pull} was closed: there is nothing to evaluate.")
    whose = _whose(settings)
    if whose and not _can_run(settings):
        sentence = f"Pull request {pull} {whose}, and without secrets no session can run: nothing was evaluated."
        return Decision("skip", sentence, base=_base(settings, checkout), nested=checkout.nested, explain_forks=True)
    target, how = _pull_baseline(settings, checkout, head)
    sentence = f"Pull request {pull} {whose or 'of this repository'}: suites run and are compared with {how}."
    return Decision("run", sentence, target=target, pull_request=pull, head_sha=head)


def _pull_baseline(settings: ActionSettings, checkout: Checkout, head: str) -> tuple[BaselineTarget, str]:
    """Of the merge commit that is checked out by default, the first parent; else where the lines of history meet."""
    base = text(settings.event, "pull_request", "base", "ref") or default_branch(settings)
    return _baseline(settings, base, head, checkout.base_of(head), "into which it is merged")


def _baseline(
    settings: ActionSettings, base: str, head: str, commit: str | None = None, how: str = ""
) -> tuple[BaselineTarget, str]:
    """A commit of the base, also in words; of another branch that the workflow names, the one where the head begins."""
    branch = settings.baseline_branch or base
    if branch == base and commit:
        return BaselineTarget(branch, commit), f"{branch}@{commit[:7]}, {how}"
    return BaselineTarget(branch, meeting=(branch, head)), f"the commit of {branch} on which it is based"


def _base(settings: ActionSettings, checkout: Checkout) -> str | None:
    """Of a pull request or a merge queue, whatever the event is called; branches are their authors' own.

    GitHub's own merge commit says best what it was merged into. Of any other commit, the parents are what its author
    wanted.
    """
    event = settings.event
    if path_in(event, "merge_group") is not None:
        commit = text(event, "merge_group", "base_sha")
    elif path_in(event, "pull_request") is not None:
        is_githubs = checkout.head == settings.context.sha
        merged = checkout.base_of(text(event, "pull_request", "head", "sha")) if is_githubs else None
        commit = merged or text(event, "pull_request", "base", "sha")
    else:
        return None
    if not _COMMIT.fullmatch(commit):
        raise _refused("The event does not say what is merged into what.", "GITHUB_EVENT_PATH must be the payload.")
    return commit


def _pull_request_target(settings: ActionSettings, checkout: Checkout) -> Decision:
    """Here the token may write and secrets are there: the code of strangers must not be."""
    if text(settings.event, "action") == "closed" or not _is_of_fork(settings):
        return _pull_request(settings, checkout)
    why = "This workflow was started by pull_request_target for a fork, and "
    if checkout.head == settings.context.sha:
        why += "the base branch is checked out, so that nothing of the pull request would be tested."
    else:
        why += (
            "other code than the base branch's is checked out: sessions, build and tests would run a stranger's code "
            "with this repository's secrets and a token that may write."
        )
    hint = "Use pull_request, and a second workflow with mode: comment for the comment; docs/action.md shows both."
    raise _refused(why, hint)


def _need_asked_commit(settings: ActionSettings, checkout: Checkout) -> None:
    """What is tested must be what the event asks for: else a green check says nothing of it."""
    found, asked = checkout.project or checkout.head, _asked_commits(settings)
    event, name = settings.event, settings.context.event_name
    head = text(event, "pull_request", "head", "sha")
    is_merge = head and found == checkout.head and checkout.base_of(head)
    if found is None or found in asked or is_merge:
        return
    pull = number(event, "pull_request", "number")
    if pull is not None and head:
        wanted = f"pull request {pull} asks for its head, {head[:7]}, or for the merge of it into its base"
        line = "ref: refs/pull/${{ github.event.pull_request.number }}/merge"
    else:
        wanted = f"{name} asks for {settings.context.sha[:7]}"
        line = "ref: ${{ github.sha }}"
    nothing = " That is the base branch: nothing of the pull request would be tested."
    raise ConfigError(
        f"The commit {found[:7]} is checked out, but {wanted}."
        + (nothing if pull is not None and found == text(event, "pull_request", "base", "sha") else ""),
        hint=f"In the step that checks out the project (actions/checkout), write under `with:` the line `{line}`.",
        code="OTHER_COMMIT",
    )


def _asked_commits(settings: ActionSettings) -> frozenset[str]:
    """The commits that an event stands for: one, but for pull requests and tags that are objects of their own."""
    event, context = settings.event, settings.context
    paths = [("pull_request", "head", "sha"), ("merge_group", "head_sha")]
    if context.event_name == "push":
        paths += [("after",), ("head_commit", "id")]
    named = [text(event, *path) for path in paths]
    # Of pull_request_target, GITHUB_SHA is the base branch.
    own = [] if context.event_name == "pull_request_target" else [context.sha]
    return frozenset(commit for commit in (*own, *named) if _COMMIT.fullmatch(commit))


def _push(settings: ActionSettings, _: Checkout) -> Decision:
    context, event = settings.context, settings.event
    default = default_branch(settings)
    if path_in(event, "deleted") is True:
        return Decision("skip", f"{context.ref_name} was deleted: there is nothing to evaluate.")
    if context.ref_type == "tag":
        sentence = f"Push of the tag {context.ref_name}: suites run and are compared with the results of its commit."
        return Decision("run", sentence, target=BaselineTarget(settings.baseline_branch or default, context.sha))
    if context.ref_name == (settings.baseline_branch or default):
        before = text(event, "before")
        sentence = (
            f"Push to {context.ref_name}: suites run, are compared with the commit before, and become the baseline."
        )
        target = BaselineTarget(context.ref_name, before if before.strip("0") else context.sha)
        return Decision("run", sentence, target=target, head_sha=context.sha, is_of_base=True)
    return _branch(settings, f"Push to {context.ref_name}")


def _merge_group(settings: ActionSettings, _: Checkout) -> Decision:
    event = settings.event
    base = text(event, "merge_group", "base_ref").removeprefix("refs/heads/") or default_branch(settings)
    commit = text(event, "merge_group", "base_sha")
    target, how = _baseline(settings, base, settings.context.sha, commit, "on which it stands")
    return Decision("run", f"Merge queue: suites run and are compared with {how}.", target=target)


def _on_demand(settings: ActionSettings, _: Checkout) -> Decision:
    context = settings.context
    how = {"schedule": "Scheduled run", "workflow_dispatch": "Run on demand"}[context.event_name]
    branch = settings.baseline_branch or default_branch(settings)
    if context.ref_name == branch and context.ref_type != "tag":
        sentence = f"{how} on {branch}: suites run, are compared with the results before, and become the baseline."
        target = BaselineTarget(branch, context.sha)
        return Decision("run", sentence, target=target, head_sha=context.sha, is_of_base=True)
    return replace(_branch(settings, f"{how} on {context.ref_name}"), pull_request_of=context.sha)


def _branch(settings: ActionSettings, trigger: str) -> Decision:
    sha = settings.context.sha
    target, how = _baseline(settings, default_branch(settings), sha)
    return Decision("run", f"{trigger}: suites run and are compared with {how}.", target=target, head_sha=sha)


def _other(settings: ActionSettings, checkout: Checkout) -> Decision:
    """Events that Zelda does not know: only when told to run, and only what the event itself stands for."""
    name, sha = settings.context.event_name, settings.context.sha
    if settings.mode is not Mode.RUN:
        raise _refused(
            f"Zelda does not know what {name} asks for.",
            "It knows pull_request, push, merge_group, schedule, workflow_dispatch, workflow_run and the comments of "
            "issue_comment; with mode: run the commit of any other event is evaluated.",
        )
    other = [head for head in (checkout.head, checkout.project) if head != sha]
    if other:
        raise _refused(
            f"{_named(other[0])} is checked out, but {name} stands for {sha[:7]}. Such a workflow has "
            "secrets, and code that anybody may have written must not run with them.",
            "Evaluate pull requests in a workflow that is started by pull_request.",
        )
    return _branch(settings, f"Run for {name}")


def _named(commit: str | None) -> str:
    return f"The commit {commit[:7]}" if commit else "No commit that git could name"


def _whose(settings: ActionSettings) -> str:
    """Why secrets may be missing; empty for a pull request of this repository."""
    if _is_of_fork(settings):
        return "comes from a fork"
    return "was opened by Dependabot" if settings.context.actor == DEPENDABOT else ""


def _is_of_fork(settings: ActionSettings) -> bool:
    """Whether somebody wrote its code who may not write here; of a deleted repository nobody knows."""
    head = path_in(settings.event, "pull_request", "head", "repo")
    return not isinstance(head, dict) or head.get("id") != settings.context.repository_id


def _can_run(settings: ActionSettings) -> bool:
    return settings.has_credential or settings.replay is not None or settings.mode is Mode.MERGE


def _need_key(settings: ActionSettings, decision: Decision) -> None:
    if not _can_run(settings):
        raise ConfigError(
            f"{decision.sentence} But the input anthropic-api-key is empty, and no session can run without a key.",
            hint="Store the key as a secret of the repository and pass it: "
            "anthropic-api-key: ${{ secrets.ANTHROPIC_API_KEY }} "
            "(other credentials are variables of the step, such as CLAUDE_CODE_OAUTH_TOKEN).",
            code="API_KEY_MISSING",
        )


def default_branch(settings: ActionSettings) -> str:
    """The repository's own, as the event says."""
    name = text(settings.event, "repository", "default_branch")
    return name or (settings.context.ref_name if settings.context.event_name == "schedule" else "main")


def _refused(message: str, hint: str) -> ConfigError:
    return ConfigError(message, hint=hint, code="EVENT_REFUSED")
