"""What a scheduled run does with its trials: further rounds, a row of the history, and one issue that is kept."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.github_clients import api_of
from tests.support.github_html import ACTS, page
from tests.support.github_server import GitHubServer
from tests.unit.compare.nights import history_of, night
from tests.unit.compare.runs import fulfillment, run
from zelda_ci.ci.context import CiResult
from zelda_ci.ci.evaluate import is_nightly, keep_watch
from zelda_ci.ci.settings import Event
from zelda_ci.ci.stored import Evidence
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import BatchResult, Fingerprint, RunResult

PLATFORM = {"cli": "2.1.329", "models": "claude-sonnet-5-5"}
CHECK = "criterion 1"
ORIGIN = BaselineOrigin(state=BaselineState.FOUND, sentence="found")
HOSTILE = "](https://evil.example) @octocat `x` <img src=x> #1\n::error::no"


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.permissions["issues"] = "write"
        yield server


class Log:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def report(self, severity: str, text: str, *, title: str) -> None:
        self.said.append(f"{severity} {title}: {text}")


def case_of(github: GitHubServer | None = None, *, when: str = "watch", event: str = "schedule") -> Any:
    context = SimpleNamespace(event_name=event, url_of=lambda run_id: f"https://github.com/o/r/actions/runs/{run_id}")
    context.run_id, context.workflow = 7, ".github/workflows/zelda.yml"
    settings = SimpleNamespace(nightly=when, context=context, compare=True, baseline=None, comment_id="", event=Event())
    return SimpleNamespace(
        settings=settings,
        identity=SimpleNamespace(job="zelda"),
        decision=SimpleNamespace(is_of_base=True, activity="run"),
        github=api_of(github) if github else None,
        log=Log(),
    )


def trial(letters: str, *, number: int = 1, suite: str = "s", names: Sequence[str] | None = None) -> RunResult:
    state = Fingerprint(outcome="state", platform="x", tree="code", parts=PLATFORM)
    made = run([fulfillment(letters, names)], suite=suite, run_id=f"{suite}-{number}", at=10**6 + number)
    return made.replace(fingerprint=state, trial=number, batch_id="tonight")


def batch(*runs: RunResult) -> BatchResult:
    moment: datetime = run().started_at
    return BatchResult(batch_id="tonight", started_at=moment, finished_at=moment, planned=len(runs), runs=runs)


def before(*, suite: str = "s", check: str = CHECK) -> NightlyHistory:
    """Twelve good nights, and four bad ones in which nothing is proven yet."""
    return history_of(
        [
            night(number, {suite: {check: (3 if number < 12 else 0, 3)}}, platform=PLATFORM, tree="code").replace(
                run=100 + number
            )
            for number in range(16)
        ]
    )


def watched(
    case: Any, runs: Sequence[RunResult], stored: NightlyHistory, damage: str = "", origin: BaselineOrigin = ORIGIN
) -> CiResult:
    result = CiResult(case, batch(*runs), Evidence(origin=origin, nights=stored, damage=damage))
    keep_watch(result)
    return result


def fallen(case: Any) -> CiResult:
    return watched(case, [trial("F", number=number) for number in (1, 2, 3)], before())


def test_only_scheduled_runs_that_may_compare_are_nights() -> None:
    assert is_nightly(case_of())
    assert not is_nightly(case_of(event="workflow_dispatch"))
    assert not is_nightly(case_of(when="off"))
    other = case_of()
    other.decision.is_of_base = False
    assert not is_nightly(other)


def test_the_same_night_again_writes_nothing(github: GitHubServer) -> None:
    case = case_of(github)
    first = fallen(case)
    # A job that is run again has the history before its own night.
    fallen(case)
    (issue,) = github.repository.issues
    assert issue.title == "Zelda: s, criterion 1 36/36 → 0/15 since 2026-03-13"
    assert "- Claude Code: 2.1.329, unchanged" in issue.body
    assert "0/15 · in the newest 5 nights of these files" in issue.body
    for run_id in (112, 113, 114, 115, 7):
        assert f"(https://github.com/o/r/actions/runs/{run_id})" in issue.body
    assert issue.edits == 0
    assert first.evidence.nights.drifts[0].issue == issue.number


def test_an_issue_that_somebody_closed_stays_closed(github: GitHubServer) -> None:
    case = case_of(github)
    first = fallen(case)
    github.repository.issues[0].state = "closed"
    second = watched(case, [trial("F", number=4).replace(batch_id="next")], first.evidence.nights)
    assert [each.accepted for each in second.evidence.nights.drifts] == [True]
    assert len(github.repository.issues) == 1
    third = watched(case, [trial("F", number=5).replace(batch_id="third")], second.evidence.nights)
    assert third.notes == []
    assert github.repository.issues[0].edits == 0


@pytest.mark.parametrize("state", [BaselineState.UNREACHABLE, BaselineState.NOT_PERMITTED, BaselineState.INVALID])
def test_an_issue_stays_open_while_its_history_cannot_be_read(github: GitHubServer, state: BaselineState) -> None:
    case = case_of(github)
    first = fallen(case)
    origin = BaselineOrigin(state=state, sentence="GitHub is away.")
    watched(case, [trial("F", number=4).replace(batch_id="next")], NightlyHistory(), origin=origin)
    (issue,) = github.repository.issues
    assert (issue.state, issue.edits) == ("open", 0)
    # Otherwise the next night would take it for closed by somebody, and be silent.
    third = watched(case, [trial("F", number=5).replace(batch_id="third")], first.evidence.nights)
    assert [drift.accepted for drift in third.evidence.nights.drifts] == [False]


def test_names_and_versions_are_nobodys_markup(github: GitHubServer) -> None:
    stored = before(suite=HOSTILE, check=HOSTILE)
    runs = [trial("F", number=number, suite=HOSTILE, names=[HOSTILE]) for number in (1, 2, 3)]
    new = {**PLATFORM, "cli": HOSTILE}
    runs = [each.replace(fingerprint=Fingerprint(outcome="state", platform="y", tree="z", parts=new)) for each in runs]
    watched(case_of(github), runs, stored)
    (issue,) = github.repository.issues
    for text in ("@octocat", "#1", "::error", "`x`"):
        assert text not in issue.title
    assert "\n::" not in issue.body
    shown = page(issue.body)
    # What stands in code is neither a mention nor a link.
    assert [text for text in shown.texts if ACTS.search(text)] == []
    assert not [tag for tag, _ in shown.tags if tag == "img"]
    assert not [found["href"] for tag, found in shown.tags if tag == "a" and "evil" in str(found["href"])]
    assert len(issue.title) <= 256
    assert "\n" not in issue.title
