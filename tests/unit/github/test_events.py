"""What each event asks for, from payloads as GitHub sends them, cut down to what is read."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.events import BASE, HEAD, MERGE, TIP, payload, variables
from zelda_ci.ci.conversation import pull_request_in
from zelda_ci.ci.event import BaselineTarget, Checkout, Decision, decide, decide_requested
from zelda_ci.ci.settings import Event, read_action_settings
from zelda_ci.errors import ConfigError

MERGED = Checkout(MERGE, (BASE, HEAD))
KEY = "sk-ant-fake-key"


def decided(
    name: str, event: dict[str, Any], checkout: Checkout | None = None, *, key: str = KEY, more: Any = (), **inputs: str
) -> Decision:
    given = {"INPUT_" + each.replace("_", "-").upper(): value for each, value in inputs.items()}
    environ = {**variables(name, event), **given, **dict(more), "INPUT_ANTHROPIC-API-KEY": key, "GITHUB_WORKSPACE": "/"}
    usual = MERGED if "pull_request" in name else Checkout(environ["GITHUB_SHA"], (BASE,))
    return decide(read_action_settings(environ, lambda _: json.dumps(event).encode()), checkout or usual)


def test_a_pull_request_is_compared_with_what_it_is_merged_into() -> None:
    found = decided("pull_request", payload("pull_request"))
    assert (found.activity, found.target) == ("run", BaselineTarget("main", BASE))
    assert (found.pull_request, found.head_sha) == (7, HEAD)
    assert f"main@{BASE[:7]}" in found.sentence
    found = decided("pull_request", payload("pull_request"), comment="off", baseline="none")
    assert (found.target, found.pull_request, "compared with nothing" in found.sentence) == (None, None, True)


@pytest.mark.parametrize("checkout", [Checkout(HEAD, (BASE,)), Checkout(), Checkout(MERGE, (BASE, TIP))])
def test_without_its_merge_commit_the_last_common_commit_is_asked_for(checkout: Checkout) -> None:
    event = payload("pull_request")
    assert decided("pull_request", event, checkout).target == BaselineTarget("main", head=HEAD)
    found = decided("pull_request", event, checkout, baseline_branch="release")
    assert found.target == BaselineTarget("release", head=HEAD)


def test_a_fork_with_a_key_or_a_recording_runs(tmp_path: Path) -> None:
    event = payload("pull_request", fork=True)
    assert decided("pull_request", event).activity == "run"
    assert decided("pull_request", event, key="", replay=str(tmp_path).lstrip("/")).activity == "run"


@pytest.mark.parametrize("name", ["push", "merge_group", "schedule", "workflow_dispatch"])
def test_where_a_key_is_expected_a_missing_one_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match="anthropic-api-key is empty") as caught:
        decided(name, payload(name), key="")
    assert caught.value.exit_code == 2


def test_what_a_pull_request_changes_is_told_before_a_missing_key_is() -> None:
    refusal = decided("pull_request", payload("pull_request"), key="").refusal
    assert refusal
    assert (refusal.code, refusal.exit_code) == ("API_KEY_MISSING", 2)


def test_what_has_no_key_to_expect_or_nothing_to_evaluate_is_green_and_explained() -> None:
    fork, gone = payload("pull_request", fork=True), payload("pull_request")
    gone["pull_request"]["head"]["repo"] = None
    closed = payload("pull_request") | {"action": "closed"}
    of_push = payload("workflow_run")
    of_push["workflow_run"]["event"] = "push"
    for name, event, actor, words in (
        ("pull_request", fork, "dev", "comes from a fork"),
        ("pull_request", gone, "dev", "comes from a fork"),
        ("pull_request", payload("pull_request"), "dependabot[bot]", "Dependabot"),
        ("pull_request", closed, "dev", ""),
        ("pull_request_target", closed, "dev", ""),
        ("push", payload("push") | {"deleted": True}, "dev", ""),
        ("workflow_run", of_push, "dev", ""),
    ):
        found = decided(name, event, key="", more={"GITHUB_ACTOR": actor}.items())
        assert (found.activity, words in found.sentence) == ("skip", True), found.sentence
        assert found.explain_forks is bool(words)


TOPIC = {"GITHUB_REF": "refs/heads/topic", "GITHUB_REF_NAME": "topic"}
TAG = {"GITHUB_REF": "refs/tags/main", "GITHUB_REF_NAME": "main", "GITHUB_REF_TYPE": "tag"}


@pytest.mark.parametrize(
    ("name", "event", "more", "target"),
    [
        ("push", {}, {}, BaselineTarget("main", BASE)),
        # The first of a branch, another branch, and a tag.
        ("push", {"before": "0" * 40}, {}, BaselineTarget("main", TIP)),
        ("push", {}, TOPIC, BaselineTarget("main", head=TIP)),
        ("push", {}, TAG, BaselineTarget("main", TIP)),
        # A merge queue with what it stands on, and the default branch on demand with itself before.
        ("merge_group", {}, {}, BaselineTarget("main", BASE)),
        ("schedule", {}, {}, BaselineTarget("main", TIP)),
        ("workflow_dispatch", {}, {}, BaselineTarget("main", TIP)),
        ("workflow_dispatch", {}, TOPIC, BaselineTarget("main", head=TIP)),
        ("workflow_dispatch", {}, TAG, BaselineTarget("main", TIP)),
    ],
)
def test_each_event_is_compared_with_what_it_follows(
    name: str, event: dict[str, Any], more: dict[str, str], target: BaselineTarget
) -> None:
    found = decided(name, payload(name) | event, more=more.items())
    assert (found.activity, found.target) == ("run", target)
    # Only a branch on demand has a pull request that it could be told to; what is a tag, or none of ours, no baseline.
    is_told = (name, more) == ("workflow_dispatch", TOPIC)
    assert (found.pull_request, found.pull_request_of) == (None, TIP if is_told else None)
    assert found.is_of_base is (more == {} and name != "merge_group")


def test_a_finished_workflow_of_a_pull_request_is_commented() -> None:
    found = decided("workflow_run", payload("workflow_run"), key="")
    assert (found.activity, found.head_sha) == ("comment", HEAD)


def test_to_comment_is_for_workflow_run_only() -> None:
    with pytest.raises(ConfigError, match="started by workflow_run"):
        decided("pull_request", payload("pull_request"), mode="comment")


@pytest.mark.parametrize(
    ("head", "words"), [(HEAD, "a stranger's code"), (None, "a stranger's code"), (TIP, "nothing of the pull request")]
)
def test_privileges_and_a_forks_code_never_meet(head: str | None, words: str) -> None:
    event = payload("pull_request", fork=True)
    with pytest.raises(ConfigError, match=words) as caught:
        decided("pull_request_target", event, Checkout(head))
    assert caught.value.code == "EVENT_REFUSED"


def test_an_unknown_event_runs_only_when_told_to_and_only_its_own_commit() -> None:
    with pytest.raises(ConfigError, match="does not know what issue_comment asks for"):
        decided("issue_comment", payload("push"))
    assert decided("issue_comment", payload("push"), Checkout(TIP, project=TIP), mode="run").activity == "run"
    strange = (Checkout(HEAD, project=HEAD), Checkout(TIP, project=HEAD), Checkout())
    for name, checkout in product(("issue_comment", "workflow_run"), strange):
        with pytest.raises(ConfigError, match="must not run with them"):
            decided(name, payload("workflow_run"), checkout, mode="run")


@pytest.mark.parametrize(
    ("name", "found", "line"),
    [
        ("pull_request", Checkout(BASE, project=BASE), "refs/pull/"),
        ("pull_request", Checkout(TIP, (BASE,), TIP), "refs/pull/"),
        # A merge of something else, and the head in a checkout beside another that holds the project.
        ("pull_request", Checkout(TIP, (BASE, TIP), TIP), "refs/pull/"),
        ("pull_request", Checkout(HEAD, (BASE,), TIP), "refs/pull/"),
        ("pull_request", Checkout(MERGE, (BASE, HEAD), TIP), "refs/pull/"),
        # What GITHUB_SHA says there.
        ("pull_request_target", Checkout(TIP, (BASE,), TIP), "refs/pull/"),
        ("pull_request_target", Checkout(BASE, (), BASE), "refs/pull/"),
        ("push", Checkout(HEAD, (BASE,), HEAD), "github.sha"),
        ("merge_group", Checkout(HEAD, (BASE,), HEAD), "github.sha"),
        ("schedule", Checkout(HEAD, (), HEAD), "github.sha"),
        ("workflow_dispatch", Checkout(HEAD, (), HEAD), "github.sha"),
    ],
)
def test_other_code_than_the_event_asks_for_is_refused_with_the_line_to_write(
    name: str, found: Checkout, line: str
) -> None:
    with pytest.raises(ConfigError, match="is checked out, but") as caught:
        decided(name, payload(name), found)
    assert (caught.value.code, caught.value.exit_code) == ("OTHER_COMMIT", 2)
    assert line in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pull_request", Checkout(MERGE, (BASE, HEAD), MERGE)),
        ("pull_request", Checkout(HEAD, (BASE,), HEAD)),
        ("pull_request", Checkout(TIP, (BASE, HEAD), TIP)),  # merged anew
        ("pull_request_target", Checkout(HEAD, (BASE,), HEAD)),
        ("pull_request_target", Checkout(TIP, (BASE, HEAD), TIP)),
        ("push", Checkout(TIP, (BASE,), TIP)),
        ("merge_group", Checkout(TIP, (), TIP)),
    ],
)
def test_what_the_event_asks_for_is_tested(name: str, found: Checkout) -> None:
    assert decided(name, payload(name), found).activity == "run"


def test_a_payload_that_lies_about_its_types_is_refused() -> None:
    for event in ({"pull_request": 7}, {"pull_request": {"number": True, "head": {"sha": []}}}, {}):
        with pytest.raises(ConfigError):
            decided("pull_request", event)
    with pytest.raises(ConfigError, match=r"cannot be used: before, head_commit\.id, repository\.id\."):
        decided("push", {"before": 7, "head_commit": {"id": {}}, "repository": {"id": []}})


@pytest.mark.parametrize(("mode", "activity"), [("auto", "converse"), ("run", "request")])
def test_a_command_in_a_new_comment_is_answered_or_run(mode: str, activity: str) -> None:
    found = decided("issue_comment", payload("issue_comment", body="/zelda rerun"), Checkout(), key="", mode=mode)
    assert (found.activity, found.pull_request) == (activity, 7)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"body": "I like /zelda rerun"}, "does not begin"),
        ({"body": "/zelda rerun", "action": "edited"}, "only new ones"),
        ({"body": "/zelda rerun", "login": "renovate[bot]"}, "A program wrote"),
        ({"body": "/zelda rerun", "issue": {"number": 7}}, "on an issue"),
        ({"body": "/zelda rerun", "comment": 1, "issue": None}, "on an issue"),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "run"])
def test_any_other_comment_is_green(changes: dict[str, Any], words: str, mode: str) -> None:
    found = decided("issue_comment", payload("issue_comment", **changes), Checkout(), key="", mode=mode)
    assert found.activity == "skip"
    assert words in found.sentence


def requested_run(checkout: Checkout, key: str = KEY, **inputs: str) -> Decision:
    """What is decided once GitHub has said which pull request it is."""
    event = {**payload("issue_comment"), "pull_request": payload("pull_request", fork=True)["pull_request"]}
    given = {"INPUT_" + name.upper(): value for name, value in inputs.items()}
    environ = {**variables("issue_comment", event), **given, "INPUT_ANTHROPIC-API-KEY": key, "GITHUB_WORKSPACE": "/"}
    return decide_requested(read_action_settings(environ, lambda _: json.dumps(event).encode()), checkout)


def test_a_requested_commit_is_compared_like_that_of_any_pull_request() -> None:
    found = requested_run(Checkout(HEAD, (BASE,), HEAD))
    assert (found.activity, found.pull_request, found.head_sha, found.base) == ("run", 7, HEAD, BASE)
    assert found.target == BaselineTarget("main", head=HEAD)
    assert not found.is_of_base
    assert requested_run(Checkout(HEAD, (BASE,), HEAD), comment="off").pull_request is None


@pytest.mark.parametrize(
    "checkout",
    [
        Checkout(),
        Checkout(TIP, (BASE,), TIP),
        # The merge of it, at which who asked has not looked.
        Checkout(MERGE, (BASE, HEAD), MERGE),
        Checkout(TIP, (HEAD,), TIP),
        # The head beside a project of something else.
        Checkout(HEAD, (BASE,), TIP),
    ],
)
def test_anything_but_the_requested_commit_is_refused(checkout: Checkout) -> None:
    with pytest.raises(ConfigError) as caught:
        requested_run(checkout)
    assert caught.value.code == "OTHER_COMMIT"


def test_a_requested_run_needs_a_key() -> None:
    with pytest.raises(ConfigError) as caught:
        requested_run(Checkout(HEAD, (BASE,), HEAD), key="")
    assert caught.value.code == "API_KEY_MISSING"


@pytest.mark.parametrize(
    ("event", "head_ref", "pull"),
    [
        ("pull_request", "", 7),
        ("merge_group", "", 7),
        ("merge_group", "refs/heads/mine/gh-readonly-queue/main/pr-8-" + HEAD, None),
        ("merge_group", "refs/heads/gh-readonly-queue/main/pr-8-x", None),
        ("push", "", None),
        ("issue_comment", "", None),
    ],
)
def test_acceptances_count_for_the_pull_request_of_the_event(event: str, head_ref: str, pull: int | None) -> None:
    made = payload(event)
    if head_ref:
        made["merge_group"]["head_ref"] = head_ref
    assert pull_request_in(Event.model_validate(made)) == pull
