"""`zelda run --against`: two commits side by side, as often as a verdict needs, within a budget."""

import html
import json
import os
import re
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.command import ended, gone, processes, results, started, zelda
from tests.support.judging import answer, verdict
from tests.support.projects import Project, repository, wait_until
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, hang, text, tool_call

SUITE = """\
prompt: Greet.
acceptanceCriteria: [It greets., It is polite.]
metrics: {toolUsage: false, efficiency: true}
"""
GREETS, SILENT, NO_SKILLS = "Always say hello.\n", "Be brief.\n", "Never use any skill."
# The fewest trials that can prove a regression of one criterion.
FEW = '{"first": 2, "looks": [4]}'
# The fewest that show a second look, which proves nothing.
FEWEST = '{"first": 1, "looks": [2]}'


def model(request: ApiRequest) -> Reply:
    """A session that greets where CLAUDE.md asks for it, or a skill that it may use; and a judge who looks."""
    body = json.dumps(request.body)
    if request.answer_tool:
        greeted = [{"where": "note.txt:2", "quote": "hello"}] if "+hello" in body else []
        polite = verdict(2, "PASS", [{"where": "note.txt:1", "quote": "please"}])
        return answer(verdict(1, "PASS" if greeted else "FAIL", greeted), polite)
    said = [message for message in request.messages if message["role"] == "assistant"]
    if "note.txt" in json.dumps(said):
        return text("Done.")
    if "How to greet" in body and NO_SKILLS not in body and not said:
        return tool_call("Skill", {"skill": "greeting"})
    return notes("hello" if said or "Always say hello" in body else "nothing")


def notes(word: str) -> Reply:
    return tool_call("Bash", {"command": f"printf 'please\\n{word}\\n' > note.txt"})


def greets_nobody(request: ApiRequest) -> Reply:
    """Today's model: it greets nobody, whatever it is told."""
    is_later = request.answer_tool or any(message["role"] == "assistant" for message in request.messages)
    return model(request) if is_later else notes("nothing")


def cost_of(run: dict[str, Any]) -> float:
    models = [*run["api"]["models"].values(), *run["judge"]["models"].values()]
    return float(sum(model["costUsd"] for model in models))


def project_of(tmp_path: Path, base: str, head: str, **files: str) -> Project:
    project = repository(tmp_path, {"CLAUDE.md": base, "zelda/test-greeting.yaml": SUITE, **files})
    project.write({"CLAUDE.md": head})
    project.commit()
    return project


def stuck_after(project: Project, runs: int) -> Any:
    """The model, whose sessions hang once so many runs are stored."""

    def stuck(request: ApiRequest) -> Reply:
        later = len(results(project)) >= runs and not request.answer_tool
        return hang() if later else model(request)

    return stuck


def against(project: Project, *arguments: str, ref: str = "HEAD~1", script: Any = model) -> tuple[int, str, Any]:
    """Exit code, output and, of a run with --json, the batch; nothing of the developer's has changed."""
    before = project.fingerprint()
    with ScriptedApi(script) as api:
        done = zelda(project, "run", "--against", ref, *arguments, api=api.url)
    assert project.fingerprint() == before
    assert gone(project)
    batch = json.loads(done.stdout) if "--json" in arguments else None
    return done.returncode, done.stdout + done.stderr, batch


def test_an_innocent_change_is_done_after_the_first_trials_of_the_head(tmp_path: Path) -> None:
    project = project_of(tmp_path, GREETS, GREETS + "Be kind.\n")
    code, output, batch = against(project, "--json", "--jobs", "3")
    assert code == 0, output
    assert [(run["trial"], run["look"], run["side"]) for run in batch["runs"]] == [(n, 1, "head") for n in (1, 2, 3)]
    assert batch["baseRuns"] == []
    changed = [{"path": "CLAUDE.md", "line": 2, "isGone": False}]
    assert batch["base"] == {"wanted": "HEAD~1", "commit": project.git("rev-parse", "HEAD~1"), "changed": changed}
    assert re.search(r"Changed +CLAUDE\.md \(from line 2\)\n", zelda(project, "show").stdout)
    assert batch["arms"] == [
        {"suite": "greeting", "head": 3, "base": 0, "reason": "asExpected", "unpaid": 0, "trials": "adaptive"}
    ]


