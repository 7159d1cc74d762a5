"""What is tested where something is not committed: said beforehand; or the working tree, which stays untouched."""

import json
import os
import shutil
from pathlib import Path

import anyio

from tests.integration.test_workspace_submodules import files_of
from tests.support.command import environment, run, run_cold, the_result
from tests.support.named_contents import use_lfs
from tests.support.projects import Project, repository
from tests.support.scripted_api import Reply, ScriptedApi, text, tool_call

SUITE = "prompt: Look around.\nhistoryDepth: 3\nmetrics: {toolUsage: false}\n"
LOOK = "cat README.md; ls -A . new 2>&1; cat new/tool.sh; git status --porcelain; git log --format=%s"
SHOWN = "CREDENTIAL-OF-THE-DEVELOPER"


def look() -> list[Reply]:
    return [tool_call("Bash", {"command": LOOK}), text("Done.")]


def dirty(tmp_path: Path) -> Project:
    """Changed, staged, deleted, renamed, new, ignored and private files."""
    project = repository(
        tmp_path,
        {"README.md": "as committed\n", "old.txt": "old\n", "gone.txt": "gone\n", "new/.gitignore": "ignored.txt\n"}
        | {"zelda/test-look.yaml": SUITE, ".gitattributes": "*.big filter=loud\n", "a.big": "pointer\n"},
    )
    project.git("config", "filter.loud.clean", f"touch {tmp_path}/filter-ran; cat")
    project.git("config", "core.splitIndex", "true")
    hook = project.path / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
    hook.chmod(0o755)
    project.write({"README.md": "as it is now\n", "staged.txt": "staged\n", "new/ignored.txt": "ignored\n"})
    project.git("add", "staged.txt")
    project.git("mv", "old.txt", "renamed.txt")
    (project.path / "gone.txt").unlink()
    project.write({"new/tool.sh": "echo new\n", "new/.env.local": f"KEY={SHOWN}\n", "a.big": "bigger\n"})
    project.write({"deploy.pem": f"-----BEGIN PRIVATE KEY-----\n{SHOWN}\n", "new/deep/id_rsa": SHOWN})
    (project.path / "new/tool.sh").chmod(0o755)
    # Older than the files: git then reads all of them, and must not write what it has.
    os.utime(project.path / ".git/index", (1, 1))
    (tmp_path / "hook-ran").unlink(missing_ok=True)
    (tmp_path / "filter-ran").unlink(missing_ok=True)
    return project


def test_the_working_tree_is_tested_and_nothing_of_the_repository_changes(tmp_path: Path) -> None:
    project = dirty(tmp_path)
    before = project.fingerprint()
    with ScriptedApi(look()) as api:
        done = run_cold(["run"], project.path, environment(project, api.url))
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.fingerprint() == before
    assert not (tmp_path / "hook-ran").exists()
    assert not (tmp_path / "filter-ran").exists()
    assert not [*project.base.glob("*/trees/*")]
    (seen,) = [result["content"] for result in api.requests[1].tool_results]
    printed = seen if isinstance(seen, str) else json.dumps(seen)
    for there in ("as it is now", "staged.txt", "renamed.txt", "tool.sh", "echo new", "The files as they were found"):
        assert there in printed
    for absent in ("gone.txt", "old.txt", "ignored.txt", ".env.local", "deploy.pem", "id_rsa", "bigger", " M ", "?? "):
        assert absent not in printed
    assert "first" in printed
    assert SHOWN not in "".join(json.dumps(request.body) for request in api.requests)
    assert "Left out of the working tree, since credentials may be in them: deploy.pem, new/.env.local" in done.stdout
    head = project.git("rev-parse", "HEAD")
    source = the_result(project)["source"]
    assert (source["parent"], source["dirty"]) == (head, False)
    assert f"the working tree on commit {head[:7]} (main)" in done.stdout
    assert "were not tested" not in done.stdout

    # The same tree is the same commit, another one another, and a clean one its own.
    assert project.inspected(working_tree=True).commit == source["commit"] != head
    project.write({"README.md": "as it is later\n"})
    assert project.inspected(working_tree=True).commit not in {source["commit"], head}
    project.git("stash", "push", "-q", "--include-untracked")
    assert project.inspected(working_tree=True).commit == head


