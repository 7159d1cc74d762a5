"""runner/prepare.py: which Python it takes, what it changes by sudo and where, and what it says if it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner import prepare
from tests.support import runner
from tests.support.patience import PATIENCE

SCRIPT = Path(prepare.__file__)


def program(file: Path, script: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def python(folder: Path, version: str, name: str = "python3") -> Path:
    """What answers as a Python of this version does when it is asked for it."""
    return program(folder / name, f"echo {version.replace('.', ' ')}")


def test_the_system_comes_before_the_tool_cache_and_path_comes_last(tmp_path: Path) -> None:
    system, cache, path = tmp_path / "usr", tmp_path / "cache", tmp_path / "path"
    old, new = python(system, "3.10.12"), python(system, "3.13.1", "python3.13")
    ninth = python(cache / "Python" / "3.9.1" / "x64" / "bin", "3.9.1")
    twelfth = python(cache / "Python" / "3.12.10" / "x64" / "bin", "3.12.10")
    eleventh = python(cache / "Python" / "3.11.9" / "x64" / "bin", "3.11.9")
    last = python(path, "3.14.0")
    environ = {"RUNNER_TOOL_CACHE": str(cache), "SEARCHED": f"relative:{path}"}
    expected = [old, new, twelfth, eleventh, ninth, last]
    assert list(prepare.candidates(environ, [str(system)])) == expected
    for chosen, version in ((new, "3.13.1"), (twelfth, "3.12.10"), (eleventh, "3.11.9"), (last, "3.14.0")):
        assert prepare.find_python(environ, [str(system)]) == (chosen, version)
        chosen.unlink()
    with pytest.raises(prepare.UnpreparedError) as refused:
        prepare.find_python(environ, [str(system)])
    assert f"Found: {old} (3.10.12), {ninth} (3.9.1). Put actions/setup-python" in str(refused.value)


def test_a_python_that_can_make_no_environments_is_passed_over(tmp_path: Path) -> None:
    broken = program(tmp_path / "one" / "python3", "echo No module named venv >&2; exit 1")
    whole = python(tmp_path / "two", "3.12.1")
    assert prepare.find_python({"SEARCHED": str(whole.parent)}, [str(broken.parent)]) == (whole, "3.12.1")


def hosted(
    tmp_path: Path, *, sudo: str = 'shift; exec "$@"', bubblewrap: bool = False, restriction: str = "1"
) -> dict[str, str]:
    """The environment of a machine of GitHub's, below `root`; its sudo does what it is asked for, as the same user."""
    root, programs = tmp_path / "root", tmp_path / "bin"
    setting = root / "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    setting.parent.mkdir(parents=True)
    setting.write_text(f"{restriction}\n")
    program(programs / "sudo", f'echo "asked $*" >> {tmp_path}/asked\n{sudo}')
    program(programs / "apt-get", f"[ -e {tmp_path}/fresh ] || [ $1 = update ] || exit 100\ntouch {tmp_path}/fresh")
    program(programs / "sysctl", f"[ $3 = {prepare.RESTRICTION}=0 ] && echo 0 > {setting}")
    if bubblewrap:
        program(programs / "bwrap", "true")
    for name in ("sh", "touch"):
        (programs / name).symlink_to(f"/bin/{name}")
    return {"RUNNER_ENVIRONMENT": "github-hosted", "PATH": str(programs)}


def test_on_a_machine_of_githubs_bubblewrap_is_installed_and_the_restriction_lifted(tmp_path: Path) -> None:
    """Also where the machine's lists of packages are too old."""
    environ = hosted(tmp_path)
    prepare.raise_level(environ, tmp_path / "root")
    assert (tmp_path / "fresh").exists()
    assert not prepare.restricted(tmp_path / "root")
    assert len((tmp_path / "asked").read_text().splitlines()) == 2


def test_nobodys_own_machine_no_container_and_no_machine_that_needs_nothing_is_changed(tmp_path: Path) -> None:
    for number, place in enumerate(("github-hosted", "self-hosted", "container", "")):
        folder = tmp_path / f"{number}"
        needs_nothing = place == "github-hosted"
        environ = hosted(folder, bubblewrap=needs_nothing, restriction="0" if needs_nothing else "1")
        if place == "container":
            (folder / "root" / ".dockerenv").touch()
        else:
            environ["RUNNER_ENVIRONMENT"] = place
        prepare.raise_level(environ, folder / "root")
        assert not (folder / "asked").exists(), place


@pytest.mark.parametrize("has_sudo", [True, False])
def test_without_rights_it_is_told_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, has_sudo: bool
) -> None:
    environ = hosted(tmp_path, sudo="exit 1")
    if not has_sudo:
        (tmp_path / "bin" / "sudo").unlink()
    prepare.raise_level(environ, tmp_path / "root")
    told = [each for each in runner.commands(capsys.readouterr().err) if each.name == "warning"]
    assert len(told) == 2
    assert all("could not be raised" in each.data for each in told)


def prepared(tmp_path: Path, **more: str) -> subprocess.Popen[str]:
    environ = {
        "PATH": os.environ["PATH"],
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        **more,
    }
    words = [sys.executable, "-I", str(SCRIPT)]
    return subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_an_index_without_the_packages_is_an_error_in_log_summary_and_output(tmp_path: Path) -> None:
    with prepared(tmp_path, PIP_NO_INDEX="1") as process:
        printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    (told,) = [each for each in runner.commands(printed) if each.name == "error"]
    assert "Zelda's packages could not be installed" in told.data
    assert runner.outputs((tmp_path / "output").read_text()) == {"verdict": "broken"}
    assert told.data in (tmp_path / "summary").read_text()
    # What is half there is not taken for whole.
    assert not list((tmp_path / "temp").glob("zelda-ci/*/complete"))


def test_outside_of_a_workflow_it_says_so(tmp_path: Path) -> None:
    with prepared(tmp_path, RUNNER_TEMP="") as process:
        printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "RUNNER_TEMP is not set" in printed