def test_a_regression_is_confirmed_side_by_side(tmp_path: Path) -> None:
    project = project_of(tmp_path, GREETS, SILENT)
    code, output, _ = against(project, "--jobs", "4", "--trials", FEW)
    assert code == 1, output
    stored = results(project)
    sides = Counter(run["side"] for run in stored)
    assert sides["head"] == sides["base"] == 4
    commits = {side: {run["source"]["commit"] for run in stored if run["side"] == side} for side in sides}
    assert commits == {"head": {project.git("rev-parse", "HEAD")}, "base": {project.git("rev-parse", "HEAD~1")}}
    assert re.search(r"Changed +CLAUDE\.md \(from line 1\)\n", output)
    why = "“It greets.” failed in 2 of 2: 2 of the head and 4 of the base more, side by side (round 2 of at most 2)"
    assert why in output
    assert "4 + 4 trials: a regression is proven" in output
    assert "worse in 1 of 1 suite" in output
    # Side by side: the base did not wait until the head was through.
    later = sorted((run for run in stored if run["look"] == 2), key=lambda run: run["startedAt"])
    assert {run["side"] for run in later[:4]} == {"head", "base"}

    # Whoever looks again sees the same comparison, and all that it cost.
    compared, shown = zelda(project, "compare"), zelda(project, "show")
    assert (compared.returncode, shown.returncode) == (1, 0), shown.stdout + shown.stderr
    for done in (compared, shown):
        assert re.search(r"Changed +CLAUDE\.md \(from line 1\)\n", done.stdout)
        assert "worse in 1 of 1 suite" in done.stdout
        assert "greeting, worse" in done.stdout
        assert "4 sessions per suite here, 4 on the base, side by side" in " ".join(done.stdout.split())
    assert re.search(rf"Cost +\${sum(map(cost_of, stored)):.4f} ", shown.stdout)
    assert json.loads(zelda(project, "compare", "--json").stdout)["suites"][0]["verdict"] == "regressed"
    assert zelda(project, "report").returncode == 0
    page = html.unescape((project.results / "report.html").read_text())
    assert "Changed files that steer Claude Code: CLAUDE.md (from line 1)." in page
    (kept,) = project.results.glob("comparisons/*")
    assert zelda(project, "prune", "--before", "0m", "--keep", "0", "--yes").returncode == 0
    assert not kept.exists()


def test_files_are_compared_as_they_are_and_never_with_themselves(tmp_path: Path) -> None:
    project = repository(tmp_path, {"CLAUDE.md": GREETS, "zelda/test-greeting.yaml": SUITE})
    older = "name an older commit, as in `zelda run --against HEAD~1`"
    # Suites are no files that a session sees.
    project.write({"zelda/test-greeting.yaml": SUITE.replace("Greet.", "Greet!"), "zelda/test-new.yaml": SUITE})
    for more in ((), ("--commit",)):
        code, output, _ = against(project, *more, ref="HEAD")
        assert (code, older in output) == (2, True), output
    project.write({"CLAUDE.md": SILENT, "notes.txt": "not committed\n"})
    code, output, _ = against(project, "--commit", ref="HEAD")
    assert (code, "`zelda run --against HEAD` without --commit compares your files as they are" in output) == (2, True)
    assert not results(project)

    order = ("greeting", "--trials", "1", "--json", "--jobs", "2")
    reports = [tmp_path / name for name in ("a.html", "a.json", "a.xml")]
    options = ("--report=", "--reporter=json=", "--reporter=junit=")
    written = [f"{option}{report}" for option, report in zip(options, reports, strict=True)]
    code, output, batch = against(project, *order, *written, ref="HEAD")
    assert code == 0, output
    head = project.git("rev-parse", "HEAD")
    assert {run["source"]["parent"] for run in batch["runs"]} == {head}
    assert {run["source"]["commit"] for run in batch["baseRuns"]} == {head}
    page, commit = html.unescape(reports[0].read_text()), f"commit {head[:7]}"
    assert f"<title>project: Zelda: report on the working tree on {commit} (main)</title>" in page
    assert f"Tested: the working tree on {commit} (main), 20" in page
    assert "Changed files that steer Claude Code: CLAUDE.md (from line 1)." in page
    # Zelda's own reports are no files of the project: a session would read what it is judged by.
    for report in reports:
        shutil.copy(report, project.path)
    code, output, again = against(project, *order, ref="HEAD")
    assert (code, again["runs"], again["baseRuns"]) == (0, [], []), output
    for report in reports:
        (project.path / report.name).unlink()
    # Once committed they are the same files: what is stored counts.
    project.commit()
    code, output, batch = against(project, *order)
    assert (code, batch["runs"], batch["baseRuns"]) == (0, [], []), output