def test_folders_outside_of_a_sparse_checkout_are_as_committed(tmp_path: Path) -> None:
    project = repository(tmp_path, {"src/a.py": "a\n", "lib/deep/b.py": "b\n", "README.md": "hello\n"})
    project.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
    project.write({"src/a.py": "changed\n", "src/new.py": "new\n"})
    project.git("status")
    before = project.fingerprint()

    async def look() -> set[str]:
        async with project.workspaces(working_tree=True).open("run-1", project.suite()) as workspace:
            return {*files_of(workspace.root)}

    assert anyio.run(look) == {".gitignore", "README.md", "lib/deep/b.py", "src/a.py", "src/new.py"}
    assert project.fingerprint() == before


def test_where_a_commit_is_tested_uncommitted_files_are_named_before_anything_is_spent(tmp_path: Path) -> None:
    project = dirty(tmp_path)
    with ScriptedApi(look()) as api:
        done = run(["run", "--commit"], project.path, environment(project, api.url))
    assert done.returncode == 0
    told, _, rest = done.stdout.partition("look  workspace")
    assert rest
    assert "uncommitted files will not be tested, since a commit is: " in told
    for name in ("README.md", "staged.txt", "renamed.txt", "gone.txt", "new/", "a.big"):
        assert name in told.partition("uncommitted")[2]
    assert "ignored.txt" not in told


def test_a_folder_that_is_not_committed_yet_can_be_tested(tmp_path: Path) -> None:
    project = repository(tmp_path, {"README.md": "one\n"})
    project.write({"part/zelda/test-look.yaml": SUITE, "part/README.md": "the part\n"})
    with ScriptedApi(look()) as api:
        refused = run(["run", "--commit"], project.path / "part", environment(project, api.url))
        done = run(["run"], project.path / "part", environment(project, api.url))
    assert refused.returncode == 2
    assert "without --commit" in refused.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the part" in json.dumps(api.requests[1].tool_results)


def test_files_that_only_a_filter_makes_look_changed_are_as_committed(tmp_path: Path) -> None:
    """Large files whose content is there, and files that a filter has decrypted for the developer alone."""
    project = repository(tmp_path, {"README.md": "hello\n", "zelda/test-look.yaml": SUITE})
    use_lfs(project)
    project.write({"big.bin": b"big" * 1000, ".gitattributes": "*.bin filter=lfs\n*.key filter=git-crypt\n"})
    project.write({"a.key": "encrypted\n"})
    project.commit()
    head = project.git("rev-parse", "HEAD")
    os.utime(project.path / "big.bin", (2, 2))
    source = project.inspected(working_tree=True)
    assert (source.commit, source.dirty) == (head, False)
    project.write({"a.key": f"{SHOWN} decrypted\n"})
    source = project.inspected(working_tree=True)
    assert (source.commit, source.dirty, source.left_out) == (head, False, ("a.key",))
    project.write({"big.bin": b"other" * 1000})
    assert project.inspected(working_tree=True).parent == head


def test_files_folders_and_links_take_each_others_place(tmp_path: Path) -> None:
    project = repository(tmp_path, {"file": "1", "folder/a": "2", "moved/b": "3", "staged": "4", "kept/c": "5"})
    (project.path / "file").unlink()
    shutil.rmtree(project.path / "folder")
    (project.path / "moved").rename(project.path / "other")
    (project.path / "moved").symlink_to("other")
    project.write({"file/x": "new", "folder": "new", "staged": "new"})
    project.git("add", "staged")
    project.git("rm", "-q", "--cached", "kept/c")

    async def main() -> dict[str, bytes]:
        async with project.workspaces(working_tree=True).open("run-1", project.suite()) as workspace:
            assert (workspace.root / "moved").is_symlink()
            return files_of(workspace.root)

    assert anyio.run(main) == files_of(project.path)
