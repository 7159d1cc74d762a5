"""The project's own programs and variables: `execution.path`, `execution.env`, and setup that a lock file suggests."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support import needs
from tests.support.command import the_result, transcript, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text, tool_call
from zelda_ci.sandbox import readable_paths
from zelda_ci.sandbox.readable_paths import PrivateFolders


def suite(**keys: object) -> str:
    return "prompt: Look around.\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items())


def project_with(tmp_path: Path, files: dict[str, str], **suites: str) -> Project:
    return repository(tmp_path, {**files, **{f"zelda/test-{name}.yaml": suites[name] for name in suites}})


def problems(project: Project) -> list[str]:
    done = zelda(project, "validate")
    assert done.returncode == 2, done.stdout
    return [line for line in done.stderr.splitlines() if line.startswith(("zelda/", "zelda.config"))]


def test_programs_and_variables_of_a_suite_reach_session_and_every_command(tmp_path: Path) -> None:
    """The tested tree's folder comes first, then the machine's, then PATH; session and commands have the same."""
    machine = tmp_path / "toolchain" / "bin"
    machine.mkdir(parents=True)
    (machine / "machine-tool").write_text("#!/bin/sh\necho of the machine\n")
    (machine / "machine-tool").chmod(0o755)
    check = 'own-tool && machine-tool && test "$GREETING" = \'hello there\' && test "$PASSED" = mine'
    settings = {"path": ["tools/bin", str(machine)], "env": {"GREETING": "hello there", "PASSED": None}}
    files = {"tools/bin/own-tool": "#!/bin/sh\necho of the project\n"}
    one = suite(setupCommand=check, buildCommand=check, testCommand=check, execution=settings)
    project = project_with(tmp_path, files, one=one)
    (project.path / "tools/bin/own-tool").chmod(0o755)
    project.commit()
    with ScriptedApi([tool_call("Bash", {"command": check}), text("Done.")]) as api:
        done = zelda(project, "run", "--json", api=api.url, PASSED="mine")
    assert done.returncode == 0, done.stdout + done.stderr
    session = json.dumps(transcript(project))
    assert "of the project" in session
    assert "of the machine" in session


REFUSED = {
    "{HOME: /x}": "3:9: execution.env: HOME is a variable that a session never gets: every run has a HOME of its own",
    "[PATH]": "3:3: execution.env: PATH is a variable that a session never gets: list folders in execution.path",
    "{LD_PRELOAD: x.so}": "3:9: execution.env: LD_PRELOAD is a variable that a session never gets",
    "{CLAUDE_CODE_USE_BEDROCK: '1'}": "3:9: execution.env: CLAUDE_CODE_USE_BEDROCK would lead sessions to another",
    "{HTTPS_PROXY: 'http://x'}": "3:9: execution.env: HTTPS_PROXY belongs to Claude Code or Zelda",
    "{NPM_TOKEN: abcdef}": "3:9: execution.env: NPM_TOKEN looks like a credential: set NPM_TOKEN where",
    "{DB: 'postgres://me:hunter2@host/x'}": "3:13: execution.env.DB holds a credential, which does not belong in a",
    "{PORT: 8080}": "3:15: execution.env.PORT must be text: put 8080 in quotes",
    "{'A B': x}": "3:9: execution.env: A B must be the name of an environment variable, without a value",
}


def test_variables_that_no_session_gets_are_refused_by_validate_and_run_alike(tmp_path: Path) -> None:
    suites = {f"s{at}": f"prompt: Look.\nexecution:\n  env: {value}\n" for at, value in enumerate(REFUSED)}
    project = project_with(tmp_path, {"README.md": "#\n"}, **suites)
    found = problems(project)
    for name, words in zip(suites, REFUSED.values(), strict=True):
        assert any(problem.startswith(f"zelda/test-{name}.yaml:{words}") for problem in found), (name, found)
    assert len(found) == len(REFUSED)
    with ScriptedApi([]) as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == 2
    assert all(problem in done.stderr for problem in found)


def test_folders_of_programs_are_refused_by_validate_and_run_alike(tmp_path: Path) -> None:
    home = os.environ["HOME"]
    project = project_with(
        tmp_path,
        {"README.md": "#\n"},
        gone=suite(execution={"path": ["/nowhere/bin"]}),
        home=suite(execution={"path": [home]}),
        up=suite(execution={"path": ["fine/bin"]}),
    )
    checked = zelda(project, "validate")
    with ScriptedApi([]) as api:
        ran = zelda(project, "run", api=api.url)
    for done in (checked, ran):
        assert done.returncode == 2
        assert "zelda/test-gone.yaml:2: execution.path lists /nowhere/bin, which does not exist." in done.stderr
        assert f"zelda/test-home.yaml:2: execution.path lists {home}, which would show" in done.stderr
        assert "test-up" not in done.stderr
    project.write({"zelda/test-up.yaml": suite(execution={"path": ["../bin", "~/bin", "a:b"]})})
    assert len(problems(project)) == 3


def test_the_files_of_a_run_decide_neither_who_confines_it_nor_what_it_reads_nor_what_tests_start(
    tmp_path: Path,
) -> None:
    """A `bwrap` and a shell in the tested tree's folder of programs are not Zelda's; a link there opens nothing.

    What a session adds to that folder is not there when build and tests run.
    """
    needs.level("full")
    secret = tmp_path / "elsewhere" / "secret"
    secret.parent.mkdir()
    secret.write_text("not for runs")
    mark = tmp_path / "escaped"
    fake = f"#!/bin/sh\ntouch {mark}\nexit 0\n"
    one = suite(
        testCommand=f"! cat bin/link && ! cat {secret} && check",
        execution={"path": ["bin"], "env": {"JAVA_HOME": str(secret.parent)}},
        isolation={"level": "full"},
    )
    project = project_with(tmp_path, {"bin/bwrap": fake, "bin/bash": fake, "bin/check": "#!/bin/sh\nexit 3\n"}, one=one)
    (project.path / "bin/link").symlink_to(secret)
    for name in ("bwrap", "bash", "check"):
        (project.path / "bin" / name).chmod(0o755)
    project.commit()
    cheat = "printf '#!/bin/sh\\nexit 0\\n' > bin/check; cp bin/check bin/sh; chmod +x bin/*"
    with ScriptedApi([tool_call("Bash", {"command": cheat}), text("Done.")]) as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == 1, done.stdout + done.stderr
    assert not mark.exists()
    details: Any = the_result(project)["evaluations"]["functionalCorrectness"]["details"]
    assert details["test"]["exitCode"] == 3


def test_what_may_be_read_holds_no_socket_however_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep, link, private = tmp_path / "notes/deep", tmp_path / "link", PrivateFolders(Path("/p"), Path("/b"))
    deep.mkdir(parents=True)
    link.symlink_to("notes")
    os.mknod(deep / "s", stat.S_IFSOCK | 0o600)
    for asked in (tmp_path / "notes", deep / "s", link / "deep", deep / ".."):
        assert str(readable_paths.refusal(asked, private)).endswith("notes/deep/s'")
    (deep / "s").unlink()
    assert readable_paths.refusal(deep / "..", private) is None
    monkeypatch.setattr(readable_paths, "SEARCH_SECONDS", 0)  # the real bound would need millions of files
    assert "is too large" in str(readable_paths.refusal(deep, private))