def test_suites_and_settings_are_those_of_the_head_on_both_sides(tmp_path: Path) -> None:
    """A suite that the head adds runs on both, and a prompt that it changes is that of both.

    The comparison is shown also where it cannot be stored.
    """
    project = repository(tmp_path, {"CLAUDE.md": GREETS, "zelda/test-old.yaml": SUITE})
    project.write({"CLAUDE.md": SILENT, "zelda/test-greeting.yaml": SUITE})
    project.write({"zelda/test-old.yaml": SUITE.replace("Greet.", "Greet us.")})
    project.commit()
    (project.results / "comparisons").write_text("in the way")
    code, output, batch = against(project, "--json", "--jobs", "4", "--trials", "1")
    assert code == 0, output
    assert "warning: no later command can show this comparison again: " in output
    both = [*batch["runs"], *batch["baseRuns"]]
    assert Counter((run["suite"], run["side"]) for run in both) == {
        (suite, side): 1 for suite in ("greeting", "old") for side in ("head", "base")
    }
    assert {run["config"]["prompt"] for run in both if run["suite"] == "old"} == {"Greet us."}


def test_a_base_that_is_not_there_stops_everything_before_it_costs(tmp_path: Path) -> None:
    project = repository(tmp_path, {"CLAUDE.md": GREETS, "zelda/test-greeting.yaml": SUITE})
    with ScriptedApi([]) as api:
        for ref, more in (("HEAD~7", ("--dry-run",)), ("--all", ())):
            done = zelda(project, "run", f"--against={ref}", *more, api=api.url)
            assert (done.returncode, "There is no commit" in done.stderr) == (2, True), done.stderr
        done = zelda(project, "run", "--budget-usd", "nan", "--dry-run")
        assert (done.returncode, "Invalid value for '--budget-usd'" in done.stderr) == (2, True), done.stderr
    assert not api.requests
    assert not results(project)


def test_a_dry_run_says_the_most_that_it_could_cost_and_a_budget_that_ends_is_kept(tmp_path: Path) -> None:
    files = {f"zelda/test-more-{number}.yaml": SUITE for number in (1, 2)}
    files["zelda/test-later.yaml"] = f"skip: Not now.\n{SUITE}"
    project = project_of(tmp_path, GREETS, GREETS + "Be kind.\n", **files)
    with ScriptedApi(model) as api:
        first = zelda(project, "run", "greeting", "--trials", "1", api=api.url)
        asked = len(api.requests)
        done = zelda(project, "run", "--against", "HEAD~1", "--dry-run", api=api.url)
        assert len(api.requests) == asked
    assert first.returncode == 0, first.stderr
    assert "Plan: 1 session; what they cost is not known before the first" in first.stdout
    assert done.returncode == 0, done.stderr
    assert "later is skipped: Not now." in done.stderr
    assert "Plan: 8 to at most 143 sessions, about $" in done.stdout
    assert "by 1 stored trial" in done.stdout
    assert "Without a stored trial, so not in these sums: more-1, more-2" in done.stdout
    (run,) = results(project)

    price = cost_of(run)
    code, output, batch = against(project, "--budget-usd", f"{price * 1.5:.6f}", "--trials", FEWEST, "--json")
    assert code == 2, output
    assert len(batch["runs"]) == 1
    assert sum(map(cost_of, batch["runs"])) <= price * 1.5
    arms = {each["suite"]: each for each in batch["arms"]}
    assert [each["reason"] for each in arms.values()].count("budget") == 1
    assert sum(each["unpaid"] for each in arms.values()) == 1
    assert "the budget ended before the first session, and 1 more session was wanted" in output


