"""Commands in the comments of a pull request: what they do, for whom, and what attackers get out of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_run_against import GREETS, SILENT, model
from tests.integration.test_run_against import SUITE as AGAINST
from tests.scenarios.stage import GOOD, Done, Stage
from tests.support.github_clients import api_of
from tests.support.github_html import ACTS, page
from tests.support.github_server import Comment, Pull, Run, answered, lose_answer
from zelda_ci.ci.conversation import RECORD, AcceptanceRecord, read_acceptances, record_name, reply_key, words_of
from zelda_ci.domain.comparison import Acceptance
from zelda_ci.github.kept_text import CommentOrder, sealed

# What must pass is red without any base.
SUITE = AGAINST.replace("acceptanceCriteria", "mustPass")
FILES: dict[str, str | bytes] = {"CLAUDE.md": GREETS, "zelda/test-greeting.yaml": SUITE}
ACCEPT = "/zelda accept greeting because the greeting moved into the template"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path, FILES) as stage:
        stage.github.repository.roles = {"maintainer": "write", "owner": "admin", "triager": "triage"}
        yield stage


def red(stage: Stage, pull: Pull, **inputs: Any) -> Done:
    """The check of a pull request whose session does not greet any more."""
    run = stage.run_of(pull)
    done = stage.pull_request(pull, model, run=run, **inputs)
    run.conclusion = "failure" if done.code else "success"
    return done


def again(stage: Stage, pull: Pull, **inputs: Any) -> Done:
    """The next attempt of the newest run of the pull request's workflow."""
    run = [each for each in stage.github.repository.runs if each.event == "pull_request"][-1]
    run.status, run.conclusion = "in_progress", None
    done = stage.pull_request(pull, model, run=run, **inputs)
    run.status, run.conclusion = "completed", "failure" if done.code else "success"
    return done


def last(stage: Stage) -> Comment:
    return stage.github.repository.comments(7)[-1]


def replies(stage: Stage) -> list[str]:
    return [body for body in stage.bodies() if "id=reply-" in body.partition("\n")[0]]


def acting(markdown: str) -> list[str]:
    """What GitHub would make a mention or a link of, although it is no link of ours."""
    return [text for text in page(markdown).texts if ACTS.search(text)]


def reruns(stage: Stage) -> list[str]:
    return [how for run in stage.github.repository.runs for how in run.repeated]


# --- rerun -----------------------------------------------------------------------------------------------------------


def test_rerun_runs_the_failed_jobs_of_the_newest_run_again(stage: Stage) -> None:
    pull = stage.open_pull()
    older = stage.run_of(pull, conclusion="failure")
    newest = stage.run_of(pull, conclusion="failure", event="pull_request_target")
    stage.run_of(pull, conclusion="failure", workflow="other.yml")
    done = stage.comment(pull, "/zelda rerun")
    assert done.code == 0, done.printed
    assert (older.repeated, newest.repeated, newest.attempt) == ([], ["rerun-failed-jobs"], 2)
    asked, reply = stage.github.repository.comments(7)
    assert asked.reactions == ["eyes", "+1"]
    assert f"actions/runs/{newest.id}" in reply.body
    assert done.outputs["comment-url"].endswith(str(reply.id))

    done = stage.comment(pull, "/zelda rerun", login="owner")
    assert "not ended yet" in last(stage).body
    assert newest.repeated == ["rerun-failed-jobs"]


def test_rerun_of_a_green_run_runs_all_of_it_and_without_one_says_so(stage: Stage) -> None:
    pull = stage.open_pull()
    stage.comment(pull, "/zelda rerun")
    assert "has no run for the newest commit" in last(stage).body
    run = stage.run_of(pull)
    stage.comment(pull, "/zelda rerun")
    assert run.repeated == ["rerun"]
    waiting = stage.run_of(pull, conclusion="action_required")
    stage.comment(pull, "/zelda rerun")
    assert "approval" in last(stage).body
    assert not waiting.repeated
    stage.comment(pull, "/zelda rerun", workflow="ci.yaml")
    assert "has no run" in last(stage).body


