"""`zelda why` and `zelda run --without`, end to end: the real CLI, real commits, a scripted model."""

import json
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_context_command import SERVER
from tests.integration.test_run_against import FEW, NO_SKILLS, SUITE, cost_of, greets_nobody, model
from tests.support.command import ended, gone, results, started, zelda
from tests.support.projects import Project, repository, wait_until
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, hang, text, tool_call
from tests.support.scripted_replies import Tokens
from tests.support.steered import head

SKILL = "---\nname: greeting\ndescription: How to greet.\n---\nGreet with hello.\n"
RULES = "# Rules\n\nGreet politely.\n\nKeep to the code.\n\nUse short names.\n"
OTHER = "claude-haiku-4-5"
# Three hunks: one of them makes the model skip its skill.
CHANGED = (
    "# Rules of this project\n\nGreet politely.\n\nKeep to the code.\n" + NO_SKILLS + "\n\nUse short names.\nTest it.\n"
)
FILES = {"CLAUDE.md": RULES, ".claude/skills/greeting/SKILL.md": SKILL, "zelda/test-greeting.yaml": SUITE}


def project_of(tmp_path: Path, **changed: str) -> Project:
    project = repository(tmp_path, FILES)
    project.write(changed or {"CLAUDE.md": CHANGED})
    project.commit()
    return project


def command(project: Project, *arguments: str, script: Any = model) -> tuple[int, str, str]:
    with ScriptedApi(script) as api:
        done = zelda(project, *arguments, api=api.url)
    assert gone(project)
    return done.returncode, done.stdout, done.stderr


def compared(project: Project, *options: str, script: Any = model) -> None:
    asked = ("--against", "HEAD~1", "--trials", FEW, "--jobs", "4", *options)
    code, output, errors = command(project, "run", *asked, script=script)
    assert code == 1, output + errors


