"""A job whose session finds every key of the machine and repeats it, in whatever spelling: none is told or stored."""

import secrets
from pathlib import Path

from tests.hostile.leak import spellings
from tests.scenarios.stage import Done, Stage
from tests.support.judging import answer, verdict
from tests.support.scripted_api import ApiRequest, Reply, text, tool_call

PRINT = r"""
import base64, json, os, pathlib, re, urllib.parse
places, parent = [*map(pathlib.Path, os.environ["PLACES"].split(":"))], os.getpid()
while parent > 1:
    places.append(pathlib.Path(f"/proc/{parent}/environ"))
    parent = int(pathlib.Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
heard = ""
for place in places:
    try:
        heard += place.read_text(errors="replace")
    except OSError:
        pass
found = sorted(set(re.findall(r"canary-[a-z]+-[0-9a-f]{24}", heard)))
lines = [form for key in found for form in (
    key, base64.b64encode(key.encode()).decode(), base64.b64encode(b"user:" + key.encode()).decode(),
    urllib.parse.quote(key, safe=""), json.dumps(key), key.encode().hex())]
print(f"{len(found)} keys:", *lines, sep="\n")
pathlib.Path("leaked.txt").write_text("\n".join(lines))
"""
SUITE = """\
description: Something is looked for.
prompt: Look around.
acceptanceCriteria: [Something is found.]
metrics: { toolUsage: false }
execution: { env: [PLACES] }
isolation: { level: none }
testCommand: [python3, look.py]
"""
KEYS = {name: f"canary-{name}-{secrets.token_hex(12)}" for name in ("dotenv", "checkout", "runner", "deploy")}


def hide(stage: Stage, runner: Path) -> dict[str, str]:
    """Put each key where keys are kept; the job's variables, one of which is a key."""
    project = stage.project.path
    (project / ".env").write_text(f"API_KEY={KEYS['dotenv']}\n")
    stage.project.git("config", "http.extraheader", f"AUTHORIZATION: bearer {KEYS['checkout']}")
    runner.mkdir()
    kept = runner / "git-credentials-4711.config"
    kept.write_text(f'[http "https://github.com/"]\n\textraheader = AUTHORIZATION: bearer {KEYS["runner"]}\n')
    places = ":".join(map(str, [project / ".env", project / ".git" / "config", kept]))
    return {"DEPLOY_TOKEN": KEYS["deploy"], "PLACES": places, "RUNNER_TEMP": str(runner), "ZELDA_UNSAFE": "1"}


def script(request: ApiRequest) -> Reply:
    """A session that prints what it finds and says it again, and a judge that cites it."""
    if request.answer_tool and "acceptance criteria" in str(request.body):
        quotes = [{"where": "turn 1", "quote": key} for key in KEYS.values()]
        return answer(verdict(1, "FAIL", quotes) | {"reasoning": " ".join(KEYS.values())})
    if any(message["role"] == "assistant" for message in request.messages):
        return text("I found " + " ".join(KEYS.values()))
    return tool_call("Bash", {"command": "python3 look.py; git add -A; git commit -qm Leak"})


def told(stage: Stage, done: Done) -> dict[str, str]:
    """Everything that anybody can read afterwards, by where it is read."""
    (body,) = stage.bodies()
    log = "\n".join(line for line in done.printed.splitlines() if not line.startswith("::add-mask::"))
    texts = {"comment": body, "summary": done.summary, "outputs": str(done.outputs), "log": log}
    files = [path for path in (stage.project.path / ".zelda").rglob("*") if path.is_file()]
    texts |= {str(path): path.read_bytes().decode("utf-8", "replace") for path in files}
    for artifact in stage.stored:
        texts |= {f"artifact: {name}": data.decode("utf-8", "replace") for name, data in artifact.files.items()}
    return texts


def test_no_key_of_the_machine_is_in_comment_summary_reports_artifact_or_log(tmp_path: Path) -> None:
    with Stage(tmp_path, {"README.md": "# Shop\n", "zelda/test-look.yaml": SUITE, "look.py": PRINT}) as stage:
        pull = stage.open_pull()
        done = stage.pull_request(pull, script, variables=hide(stage, tmp_path / "runner temp"), cold=True)
        texts = told(stage, done)
    transcript = next(text for name, text in texts.items() if name.endswith("/transcript.json"))
    assert f"{len(KEYS)} keys:" in transcript, "the session did not find them, so nothing was tried"
    for name in ("zelda-results.json", "junit.xml", "changes.patch", "test.log"):
        assert any(place.endswith(name) for place in texts), name
    forms = {form for key in KEYS.values() for form in spellings(key)}
    assert [(place, form) for place, text in texts.items() for form in forms if form in text] == []
