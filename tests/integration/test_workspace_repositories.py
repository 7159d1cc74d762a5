"""Repositories of every kind: they work, or end in a sentence; and none of them is changed, not even a time of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.workspaces import Workspaces

ODD = (
    b"with space", b"-rf", b"new\nline", b'quo"te', b"apo'strophe", b"back\\slash", b"col:on", b"not-utf8-\xff\xfe",
    b"uml\xc3\xa4ut", b"%41", b"*", b"[a]", b":(top)", b"tab\t", b"$(touch x)", b"~", b"HEAD",
)  # fmt: skip


def unchanged(project: Project, work: Callable[[Workspaces, Workspace], Any] | None = None, **settings: Any) -> Any:
    """Run a session that changes a file, and see that the project is as it was."""
    before = project.fingerprint()
    returned = None

    async def session(workspaces: Workspaces, workspace: Workspace) -> None:
        nonlocal returned
        assert (workspace.path / "README.md").read_bytes().strip() == b"hello"
        if work is not None:
            returned = await work(workspaces, workspace)
        done = await workspaces.run_command(workspace, "echo changed > README.md && git commit -qam changed", PATIENCE)
        assert done.exit_code == 0, done.output
        changes = await workspaces.changes(workspace, project.home / "patch")
        assert changes.files == (str((workspace.path / "README.md").relative_to(workspace.root)),)

    project.work(session, **settings)
    assert project.fingerprint() == before
    assert project.leftovers() == []
    return returned


def refused(project: Project, **settings: Any) -> WorkspaceError:
    before = project.fingerprint()

    async def never(_: Workspaces, __: Workspace) -> None:
        pytest.fail("it was opened")

    with pytest.raises(WorkspaceError) as caught:
        project.work(never, **settings)
    assert project.fingerprint() == before
    assert project.leftovers() == []
    assert "Traceback" not in caught.value.user_message
    return caught.value


def at(project: Project, path: Path, **environ: str) -> Project:
    """The same developer in another folder."""
    (path / ".zelda").mkdir(exist_ok=True)
    return Project(path, project.home, environ)


def test_a_shallow_clone_and_one_that_borrows_objects(tmp_path: Path) -> None:
    origin = repository(tmp_path, init=("--object-format=sha256",))
    origin.commit("second")
    origin.git("clone", "-q", "--depth=1", f"file://{origin.path}", str(tmp_path / "clone"))
    unchanged(at(origin, tmp_path / "clone"), historyDepth=5)
    origin.git("clone", "-q", "--shared", str(origin.path), str(tmp_path / "borrowing"))
    unchanged(at(origin, tmp_path / "borrowing"))


def test_a_worktree_of_another_checkout_with_settings_of_its_own(tmp_path: Path) -> None:
    main = repository(tmp_path)
    main.write({".claude/skills/untracked/SKILL.md": "never"})
    main.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = at(main, tmp_path / "linked")
    linked.git("config", "extensions.worktreeConfig", "true")
    linked.git("config", "--worktree", "core.autocrlf", "true")

    async def work(_: Workspaces, workspace: Workspace) -> None:
        assert not (workspace.root / ".claude").exists()
        assert (workspace.root / "README.md").read_bytes() == b"hello\r\n"

    before = main.fingerprint()
    unchanged(linked, work)
    assert main.fingerprint() == before


def test_a_subfolder_of_a_repository(tmp_path: Path) -> None:
    top = repository(tmp_path, {"other/file": "x", "CLAUDE.md": "of the whole", "pack age/README.md": "hello\n"})
    project = at(top, top.path / "pack age")

    async def work(workspaces: Workspaces, workspace: Workspace) -> None:
        assert workspace.path == workspace.root / "pack age"
        assert (workspace.root / "CLAUDE.md").read_text() == "of the whole"
        assert (await workspaces.run_command(workspace, ("pwd",), PATIENCE)).output.strip() == str(workspace.path)

    before = top.fingerprint()
    unchanged(project, work)
    assert top.fingerprint() == before


def test_what_cannot_be_tested_is_a_sentence(tmp_path: Path) -> None:
    project = repository(tmp_path)
    project.write({"new/README.md": "x"})
    error = refused(at(project, project.path / "new"))
    assert (error.code, "new/ is not in the last commit" in error.message) == ("NOT_COMMITTED", True)
    assert "repository without files" in refused(at(project, project.path / ".git")).message
    project.git("clone", "-q", "--bare", str(project.path), str(tmp_path / "bare"))
    assert "repository without files" in refused(at(project, tmp_path / "bare")).message

    # One that is committed as ordinary files, with a commit and settings of a stranger's.
    shutil.copytree(project.path / ".git", project.path / "app")
    project.write({"app/README.md": "x", "app/refs/keep": ""})
    project.git("config", "--file", "app/config", "core.worktree", "..")
    project.git("add", "app")
    project.commit()
    for place in ("app", "app/refs"):
        assert "repository without files" in refused(at(project, project.path / place)).message

    # As a git that is older than the repository says it.
    newer = repository(tmp_path / "newer")
    newer.git("config", "core.repositoryformatversion", "1")
    newer.git("config", "extensions.ofTomorrow", "true")
    assert "fatal: unknown repository extension found: oftomorrow" in refused(newer).message

    # `git checkout` puts a commit there, whatever has the tag.
    tagged = repository(tmp_path / "tagged")
    tagged.git("tag", "-a", "-m", "a tag", "v1")
    (tagged.path / ".git/HEAD").write_text(tagged.git("rev-parse", "v1"))
    assert "The repository lacks" in refused(tagged).message

    blob = project.git("rev-parse", "HEAD:README.md")
    (project.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert "git pack-objects failed" in refused(project).message
    project.git("checkout", "-q", "--orphan", "empty")
    error = refused(project)
    assert (error.code, "`git commit --allow-empty" in error.message) == ("NO_COMMIT", True)

    # A broken repository is not taken for a plain folder.
    (project.path / ".git/HEAD").write_text("nonsense")
    assert "is not a repository that git can read" in refused(project).message
    gone = Project(tmp_path / "gone", project.home)
    gone.path.mkdir()
    (gone.path / ".git").write_text("gitdir: /nowhere\n")
    assert "not a git repository" in refused(gone).message


def test_odd_names_inside_and_of_the_project_itself(tmp_path: Path) -> None:
    files = {os.fsdecode(name): "x" for name in ODD} | {"README.md": "hello\n"}
    project = repository(tmp_path, files, name=os.fsdecode(b"/".join(ODD[:8])))
    project.write({os.fsdecode(b"dir\n\xff" + name): "y" for name in (b"/a", b"/b c")})
    (project.path / "dangling").symlink_to("/no/such/file")
    (project.path / "absolute").symlink_to("/etc/passwd")
    (project.path / "folder").symlink_to("..")
    project.commit()

    async def work(_: Workspaces, workspace: Workspace) -> None:
        inside = {os.fsencode(entry.name) for entry in workspace.root.iterdir()}
        assert inside >= {*ODD, b"dir\n\xff"}
        assert (workspace.root / "absolute").readlink() == Path("/etc/passwd")

    unchanged(project, work)


def test_filters_hooks_and_monitors_of_the_developer_do_not_run(tmp_path: Path) -> None:
    project = repository(tmp_path)
    trace = tmp_path / "ran"
    project.git("config", "filter.crypt.smudge", f"touch {trace}; cat")
    project.git("config", "filter.crypt.clean", f"touch {trace}; cat")
    project.git("config", "filter.crypt.required", "true")
    project.write({"sub/.gitattributes": "# filter=no\n*.bin filter=crypt -text\n", "sub/big.bin": "pointer\n"})
    project.commit()
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "fsmonitor"):
        (project.path / ".git/hooks" / hook).write_text(f"#!/bin/sh\ntouch {trace}\n")
        (project.path / ".git/hooks" / hook).chmod(0o755)
    project.git("config", "core.fsmonitor", ".git/hooks/fsmonitor")
    project.git("config", "uploadpack.packObjectsHook", f"touch {trace}; exec")
    trace.unlink(missing_ok=True)

    async def work(_: Workspaces, workspace: Workspace) -> tuple[str, ...]:
        assert (workspace.root / "sub/big.bin").read_text() == "pointer\n"
        return workspace.notes

    (note,) = unchanged(project, work)
    assert note.startswith("Files with the content filter crypt are as Git stores them")
    assert not trace.exists()


def test_variables_that_point_git_elsewhere(tmp_path: Path) -> None:
    other = repository(tmp_path, {"README.md": "the wrong one\n"}, name="other")
    project = repository(tmp_path)
    places = {"GIT_DIR": str(other.path / ".git"), "GIT_WORK_TREE": str(other.path)}
    places |= {"GIT_INDEX_FILE": str(tmp_path / "nowhere"), "GIT_OBJECT_DIRECTORY": "/nowhere"}
    hook = at(project, project.path, GIT_CONFIG_PARAMETERS="'core.bare=true'", **places)
    before = other.fingerprint()
    unchanged(hook)
    assert other.fingerprint() == before


def test_a_partial_clone_works_if_it_has_the_files(tmp_path: Path) -> None:
    origin = repository(tmp_path, {f"f{n}": str(n) * 1000 for n in range(5)} | {"README.md": "hello\n"})
    origin.write({"f1": "changed"})
    origin.commit()
    origin.git("config", "uploadpack.allowFilter", "true")
    origin.git("config", "uploadpack.allowAnySHA1InWant", "true")
    url = f"file://{origin.path}"
    origin.git("clone", "-q", "--filter=blob:none", url, str(tmp_path / "full"))
    unchanged(at(origin, tmp_path / "full"))
    origin.git("clone", "-q", "--filter=blob:none", "--no-checkout", url, str(tmp_path / "empty"))
    error = refused(at(origin, tmp_path / "empty"))
    assert error.code == "PARTIAL_CLONE"
    assert "partial clone" in error.message


OPENING = """
import sys, anyio
from pathlib import Path
from tests.builders import suite
from zelda_ci.errors import WorkspaceError
from zelda_ci.redact import Redactor
from zelda_ci.workspace.workspaces import Workspaces

