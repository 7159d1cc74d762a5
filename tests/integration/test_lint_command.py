"""`zelda lint` from the developer's chair: what it finds in files, and in trials that the real command stored."""

import json
from pathlib import Path

from tests.support.command import zelda
from tests.support.judging import answer, verdict
from tests.support.projects import repository
from tests.support.schemas import checker
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, http_error, text, tool_call
from tests.support.steered import head

SUITE = """\
prompt: Add a greeting.
acceptanceCriteria:
  - There is a greeting.
  - It is polite.
  - The greeting is short and a test covers it.
checks:
  - called: Bash
  - called: Skill(greeting)
metrics: {toolUsage: false}
"""
TEXTS = ['"There is a greeting."', '"It is polite."', '"The greeting is short and a test covers it."']
HOOK = {"matcher": "Edit", "hooks": [{"type": "command", "command": "true"}]}
PROJECT = {
    "zelda/test-greeting.yaml": SUITE,
    "zelda/test-sound.yaml": "prompt: Greet.\nchecks:\n  - called: Skill(greetings)\n",
    ".claude/skills/greetings/SKILL.md": head(description="Greets."),
    ".claude/settings.json": json.dumps({"hooks": {"PreToolUse": [HOOK]}}),
}
WORK = [tool_call("Bash", {"command": "echo hello > greeting.txt"}), text("Done.")]
SHOWN = [{"where": "patch:greeting.txt", "quote": "+hello"}]


def test_what_is_weak_is_told_with_its_place_and_a_better_line(tmp_path: Path) -> None:
    project, asked = repository(tmp_path, PROJECT), list[ApiRequest]()

    def reply(request: ApiRequest) -> Reply:
        if request.answer_tool is None:
            said: Reply = WORK[sum(message["role"] == "assistant" for message in request.messages)]
            return said
        asked.append(request)
        first = verdict(1, "PASS" if len(asked) == 1 else "FAIL", evidence=SHOWN)
        return answer(first, verdict(2, "UNDECIDED"), verdict(3, evidence=SHOWN))

    with ScriptedApi(reply) as api:
        done = zelda(project, "run", "greeting", "--trials", "2", api=api.url)
        assert done.returncode == 1, done.stdout + done.stderr
        sent = len(api.requests)
        done = zelda(project, "lint", api=api.url)
        assert len(api.requests) == sent
    assert done.returncode == 1, done.stderr
    suite = "zelda/test-greeting.yaml"
    assert done.stdout.splitlines() == [
        ".claude/settings.json:1: untouched: PreToolUse:Edit",
        "  No stored trial touched this hook (`zelda coverage`): nobody sees it change.",
        ".claude/skills/greetings/SKILL.md:1: untouched: greetings",
        "  No stored trial touched this skill (`zelda coverage`): nobody sees it change.",
        "  zelda run sound",
        f"{suite}:3: wavers: There is a greeting.",
        "  Of 2 trials on the same files, 1 went another way. Say what counts. `zelda rejudge` shows if judges waver.",
        f"{suite}:4: neverJudged: It is polite.",
        "  No stored trial met or failed it (2 left it open). Say what files, patch or transcript can show.",
        f"{suite}:5: twoInOne: The greeting is short and a test covers it.",
        "  Two in one: where it fails, nobody sees which half. Judges differ where one of them is met.",
        "  - The greeting is short.",
        "  - A test covers it.",
        f"{suite}:8: cannotMatch: called: Skill(greeting)",
        "  No call can match Skill(greeting): the project has no skill greeting that is loaded.",
        "  Skill(greetings)",
        f"Not tried on a session that does nothing, since they need a judge (--judge): {', '.join(TEXTS)}.",
        "6 findings in 2 suites and 2 stored trials.",
    ]
    done = zelda(project, "lint", "greeting", "--json")
    tree = json.loads(done.stdout)
    checker("zelda.lint.schema.json").validate(tree)
    assert [(each["line"], each["rule"]) for each in tree["findings"]] == [
        (3, "wavers"),
        (4, "neverJudged"),
        (5, "twoInOne"),
        (8, "cannotMatch"),
    ]


def test_a_judge_says_what_a_session_that_does_nothing_passes(tmp_path: Path) -> None:
    suite = "prompt: Greet.\nacceptanceCriteria: [There is a greeting., 'Nothing else is in `docs/old`.']\n"
    project = repository(tmp_path, {"zelda/test-waiting.yaml": suite, "greeting.txt": "hello\n"})
    there, absent = {"where": "greeting.txt:1", "quote": "hello"}, {"where": "absent: any file in docs/old/**"}
    judged = answer(verdict(1, evidence=[there]), verdict(2, evidence=[absent]))
    with ScriptedApi(lambda request: text("Yes.") if request.answer_tool is None else judged) as api:
        done = zelda(project, "lint", "--judge", "waiting", api=api.url)
        asked = [request for request in api.requests if request.answer_tool]
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        "zelda/test-waiting.yaml:1: passesIdle: waiting",
        "  A session that does nothing passes it: judges find all of it met. Say what must.",
        "zelda/test-waiting.yaml:2: passesIdle: There is a greeting.",
        "  The judge finds it met by a session that does nothing: Because of 1.",
        "2 findings in 1 suite and 0 stored trials.",
    ]
    assert ["(the session changed no file)" in json.dumps(request.messages) for request in asked] == [True]
    options = "judgeModel: claude-opus-4-20250514\n"
    project.write({"zelda.config.yaml": options})
    with ScriptedApi(lambda request: text("Yes.") if request.answer_tool is None else judged) as api:
        assert "waiting: the judge's model" in zelda(project, "lint", "--judge", "waiting", api=api.url).stderr
    with ScriptedApi(lambda _: http_error(401)) as api:
        done = zelda(project, "lint", "--judge", api=api.url)
    assert "The judge's key was refused (HTTP 401)" in done.stderr
    assert done.stdout.startswith("Not tried on a session that does nothing, since they could not be judged: ")


def test_nothing_found_is_exit_code_0_and_a_broken_file_2(tmp_path: Path) -> None:
    project = repository(tmp_path, PROJECT)
    done = zelda(project, "lint", "sound")
    assert (done.returncode, done.stdout) == (0, "0 findings in 1 suite and 0 stored trials.\n")
    project.write({"zelda/test-sound.yaml": "promt: Greet.\n"})
    done = zelda(project, "lint")
    assert (done.returncode, "zelda/test-sound.yaml:1:1: promt" in done.stderr) == (2, True)