def test_the_hunk_that_did_it_is_named_and_confirmed(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    compared(project)
    code, output, errors = command(project, "why")
    assert code == 0, output + errors
    assert "Most likely CLAUDE.md, line 6 (9" in output
    assert "With it as it was: 6 of 6." in output
    assert "none of them" in output
    (file,) = (project.results / "attributions").iterdir()
    stored = json.loads(file.read_text())
    assert (stored["verdict"], len(stored["units"]), stored["suspicions"][0]["unit"]) == ("named", 3, 1)
    # What ran with parts taken back is no part of the history, and no side of a comparison.
    variants = [run["variant"] for run in results(project) if "variant" in run]
    assert "with CLAUDE.md, line 6 as before" in variants
    assert json.loads(zelda(project, "compare", "--json").stdout)["suites"][0]["verdict"] == "regressed"
    # Later commands about the comparison have the answer.
    assert "Most likely CLAUDE.md, line 6 (9" in zelda(project, "compare").stdout
    assert "Most likely CLAUDE.md, line 6 (9" in zelda(project, "compare", "--markdown").stdout
    page = zelda(project, "report", "latest", "-o", "page.html")
    assert page.returncode == 0, page.stderr
    assert "With CLAUDE.md, line 6 as before: " in (project.path / "page.html").read_text()

    # One that is damaged, or names units that it has not, is passed over.
    stored["suspicions"][0]["unit"] = 3
    (file.parent / "made-up.json").write_text(json.dumps(stored))
    (file.parent / "torn.json").write_text("{")
    assert "Most likely CLAUDE.md, line 6 (9" in zelda(project, "compare").stdout

    # Where the cause lies elsewhere, nobody is named.
    shutil.rmtree(file.parent)
    code, output, _ = command(project, "why", "--json", script=greets_nobody)
    assert (code, json.loads(output)["verdict"]) == (0, "none"), output
    (kept,) = (project.results / "comparisons").iterdir()
    kept.write_text("{")
    assert "is damaged" in zelda(project, "show", kept.stem).stderr


def test_a_search_that_its_budget_cuts_goes_on_where_it_ended(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    compared(project)
    price = max(map(cost_of, results(project)))
    code, output, errors = command(project, "why", "--budget-usd", f"{price * 4.05:.6f}")
    first = results(project)
    paid = sum("variant" in run for run in first)
    assert (code, f"Not decided after {paid} sessions: CLAUDE.md, line" in output) == (2, True), output + errors
    assert "More money may tell, up to 60 sessions in all." in output
    # Without any money nothing is lost, and the comparison says how far it came.
    code, again, errors = command(project, "why", "--budget-usd", "0.0001", script=[])
    answer_ = output[output.index("greeting: \u201c") :]
    assert (code, again.endswith(answer_)) == (2, True), again + errors
    assert f"Not decided after {paid} sessions" in zelda(project, "compare").stdout

    # A kill loses no round that is over: here one of five sessions.
    reached = list[ApiRequest]()

    def stuck(request: ApiRequest) -> Reply:
        if len(results(project)) < len(first) + 5 or request.answer_tool:
            return model(request)
        reached.append(request)
        return hang()

    with ScriptedApi(stuck) as api, started(project, "why", "--budget-usd", "5", api=api.url) as zelda_:
        wait_until(lambda: bool(reached))
        os.kill(zelda_.pid, signal.SIGKILL)
        ended(zelda_)
    code, output, errors = command(project, "why", "--json", "--budget-usd", "5")
    assert code == 0, output + errors
    found = json.loads(output)
    assert (found["verdict"], found["suspicions"][0]["unit"]) == ("named", 1)
    sessions = sum(each["sessions"] for each in found["rounds"])
    searched = [run for run in results(project) if "variant" in run and run["status"] == "completed"]
    assert sessions == len(searched)
    assert found["costUsd"] == pytest.approx(sum(map(cost_of, searched)))
    # What is known needs no session.
    before = results(project)
    code, output, errors = command(project, "why")
    assert (code, f"{sessions} sessions" in output) == (0, True), output + errors
    assert results(project) == before


@pytest.mark.parametrize(
    ("subject", "usual", "more"),
    [
        ("costUsd", Tokens(output=300), Tokens(output=60_000)),
        # Read from the cache they cost less than a few that are written.
        ("tokens", Tokens(output=3000), Tokens(output=300, cache_read=60_000)),
    ],
)
def test_lines_that_make_sessions_dearer_are_named(tmp_path: Path, subject: str, usual: Tokens, more: Tokens) -> None:
    def spending(request: ApiRequest) -> Reply:
        return text("Done.", tokens=more if NO_SKILLS in json.dumps(request.body) else usual)

    suite = "prompt: Greet.\nmetrics: {toolUsage: false, requirementFulfillment: false, efficiency: true}\n"
    project = repository(tmp_path, {**FILES, "zelda/test-greeting.yaml": suite})
    # The suite changes, too: no session sees that.
    project.write({"CLAUDE.md": CHANGED, "zelda/test-greeting.yaml": f"# As before.\n{suite}"})
    project.commit()
    asked = ("--against", "HEAD~1", "--trials", "5", "--jobs", "4")
    code, output, errors = command(project, "run", *asked, script=spending)
    assert code == 1, output + errors
    code, output, errors = command(project, "why", "--json", script=spending)
    assert code == 0, output + errors
    found = json.loads(output)
    assert (found["subject"], found["verdict"]) == (subject, "named"), found
    assert [unit["files"] for unit in found["units"]] == [["CLAUDE.md"]] * 3
    confirmation = found["confirmation"]
    assert [confirmation[key] for key in ("reverted", "passed", "sessions")] == [[1], 6, 6]
    shown = " ".join(zelda(project, "compare").stdout.split())
    assert "Most likely CLAUDE.md, line 6" in shown
    assert "With it as it was: 6 of 6 like the base." in shown


def test_what_a_skill_is_worth_is_said_beside_inert_text_of_its_length(tmp_path: Path) -> None:
    other = "prompt: Be kind.\nchecks: [{changed: [note.txt]}]\nmetrics: {toolUsage: false}\n"
    project = repository(
        tmp_path, {**FILES, ".claude/rules/names.md": "Use short names.\n", "zelda/test-other.yaml": other}
    )
    plan = '{"first": 4, "looks": [8]}'
    asked = ("--without", "greeting", "--without", "names", "--trials", plan, "--jobs", "4")
    code, output, errors = command(project, "run", *asked, "--json")
    assert code == 0, output + errors
    skill, kept, rule, _ = json.loads(output)["rows"]
    assert (skill["part"], skill["criterion"], skill["verdict"]) == ("greeting", "It greets.", "worse")
    assert (skill["without"]["passed"], skill["whole"]["passed"]) == (0, skill["whole"]["sessions"])
    assert skill["inert"]["passed"] == 0
    assert (rule["part"], rule["verdict"], "inert" in rule) == ("names", "none", False)
    # A suite that does not miss it is not asked why.
    assert (kept["suite"], kept["verdict"], "inert" in kept) == ("other", "none", False)
    runs = len(results(project))
    # What has run once is counted, and not made again.
    code, output, errors = command(project, "run", *asked, script=[])
    assert code == 0, output + errors
    assert "0 of 8 instead of 16 of 16" in output
    assert "no difference was found: at most" in output
    assert len(results(project)) == runs
    code, _, errors = command(project, "run", "--without", "CLAUDE.md", "--budget-usd", "0.0001", script=[])
    assert (code, "Nothing is known of CLAUDE.md (greeting), CLAUDE.md (other)" in errors) == (2, True), errors
    code, _, errors = command(project, "run", "--without", "nobody", script=[])
    assert (code, "no skill, rule, agent, file or section of it" in errors) == (2, True), errors


MARKS = frozenset({"MARK-PLUGIN", "MARK-SERVER", "MARK-HOOK", "MARK-STYLE", "MARK-AGENT", "MARK-IMPORT"})
HOOK = {"hooks": [{"type": "command", "command": "echo MARK-HOOK"}]}
STEERING = {
    "CLAUDE.md": "Be kind. @docs/style.md\n",
    "docs/style.md": "MARK-IMPORT\n",
    ".claude/skills/kit/.claude-plugin/plugin.json": '{"name": "kit"}',
    ".claude/skills/kit/skills/inner/SKILL.md": head(description="MARK-PLUGIN"),
    ".mcp.json": json.dumps({"mcpServers": {"greeter": SERVER | {"env": {"INSTRUCTIONS": "MARK-SERVER"}}}}),
    ".claude/settings.json": json.dumps({"outputStyle": "Terse", "hooks": {"SessionStart": [HOOK]}}),
    ".claude/output-styles/terse.md": head("MARK-STYLE\n", name="Terse", description="Terse."),
    ".claude/agents/critic.md": head(name="critic", description="MARK-AGENT"),
    ".claude/skills/twice/SKILL.md": head(description="Once."),
    ".claude/rules/twice.md": "And again.\n",
    "zelda.config.yaml": f"isolation:\n  readPaths: [{SERVER['args'][0]}]\n",
    "zelda/test-kind.yaml": "prompt: Be kind.\nchecks: [{changed: [note.txt]}]\nmetrics: {toolUsage: false}\n",
}


def test_parts_of_every_kind_are_taken_out_of_sessions(tmp_path: Path) -> None:
    lacking = Counter[frozenset[str]]()

    def writes(request: ApiRequest) -> Reply:
        if any(message["role"] == "assistant" for message in request.messages):
            return text("Done.")
        lacking[frozenset(mark for mark in MARKS if mark not in json.dumps(request.body))] += 1
        return tool_call("Bash", {"command": "touch note.txt"})

    project = repository(tmp_path, STEERING)
    parts = {
        "kit": {"MARK-PLUGIN"},
        "kit:inner": {"MARK-PLUGIN"},
        ".mcp.json": {"MARK-SERVER"},
        ".claude/settings.json": {"MARK-HOOK", "MARK-STYLE"},
        ".claude/output-styles/terse.md": {"MARK-STYLE"},
        "critic": {"MARK-AGENT"},
        "docs/style.md": {"MARK-IMPORT"},
    }
    without = [word for part in parts for word in ("--without", part)]
    asked = ("run", *without, "--trials", '{"first": 1, "looks": [2]}', "--jobs", "4")
    code, output, errors = command(project, *asked, "--json", script=writes)
    assert code == 0, output + errors
    assert [row["part"] for row in json.loads(output)["rows"]] == [*parts]
    assert lacking == Counter([frozenset(), *map(frozenset, parts.values())])

    code, _, errors = command(project, "run", "--without", "twice", script=[])
    assert code == 2
    assert "2 parts have this name: .claude/rules/twice.md, .claude/skills/twice" in errors, errors
    # Servers, hooks and styles have no name of their own here, but files.
    for name in ("greeter", "SessionStart", "Terse", "kit:outer", "CLAUDE.md:Nowhere"):
        code, _, errors = command(project, "run", "--without", name, script=[])
        assert (code, "the tested files have no skill, rule, agent, file or section of it" in errors) == (2, True)


def test_what_needs_no_session_is_said_at_once_and_errors_say_what_to_do(tmp_path: Path) -> None:
    project = project_of(tmp_path, **{"CLAUDE.md": RULES.replace("Use short", f"{NO_SKILLS} Use short")})
    code, _, errors = command(project, "why")
    assert (code, "There is no stored run yet" in errors) == (2, True)
    compared(project, "--model", OTHER)
    runs = len(results(project))
    code, _, errors = command(project, "why", script=[])
    assert (code, "Give the options that it ran with, such as --model" in errors) == (2, True), errors
    code, output, errors = command(project, "why", "--model", OTHER, script=[])
    assert code == 0, output + errors
    assert "Only CLAUDE.md, line 7 changed of what this suite can feel" in output
    assert len(results(project)) == runs
    code, _, errors = command(project, "why", "--model", OTHER, "--against", "HEAD", script=[])
    assert (code, "Nothing can be taken back" in errors) == (2, True), errors
    code, _, errors = command(project, "why", "--criterion", "2")
    assert (code, "Nothing got worse for sure in latest" in errors) == (2, True), errors
    for way in ("--record", "--replay"):
        code, output, errors = command(project, "run", way, str(tmp_path / "recording"))
        assert code == 1, output + errors
    code, _, errors = command(project, "why", "--against", "HEAD~1", script=[])
    assert (code, "no recording has sessions with part of the change" in errors) == (2, True), errors
    project.write({"zelda/test-greeting.yaml": SUITE.replace("Greet.", "Greet me.")})
    code, _, errors = command(project, "why", "latest~2")
    assert (code, "changed since greeting-" in errors) == (2, True), errors


def test_a_comparison_that_cannot_be_read_whole_is_not_taken_for_another(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    compared(project)
    (kept,) = (project.results / "comparisons").iterdir()
    runs = {run["side"]: project.results / "runs" / run["runId"] / "result.json" for run in results(project)}
    newer = kept.read_text().replace('"schemaVersion":1', '"schemaVersion":99').replace('"arms"', '"arms2"')
    for file, content, problem in (
        (kept, newer, "was written by a newer Zelda (schema 99"),
        (runs["base"], "{", "is damaged"),
        (runs["head"], "{", "is damaged"),
        (runs["base"], None, "cannot be read"),
        (runs["head"], None, "cannot be read"),
    ):
        before = file.read_bytes()
        if content is None:
            file.unlink()
        else:
            file.write_text(content)
        for asked in (("why",), ("compare",), ("show", kept.stem), ("report",)):
            code, output, errors = command(project, *asked, script=[])
            assert (code, problem in errors) == (2, True), (asked, file, output + errors)
        file.write_bytes(before)
