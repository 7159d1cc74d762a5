"""Setup: what it installs, where its command comes from, and what it makes beside the session's changes."""

import base64
import hashlib
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from tests.support.command import results, transcript, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text, tool_call

INSTALL = "python3 -m venv --without-pip .venv"


def wheel(folder: Path, name: str, words: str) -> None:
    """A package with a module and a program, as a package index would have it."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": f"def main():\n    print({words!r})\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    digests = {path: hashlib.sha256(text.encode()).digest() for path, text in files.items()}
    codes = {path: base64.urlsafe_b64encode(digest).rstrip(b"=").decode() for path, digest in digests.items()}
    rows = [f"{path},sha256={codes[path]},{len(files[path])}" for path in files]
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]) + "\n")


def python_project(tmp_path: Path, level: str = "auto", **keys: object) -> Project:
    settings = {"isolation": {"level": level}, **keys}
    suite = "prompt: Look around.\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
    files = {"requirements.txt": "greeter==1.0\n", "src/app.py": "X = 1\n"}
    project = repository(tmp_path, {**files, "zelda/test-one.yaml": suite})
    project.write({".gitignore": ".zelda/\n.venv/\n"})
    wheel(project.path / "wheels", "greeter", "hello")
    project.commit()
    return project


def the_run(
    project: Project, *arguments: str, call: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    def answer(request: Any) -> Any:
        return tool_call("Bash", {"command": call}) if call and len(request.messages) < 3 else text("Done.")

    with ScriptedApi(answer) as api:
        return zelda(project, "run", *arguments, api=api.url, **more)


def test_every_run_installs_what_its_own_commit_has(tmp_path: Path) -> None:
    """Also where only files have changed that no lock file, no manifest and no command names."""
    settings = {"setupCommand": "pip install -r requirements.txt", "testCommand": "grep -q hello lib/greeter.py"}
    project = python_project(tmp_path, **settings, metrics={"toolUsage": False})
    # An installer that finds packages by a setting of its own, as pip does by --find-links in a list.
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "pip").write_text("#!/bin/sh\nmkdir -p lib && cp vendor/* lib/\n")
    (tools / "pip").chmod(0o755)
    environment = {"PATH": f"{tools}:{project.environ['PATH']}"}
    for word, code in (("hello", 0), ("broken", 1)):
        project.write({"vendor/greeter.py": f"print('{word}')\n"})
        project.commit()
        done = the_run(project, "--no-check", **environment)
        assert done.returncode == code, done.stdout + done.stderr


def test_a_lock_file_suggests_setup_and_where_its_programs_are(tmp_path: Path) -> None:
    """pip finds its index by a variable of the user's, as it would in a shell."""
    settings = {"env": {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "wheels"}}
    project = python_project(tmp_path, execution=settings)
    project.write({"requirements.txt": "greeter==1.0\n", "tests/test_it.py": "import unittest\n"})
    project.commit()
    done = the_run(project, call="greeter && python -c 'import greeter; greeter.main()'")
    assert done.returncode == 0, done.stdout + done.stderr
    (call,) = [call for entry in transcript(project)["entries"] for call in entry.get("toolCalls", ())]
    assert call["output"] == "hello\nhello"
    said = "setup: python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt (found requirements.txt; "
    assert said in " ".join((done.stdout + done.stderr).split())
    shown = zelda(project, "validate", "--settings").stdout
    assert ".venv/bin" in shown


def test_what_setup_made_is_no_change_of_the_session_although_nothing_ignores_it(tmp_path: Path) -> None:
    """Not even if the session commits it; what it changed of it is, but for caches in folders for dependencies."""
    files = {"requirements.txt": "\n", "made.txt": "tracked\n"}
    make = f"{INSTALL} && echo made > one.txt && (test -e two.txt || echo made > two.txt) && echo new > made.txt"
    settings = {"setupCommand": make}
    settings |= {"testCommand": "test -x .venv/bin/python && grep -q session two.txt && test ! -e .venv/cache"}
    suite = "prompt: Look around.\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
    project = repository(tmp_path, {**files, "zelda/test-one.yaml": suite})
    project.write({".gitignore": ".zelda/\n"})
    project.commit()
    call = "git add -A; git -c user.name=x -c user.email=x@y commit -qm all; touch .venv/cache; echo session > two.txt"
    done = the_run(project, call=call)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = results(project)
    assert run["changes"]["files"] == ["made.txt", "two.txt"]
    assert [(it["path"], it["kind"]) for it in run["isolation"]["ignored"]["changes"]] == [(".venv/cache", "added")]