project, base, path = sys.argv[1:]

async def main():
    environ = {"PATH": path, "ZELDA_WORKSPACES": base}
    try:
        async with Workspaces(Path(project), Path(".zelda"), environ, Redactor()).open("run-1", suite()):
            print("opened")
    except WorkspaceError as error:
        print("explained:", error.user_message)
    print("left:", *Path(base).glob("*/runs/*"), *Path(base).glob("*/trash/*"))

anyio.run(main)
"""


def opening(project: Project, before: tuple[str, ...]) -> str:
    """What another process says that opens a workspace."""
    argv = [*before, sys.executable, "-c", OPENING, str(project.path), str(project.base), os.environ["PATH"]]
    # A process that may not write cannot count its lines either.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    root = Path(__file__).parents[2]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=root, env=environ, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    project = repository(tmp_path, {"big": os.urandom(3_000_000)})
    project.base.mkdir()
    mount = 'mount -t tmpfs -o size=4m tmpfs "$0" && mkdir -m 700 "$0/base" && exec "$@"'
    before = ("unshare", "-Urm", "sh", "-c", mount, str(project.base))
    if subprocess.run((*before[:2], "true"), capture_output=True, check=False).returncode:
        pytest.skip("needs user and mount namespaces")
    project.environ["ZELDA_WORKSPACES"] = str(project.base / "base")
    said = opening(project, before)
    assert said.startswith("explained: ")
    assert "Make room, or set ZELDA_WORKSPACES" in said
    assert said.endswith("left:\n")
