"""What Zelda answers to a comment on a pull request, in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zelda_ci.domain.comparison import AcceptedReason
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.model import Link
from zelda_ci.report.text import sentence

DOCS = Link("All commands", "https://github.com/zelda-ci/zelda-ci/blob/main/docs/conversation.md")

NOTHING_DONE = "Nothing was done."

COMMANDS = (
    ("/zelda rerun", "runs the pull request's workflow again: the jobs that failed, or all of them"),
    ("/zelda rerun SUITE…", "runs these suites once more, beside the check, and posts what they show"),
    ("/zelda run COMMIT", "runs the suites on a fork's pull request, at the commit that you have looked at"),
    ("/zelda accept SUITE because REASON", "takes the criteria of the suite that fail now for what they are"),
    ("/zelda accept SUITE#2 because REASON", "takes only its second criterion"),
    ("/zelda help", "shows this list"),
)


@dataclass(frozen=True)
class Reply:
    """An answer: what it says is escaped where it is rendered."""

    sentences: tuple[str, ...]
    listed: tuple[str, ...] = ()
    """Texts from outside, such as criteria."""
    commands: tuple[tuple[str, str], ...] = ()
    """Commands to copy, each with what it does."""
    links: tuple[Link, ...] = ()


def accepted_sentence(noted: AcceptedReason) -> str:
    """What was accepted, by whom and why."""
    acceptance = noted.acceptance
    return sentence(f"accepted by {acceptance.by}: {gate_sentence(noted.reason)}; because {acceptance.because}")


def helping(problem: str) -> Reply:
    """What there is to say, and what was not understood."""
    said = (problem, NOTHING_DONE) if problem else ()
    return Reply((*said, "Zelda reads these commands, one at the beginning of a new comment:"), (), COMMANDS, (DOCS,))


NOT_PERMITTED = Reply(
    ("Thank you, but only people who may write to this repository can tell Zelda what to do. Nothing was done.",)
)
CLOSED = Reply(("This pull request is closed: there is nothing to do.",))


def no_workflow(name: str) -> Reply:
    """The workflow that the input `workflow` names does not exist."""
    return Reply((f"There is no workflow {name} here. The workflow that answers names it with its input `workflow`.",))


def no_run(name: str) -> Reply:
    """The workflow has never run for the head."""
    return Reply((f"The workflow {name} has no run for the newest commit of this pull request: push, or start it.",))


def still_running(url: str) -> Reply:
    """There is nothing to run again yet."""
    return Reply(("The newest run has not ended yet. Nothing was done.",), links=_run_link(url))


def needs_approval(url: str) -> Reply:
    """A maintainer has to let it run first."""
    return Reply(("The newest run waits for a maintainer's approval, on its own page.",), links=_run_link(url))


def runs_again(url: str, *, only_failed: bool) -> Reply:
    """It does."""
    what = "The jobs that failed run again." if only_failed else "The newest run runs again."
    return Reply((what,), links=_run_link(url))


def cannot_run_again(why: str, url: str, *, is_permitted: bool = True) -> Reply:
    """GitHub did not take it."""
    lacking = "The job that answers comments needs `permissions: actions: write`."
    said = ("Try it on the run's own page.",) if is_permitted else (lacking, "Until then, use the run's own page.")
    return Reply((f"The run could not be run again: {why}", *said), links=_run_link(url))


def commit_wanted(number: int, commit: str, server: str, repository: str) -> Reply:
    """Whoever may push to the pull request could have done so since it was looked at."""
    page = f"{server}/{repository}/pull/{number}/files/{commit}"
    return Reply(
        (
            "Which commit have you looked at? Somebody may push after that. So name it, with all of its digits.",
            "The link shows what the newest one changes. Look at all that setup, build and tests execute, then write:",
        ),
        commands=((f"/zelda run {commit}", "runs this commit and no other"),),
        links=(Link("Changes up to this commit", page),),
    )


def commit_moved(number: int, commit: str, server: str, repository: str) -> Reply:
    """What was named is not the head."""
    wanted = commit_wanted(number, commit, server, repository)
    moved = (
        "The commit that you name is not the newest of this pull request: somebody may have pushed. Nothing was run."
    )
    return Reply((moved, wanted.sentences[-1]), commands=wanted.commands, links=wanted.links)


def starting(suites: Sequence[str], url: str) -> Reply:
    """A job of the workflow that answers runs them next."""
    what = f"These suites run now: {', '.join(suites)}." if suites else "The suites run now."
    beside = "They do not change the check, which counts all suites." if suites else ""
    where = "Where the repository protects it, somebody has to approve the run first. The result is posted here."
    return Reply(tuple(filter(None, (what, beside, where))), links=_run_link(url))


def nothing_stored(suite: str) -> Reply:
    """Nobody knows which criteria fail."""
    return Reply((f"The newest commit of this pull request has no stored results of the suite {suite}.", NOTHING_DONE))


def foreign_results() -> Reply:
    """The author of a fork chooses what its workflow stores."""
    return Reply(
        (
            "The newest results were stored by a fork's own workflow, whose author chooses what they say.",
            f"{NOTHING_DONE} Run the suites by this command first:",
        ),
        commands=(COMMANDS[2],),
    )


def nothing_fails(suite: str, number: int | None) -> Reply:
    """No criterion is there to accept; what else turns the check red cannot be accepted."""
    what = f"Criterion {number} of the suite {suite}" if number else f"The suite {suite}"
    fails = "does not fail" if number else "has no failing criterion"
    only = "Only criteria can be accepted: not tests, build or coverage, no limit of a session, no cost."
    return Reply((f"{what} {fails} in the newest results. {NOTHING_DONE}", only))


def too_much() -> Reply:
    """The record would not fit into a comment."""
    return Reply(("These are too many criteria for one record: accept them one by one, as in SUITE#2.",))


def accepted(suite: str, criteria: Iterable[str], by: str, reason: str, url: str, *, again: bool) -> Reply:
    """What counts from now on."""
    then = "The jobs that failed run again, so that the check can turn green." if again else "The next run counts it."
    return Reply(
        (
            f"{by} accepts this of the suite {suite}, because {reason}",
            "It holds for this pull request, after further pushes, too, as long as the criterion has the same text.",
            "To take it back, delete or edit the comment that asks for it, or hide this one.",
            then,
        ),
        listed=tuple(criteria),
        links=_run_link(url) if again else (),
    )


def _run_link(url: str) -> tuple[Link, ...]:
    return (Link("The run", url),) if url else ()