def test_two_who_ask_for_a_rerun_at_once_are_not_told_of_permissions(stage: Stage) -> None:
    pull = stage.open_pull()
    stage.run_of(pull, conclusion="failure")
    # Another answer has been quicker since the run was looked up.
    stage.github.script_failures([answered(403, {"message": "This workflow is already running"}, on="POST */rerun*")])
    assert stage.comment(pull, "/zelda rerun").code == 0
    assert "could not be run again: This workflow is already running" in last(stage).body
    assert "permissions" not in last(stage).body


# --- who may ---------------------------------------------------------------------------------------------------------


def test_whoever_may_not_write_gets_a_polite_no(stage: Stage) -> None:
    pull, login = stage.open_pull(fork=True), "triager"
    run = stage.run_of(pull, conclusion="failure")
    commands = ("/zelda rerun", ACCEPT, f"/zelda run {pull.head_sha}", "/zelda nonsense", "/zelda help")
    for command in commands:
        done = stage.comment(pull, command, login=login, changes={"author_association": "OWNER"})
        assert done.code == 0, done.printed
        assert "run-commit" not in done.outputs
    assert not run.repeated
    # Of a flood, some are answered, and the rest gets a reaction.
    assert len(replies(stage)) == 3
    assert all("only people who may write" in body for body in replies(stage))
    asked = [comment for comment in stage.github.repository.comments(7) if comment.author == login]
    assert [comment.reactions for comment in asked] == [["confused"]] * 5
    stage.comment(pull, "/zelda rerun")
    assert run.repeated


def test_programs_are_not_answered_zelda_itself_among_them(stage: Stage) -> None:
    pull = stage.open_pull()
    for login in ("dependabot[bot]", stage.github.login):
        assert stage.comment(pull, "/zelda help", login=login).code == 0
    # Nor is what is no command.
    done = stage.comment(pull, "> /zelda rerun")
    assert (done.code, done.outputs["verdict"]) == (0, "skipped"), done.printed
    assert not stage.github.requests


# --- edits, replays, troubles ----------------------------------------------------------------------------------------


def test_a_comment_that_was_edited_or_deleted_before_it_was_read_is_no_command(stage: Stage) -> None:
    pull = stage.open_pull()
    run = stage.run_of(pull, conclusion="failure")
    comment = stage.github.repository.add_comment(7, "/zelda rerun", author="maintainer")
    # Somebody with write access has put words into the mouth of another.
    done = stage.answer(pull, comment, said="/zelda help")
    assert "edited or deleted" in done.printed
    stage.github.repository.comments(7).remove(comment)
    done = stage.answer(pull, comment)
    assert (done.code, "edited or deleted" in done.printed) == (0, True)
    assert not run.repeated
    assert not replies(stage)


def test_a_command_is_carried_out_once(stage: Stage) -> None:
    pull = stage.open_pull()
    run = stage.run_of(pull)
    comment = stage.github.repository.add_comment(7, "/zelda rerun", author="maintainer")
    stage.github.script_failures([lose_answer(on="POST *comments")])
    for _ in range(3):
        assert stage.answer(pull, comment).code == 0
        run.status, run.conclusion = "completed", "success"
    assert run.repeated == ["rerun"]
    assert len(replies(stage)) == 1


def test_where_permission_cannot_be_asked_for_nothing_is_done(stage: Stage) -> None:
    pull = stage.open_pull()
    run = stage.run_of(pull, conclusion="failure")
    stage.github.script_failures([answered(403, on="GET *collaborators*")])
    done = stage.comment(pull, "/zelda rerun")
    assert done.code != 0
    assert not run.repeated
    stage.github.script_failures([answered(404, on="GET *collaborators*")])
    assert stage.comment(pull, "/zelda rerun").code == 0
    assert "only people who may write" in last(stage).body
    assert not run.repeated


def test_a_command_that_fails_on_its_way_is_answered_too(stage: Stage) -> None:
    pull = stage.open_pull()
    run = stage.run_of(pull, conclusion="failure")
    for command, what in (
        ("/zelda rerun", "GET *actions/workflows/*"),
        (f"/zelda run {pull.head_sha}", "GET *pulls/7"),
        (ACCEPT, "GET *actions/runs/*"),
    ):
        stage.github.script_failures([answered(451, {"message": "Blocked @octo/team"}, on=what)])
        done = stage.comment(pull, command)
        if command != ACCEPT:  # it does without a run that cannot be read
            assert done.code == 2, done.printed
            assert stage.github.repository.comments(7)[-2].reactions == ["eyes", "confused"]
            assert "answered with 451" in last(stage).body
            assert f"actions/runs/{stage.github.repository.runs[-1].id}" in last(stage).body
        assert "Nothing was done" in last(stage).body
        assert acting(last(stage).body.split("\n", 2)[2]) == []
    assert not run.repeated


