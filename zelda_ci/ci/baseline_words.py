"""The baseline in words: which one it is, or why there is none and what to do."""

from datetime import datetime

from zelda_ci.domain.ci import BaselineOrigin, BaselineState, PoolSummary
from zelda_ci.domain.numbers import format_count
from zelda_ci.errors import ArtifactError, GitHubError, StorageError, ZeldaError
from zelda_ci.report.builders.phrases import age_words, pool_words

WRONG_TOKEN = 401

# Characters of a commit's name that people read.
SHORT = 7

SWITCHED_OFF = BaselineOrigin(state=BaselineState.OFF, sentence="Nothing was compared: the input baseline is none.")
NO_TOKEN = BaselineOrigin(
    state=BaselineState.NOT_PERMITTED,
    sentence="No token was given, so that the stored results of the base branch could not be read.",
)

ATTEMPTS_LOST = (
    "This run was run before, and the results of its earlier attempts do not count: they were deleted, have expired, "
    "or were never stored, as when a run is cancelled before its first trial is over."
)
CANCELLED_LOST = "The trials that were over when the run was cancelled are not stored, and do not count later:"
EARLIER_UNKNOWN = "Trials of earlier runs of this pull request are not counted: GitHub could not be asked for them."

# Every project starts here.
NONE_YET = (
    "no baseline yet: {branch} has stored none for {wanted} or a commit shortly before it (push to {branch} or run the "
    "workflow there once)"
)
EXPIRED = "no baseline: what {branch} stored has expired (run the workflow there again, or raise retention-days)"
NOT_PERMITTED = "no baseline: the token may not read artifacts (permissions: actions: read, contents: read)"
# By the code of what hindered, whose own words are left out of a text that a bot will post.
MISSING = {
    "": (BaselineState.NONE_YET, NONE_YET),
    "ARTIFACT_EXPIRED": (BaselineState.EXPIRED, EXPIRED),
    "REFUSED": (BaselineState.INVALID, "no usable baseline: the results of {results} were refused: {reason}"),
    "WRONG_TOKEN": (BaselineState.NOT_PERMITTED, "no baseline: the token is wrong or no longer valid (github-token)"),
    "GITHUB_NOT_PERMITTED": (BaselineState.NOT_PERMITTED, NOT_PERMITTED),
    "GITHUB_NOT_FOUND": (BaselineState.NOT_PERMITTED, NOT_PERMITTED),
    "GITHUB_RATE_LIMITED": (BaselineState.UNREACHABLE, "no baseline: GitHub limits how often it may be asked"),
    "UNREACHABLE": (BaselineState.UNREACHABLE, "no baseline: GitHub could not be asked"),
}


def found(origin: BaselineOrigin, now: datetime) -> BaselineOrigin:
    """A baseline that GitHub stores, with its sentence; of a stacked pull request, that below its base."""
    name = _name(origin.branch, origin.commit)
    distance = f"{format_count(origin.behind, 'commit')} behind" if origin.behind else ""
    first, where = f"baseline {name}", distance
    if origin.stands_for:
        first = f"no results of {origin.stands_for}; compared with {name}"
        where = f"{distance} the one on which it is based" if distance else "on which it is based"
    age = age_words(now - origin.created_at) if origin.created_at else ""
    by = f"stored by the workflow {origin.workflow.rpartition('/')[2]}" if origin.workflow else ""
    return origin.replace(sentence=", ".join(filter(None, (first, where, age, by))))


def _name(branch: str | None, commit: str | None) -> str:
    return f"{branch}@{(commit or '')[:SHORT]}"


def missing(branch: str, wanted: str | None, error: ZeldaError | None = None, commit: str = "") -> BaselineOrigin:
    """Why a branch has no baseline: nothing was stored, an error of what was stored for a commit, or one of GitHub."""
    row, message = (error.code, error.message) if error else ("", "")
    if isinstance(error, GitHubError) and error.status == WRONG_TOKEN:
        row = "WRONG_TOKEN"
    if row not in MISSING:
        row = "REFUSED" if isinstance(error, ArtifactError | StorageError) else "UNREACHABLE"
    state, sentence = MISSING[row]
    first, _, rest = message.rstrip(".").partition(" ")
    # A name such as GitHub keeps its letters.
    reason = f"{first.lower() if first.istitle() else first} {rest}"
    short, results = (wanted or "")[:SHORT], _name(branch, commit)
    sentence = sentence.format(branch=branch, wanted=short, results=results, reason=reason)
    return BaselineOrigin(state=state, sentence=sentence, branch=branch, wanted=wanted)


def side_by_side(branch: str, commit: str, head: int, base: int) -> BaselineOrigin:
    """The base ran in the same job, as far as it was needed."""
    here, name = format_count(head, "trial"), _name(branch, commit)
    sentence = f"{here} of the head in this job; none of {name} was needed"
    if base:
        sentence = f"compared with {name} in this job: {here} of the head, {base} of the base, side by side"
    return BaselineOrigin(
        state=BaselineState.FOUND, sentence=sentence, branch=branch, wanted=commit, commit=commit, behind=0
    )


def with_pool(origin: BaselineOrigin, pool: PoolSummary, now: datetime) -> BaselineOrigin:
    """A baseline whose stored trials are of several runs: which, in words."""
    return origin.replace(sentence=f"{origin.sentence}; {pool_words(pool, now)}", pool=pool)


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
