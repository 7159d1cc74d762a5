"""Submodules that are checked out are in the workspace, as the commit names them; nothing of them is executed."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.named_contents import add_submodule, clone, with_nested
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from zelda_ci.domain.workspace import Workspace, WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.workspaces import Workspaces

CLEAN = "git status --porcelain --ignored; git diff --stat HEAD; git fsck --no-dangling 2>&1 | grep -v ^notice; true"


def files_of(root: Path) -> dict[str, bytes]:
    """Every file below a folder but git's own."""
    places = [place for place in root.rglob("*") if place.is_file() and not {".git", ".zelda"} & {*place.parts}]
    return {place.relative_to(root).as_posix(): place.read_bytes() for place in places}


def look(project: Project, script: str = CLEAN, **settings: Any) -> tuple[dict[str, bytes], str, tuple[str, ...]]:
    """A session's files, what a script of it prints, and the notes; nothing of the project changes by it."""
    before = project.fingerprint()

    async def work(workspaces: Workspaces, workspace: Workspace) -> tuple[dict[str, bytes], str, tuple[str, ...]]:
        files = files_of(workspace.root)
        done = await workspaces.run_command(workspace, script, PATIENCE)
        assert done.exit_code == 0, done.output
        return files, done.output, workspace.notes

    found = project.work(work, **settings)
    assert project.fingerprint() == before
    assert project.leftovers() == []
    assert list(project.base.glob("*/trees/*")) == []
    return found  # type: ignore[no-any-return]


def missing(project: Project) -> dict[str, str]:
    return dict(project.inspected().contents.submodules.missing)


def test_a_session_finds_the_files_of_nested_submodules_and_a_clean_tree(tmp_path: Path) -> None:
    project = with_nested(tmp_path)
    files, status, notes = look(project)
    assert files == files_of(project.path)
    assert files["lib/inner/deep.txt"] == b"deep\n"
    assert status == ""
    assert notes == ()
    source = project.inspected()
    assert source.contents.submodules.present == {"lib", "lib/inner"}
    assert (source.dirty, source.commit) == (False, project.git("rev-parse", "HEAD"))


def test_a_workspace_has_no_remote_no_branch_and_no_object_of_a_submodule_but_its_files(tmp_path: Path) -> None:
    library = repository(tmp_path, {"a": "first\n"}, name="library")
    project = repository(tmp_path)
    library.write({"a": "SECOND-VERSION\n"})
    library.commit()
    add_submodule(project, library.path, "lib")
    project.git(
        "config", "remote.origin.url", "https://user:TOKEN-OF-A-SUBMODULE@example.com/x", cwd=project.path / "lib"
    )
    script = """
        git remote -v; git config --list | grep -i submodule; git -C lib remote -v; git for-each-ref
        git cat-file --batch-all-objects --batch | grep -a first
        find . "$(git rev-parse --git-common-dir)" -type f -print0 | xargs -0 grep -l TOKEN-OF; git submodule status
        git submodule update --init --recursive && cat lib/a
    """
    assert look(project, script)[1] == "SECOND-VERSION\n"


def test_what_a_session_does_in_a_submodule_is_in_the_patch_and_in_the_fresh_checkout(tmp_path: Path) -> None:
    project = with_nested(tmp_path)
    patch = tmp_path / "patch"
    script = "echo Y=2 >> lib/src/lib.py; rm lib/run.sh; echo n > lib/inner/new; git -C lib commit -qam x; git add lib"

    async def work(workspaces: Workspaces, workspace: Workspace) -> tuple[tuple[str, ...], dict[str, bytes]]:
        await workspaces.run_command(workspace, script, PATIENCE)
        changes = await workspaces.changes(workspace, patch)
        assert not changes.truncated
        checked = await workspaces.check_out_again(workspace)
        return changes.files, files_of(checked.workspace.root)

    changed, fresh = project.work(work, protectedPaths=["lib/inner/**"])
    assert changed == ("lib/inner/new", "lib/run.sh", "lib/src/lib.py")
    assert "+Y=2" in patch.read_text()
    # What is protected is as committed, in a submodule, too.
    expected = files_of(project.path) | {"lib/src/lib.py": b"X = 1\nY=2\n"}
    del expected["lib/run.sh"]
    assert fresh == expected
    # The developer can apply it.
    project.git("apply", "--check", str(patch))