def test_nothing_runs_again_before_the_answer_stands_there(stage: Stage) -> None:
    pull = stage.open_pull()
    run = stage.run_of(pull)
    comment = stage.github.repository.add_comment(7, "/zelda rerun", author="maintainer")
    stage.github.script_failures([answered(403, on="POST *issues/*/comments")])
    assert stage.answer(pull, comment).code == 2
    assert not run.repeated
    # Its job is run again.
    assert stage.answer(pull, comment).code == 0
    assert run.repeated == ["rerun"]

    run.status, run.conclusion = "completed", "success"
    stage.github.script_failures([answered(502, on="POST */rerun")])
    assert stage.comment(pull, "/zelda rerun").code == 0
    assert "could not be run again" in last(stage).body
    assert len(replies(stage)) == 3


# --- run -------------------------------------------------------------------------------------------------------------


def test_a_push_between_look_and_command_is_not_run(stage: Stage) -> None:
    pull = stage.open_pull(fork=True)
    looked_at = pull.head_sha
    stage.push_to(pull, {"evil.sh": "id\n"})
    done = stage.comment(pull, f"/zelda run {looked_at}")
    assert "run-commit" not in done.outputs
    assert "not the newest" in last(stage).body
    # And one with the same first digits is none.
    done = stage.comment(pull, f"/zelda run {pull.head_sha[:12]}")
    assert "run-commit" not in done.outputs


def test_a_push_between_command_and_run_is_not_run(stage: Stage) -> None:
    pull = stage.open_pull(fork=True)
    stage.comment(pull, f"/zelda run {pull.head_sha}")
    asked = stage.github.repository.comments(7)[0]
    named = pull.head_sha
    stage.push_to(pull, {"evil.sh": "id\n"})
    # Whatever is checked out: the merge commit of the newer head, the newer head, or the one that was named.
    for commit in (pull.merge_commit_sha or "", pull.head_sha, named):
        stage.check_out(commit, "refs/remotes/pull/7/head")
        done = stage.run_requested(pull, asked, GOOD)
        assert done.code == 2, done.printed
        assert "not (any more) the newest" in done.told("error")[0].data
    assert len(stage.bodies()) == 2
    # Nor is anything else than the very commit: its merge, and the base. Who waits for the result is told.
    stage.comment(pull, f"/zelda run {pull.head_sha}")
    asked = stage.github.repository.comments(7)[-2]
    for commit in (pull.merge_commit_sha or "", stage.tip):
        stage.check_out(commit, "refs/remotes/pull/7/head")
        done = stage.run_requested(pull, asked, GOOD)
        assert done.code == 2, done.printed
        assert "but the comment asks for" in done.told("error")[0].data
        assert "but the comment asks for" in last(stage).body


def test_a_run_that_is_not_wanted_any_more_does_not_begin(stage: Stage) -> None:
    """Hours may lie between the comment and the approval of the job."""
    pull = stage.open_pull(fork=True)
    stage.check_out(pull.head_sha, "refs/remotes/pull/7/head")
    roles, comment = stage.github.repository.roles, f"/zelda run {pull.head_sha}"
    asked = stage.github.repository.add_comment(7, comment, author="maintainer")
    roles["maintainer"] = "read"
    assert "may not write" in stage.run_requested(pull, asked).told("error")[0].data
    roles["maintainer"] = "maintain"
    pull.state = "closed"
    assert stage.run_requested(pull, asked).code == 2
    pull.state = "open"
    stage.github.repository.comments(7).remove(asked)
    assert "edited or deleted" in stage.run_requested(pull, asked).told("error")[0].data
    by_author = stage.github.repository.add_comment(7, comment, author="mallory")
    assert "may not write" in stage.run_requested(pull, by_author).told("error")[0].data
    help_only = stage.github.repository.add_comment(7, "/zelda help", author="maintainer")
    done = stage.run_requested(pull, help_only)
    assert (done.code, done.outputs["verdict"]) == (0, "skipped")


