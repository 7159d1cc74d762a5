"""The baseline in words: which one it is, or why there is none and what to do."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from zelda_ci.domain.ci import BaselineOrigin, BaselineState, PoolSummary
from zelda_ci.domain.numbers import format_count
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.report.builders.phrases import age_words, pool_words

WRONG_TOKEN = 401

# Characters of a commit's name that people read.
SHORT = 7

# Suites that a sentence names.
MAX_NAMED = 20

NOT_PERMITTED = {"GITHUB_NOT_PERMITTED", "GITHUB_NOT_FOUND"}


SWITCHED_OFF = BaselineOrigin(state=BaselineState.OFF, sentence="Nothing was compared: the input baseline is none.")
NO_TOKEN = BaselineOrigin(
    state=BaselineState.NOT_PERMITTED,
    sentence="No token was given, so that the stored results of the base branch could not be read.",
)


def found(branch: str, commit: str, behind: int | None, age: timedelta | None, workflow: str | None = None) -> str:
    """The sentence for a baseline that GitHub stores."""
    distance = f"{format_count(behind, 'commit')} behind" if behind else ""
    return _facts(f"baseline {branch}@{commit[:SHORT]}", distance, age, workflow)


def in_place_of(origin: BaselineOrigin, base: str, now: datetime) -> BaselineOrigin:
    """Of a stacked pull request: the baseline of the branch on which its base is based in turn."""
    distance = f"{format_count(origin.behind, 'commit')} behind the one " if origin.behind else ""
    first = f"no results of {base}; compared with {origin.branch}@{(origin.commit or '')[:SHORT]}"
    age = now - origin.created_at if origin.created_at else None
    sentence = _facts(first, f"{distance}on which it is based", age, origin.workflow)
    return origin.replace(sentence=sentence, stands_for=base)


def _facts(first: str, distance: str, age: timedelta | None, workflow: str | None) -> str:
    by = f"stored by the workflow {workflow.rpartition('/')[2]}" if workflow else ""
    return ", ".join(fact for fact in (first, distance, "" if age is None else age_words(age), by) if fact)


def with_pool(origin: BaselineOrigin, pool: PoolSummary, now: datetime) -> BaselineOrigin:
    """A baseline whose stored trials are of several runs: which, in words."""
    return origin.replace(sentence=f"{origin.sentence}; {pool_words(pool, now)}", pool=pool)


def not_run(known: Mapping[str, int]) -> str:
    """Suites that a push does not run, since nothing that they depend on has changed."""
    named = [f"{name} ({format_count(count, 'stored trial')})" for name, count in list(known.items())[:MAX_NAMED]]
    more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    return (
        f"Not run, since trials of the same files and settings are stored: {', '.join(named)}{more}. "
        "The input run-all runs every suite."
    )


ATTEMPTS_LOST = (
    "This run was run before, and the results of its earlier attempts do not count: they were deleted, have expired, "
    "or were never stored, as when a run is cancelled before its first trial is over."
)
CANCELLED_LOST = "The trials that were over when the run was cancelled are not stored, and do not count later:"
EARLIER_UNKNOWN = "Trials of earlier runs of this pull request are not counted: GitHub could not be asked for them."


def cancelled_kept(trials: int) -> str:
    """That a cancelled run gets rid of nothing."""
    was, them = ("was", "it") if trials == 1 else ("were", "them")
    return (
        f"{format_count(trials, 'trial')} {was} over when the run was cancelled; running this pull request again with "
        f"the same files counts {them}."
    )


def counted_too(trials: int, runs: int) -> str:
    """That a pull request's run is not the first with these files."""
    are = "is" if trials == 1 else "are"
    return (
        f"{format_count(trials, 'trial')} of {format_count(runs, 'earlier run')} of this pull request, with the same "
        f"files and settings, {are} counted, too: running again adds trials and replaces none."
    )


def side_by_side(branch: str, commit: str, head: int, base: int) -> BaselineOrigin:
    """The base ran in the same job, as far as it was needed."""
    here, name = format_count(head, "trial"), f"{branch}@{commit[:SHORT]}"
    sentence = f"{here} of the head in this job; none of {name} was needed"
    if base:
        sentence = f"compared with {name} in this job: {here} of the head, {base} of the base, side by side"
    return BaselineOrigin(
        state=BaselineState.FOUND, sentence=sentence, branch=branch, wanted=commit, commit=commit, behind=0
    )


def of_other_suites(origin: BaselineOrigin) -> BaselineOrigin:
    """There are results, and none of them is of a suite that was run."""
    sentence = f"no baseline yet: the stored results ({origin.sentence}) are of other suites"
    return origin.replace(state=BaselineState.NONE_YET, sentence=sentence, commit=None)


def never_stored(branch: str, base_commit: str) -> BaselineOrigin:
    """Every project starts here."""
    sentence = (
        f"no baseline yet: {branch} has stored none for {base_commit[:SHORT]} or a commit shortly before it "
        f"(push to {branch} or run the workflow there once)"
    )
    return BaselineOrigin(state=BaselineState.NONE_YET, sentence=sentence, branch=branch, wanted=base_commit)


def refused(branch: str, base_commit: str, commit: str, error: ZeldaError) -> BaselineOrigin:
    """There were results, and none could be used; `error` is about the nearest."""
    if error.code == "ARTIFACT_EXPIRED":
        sentence = (
            f"no baseline: what {branch} stored has expired (run the workflow there again, or raise retention-days)"
        )
        return BaselineOrigin(state=BaselineState.EXPIRED, sentence=sentence, branch=branch, wanted=base_commit)
    first, _, rest = error.message.rstrip(".").partition(" ")
    # A name such as GitHub keeps its letters.
    reason = f"{first.lower() if first.istitle() else first} {rest}"
    sentence = f"no usable baseline: the results of {branch}@{commit[:SHORT]} were refused: {reason}"
    return BaselineOrigin(state=BaselineState.INVALID, sentence=sentence, branch=branch, wanted=base_commit)


def not_readable(branch: str, base_commit: str | None, error: GitHubError) -> BaselineOrigin:
    """GitHub did not tell; its own words are left out of a text that a bot will post."""
    state = BaselineState.NOT_PERMITTED
    if error.status == WRONG_TOKEN:
        sentence = "no baseline: the token is wrong or no longer valid (github-token)"
    elif error.code in NOT_PERMITTED:
        sentence = "no baseline: the token may not read artifacts (permissions: actions: read, contents: read)"
    else:
        limited = error.code == "GITHUB_RATE_LIMITED"
        reason = "GitHub limits how often it may be asked" if limited else "GitHub could not be asked"
        state, sentence = BaselineState.UNREACHABLE, f"no baseline: {reason}"
    return BaselineOrigin(state=state, sentence=sentence, branch=branch, wanted=base_commit)
