"""Zelda as root in a container of Docker's defaults, and as an ordinary user: what it can do there, it does."""

import json
import os
import platform
import shutil
import site
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import needs
from tests.support.headless import headless_that_writes_its_number
from tests.support.patience import PATIENCE
from tests.support.projects import Project, is_running, repository, wait_until
from zelda_ci.sandbox import levels, programs, readable_paths, users

UID = 4242
ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT, *map(Path, site.getsitepackages())]
WORK = """
id -u
touch new && git add . && git commit -qm work && git log -1 --format=%s
cat {project}/.env
chmod +x {project}/README.md
touch "$HOME/mine" "$TMPDIR/mine" && echo wrote
awk '/^Cap(Eff|Prm|Inh|Amb)/ && $2 != "0000000000000000"' /proc/self/status
tr '\\0' '\\n' < /proc/{pid}/environ | grep CANARY
kill -0 {pid} && echo reached
true
"""

pytestmark = [
    needs.ROOT,
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv, of util-linux"),
]


def interpreter() -> str:
    """A Python of this version that everybody may run, and with it what it imports."""
    found = programs.python(anybody=True)[0]
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if not readable_paths.is_open(Path(found)) or version.split(".")[:2] != platform.python_version().split(".")[:2]:
        found = ""
    if not found or not all(map(readable_paths.is_open, (ROOT / "pyproject.toml", Path(pytest.__file__)))):
        pytest.skip("needs an interpreter of this version, and these files, where other users can read them")
    return found


def told(project: Project, level: str, *before: str, within: Sequence[str] = ()) -> Mapping[str, Any]:
    """What a Zelda process with other rights found out and did."""
    line = WORK.replace("{project}", f"'{project.path}'").replace("{pid}", str(os.getpid()))
    argv = [*before, interpreter(), "-m", *within, "tests.support.confined_run", str(project.path), level, line]
    environ = {
        **project.environ, "CANARY": "x", "PYTHONPATH": os.pathsep.join(map(str, PACKAGES)),
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def project(place: Path) -> Project:
    made = repository(place, {"README.md": "hello\n", ".gitignore": ".env\n.zelda/\n"})
    made.write({".env": "TOKEN=canary\n"})
    return made


def test_root_in_an_ordinary_container_runs_sessions_as_another_user(project: Project) -> None:
    before = project.fingerprint()
    found = told(project, "auto", sys.executable, "-m", "tests.support.like_docker")
    assert (found["best"], found.get("level")) == ("uid", "uid"), found
    assert "Namespaces cannot be made here" in " ".join(found["reasons"])
    uid, subject, *rest = found["output"].splitlines()
    assert int(uid) in levels.USERS
    assert (subject, "wrote" in rest) == ("work", True)
    assert "canary" not in found["output"]
    assert "reached" not in rest
    assert project.fingerprint() == before
    assert project.leftovers() == []


ONLY_BUBBLEWRAP = pytest.param("full", ["tests.support.only_bubblewrap"], marks=needs.BWRAP)


@pytest.mark.parametrize(("level", "within"), [("full", []), ONLY_BUBBLEWRAP, ("landlock", [])])
def test_an_ordinary_user_is_confined_as_well(project: Project, level: str, within: Sequence[str]) -> None:
    if level == "full":
        needs.level("full")
    for folder, names, files in os.walk(project.home.parent):
        for name in (".", *names, *files):
            os.chown(Path(folder, name), UID, UID, follow_symlinks=False)
    ordinary = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all")
    found = told(project, level, *ordinary, within=within)
    assert (found["best"], found.get("level")) == ("full", level), found
    uid, subject, *rest = found["output"].splitlines()
    assert (uid, subject, "wrote" in rest) == (str(UID), "work", True)
    assert "canary" not in found["output"]
    assert (project.path / "README.md").stat().st_mode & 0o111 == (0 if level == "full" else 0o111)
    assert project.leftovers() == []


@pytest.mark.parametrize("before", [(), ("-m", "tests.support.like_docker", sys.executable)], ids=["root", "in Docker"])
def test_no_process_of_a_runs_user_outlives_its_supervisor(tmp_path: Path, before: tuple[str, ...]) -> None:
    """Root of a container sees no environment of others, and so no mark."""
    uid, pids = 45679, tmp_path / "pids"
    ordinary = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "env", "-i"]
    pids.touch()
    pids.chmod(0o666)
    codes = (["sleep", "300"], ["/usr/bin/python3", "-c", headless_that_writes_its_number(pids)])
    others = [subprocess.Popen([*ordinary, *code]) for code in codes]
    bystander = subprocess.Popen(["setpriv", f"--reuid={uid + 1}", "sleep", "300"])
    try:
        wait_until(lambda: bool(pids.read_text()))
        end = f"from zelda_ci.sandbox import users; users.remove_leftovers({uid})"
        subprocess.run([sys.executable, *before, "-c", end], cwd=ROOT, check=True, timeout=PATIENCE)
        assert [is_running(str(process.pid)) for process in (*others, bystander)] == [False, False, True]
    finally:
        for process in (*others, bystander):
            process.kill()
            process.wait()


CHURN = "import os\nwhile True:\n    os.close(os.open('{name}', os.O_CREAT | os.O_WRONLY)); os.unlink('{name}')"


def test_what_a_runs_user_leaves_in_shared_folders_is_removed_whatever_others_do_there(tmp_path: Path) -> None:
    """Files of others come and go meanwhile, and a tree is deeper than Python's stack."""
    uid, shared = 45678, Path("/var/tmp")
    churns = [shared / f"{tmp_path.name}-{number}" for number in range(2)]
    others = [subprocess.Popen([sys.executable, "-c", CHURN.format(name=name)]) for name in churns]
    try:
        for number in range(20):
            tree = shared / f"{tmp_path.name}-of-a-run-{number}"
            tree.mkdir()
            os.chown(tree, uid, uid)
            at = os.open(tree, os.O_RDONLY)
            for _ in range(1200 if number == 0 else 1):
                os.mkdir("d", dir_fd=at)
                below = os.open("d", os.O_RDONLY, dir_fd=at)
                os.close(at)
                at = below
            os.close(at)
            users.remove_leftovers(uid)
            assert not tree.exists()
    finally:
        for process in others:
            process.kill()
            process.wait()
        for name in churns:
            name.unlink(missing_ok=True)
