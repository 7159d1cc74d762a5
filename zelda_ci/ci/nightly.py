"""A scheduled run on the default branch: trials for the pool, a row of the history, and one issue about drift."""

from collections.abc import Sequence

from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.publish import comment_key
from zelda_ci.compare.drift import night_of, watch, with_night
from zelda_ci.domain.ci import BaselineState
from zelda_ci.domain.nights import Drift, NightlyHistory
from zelda_ci.errors import GitHubError
from zelda_ci.github.kept_text import close_issue, find_issues, keep_issue
from zelda_ci.report.builders import history as words
from zelda_ci.report.markdown import render_drifts

# Whoever could not read the history tonight may tomorrow: what it knows is not gone.
NOT_READ = frozenset({BaselineState.UNREACHABLE, BaselineState.NOT_PERMITTED, BaselineState.INVALID})


def is_nightly(case: CiContext) -> bool:
    """Whether this run fills pool and history; one that is given what to compare with does not."""
    settings = case.settings
    is_scheduled = case.decision.is_of_base and settings.context.event_name == "schedule"
    return is_scheduled and settings.nightly != "off" and settings.compare and settings.baseline is None


def keep_watch(result: CiResult) -> None:
    """Add the row of this night, and tell what it shows; a token that may write no issue costs a line."""
    case, stored = result.case, result.evidence
    if not is_nightly(case):
        return
    before = stored.nights
    if stored.damage:
        result.note(words.not_readable(stored.damage, older=len(before.nights)), "warning")
    night = night_of(result.batch.runs)
    if night is None or result.batch.interrupted:
        return
    now = watch(with_night(before, night.replace(run=case.settings.context.run_id)))
    result.evidence = stored.replace(nights=now)
    for note in words.drift_notes(before.drifts, now.drifts):
        result.note(note, "warning", "Drift")
    known = (*now.drifts, *before.drifts)
    # Where nothing is known of, an issue may be left that could not be closed, or of a history that was lost.
    is_known = known or before.nights or stored.origin.state not in NOT_READ
    if case.settings.nightly != "watch" or not is_known:
        return
    try:
        result.evidence = stored.replace(nights=_kept(case, before, now))
    except GitHubError as problem:
        if not all(drift.accepted for drift in known):
            result.note(words.no_issue(problem), "notice")


def _kept(case: CiContext, before: NightlyHistory, now: NightlyHistory) -> NightlyHistory:
    """Keep the issue of one job; returns the history with what is known of it."""
    api, context, key = case.github, case.settings.context, f"drift-{comment_key(case)}"
    here = context.url_of(context.run_id)

    def body(drifts: Sequence[Drift], ending: str = "") -> str:
        return render_drifts(words.drift_issue(drifts, now.nights, url_of=context.url_of, url=here, ending=ending))

    ours = find_issues(api, key, now.author)
    # While the issue that told of it is closed, or gone, somebody knows and wants to hear no more of it.
    numbers = {None, *(issue.number for issue in ours)}
    now = now.replace(drifts=tuple(drift.replace(accepted=drift.issue not in numbers) for drift in now.drifts))
    waiting = [drift for drift in now.drifts if not drift.accepted]
    if not waiting:
        ending = words.OVER if before.nights else words.LOST
        for issue in ours:
            close_issue(api, issue, key, body([drift for drift in before.drifts if not drift.accepted], ending))
            case.log.say(f"Issue {issue.number} was closed. {ending}")
        return now
    issue, done = keep_issue(api, ours[0] if ours else None, key, words.issue_title(waiting), body(waiting))
    case.log.say(f"Issue {issue.number} was {done}: {issue.url}")
    for spare in ours[1:]:
        kept = words.drift_issue((), (), url=issue.url, ending=words.KEPT_ELSEWHERE, place="the older issue")
        close_issue(api, spare, key, render_drifts(kept))
    marked = tuple(drift if drift.accepted else drift.replace(issue=issue.number) for drift in now.drifts)
    return now.replace(drifts=marked, author=issue.author)
