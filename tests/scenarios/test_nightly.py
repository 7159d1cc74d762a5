"""Nights on GitHub: one fills the pool, one opens the issue about drift, one rewrites it, one closes it."""

import json
import re
from datetime import timedelta
from pathlib import Path

from tests.scenarios.stage import BAD, GOOD, Stage
from tests.support.github_server import Artifact
from tests.support.github_server.world import archive_of
from tests.support.scripted_api import Reply, text, tool_call
from zelda_ci.domain.nights import Night, NightlyHistory, Passes, SuiteNight
from zelda_ci.storage import codec

CHECK = "build and tests"


def history_in(artifact: Artifact) -> NightlyHistory:
    return codec.decode(NightlyHistory, artifact.files["history.json"], "history.json")


def trials_in(artifact: Artifact) -> int:
    return len(json.loads(artifact.files["zelda-results.json"])["runs"])


def rewrite(artifact: Artifact, history: bytes) -> None:
    """As if the nights before had been others."""
    artifact.blob = archive_of({**artifact.files, "history.json": history})
    artifact.digest = ""
    artifact.__post_init__()


def with_nights(artifact: Artifact, count: int, *, days: float, passed: int = 3) -> None:
    """More nights like the newest one, good ones by default; `days` after it, or before it."""
    history = history_in(artifact)
    newest = history.nights[-1]
    row = newest.suites["greeting"]
    good = Passes(passed=passed, trials=3)
    suites: dict[str, SuiteNight] = {"greeting": row.replace(trials=3, whole=good, checks={CHECK: good})}
    made = [
        newest.replace(
            at=newest.at + timedelta(days=days) * (number + 1), batch_id=f"{days} {passed} {number}", suites=suites
        )
        for number in range(count)
    ]
    nights: list[Night] = sorted([*history.nights, *made], key=lambda night: night.at)
    rewrite(artifact, codec.encode_nights(history.replace(nights=tuple(nights)), 10**7))


def test_a_drift_is_told_in_one_issue_until_it_is_over(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.github.permissions["issues"] = "write"
        issues = stage.github.repository.issues
        first = stage.night(GOOD * 3)
        assert first.code == 0, first.printed
        assert trials_in(stage.stored[-1]) == 3
        assert len(history_in(stage.stored[-1]).nights) == 1
        assert re.search(r"Trend over 1 night[\s\S]*too few nights", first.summary)
        with_nights(stage.stored[-1], 12, days=-1)
        with_nights(stage.stored[-1], 4, days=1e-9, passed=0)

        opened = stage.night(BAD * 3)
        (issue,) = issues
        assert (issue.author, issue.state) == (stage.github.login, "open")
        assert issue.title.startswith("Zelda: greeting, build and tests 39/39 → 0/15 since 20")
        assert "Claude Code: " in issue.body
        assert "Drift (new): greeting, build and tests 39/39 → 0/15" in opened.summary

        # Whoever copies the mark gets nothing of it.
        forged = stage.github.repository.add_issue("Zelda: mine", issue.body, author="mallory")
        quoting = stage.github.repository.add_issue("Zelda: quoted", f"> {issue.body}", author=stage.github.login)

        updated = stage.night([*BAD, *BAD, *BAD])
        assert issues == [issue, forged, quoting]
        # The newest five nights are other ones now.
        assert "39/39 → 0/15" in issue.title, updated.printed
        assert "in the newest 5 nights" in issue.body
        assert (issue.state, issue.edits) == ("open", 1)
        assert "Drift (still)" in updated.summary

        with_nights(stage.stored[-1], 4, days=1e-9)
        closed = stage.night([*GOOD, *GOOD, *GOOD])
        assert (issue.state, issue.reason) == ("closed", "completed"), closed.printed
        assert "This is over" in issue.body
        assert (forged.edits, forged.state, quoting.edits, quoting.state) == (0, "open", 0, "open")
        assert history_in(stage.stored[-1]).drifts == ()


def test_a_missing_permission_is_said_and_the_drift_is_in_the_summary_and_what_is_missing_is_said(
    tmp_path: Path,
) -> None:
    """And the budget of the suites is kept at night, too."""
    with Stage(tmp_path) as stage:
        stage.night(GOOD * 3)
        with_nights(stage.stored[-1], 12, days=-1)
        with_nights(stage.stored[-1], 4, days=1e-9, passed=0)
        done = stage.night(BAD * 3, fail_on="never")
        assert done.code == 0, done.printed
        assert (
            "The drift is told in no issue: the token may not write issues (permissions: issues: write" in done.summary
        )
        assert "Drift (new)" in done.summary
        assert stage.github.repository.issues == []

        # What was learnt is carried on by pushes, which add no row of their own.
        nights = len(history_in(stage.stored[-1]).nights)
        stage.commit()
        assert stage.push((), before=stage.upstream.git("rev-parse", "HEAD~1")).code == 0
        assert len(history_in(stage.stored[-1]).nights) == nights

        rewrite(stage.stored[-1], b'{"schemaVersion": 1, "nights": 3}')
        run = json.loads(stage.stored[0].files["zelda-results.json"])["runs"][0]
        enough_for_one = json.dumps({"budgetUsd": 1.5 * run["evaluations"]["efficiency"]["details"]["costUsd"]})
        as_dear: list[Reply] = [tool_call("Bash", {"command": "echo hello > elsewhere.txt"}), text("Done.")]
        done = stage.night(as_dear * 3, trials=enough_for_one, fail_on="never", nightly="quiet")
        assert done.code == 2, done.printed
        assert "INCOMPLETE" in done.printed
        assert trials_in(stage.stored[-1]) == 1
        assert "The history of the nights before goes on with 18 nights of an older artifact" in done.summary
        assert len(history_in(stage.stored[-1]).nights) == 19
