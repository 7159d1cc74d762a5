"""Submodules and files of Git LFS in whole runs: sessions and commands find them, or it is said before they begin."""

import json
from pathlib import Path

from tests.integration.test_run_against import GREETS, SILENT, SUITE, against
from tests.support.command import environment, run, the_result
from tests.support.named_contents import add_submodule, clone, forget, keep, use_lfs
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text, tool_call

CONTENT = b"contents of a large file\n"
LOOK = """\
prompt: Look.
metrics: {toolUsage: false}
buildCommand: grep -q contents big.bin
testCommand: grep -q changed lib/a.txt && test -f lib/b.txt && git diff --quiet HEAD -- big.bin
"""


def project_of(tmp_path: Path) -> Project:
    library = repository(tmp_path, {"a.txt": "of the library\n", "b.txt": "b\n"}, name="library")
    project = repository(tmp_path, {"README.md": "hello\n", "zelda/test-look.yaml": LOOK})
    add_submodule(project, library.path, "lib")
    use_lfs(project)
    project.write({"big.bin": CONTENT})
    project.commit()
    keep(project.path / ".git", CONTENT)
    return project


def test_a_session_its_build_and_its_tests_find_submodules_and_large_files(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    script = [
        tool_call("Bash", {"command": "cat lib/a.txt big.bin; git status --porcelain; echo changed >> lib/a.txt"}),
        text("Done."),
    ]
    before = project.fingerprint()
    with ScriptedApi(script) as api:
        done = run(["run"], project.path, environment(project, api.url))
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.fingerprint() == before
    (seen,) = [result["content"] for result in api.requests[1].tool_results]
    assert seen == "of the library\ncontents of a large file"
    result = the_result(project)
    assert result["changes"]["files"] == ["lib/a.txt"]
    assert result["evaluations"]["functionalCorrectness"]["score"] == 100
    assert result["source"]["commit"] == project.git("rev-parse", "HEAD")
    assert "lacks" not in done.stdout + done.stderr


def test_what_is_missing_is_said_before_anything_is_spent(tmp_path: Path) -> None:
    project = clone(project_of(tmp_path), tmp_path / "clone")
    with ScriptedApi([]) as api:
        checked = run(["check", "--json"], project.path, environment(project, api.url))
    assert checked.stdout, checked.stderr
    (check,) = [each for each in json.loads(checked.stdout)["checks"] if each["subject"] == "git"]
    assert check["status"] == "warning"
    for words in ("lacks 1 submodule, so sessions find empty folders: lib.", "`submodules: recursive`"):
        assert words in check["message"]
    for words in ("lacks 1 file of Git LFS, so sessions find pointers: big.bin.", "`lfs: true`", "git lfs pull"):
        assert words in check["message"]

    with ScriptedApi([text("Done.")]) as api:
        done = run(["run", "--json"], project.path, environment(project, api.url))
    notes = json.loads(done.stdout)["notes"]
    assert [note.partition(",")[0] for note in notes] == [
        "The checkout lacks 1 submodule",
        "The checkout lacks 1 file of Git LFS",
    ]
    said = " ".join(done.stderr.split())
    assert said.index("lacks 1 submodule") < said.index("lacks 1 file of Git LFS") < said.index("look")


def test_a_base_that_lacks_what_the_head_has_does_not_run_beside_it(tmp_path: Path) -> None:
    library = repository(tmp_path, {"a.txt": "old\n"}, name="library")
    project = repository(tmp_path, {"CLAUDE.md": GREETS, "zelda/test-greeting.yaml": SUITE})
    add_submodule(project, library.path, "lib")
    library.write({"a.txt": "new\n"})
    library.commit()
    # As actions/checkout does it: only the commit that the head names.
    forget(project, "lib")
    newer = library.git("rev-parse", "HEAD")
    project.git("update-index", "--cacheinfo", f"160000,{newer},lib")
    project.write({"CLAUDE.md": SILENT})
    project.git("commit", "-qam", "newer")
    library.git("config", "uploadpack.allowAnySHA1InWant", "true")
    project.git("config", "submodule.lib.url", f"file://{library.path}")
    project.git("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--depth=1")
    code, output, _ = against(project, "--trials", "1")
    assert code == 2
    assert "It would not be a fair comparison. The checkout lacks 1 submodule of the base commit: lib" in output
    assert "git lfs fetch" in output

    # With its history it is fair.
    project.git("-c", "protocol.file.allow=always", "fetch", "-q", "--unshallow", cwd=project.path / "lib")
    code, output, _ = against(project, "--trials", "1", "--jobs", "2")
    assert (code, "fair comparison" in output) == (0, False), output
