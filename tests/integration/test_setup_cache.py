"""What setup has installed is kept for later runs: used where nothing has changed, and out of every session's reach."""

import base64
import hashlib
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support import needs
from tests.support.command import results, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text, tool_call

RESTORED = "Put back what"
INSTALL = "python3 -m venv --without-pip .venv"
PIP = "python3 -m venv .venv && .venv/bin/pip install -q --no-index --find-links wheels -r requirements.txt"


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
    settings = {"testCommand": "greeter && python -c 'import greeter'", "isolation": {"level": level}, **keys}
    suite = "prompt: Look around.\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
    files = {"requirements.txt": "greeter==1.0\n", "src/app.py": "X = 1\n"}
    project = repository(tmp_path, {**files, "zelda/test-one.yaml": suite})
    project.write({".gitignore": ".zelda/\n.venv/\n"})
    wheel(project.path / "wheels", "greeter", "hello")
    project.commit()
    return project


def setups(project: Project) -> list[str]:
    """How setup ended before the session, in the order of the runs."""
    return ["restored" if RESTORED in it["setup"]["output"] else "run" for it in results(project)]


def the_run(
    project: Project, *arguments: str, call: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    def answer(request: Any) -> Any:
        return tool_call("Bash", {"command": call}) if call and len(request.messages) < 3 else text("Done.")

    with ScriptedApi(answer) as api:
        return zelda(project, "run", *arguments, api=api.url, **more)


def archives(project: Project) -> list[Path]:
    return sorted(Path(project.environ["ZELDA_WORKSPACES"]).glob("*/setups/*.tar"))


def test_a_python_project_is_installed_once_and_anew_where_what_it_depends_on_changes(tmp_path: Path) -> None:
    """Also build and tests in the fresh checkout: programs of the environment work there, by their own path."""
    test = "greeter | grep -q hello && { ! grep -q other requirements.txt || other; }"
    project = python_project(tmp_path, setupCommand=PIP, execution={"path": [".venv/bin"]}, testCommand=test)
    wheel(project.path / "wheels", "other", "new")
    project.commit()
    done = the_run(project, call="greeter && which greeter")
    assert done.returncode == 0, done.stdout + done.stderr
    project.write({"src/app.py": "X = 2\n"})
    project.commit()
    assert the_run(project, "--trials", "2").returncode == 0
    # A session that changes what setup depends on gets no old installation for its tests.
    kept = archives(project)
    done = the_run(project, call="echo 'other==1.0' >> requirements.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert setups(project) == ["run", "restored", "restored", "restored"]
    # And what it installed there stays out of the cache.
    assert archives(project) == kept


def test_what_the_command_names_counts_as_well_and_the_cache_can_be_switched_off(tmp_path: Path) -> None:
    project = python_project(tmp_path)
    project.write({"zelda/test-one.yaml": f"prompt: Look.\nsetupCommand: {INSTALL} wheels\ntestCommand: 'true'\n"})
    project.commit()
    for more in ({}, {}, {"ZELDA_NO_CACHE": "1"}):
        assert the_run(project, **more).returncode == 0
    wheel(project.path / "wheels", "greeter", "other words")
    project.commit()
    assert the_run(project).returncode == 0
    assert setups(project) == ["run", "restored", "run", "run"]


@pytest.mark.parametrize(
    ("level", "command"),
    [("auto", f"{INSTALL}; date > stamp"), ("auto", "./install.sh"), ("none", INSTALL)],
    ids=["more than an installation", "a script", "no isolation"],
)
def test_setup_that_may_do_anything_else_is_run_every_time(tmp_path: Path, level: str, command: str) -> None:
    project = python_project(tmp_path, level, setupCommand=command, testCommand="true", trials=2)
    project.write({"install.sh": "#!/bin/sh\n"})
    (project.path / "install.sh").chmod(0o755)
    project.commit()
    assert the_run(project).returncode == 0
    assert setups(project) == ["run", "run"]
    assert archives(project) == []


POISON = """
for place in BASE/*/setups $(find / -xdev -maxdepth 4 -name setups 2>/dev/null); do
  echo poison > "$place/x" 2>/dev/null; for it in "$place"/*; do echo poison >> "$it"; done
done
echo poison >> .venv/pyvenv.cfg; echo poison >> .venv/poison; echo poison >> $HOME/poison; true
"""


@pytest.mark.parametrize("level", ["full", "uid", "landlock"])
def test_no_session_changes_what_is_kept(tmp_path: Path, level: str) -> None:
    """Neither by the path of the cache, nor by what it was given of it."""
    needs.level(level)
    project = python_project(tmp_path, level, setupCommand=INSTALL, testCommand="! test -e .venv/poison")
    hostile = POISON.replace("BASE", project.environ["ZELDA_WORKSPACES"])
    done = the_run(project, "--trials", "2", call=hostile)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = archives(project)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == archive.stem.rpartition("-")[2]
    assert b"poison" not in archive.read_bytes()
    assert [entry.name for entry in archive.parent.iterdir()] == [archive.name]
    assert setups(project) == ["run", "restored"]
    if level == "landlock":
        # What is damaged is thrown away, and made anew.
        archive.write_bytes(archive.read_bytes()[:-2000])
        assert the_run(project).returncode == 0
        assert setups(project) == ["run", "restored", "run"]


def test_a_lock_file_suggests_setup_and_where_its_programs_are(tmp_path: Path) -> None:
    """pip finds its index by a variable of the user's, as it would in a shell."""
    settings = {"env": {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "wheels"}}
    project = python_project(tmp_path, execution=settings)
    project.write({"requirements.txt": "greeter==1.0\n", "tests/test_it.py": "import unittest\n"})
    project.commit()
    done = the_run(project)
    assert done.returncode == 0, done.stdout + done.stderr
    said = "setup: python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt (found requirements.txt; "
    assert said in " ".join((done.stdout + done.stderr).split())
    shown = zelda(project, "validate").stdout
    assert ".venv/bin" in shown
    project.write({"zelda.config.yaml": "setupCommand: none\n"})
    project.commit()
    off = the_run(project)
    assert off.returncode == 2
    assert "greeter" in off.stdout + off.stderr
    assert "setup: python3" not in off.stdout + off.stderr


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


@needs.NPM
def test_a_node_project_is_set_up_by_its_lock_file(tmp_path: Path) -> None:
    lock = {
        "name": "shop",
        "lockfileVersion": 3,
        "requires": True,
        "packages": {"": {"name": "shop", "dependencies": {}}},
    }
    package = {"name": "shop", "scripts": {"test": "node -e 0"}}
    suite = "prompt: Look.\ntestCommand: npm test\ntrials: 2\n"
    files = {"package.json": json.dumps(package), "package-lock.json": json.dumps(lock)}
    project = repository(tmp_path, {**files, "zelda/test-one.yaml": suite})
    done = the_run(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "setup: npm ci (found package-lock.json; `setupCommand: none` switches it off)" in " ".join(
        (done.stdout + done.stderr).split()
    )
    assert setups(project) == ["run", "restored"]