def test_an_interruption_loses_nothing_of_either_side(tmp_path: Path) -> None:
    project = project_of(tmp_path, GREETS, SILENT)

    with (
        ScriptedApi(stuck_after(project, 1)) as api,
        started(project, "run", "--against", "HEAD~1", "--jobs", "2", "--trials", FEWEST, api=api.url) as zelda_,
    ):
        wait_until(lambda: len([*project.results.glob("runs/greeting-*")]) >= 3)
        os.killpg(zelda_.pid, signal.SIGTERM)
        code, output = ended(zelda_)
    assert code == 130, output
    sides = Counter((run["side"], run["status"]) for run in results(project))
    assert sides["head", "completed"] == 1
    assert sides["base", "interrupted"] + sides["head", "interrupted"] == 2
    assert (
        "stopped after 3 sessions: not compared; run the same command again, it keeps the finished sessions" in output
    )
    assert gone(project)


def test_after_a_kill_amid_a_look_the_same_question_goes_on_with_the_same_plan(tmp_path: Path) -> None:
    """What is stored counts on the side that it ran on: no trial is made twice, and no look is added."""
    project = project_of(tmp_path, GREETS, SILENT)

    with (
        ScriptedApi(stuck_after(project, 2)) as api,
        started(project, "run", "--against", "HEAD~1", "--jobs", "2", "--trials", FEWEST, api=api.url) as zelda_,
    ):
        wait_until(lambda: len([*project.results.glob("runs/greeting-*")]) >= 4)
        os.kill(zelda_.pid, signal.SIGKILL)
        ended(zelda_)
    # A git that outlives its Zelda keeps the run's lock until it is done.
    wait_until(lambda: not processes(project))
    stored = results(project)
    before, known = Counter((run["side"], run["look"]) for run in stored), {run["runId"] for run in stored}
    assert before["head", 1] == 1
    assert 0 < before["head", 2] + before["base", 2] < 3

    code, output, batch = against(project, "--json", "--jobs", "2", "--trials", FEWEST)
    # One that was killed while it was judged is found whole, and does not count.
    counted = [run for run in results(project) if run["runId"] in known or run["batchId"] == batch["batchId"]]
    sides = Counter((run["side"], run["look"]) for run in counted if run["status"] == "completed")
    assert sides == {("head", 1): 1, ("head", 2): 1, ("base", 2): 2}
    assert len(batch["runs"]) + len(batch["baseRuns"]) == 4 - before.total()
    # A comparison never goes without one that it counted.
    file = project.results / "runs" / next(run["runId"] for run in stored if run["look"] == 1) / "result.json"
    file.rename(file.with_suffix(".away"))
    assert f"rests on a run that cannot be read: {file}" in zelda(project, "show", batch["batchId"]).stderr
    file.with_suffix(".away").rename(file)
    # Asked once more, all is known.
    again, output, batch = against(project, "--json", "--trials", FEWEST)
    assert (again, batch["runs"], batch["baseRuns"]) == (code, [], []), output


def test_a_comparison_that_needed_one_more_session_of_the_base_is_shown_whole(tmp_path: Path) -> None:
    project = project_of(tmp_path, GREETS, SILENT)
    code, _, whole = against(project, "--json", "--trials", FEW, "--jobs", "4")
    counted = "4 sessions per suite here, 4 on the base, side by side"
    assert (code, len(whole["baseRuns"])) == (1, 4)
    shutil.rmtree(project.results / "runs" / whole["baseRuns"][0]["runId"])
    code, _, batch = against(project, "--json", "--trials", FEW)
    (run,) = batch["baseRuns"]
    assert (code, batch["runs"]) == (1, [])
    for command in (["compare"], ["show"], ["show", batch["batchId"]]):
        shown = zelda(project, *command).stdout
        assert ("greeting, worse" in shown, counted in " ".join(shown.split())) == (True, True), shown
    assert json.loads(zelda(project, "show", "--json").stdout)["baseRuns"] == [run]
    assert json.loads(zelda(project, "show", "--json", run["runId"]).stdout) == run
    assert zelda(project, "report", batch["batchId"]).returncode == 0
    assert "Changed files that steer Claude Code" in (project.results / "report.html").read_text()
    assert "“It greets.”" in zelda(project, "why", batch["batchId"]).stdout
    # Its session is none of the head for anybody.
    (tmp_path / "batch.json").write_text(json.dumps(batch))
    sides = whole["batchId"], batch["batchId"]
    for command in (
        ["compare", *sides],
        ["compare", whole["batchId"], "latest~1"],
        ["report", f"{tmp_path}/batch.json"],
    ):
        assert re.search("holds no run of the head|There is no latest~1", zelda(project, *command).stderr)
    assert re.search(rf"{run['runId']} +greeting +base 1 ", zelda(project, "list").stdout)
    assert "trial 1 of the base" in zelda(project, "show", run["runId"]).stdout
    with ScriptedApi(model) as api:
        judged = json.loads(zelda(project, "rejudge", *sides, "--json", api=api.url).stdout)
    assert [len(judged[side]) for side in ("runs", "baseRuns")] == [4, 4]
    assert "Removed 0 runs" in zelda(project, "prune", "--before", "0m", "--yes").stdout


