"""Nights on GitHub: one fills the pool, one opens the issue about drift, one rewrites it, one closes it."""

import json
from datetime import timedelta
from pathlib import Path

from tests.scenarios.stage import BAD, GOOD, Stage, replace
from tests.support.github_server import Artifact
from tests.support.scripted_api import Reply, text, tool_call
from zelda_ci.domain.nights import Night, NightlyHistory, Passes, SuiteNight
from zelda_ci.storage import codec

CHECK = "build and tests"


def history_in(artifact: Artifact) -> NightlyHistory:
    return codec.decode(NightlyHistory, artifact.files["history.json"], "history.json")


def trials_in(artifact: Artifact) -> int:
    return len(json.loads(artifact.files["zelda-results.json"])["runs"])


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
    replace(artifact, "history.json", codec.encode_within(history.replace(nights=tuple(nights)), 10**7))


AS_DEAR: list[Reply] = [tool_call("Bash", {"command": "echo hello > elsewhere.txt"}), text("Done.")]
"""A bad night that costs what a good one does."""


def test_a_drift_is_told_in_one_issue_until_it_is_over(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        issues = stage.github.repository.issues
        first = stage.night(GOOD * 3)
        assert first.code == 0, first.printed
        assert trials_in(stage.stored[-1]) == 3
        assert len(history_in(stage.stored[-1]).nights) == 1
        (run, *_) = json.loads(stage.stored[-1].files["zelda-results.json"])["runs"]
        for_one = json.dumps({"budgetUsd": 1.5 * run["evaluations"]["efficiency"]["details"]["costUsd"]})
        with_nights(stage.stored[-1], 12, days=-1)
        with_nights(stage.stored[-1], 4, days=1e-9, passed=0)

        silent = stage.night(BAD * 3, fail_on="never")
        assert silent.code == 0, silent.printed
        told = "The drift is told in no issue: the token may not write issues (permissions: issues: write"
        assert told in silent.summary
        assert "Drift (new): greeting, build and tests 39/39 → 0/15" in silent.summary
        assert issues == []

        # What was learnt is carried on by pushes, which add no row of their own.
        stage.commit()
        assert stage.push((), before=stage.upstream.git("rev-parse", "HEAD~1")).code == 0
        assert len(history_in(stage.stored[-1]).nights) == 18

        # The budget of the suites is kept at night, and a history that cannot be read is replaced by an older one.
        replace(stage.stored[-1], "history.json", b'{"schemaVersion": 1, "nights": 3}')
        stage.github.permissions["issues"] = "write"
        opened = stage.night(AS_DEAR, trials=for_one)
        assert opened.code == 2, opened.printed
        assert "INCOMPLETE" in opened.printed
        assert trials_in(stage.stored[-1]) == 1
        assert "The history of the nights before goes on with 18 nights of an older artifact" in opened.summary
        assert len(history_in(stage.stored[-1]).nights) == 19
        (issue,) = issues
        assert (issue.author, issue.state) == (stage.github.login, "open")
        assert issue.title.startswith("Zelda: greeting, build and tests 39/39 → 0/13 since 20")
        assert "Claude Code: " in issue.body

        # Whoever copies the mark gets nothing of it.
        forged = stage.github.repository.add_issue("Zelda: mine", issue.body, author="mallory")
        quoting = stage.github.repository.add_issue("Zelda: quoted", f"> {issue.body}", author=stage.github.login)

        updated = stage.night(AS_DEAR, trials=for_one)
        assert issues == [issue, forged, quoting]
        # The newest five nights are other ones now.
        assert "39/39 → 0/11" in issue.title, updated.printed
        assert "in the newest 5 nights" in issue.body
        assert (issue.state, issue.edits) == ("open", 1)
        assert "Drift (still)" in updated.summary

        with_nights(stage.stored[-1], 4, days=1e-9)
        closed = stage.night(GOOD, trials=for_one)
        assert (issue.state, issue.reason) == ("closed", "completed"), closed.printed
        assert "This is over" in issue.body
        assert (forged.edits, forged.state, quoting.edits, quoting.state) == (0, "open", 0, "open")
        assert history_in(stage.stored[-1]).drifts == ()