def test_some_suites_run_beside_the_check_in_a_comment_of_their_own(stage: Stage) -> None:
    pull = stage.open_pull({"CLAUDE.md": SILENT})
    assert red(stage, pull).code == 1
    (whole,) = stage.bodies()
    done = stage.comment(pull, "/zelda rerun greeting")
    assert done.outputs["run-commit"] == pull.head_sha
    assert "do not change the check" in last(stage).body
    assert not reruns(stage)
    asked = stage.github.repository.comments(7)[-2]
    stage.check_out(pull.head_sha, "refs/remotes/pull/7/head")
    assert stage.run_requested(pull, asked, model).code == 1
    assert stage.bodies()[0] == whole
    assert "greeting" in last(stage).body
    # On a fork, the author could push between the comment and the run.
    pull.head_repository = stage.fork
    done = stage.comment(pull, "/zelda rerun greeting")
    assert "run-commit" not in done.outputs
    assert "all of its digits" in last(stage).body


# --- accept ----------------------------------------------------------------------------------------------------------


def test_an_accepted_criterion_turns_the_check_green_where_it_failed_and_is_in_the_artifact(stage: Stage) -> None:
    pull = stage.open_pull({"CLAUDE.md": SILENT})
    stage.comment(pull, ACCEPT)
    assert "no stored results" in last(stage).body
    assert red(stage, pull).code == 1
    for target, words in (("greeting#2", "does not fail"), ("other", "no stored")):
        stage.comment(pull, f"/zelda accept {target} because I want to")
        assert words in last(stage).body
    assert not reruns(stage)
    done = stage.comment(pull, ACCEPT + "\nwith @octo/team")
    assert done.code == 0, done.printed
    assert reruns(stage) == ["rerun-failed-jobs"]
    shown = last(stage).body.split("\n", 2)[2]
    assert "It greets." in shown
    assert "It is polite." not in shown
    assert acting(shown) == []

    # It survives a push.
    stage.push_to(pull, {"NEWS.md": "more\n"})
    done = red(stage, pull)
    assert done.code == 0, done.printed
    assert "accepted by maintainer" in done.printed
    origin = json.loads(stage.stored[-1].files["zelda-ci.json"])
    (accepted,) = origin["accepted"]
    assert accepted["acceptance"]["by"] == "maintainer"
    assert accepted["acceptance"]["criterion"] == "It greets."
    assert accepted["acceptance"]["because"] == "the greeting moved into the template with @octo/team"
    assert accepted["reason"]["criterion"] == "It greets."

    # It holds for the text of the criterion and for nothing else.
    stage.push_to(pull, {"zelda/test-greeting.yaml": SUITE.replace("It greets.", "It greets everybody.")})
    assert red(stage, pull).code == 1


def accepted(stage: Stage) -> set[str]:
    """The criteria whose acceptance holds at this moment."""
    return {each.criterion for each in read_acceptances(api_of(stage.github), 7)}


def answer_of(run: Run, asked: Comment) -> str:
    """What a reply of Zelda's says if a run of its has accepted something."""
    return sealed(reply_key(asked.id), CommentOrder(run.id, 1, ""), "Accepted.")


def accepting(stage: Stage, asked: Comment, *criteria: str, event: str = "issue_comment", **other: Any) -> Run:
    """A run that has stored what a comment accepts; `other` are its words, or fields of the artifact."""
    run = stage.github.repository.add_run(stage.tip, event=event)
    words = other.pop("words", words_of(asked.body))
    told: dict[str, Any] = {"suite": "greeting", "by": "maintainer", "because": "it moved", "at": asked.created_at}
    accepted = tuple(Acceptance(criterion=each, **told) for each in criteria)
    record = AcceptanceRecord(words=words, accepted=accepted).model_dump_json(by_alias=True)
    name = other.pop("name", record_name(asked.id, 1))
    stage.github.repository.add_artifact(name, {RECORD: record.encode()}, run=run, **other)
    return run