def test_a_comparison_that_needed_no_session_is_the_newest_all_the_same(tmp_path: Path) -> None:
    project = project_of(tmp_path, GREETS, SILENT)
    first = against(project, "--json", "--trials", FEW, "--jobs", "4")[2]
    project.write({"CLAUDE.md": GREETS})
    with ScriptedApi(model) as api:
        assert zelda(project, "run", api=api.url).returncode == 0
    project.write({"CLAUDE.md": SILENT})
    code, _, batch = against(project, "--json", "--trials", FEW)
    assert (code, batch["runs"], batch["baseRuns"]) == (1, [], [])
    for command in (["compare"], ["show"], ["show", batch["batchId"][:-1]], ["show", first["batchId"]]):
        assert "greeting, worse" in zelda(project, *command).stdout
    assert zelda(project, "report").returncode == 0
    assert "Changed files that steer Claude Code" in (project.results / "report.html").read_text()
    assert "“It greets.”" in zelda(project, "why").stdout
    assert "has no single transcript" in zelda(project, "show", "--patch").stderr
    assert "made no run of its own" in zelda(project, "rejudge", batch["batchId"], "--no-check").stderr
    assert zelda(project, "prune", "--before", "0m", "--yes").stdout.startswith("Removed 0 runs")
    # A foreign file is none, nor is one of which a run was removed by hand: the newest run is shown.
    (project.results / "comparisons/zzz.json").write_text("{}")
    assert "greeting, worse" in zelda(project, "show").stdout
    shutil.rmtree(project.results / "runs" / first["runs"][0]["runId"])
    assert "PASS" in zelda(project, "show").stdout
    for kept in project.results.glob("comparisons/*"):
        kept.write_text("{}")
    assert "would be removed" in zelda(project, "prune", "--before", "0m").stdout


def test_watch_runs_again_after_a_save_against_the_last_commit_until_it_is_interrupted(tmp_path: Path) -> None:
    other = SUITE.replace("Greet.", "Work.")
    project = repository(tmp_path, {"CLAUDE.md": SILENT, "zelda/test-greeting.yaml": SUITE})
    project.write({"zelda/test-other.yaml": f"skip: Not now.\n{other}", "CLAUDE.md": GREETS})
    with (
        ScriptedApi(model) as api,
        started(project, "run", "--watch", "--trials", "1", "--jobs", "2", api=api.url) as zelda_,
    ):
        wait_until(lambda: len([*project.results.glob("runs/*/result.json")]) == 2)
        sides = Counter((run["suite"], run["side"]) for run in results(project))
        assert sides == {("greeting", "head"): 1, ("greeting", "base"): 1}
        project.write({"CLAUDE.md": f"{GREETS}Be kind.\n"})
        wait_until(lambda: len([*project.results.glob("runs/*/result.json")]) >= 3)
        os.killpg(zelda_.pid, signal.SIGINT)
        code, output = ended(zelda_)
    assert code == 130, output
    assert re.search(r"Watching \d+ files\.[^\n]*\nChanged: CLAUDE\.md\n", output)
    assert "skipped: Not now." in output
