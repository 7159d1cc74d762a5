"""`zelda check`, and the same before a run: what is wrong is said before anything is spent, and said once."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import KEY, after, ended, environment, gone, results, run, started
from tests.support.history import store
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, http_error, raw, text

COUNTED = "python3 -c \"import os,sys;open(os.environ['TALLY'],'a').write(sys.argv[1]+'\\\\n')\" "
OWN = "execution: {env: [TALLY]}\nisolation: {level: none}\n"


def suite(**keys: str) -> str:
    return "prompt: Look around.\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items())


def project_with(tmp_path: Path, **suites: str) -> Project:
    return repository(tmp_path, {"README.md": "#\n", **{f"zelda/test-{name}.yaml": suites[name] for name in suites}})


def zelda(project: Project, *arguments: str, api: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return run(arguments, project.path, environment(project, api, **{"ZELDA_NO_CHECK": "", **more}))


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)["checks"]
    return found


def test_everything_is_tried_once_however_many_suites_need_it_and_a_second_run_pays_nothing(tmp_path: Path) -> None:
    """Until the commit, the configuration or the credential is another; setup and tests of sessions count as well."""
    setup, tests = f"{COUNTED}setup", f"{COUNTED}test"
    same = suite(setupCommand=setup, testCommand=tests) + OWN
    project = project_with(tmp_path, one=same, two=same, three=same, never=suite(testCommand="false"))
    tally = tmp_path / "tally"
    shutil.rmtree(project.results)

    def tried(*arguments: str, code: int = 0, **more: str) -> tuple[list[str], int, subprocess.CompletedProcess[str]]:
        tally.write_text("")
        before = len(api.checks)
        done = zelda(project, *arguments, api=api.url, TALLY=str(tally), **more)
        assert done.returncode == code, done.stdout + done.stderr
        return tally.read_text().split(), len(api.checks) - before, done

    def before_a_run(**more: str) -> tuple[list[str], int]:
        """What is tried before sessions that never begin, since the tests of one suite fail."""
        return tried("run", "one", "never", code=2, **more)[:2]

    with ScriptedApi(lambda _: text("Done.")) as api:
        commands, requests, done = tried("check", "one", "two", "three", "--json")
        assert (commands, requests) == (["setup", "test"], 1)
        found = {row["subject"]: row for row in rows(done)}
        assert list(found) == ["git", "disk", "isolation", "model", "setupCommand", "testCommand"]
        assert found["model"]["costUsd"] > 0
        assert found["testCommand"]["suites"] == ["one", "three", "two"]
        assert found["testCommand"]["seconds"] > 0
        assert gone(project)
        assert not results(project)
        # Git passes over the folder of results, also where nobody has told it to.
        assert (project.results / ".gitignore").read_text() == "*\n"
        # A session runs setup twice and the tests once, and nothing is left to check.
        assert tried("run", "one")[:2] == (["setup", "setup", "test"], 0)
        assert before_a_run(ANTHROPIC_API_KEY="sk-ant-fake-another-one") == ([], 1)
        project.write({"README.md": "# Other\n"})
        project.commit()
        assert before_a_run() == (["setup", "test"], 0)
        assert before_a_run(PATH=f"{os.environ['PATH']}:/nowhere") == (["setup", "test"], 0)
        # Made while the clock was ahead: nobody knows how long ago.
        for file in (project.results / "checks").iterdir():
            os.utime(file, (4_000_000_000, 4_000_000_000))
        assert before_a_run() == (["setup", "test"], 1)


MISSING = {
    "buildCommand": ("./build.sh", "Permission denied"),
    "testCommand": ("make test", "no-such-runner is missing"),
}


def test_a_program_that_is_not_there_ends_a_run_before_it_begins(tmp_path: Path) -> None:
    project = project_with(tmp_path, **{f"of-{key}": suite(**{key: command}) for key, (command, _) in MISSING.items()})
    project.write({"build.sh": "#!/bin/sh\n", "Makefile": "test:\n\tno-such-runner --all\n"})
    project.commit()
    with ScriptedApi([]) as api:
        done = zelda(project, "run", api=api.url)
        table = zelda(project, "check", api=api.url, COLUMNS="4000")
    assert (done.returncode, table.returncode) == (2, 2)
    assert done.stderr.count("cannot be run") == len(MISSING)
    for output in (done.stderr, table.stdout):
        for key, (command, why) in MISSING.items():
            place = f"zelda/test-of-{key}.yaml:2"
            assert f"{place}: {key}" in output or f"{place}\n    {key}" in output
            assert command in output
            assert why in output
        assert f"PATH in the run: {os.environ['PATH'].split(':')[-1]}" in output or "PATH in the run: /" in output
    assert "Nothing was run and nothing spent." in done.stderr
    assert not results(project)
    assert gone(project)


def test_tests_that_fail_already_are_paid_for_only_where_that_is_wanted(tmp_path: Path) -> None:
    """A broken suite keeps no other from being checked or run."""
    project = project_with(tmp_path, red=suite(testCommand="echo one; echo boom; exit 3"), bad="promt: typo\n")
    with ScriptedApi([text("Done.")]) as api:
        refused = zelda(project, "run", "red", api=api.url)
        assert not api.requests
        done = zelda(project, "run", "red", "--yes", api=api.url)
    assert refused.returncode == 2
    assert "zelda/test-red.yaml:2: on the tested commit, before any session: testCommand ended with" in refused.stderr
    assert "boom" in refused.stderr
    assert "run all the same with --yes. Nothing was run and nothing spent." in refused.stderr
    assert done.returncode == 1
    assert "zelda/test-red.yaml:2: on the tested commit, before any session: testCommand ended with" in done.stdout
    # What was printed keeps its lines.
    assert {"one", "boom"} <= {line.strip() for line in done.stdout.splitlines()[:8]}
    assert len(results(project)) == 1
    for each in (refused, done):
        assert "left out, since it is broken: zelda/test-bad.yaml:1:1" in " ".join((each.stdout + each.stderr).split())


REFUSALS = {
    404: ("model: nope", "The model does not exist, or the key has no access to it."),
    400: ("Your credit balance is too low", "The API refused the request for billing reasons."),
}


@pytest.mark.parametrize("status", REFUSALS)
def test_an_api_that_refuses_is_one_error_before_anything_is_made(tmp_path: Path, status: int) -> None:
    said, meaning = REFUSALS[status]
    project = project_with(tmp_path, **{f"s{number}": suite(setupCommand="exit 1") for number in range(5)})
    with ScriptedApi([], check=http_error(status, f"{said} {KEY}")) as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == 2
    assert len(api.checks) == 1
    assert f"model claude-sonnet-5-5: {meaning} HTTP {status}: {said}" in done.stderr
    assert KEY not in done.stderr
    # What costs time is not tried where it is clear that nothing can be run.
    assert "setupCommand" not in done.stdout + done.stderr
    assert not results(project)


HANGS_UP, CUT = raw(b"", length=100), raw(b'{"type": "message", "content"', length=500)


def test_an_api_that_gives_no_answer_at_first_is_asked_again_as_a_session_would(tmp_path: Path) -> None:
    project = project_with(tmp_path, one=suite())
    with ScriptedApi([], check=[HANGS_UP, CUT, text("!")]) as api:
        done = zelda(project, "check", api=api.url, COLUMNS="4000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(api.checks) == 3
    said = " ".join((done.stdout + done.stderr).split())
    assert said.count(f"model claude-sonnet-5-5: {api.url} broke off its answer; asking again") == 2
    with ScriptedApi([], check=HANGS_UP) as api:
        done = zelda(project, "run", api=api.url)
    assert (done.returncode, len(api.checks)) == (2, 3)
    assert f"{api.url} broke off its answer (asked 3 times)." in done.stderr


def test_what_answers_and_is_no_model_is_an_error(tmp_path: Path) -> None:
    """The page of a login, for instance, before the network lets anybody through; a shell that is not there."""
    project = project_with(tmp_path, one=suite(testCommand="true", shell="fish -c"))
    with ScriptedApi([], check=raw(b"<html>Log in first</html>")) as api:
        done = zelda(project, "check", "--json", api=api.url, PATH="/usr/bin:/bin")
    model, workspace = rows(done)[-2:]
    assert (done.returncode, model["status"], workspace["status"]) == (2, "failed", "failed")
    expected = f"{api.url} does not answer as the Messages API does: <html>Log in first</html>."
    assert model["message"] == expected
    assert workspace["origin"] == "zelda/test-one.yaml:3"
    assert "fish is not on PATH" in workspace["message"]


def test_the_judge_is_asked_where_it_answers_and_each_model_once(tmp_path: Path) -> None:
    judged = suite(judgeModel="claude-opus-5-5") + "acceptanceCriteria: [It is done.]\n"
    project = project_with(tmp_path, one=judged, two=judged)
    with ScriptedApi([]) as api, ScriptedApi([], check=http_error(401, "bad portkey key")) as gateway:
        done = zelda(
            project, "check", "--json", api=api.url, PORTKEY_API_KEY="pk-fake-1234", PORTKEY_GATEWAY_URL=gateway.url
        )
    assert [request.body["model"] for request in api.checks] == ["claude-sonnet-5-5"]
    assert [request.body["model"] for request in gateway.checks] == ["claude-opus-5-5"]
    assert gateway.checks[0].headers["x-portkey-api-key"] == "pk-fake-1234"
    assert done.returncode == 2
    assert [(row["subject"], row["status"]) for row in rows(done)][-2:] == [("model", "passed"), ("judge", "failed")]


def test_without_a_credential_the_rest_is_checked_all_the_same(tmp_path: Path) -> None:
    project = project_with(tmp_path, one=suite(testCommand="true"))
    done = zelda(project, "check", "--json")
    found = {row["subject"]: row for row in rows(done)}
    assert done.returncode == 2
    assert found["model"]["message"] == "ANTHROPIC_API_KEY is not set, and a session needs it."
    assert found["testCommand"]["status"] == "passed"


def test_the_next_check_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    project = project_with(tmp_path, one=suite(setupCommand="touch started; sleep 600"))

    def begun() -> set[Path]:
        return set(project.base.glob("*/runs/*/checked/ws/started"))

    with ScriptedApi([]) as api, started(project, "check", api=api.url, ZELDA_NO_CHECK="") as process:
        after(lambda: bool(begun()))
        os.kill(process.pid, signal.SIGKILL)
        ended(process)
    left = begun()
    assert left
    with ScriptedApi([]) as api, started(project, "check", api=api.url, ZELDA_NO_CHECK="") as process:
        after(lambda: bool(begun() - left))
        assert not begun() & left
        os.killpg(process.pid, signal.SIGINT)
        ended(process)
    assert gone(project)


def test_a_judge_that_refuses_is_told_before_anything_is_judged_again(tmp_path: Path) -> None:
    project = project_with(tmp_path, one=suite())
    store(project.results, "one", acceptanceCriteria=["It is done."])
    before = results(project)
    with ScriptedApi([], check=http_error(401, "invalid x-api-key")) as api:
        done = zelda(project, "rejudge", "latest", "--judge-model", "claude-opus-5-5", api=api.url)
    assert [request.body["model"] for request in api.checks] == ["claude-opus-5-5"]
    assert not api.requests
    assert done.returncode == 2
    expected = "judge claude-opus-5-5: The API refused the key (401). HTTP 401: invalid x-api-key."
    assert expected in " ".join(done.stderr.split())
    assert "--no-check" in done.stderr
    assert results(project) == before
    # Another suite that is broken by now is none of its business.
    project.write({"zelda/test-bad.yaml": "promt: typo\n"})
    with ScriptedApi([http_error(401, "invalid x-api-key")]) as api:
        unchecked = zelda(project, "rejudge", before[0]["batchId"], "--no-check", api=api.url)
    assert (len(api.checks), len(api.requests)) == (0, 1)
    assert unchecked.returncode == 2