def test_a_forged_record_counts_for_nothing(stage: Stage) -> None:
    """In anybody's comment, for somebody without rights, in artifacts of other runs, or what forks have had posted."""
    pull = stage.open_pull({"CLAUDE.md": SILENT})
    repository, zelda, both = stage.github.repository, stage.github.login, ("It greets.", "It is polite.")
    asked = repository.add_comment(7, ACCEPT, author="maintainer")
    own = repository.add_comment(7, ACCEPT, author="mallory")
    real = accepting(stage, asked, "It greets.")
    repository.add_comment(7, answer_of(real, asked), author="mallory")
    # In comments of Zelda's author, as other workflows of the repository write them.
    repository.add_comment(7, answer_of(accepting(stage, own, *both), own), author=zelda)
    forged = [
        # The run of a pull request stores what its author wants.
        accepting(stage, asked, *both, event="pull_request"),
        accepting(stage, asked, *both, name=record_name(own.id, 1)),
        accepting(stage, asked, *both, words="0" * 64),
        accepting(stage, asked, *both, digest="sha256:" + "0" * 64),
        accepting(stage, asked, *both, expired=True),
        repository.add_run(stage.tip, event="issue_comment"),
        Run("a" * 40, "main", "issue_comment", repository, repository),
    ]
    for run in forged:
        repository.add_comment(7, answer_of(run, asked), author=zelda)
    repository.add_comment(7, f"\n{answer_of(real, asked)}", author=zelda)
    repository.add_comment(7, answer_of(real, asked), author=zelda, edits=1)
    repository.add_comment(7, answer_of(real, asked), author=zelda, minimized="SPAM")
    assert not accepted(stage)
    # What they all lack is there now, and beside them only that counts.
    repository.add_comment(7, answer_of(real, asked), author=zelda)
    assert accepted(stage) == {"It greets."}
    assert red(stage, pull).code == 0


def test_an_acceptance_is_taken_back(stage: Stage) -> None:
    """By an edit or the removal of the comment or the reply, and with the rights; unread, it counts for nothing."""
    pull = stage.open_pull({"CLAUDE.md": SILENT})
    red(stage, pull)
    stage.comment(pull, ACCEPT)
    repository = stage.github.repository
    asked, reply = repository.comments(7)[-2:]
    stage.github.script_failures([answered(401, on="POST /graphql")])
    done = again(stage, pull)
    assert (done.code, "counts for nothing" in done.summary) == (1, True), done.printed
    # Each is undone before the next.
    reply.minimized = "OUTDATED"
    assert not accepted(stage)
    reply.minimized, repository.roles["maintainer"] = None, "read"
    assert not accepted(stage)
    repository.roles["maintainer"] = "write"
    assert accepted(stage)
    reply.edit(reply.body)
    assert not accepted(stage)
    reply.edits = 0
    asked.edit(ACCEPT + ", and more")
    assert not accepted(stage)
    asked.body, asked.edits = ACCEPT, 0
    repository.comments(7).remove(asked)
    assert not accepted(stage)


def test_a_forks_commit_is_run_where_a_maintainer_names_it_and_only_that_can_be_accepted(stage: Stage) -> None:
    pull = stage.open_pull({"CLAUDE.md": SILENT}, fork=True)
    stage.of_fork(pull)
    stage.comment(pull, ACCEPT)
    assert "whose author chooses" in last(stage).body
    stage.comment(pull, "/zelda run")
    assert f"`/zelda run {pull.head_sha}`" in last(stage).body
    assert f"/pull/7/files/{pull.head_sha}" in last(stage).body.replace("\u200b", "")

    done = stage.comment(pull, f"/zelda run {pull.head_sha}")
    assert done.outputs["run-commit"] == pull.head_sha
    asked = stage.github.repository.comments(7)[-2]
    stage.check_out(done.outputs["run-commit"], "refs/remotes/pull/7/head")
    done = stage.run_requested(pull, asked, model)
    assert done.code == 1, done.printed
    body = last(stage).body
    assert f"head={pull.head_sha}" in body
    assert "greeting" in body
    origin = json.loads(stage.stored[-1].files["zelda-ci.json"])
    assert (origin["event"], origin["pullRequest"], origin["headSha"]) == ("issue_comment", 7, pull.head_sha)
    assert origin["sha"] == pull.head_sha

    # What a maintainer has had run counts.
    stage.comment(pull, ACCEPT)
    assert "It greets." in last(stage).body
    again_asked = stage.github.repository.add_comment(7, f"/zelda run {pull.head_sha}", author="maintainer")
    assert stage.run_requested(pull, again_asked, model).code == 0
