"""`zelda ci` for pull requests: which baseline they are compared with, what is said of them, how the check ends."""

import json
import re
from pathlib import Path
from typing import Any

from tests.scenarios.stage import BAD, GOOD, GREETING, Stage, results
from tests.support.judging import answer, verdict
from tests.support.scripted_api import ApiRequest, Reply


def test_the_first_push_becomes_the_baseline_of_the_next_pull_request(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        done = stage.push(GOOD)
        assert done.code == 0, done.printed
        assert done.outputs["verdict"] == "measured"
        assert "nothing to compare with yet" in done.summary
        (stored,) = stage.stored
        provenance = json.loads(stored.files["zelda-ci.json"])
        assert (provenance["sha"], provenance["complete"], provenance["event"]) == (stage.tip, True, "push")
        assert set(stored.files) == {"zelda-ci.json", "zelda-results.json", "zelda-pool.json", "junit.xml"}
        (transcripts,) = stage.transcripts
        assert transcripts.name == f"{stored.name}.transcripts"
        assert {name.rpartition("/")[2] for name in transcripts.files} >= {"result.json", "transcript.json", "test.log"}
        assert (done.outputs["artifact-id"], done.outputs["transcripts-artifact-id"]) == (
            str(stored.id),
            str(transcripts.id),
        )

        done = stage.pull_request(stage.open_pull(), GOOD)
        assert done.code == 0, done.printed
        assert done.outputs["baseline-sha"] == stage.tip
        assert done.outputs["verdict"] == "unchanged"
        # Looking for a baseline downloads no transcript.
        asked = stage.github.calls("GET */zip")
        assert asked
        assert not [call for call in asked if str(transcripts.id) in call]
        (body,) = stage.bodies()
        assert f"main@{stage.tip[:7]}" in body
        assert done.outputs["comment-url"].endswith(str(stage.github.repository.comments(7)[0].id))


def test_without_a_baseline_the_comment_says_so_and_the_gate_looks_at_the_run_alone(tmp_path: Path) -> None:
    """And what failed tests printed is in the log."""
    suite = GREETING.replace("test -f greeting.txt", "echo ::error::Nobody greets; exit 3")
    with Stage(tmp_path, {"zelda/test-greeting.yaml": suite}) as stage:
        done = stage.pull_request(stage.open_pull(), BAD)
        assert done.code == 1, done.printed
        assert done.outputs["verdict"] == "failed"
        assert "regressions" not in done.outputs
        assert "nothing to compare with yet" in stage.bodies()[0]
        lines = done.printed.splitlines()
        group = lines.index("::group::greeting, trial 1: testCommand ended with exit code 3.")
        assert "Nobody greets" in lines[group + 1]
        assert "runs/greeting-" in lines[group + 2]
        assert lines[group + 3] == "::endgroup::"


def test_a_baseline_from_a_file_needs_no_github(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        (stage.project.path / "main.json").write_bytes(stage.store(stage.tip).files["zelda-results.json"])
        done = stage.pull_request(stage.open_pull(), BAD, baseline="main.json", comment="off")
        assert done.code == 1, done.printed
        assert done.outputs["verdict"] == "regressed"
        assert not stage.github.calls("GET")
        assert not stage.bodies()


def other_suites(batch: dict[str, Any]) -> None:
    for run in batch["runs"]:
        run["suite"] = "farewell"


def test_chosen_suites_that_the_baseline_lacks_have_none_and_remove_nothing(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.store(stage.tip, content=results(100, other_suites))
        done = stage.pull_request(stage.open_pull(), GOOD, suites="greeting")
        assert done.code == 0, done.printed
        assert done.outputs["verdict"] == "measured"
        assert "are of other suites" in done.summary
        assert "farewell" not in done.summary
        assert "baseline-sha" not in done.outputs


def test_a_pull_request_that_makes_things_worse_is_red_and_marked_until_a_commit_changes_what_is_wrong(
    tmp_path: Path,
) -> None:
    """Where a comment is wanted only for failures, it appears with the first and still tells that they are gone."""
    with Stage(tmp_path) as stage:
        stage.store(stage.tip)
        pull = stage.open_pull()
        stage.pull_request(pull, GOOD, comment="failures")
        assert stage.bodies() == []

        run = stage.run_of(pull)
        done = stage.pull_request(pull, BAD, run=run, comment="failures")
        assert done.code == 1, done.printed
        assert (done.outputs["verdict"], done.outputs["regressions"]) == ("regressed", "1")
        assert "worse in 1 of 1 suite" in stage.bodies()[0]
        errors = [command for command in done.told("error") if command.properties.get("file")]
        # The line of the pull request that may have done it.
        assert {command.properties["file"] for command in errors} == {".claude/rules/greet.md"}
        head = f"https://github.com/octo/shop/blob/{pull.head_sha}"
        assert f"[.claude/rules/greet.md (from line 1)]({head}/.claude/rules/greet.md#L1)" in stage.bodies()[0]
        assert f"Tested [`{pull.head_sha[:7]}`]" in stage.bodies()[0]
        assert "Exit code 1" in done.printed

        run.attempt = 2
        lenient = stage.pull_request(pull, BAD, run=run, fail_on="never", comment="failures")
        assert lenient.code == 0, lenient.printed
        assert lenient.outputs["verdict"] == "regressed"

        stage.push_to(pull, {".claude/rules/greet.md": "Say hello, always.\n"})
        again = stage.pull_request(pull, GOOD, comment="failures")
        assert again.code == 0, again.printed
        (comment,) = stage.github.repository.comments(7)
        assert comment.edits == 2
        assert "no change found in 1 suite" in comment.body
        assert stage.stored[-1].files


JUDGED = (
    GREETING.replace("requirementFulfillment: false, ", "")
    + "acceptanceCriteria: [There is a greeting., It is kind.]\n"
)


def forgetful(request: ApiRequest) -> Reply:
    """A session that does its work, and a judge that says nothing of the second criterion."""
    if request.answer_tool and "acceptance criteria" in json.dumps(request.body):
        return answer(verdict(1, evidence=[{"where": "greeting.txt:1", "quote": "hello"}]))
    said: Reply = GOOD[sum(message["role"] == "assistant" for message in request.messages)]
    return said


def test_a_suite_that_nobody_judged_completely_is_never_green_and_stored_as_incomplete(tmp_path: Path) -> None:
    files = {"README.md": "# Shop\n", "zelda/test-greeting.yaml": JUDGED}
    with Stage(tmp_path, files) as stage:
        done = stage.pull_request(stage.open_pull(), forgetful, fail_on="never", junit_path="out/zelda.xml")
        assert (done.code, done.outputs["verdict"]) == (2, "incomplete"), done.printed
        assert "score" not in done.outputs
        (stored,) = stage.stored
        assert json.loads(stored.files["zelda-ci.json"])["complete"] is False
        (body,) = stage.bodies()
        assert "INCOMPLETE" in body
        assert "It is kind." in body
        assert any("could not be judged completely" in told.data for told in done.told("error"))
        junit = (stage.project.path / "out" / "zelda.xml").read_text()
        assert 'errors="2"' in junit


def test_the_report_is_a_page_of_its_own_to_which_the_comment_leads(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.store(stage.tip)
        service = stage.github.service
        for archives_only in (False, True):
            service.archives_only = archives_only
            pull = stage.open_pull(number=7 + archives_only)
            done = stage.pull_request(pull, BAD)
            assert done.code == 1, done.printed
            report = stage.reports[-1]
            assert done.outputs["report-artifact-id"] == str(report.id)
            if archives_only:
                assert (report.name, report.mime_type) == ("zelda-results.job.1.report", "application/zip")
                html = report.files["report.html"].decode()
            else:
                assert (report.name, report.mime_type) == ("zelda-results.job.1.report.html", "text/html")
                html = report.content.decode()
            assert "worse in 1 of 1 suite" in html
            (body,) = stage.bodies(pull.number)
            fragments = re.findall(rf"/artifacts/{report.id}#([\w-]+)", body)
            assert "suite-greeting" in fragments
            assert all(f'id="{fragment}"' in html for fragment in fragments)
