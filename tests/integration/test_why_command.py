"""`zelda why` and `zelda run --without`, end to end: the real CLI, real commits, a scripted model."""

import json
from pathlib import Path
from typing import Any

from tests.integration.test_run_against import FEW, SUITE
from tests.support.command import gone, results, zelda
from tests.support.judging import answer, verdict
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call
from tests.support.scripted_replies import Tokens

SKILL = "---\nname: greeting\ndescription: How to greet.\n---\nGreet with hello.\n"
RULES = "# Rules\n\nGreet politely.\n\nKeep to the code.\n\nUse short names.\n"
CULPRIT = "Never use any skill."
OTHER = "claude-haiku-4-5"
# Three hunks: one of them makes the model skip its skill.
CHANGED = (
    "# Rules of this project\n\nGreet politely.\n\nKeep to the code.\n" + CULPRIT + "\n\nUse short names.\nTest it.\n"
)
FILES = {"CLAUDE.md": RULES, ".claude/skills/greeting/SKILL.md": SKILL, "zelda/test-greeting.yaml": SUITE}


def model(request: ApiRequest) -> Reply:
    """A session that greets by the skill, unless it is told not to use any; and a judge who looks."""
    body = json.dumps(request.body)
    if request.answer_tool:
        greeted = [{"where": "note.txt:2", "quote": "hello"}] if "+hello" in body else []
        polite = verdict(2, "PASS", [{"where": "note.txt:1", "quote": "please"}])
        return answer(verdict(1, "PASS" if greeted else "FAIL", greeted), polite)
    said = [message for message in request.messages if message["role"] == "assistant"]
    if CULPRIT not in body and "How to greet" in body and not said:
        return tool_call("Skill", {"skill": "greeting"})
    if "note.txt" not in json.dumps(said):
        word = "hello" if said else "nothing"
        return tool_call("Bash", {"command": f"printf 'please\\n{word}\\n' > note.txt"})
    return text("Done.")


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
    assert "With these lines as they were: 6 of 6." in output
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
    page = zelda(project, "report", "latest", "-o", "page.html")
    assert page.returncode == 0, page.stderr
    assert "With CLAUDE.md, line 6 as before: " in (project.path / "page.html").read_text()

    # One that is damaged, or names units that it has not, is passed over.
    stored["suspicions"][0]["unit"] = 3
    (file.parent / "made-up.json").write_text(json.dumps(stored))
    (file.parent / "torn.json").write_text("{")
    assert "Most likely CLAUDE.md, line 6 (9" in zelda(project, "compare").stdout

    # Where the cause lies elsewhere, nobody is named.
    code, output, _ = command(project, "why", "--json", script=silent)
    assert (code, json.loads(output)["verdict"]) == (0, "none"), output
    (kept,) = (project.results / "comparisons").iterdir()
    kept.write_text("{")
    assert "is damaged" in zelda(project, "show", kept.stem).stderr


def spending(request: ApiRequest) -> Reply:
    """A session that thinks for long where it must not use skills."""
    return text("Done.", tokens=Tokens(output=60_000 if CULPRIT in json.dumps(request.body) else 300))


def test_lines_that_make_sessions_dearer_are_named(tmp_path: Path) -> None:
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
    assert (found["subject"], found["verdict"]) == ("costUsd", "named"), found
    assert [unit["files"] for unit in found["units"]] == [["CLAUDE.md"]] * 3
    assert found["confirmation"] == {"reverted": [1], "passed": 6, "sessions": 6}
    shown = " ".join(zelda(project, "compare").stdout.split())
    assert "Most likely CLAUDE.md, line 6" in shown
    assert "With these lines as they were: 6 of 6 like the base." in shown


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


def silent(request: ApiRequest) -> Reply:
    """A model that greets nobody any more, whatever it is told."""
    is_session = not request.answer_tool and not any(it["role"] == "assistant" for it in request.messages)
    return tool_call("Bash", {"command": "printf 'please\\nnothing\\n' > note.txt"}) if is_session else model(request)


def test_what_needs_no_session_is_said_at_once_and_errors_say_what_to_do(tmp_path: Path) -> None:
    project = project_of(tmp_path, **{"CLAUDE.md": RULES.replace("Use short", f"{CULPRIT} Use short")})
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