def test_suites_in_a_submodule_are_withheld_and_history_is_rewritten_as_a_whole(tmp_path: Path) -> None:
    library = repository(tmp_path, {"a": "1\n", "zelda/test-a.yaml": "prompt: SECRET-SUITE\n"}, name="library")
    project = repository(tmp_path, {"README.md": "x\n", "zelda/test-b.yaml": "prompt: SECRET-SUITE\n"})
    add_submodule(project, library.path, "lib")
    project.write({"README.md": "y\n"})
    project.commit("Last")
    script = f"git log --format=%s; git show --stat --format= HEAD; ls lib; {CLEAN}; git log -p | grep SECRET; true"
    output = look(project, script, historyDepth=5)[1]
    assert output.split("\n")[:3] == ["Last", "Add lib", "first"]
    assert output.split("\n")[3:] == [" README.md | 2 +-", " 1 file changed, 1 insertion(+), 1 deletion(-)", "a", ""]

    async def work(workspaces: Workspaces, workspace: Workspace) -> set[str]:
        checked = await workspaces.check_out_again(workspace)
        return {*files_of(checked.workspace.root)} - {*files_of(workspace.root)}

    assert project.work(work, commandsSeeSuites=True) == {"lib/zelda/test-a.yaml", "zelda/test-b.yaml"}


def test_only_what_the_commit_names_is_tested_whatever_the_checkout_has_beside_it(tmp_path: Path) -> None:
    project = with_nested(tmp_path)
    clean = files_of(project.path)
    (project.path / "lib/src/lib.py").write_text("X = 'changed'\n")
    (project.path / "lib/inner/untracked").write_text("x")
    assert look(project)[0] == clean
    source = project.inspected()
    assert source.contents.changed == ("lib", "lib/inner")
    assert source.dirty

    project.git("commit", "-qam", "Later", cwd=project.path / "lib")
    assert look(project)[0] == clean
    source = project.inspected()
    assert (source.contents.changed, source.changed) == (("lib", "lib/inner"), ())


def test_the_working_tree_has_submodules_as_they_lie_there(tmp_path: Path) -> None:
    project = with_nested(tmp_path)
    project.write({"lib/src/lib.py": "X = 'changed'\n", "lib/inner/untracked": "x", "lib/inner/.env": "KEY=x\n"})
    committed = project.inspected().contents.key
    before = project.fingerprint()

    async def main() -> tuple[dict[str, bytes], str, WorkspaceSource]:
        places = project.workspaces(working_tree=True)
        async with places.open("run-1", project.suite()) as workspace:
            status = await places.run_command(workspace, CLEAN, PATIENCE)
            return files_of(workspace.root), status.output, workspace.source

    files, status, source = anyio.run(main)
    assert project.fingerprint() == before
    expected = files_of(project.path)
    del expected["lib/inner/.env"]
    assert files == expected
    assert status == ""
    assert source.left_out == ("lib/inner/.env",)
    # It is no commit of anybody's, and never one state with the committed one.
    assert source.dirty
    assert source.contents.changed == ()
    assert source.contents.key != committed


def test_submodules_that_are_not_there_are_named_with_the_reason(tmp_path: Path) -> None:
    whole = with_nested(tmp_path)
    project = clone(whole, tmp_path / "clone")
    assert missing(project) == {"lib": ""}
    project.git("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
    assert missing(project) == {"lib/inner": ""}
    files, status, notes = look(project)
    assert "lib/src/lib.py" in files
    assert status == ""
    assert notes == ("Submodules are empty folders in the workspace: lib/inner.",)
    # What is tested of it is another state than the whole.
    assert project.inspected().contents.key != whole.inspected().contents.key

    # The commit is that of a colleague who has not pushed it, or one that `git pull` brought without its submodule.
    bump = "1" * 40
    project.git("update-index", "--cacheinfo", f"160000,{bump},lib")
    project.git("commit", "-qm", "Raise lib")
    assert missing(project) == {"lib": f"The repository lacks {bump[:12]} of what is tested"}
    assert "lib/src/lib.py" not in look(project)[0]


def _outside(project: Project, tmp_path: Path) -> str:
    """Its repository is somebody else's."""
    other = tmp_path / "elsewhere"
    (project.path / ".git/modules/lib").rename(other)
    (project.path / "lib/.git").write_text(f"gitdir: {other}\n")
    project.git("config", "--file", str(other / "config"), "core.worktree", str(project.path / "lib"))
    return "its repository lies outside that of the project"


def _of_the_project(project: Project, _: Path) -> str:
    """The project's own objects are no submodule's."""
    (project.path / "lib/.git").write_text("gitdir: ../.git\n")
    return "its repository lies outside that of the project"


def _link(project: Project, tmp_path: Path) -> str:
    """A link in the place of the folder."""
    (project.path / "lib").rename(tmp_path / "moved")
    (project.path / "lib").symlink_to(tmp_path / "moved")
    return "a link is in its place"


def _pipe(project: Project, _: Path) -> str:
    (project.path / "lib/.git").unlink()
    os.mkfifo(project.path / "lib/.git")
    return "its repository lies outside that of the project"


def _huge(project: Project, _: Path) -> str:
    os.truncate(project.path / "lib/.git", 1 << 40)
    return "git rev-parse failed: fatal: too large to be a .git file"


def _nonsense(project: Project, _: Path) -> str:
    (project.path / "lib/.git").write_bytes(b"gitdir: \0\xff\n")
    return "git rev-parse failed: fatal: not a git repository"


def _damaged(project: Project, _: Path) -> str:
    """An object of it is gone."""
    tree = project.git("rev-parse", "HEAD^{tree}", cwd=project.path / "lib")
    place = project.path / ".git/modules/lib/objects" / tree[:2] / tree[2:]
    place.unlink()
    return "git status failed"


@pytest.mark.parametrize("spoil", [_outside, _of_the_project, _link, _pipe, _huge, _nonsense, _damaged])
def test_a_hostile_or_broken_checkout_of_a_submodule_is_not_taken(tmp_path: Path, spoil: Any) -> None:
    library = repository(tmp_path, {"secret.txt": "of the library\n"}, name="library")
    project = repository(tmp_path)
    add_submodule(project, library.path, "lib")
    # Loose objects, so that one of them can be taken away.
    for pack in (project.path / ".git/modules/lib/objects/pack").glob("*.pack"):
        target = tmp_path / pack.name
        pack.rename(target)
        project.git("unpack-objects", "-q", cwd=project.path / "lib", stdin=target.read_bytes())
    reason = spoil(project, tmp_path)
    (found,) = missing(project).values()
    assert found.startswith(reason)
    if spoil is not _link:
        assert "lib/secret.txt" not in look(project)[0]


@pytest.mark.parametrize("name", [b"../out", b"a/.GIT", b"/etc"])
def test_a_gitlink_with_a_name_that_git_refuses_is_refused_as_git_does(tmp_path: Path, name: bytes) -> None:
    project = repository(tmp_path)
    entry = b"160000 %b\0%b" % (name, bytes.fromhex("1" * 40))
    tree = project.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=entry)
    project.git("update-ref", "HEAD", project.git("commit-tree", "-m", "hostile", tree))
    assert missing(project) == {os.fsdecode(name): "a name that git refuses"}


def test_nothing_of_a_submodule_is_executed(tmp_path: Path) -> None:
    library = repository(tmp_path, {"a": "x\n", ".gitattributes": "a filter=loud\n"}, name="library")
    project = repository(tmp_path)
    add_submodule(project, library.path, "lib")
    trace, inside = tmp_path / "ran", project.path / "lib"
    script = f"#!/bin/sh\ntouch {trace}\n"
    hooks = project.path / ".git/modules/lib/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor"):
        (hooks / hook).write_text(script)
        (hooks / hook).chmod(0o755)
    for setting in ("core.fsmonitor", "filter.loud.clean", "filter.loud.smudge", "uploadpack.packObjectsHook"):
        project.git("config", setting, str(hooks / "fsmonitor"), cwd=inside)
    project.write(
        {".gitmodules": '[submodule "../../x"]\n\tpath = lib\n\turl = ext::sh -c touch% ran\n\tupdate = !touch ran\n'}
    )
    os.utime(project.path / "lib/a", (1, 1))
    project.git("-c", "core.hooksPath=/dev/null", "add", ".gitmodules")
    project.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "hostile")
    trace.unlink(missing_ok=True)
    files, _, _ = look(project)
    assert files["lib/a"] == b"x\n"
    assert not trace.exists()
    assert project.inspected(working_tree=True).contents.submodules.present == {"lib"}
    assert not trace.exists()


def test_a_submodule_with_files_that_git_refuses_is_refused(tmp_path: Path) -> None:
    library = repository(tmp_path, name="library")
    project = repository(tmp_path)
    add_submodule(project, library.path, "lib")
    inside = project.path / "lib"
    blob = project.git("hash-object", "-w", "README.md", cwd=inside)
    listing = tmp_path / "listing"
    listing.write_bytes(b"100644 .GIT\0" + bytes.fromhex(blob))
    tree = project.git("hash-object", "-t", "tree", "-w", "--literally", str(listing), cwd=inside)
    commit = project.git("commit-tree", "-m", "hostile", tree, cwd=inside)
    project.git("update-index", "--cacheinfo", f"160000,{commit},lib")
    project.git("commit", "-qm", "hostile")
    with pytest.raises(WorkspaceError, match=r"invalid path 'lib/\.GIT'"):
        look(project)
