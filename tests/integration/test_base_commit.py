"""Workspaces of another commit of the same project: beside the first, from wherever the commit can be had."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.integration.test_base_of_a_pull_request import TOKEN, served, source
from tests.support.projects import Project, folder, repository
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.source import BaseOrder


def tree(project: Project, order: BaseOrder | None, *, working_tree: bool = False) -> dict[str, str]:
    """What a session finds in its workspace, and how its source is described."""
    places = project.workspaces(working_tree=working_tree, base=order)

    async def main() -> dict[str, str]:
        async with places.open("run-1", project.suite()) as workspace:
            files = [file for file in workspace.path.rglob("*") if file.is_file() and ".git" not in file.parts]
            found = {file.relative_to(workspace.path).as_posix(): file.read_text() for file in files}
            return {**found, "commit": workspace.source.commit or ""}

    return anyio.run(main)


def refusal(project: Project, order: BaseOrder) -> WorkspaceError:
    with pytest.raises(WorkspaceError) as caught:
        tree(project, order)
    assert not project.leftovers()
    return caught.value


def two_commits(tmp_path: Path) -> Project:
    project = repository(tmp_path, {"CLAUDE.md": "old\n", "gone.md": "gone\n"})
    (project.path / "gone.md").unlink()
    project.write({"CLAUDE.md": "new\n"})
    project.commit()
    return project


def test_another_commit_is_checked_out_beside_the_head_by_whatever_name(tmp_path: Path) -> None:
    project = two_commits(tmp_path)
    project.git("tag", "-a", "-m", "first", "v1", "HEAD~1")
    commit = project.git("rev-parse", "HEAD~1")
    project.write({"CLAUDE.md": "not committed\n"})
    before = project.fingerprint()
    for ref in ("main~1", "v1", commit):
        base = tree(project, BaseOrder(ref))
        assert (base["CLAUDE.md"], base["gone.md"], base["commit"]) == ("old\n", "gone\n", commit)
    assert tree(project, None)["CLAUDE.md"] == "new\n"
    assert tree(project, None, working_tree=True)["CLAUDE.md"] == "not committed\n"
    assert project.fingerprint() == before
    assert not project.leftovers()


def test_what_is_no_commit_here_is_refused_in_a_sentence(tmp_path: Path) -> None:
    project = two_commits(tmp_path)
    for ref in ("nowhere", "--upload-pack=touch x", "HEAD:CLAUDE.md", "0" * 40, ""):
        problem = refusal(project, BaseOrder(ref))
        assert problem.code == "BASE_UNAVAILABLE"
        assert problem.hint
    assert not (project.path / "x").exists()


def test_a_folder_without_git_has_no_base(tmp_path: Path) -> None:
    assert "no git repository" in refusal(folder(tmp_path), BaseOrder("HEAD~1")).message


def test_a_project_that_the_base_does_not_have(tmp_path: Path) -> None:
    top = repository(tmp_path, {"a.md": "a\n"})
    top.write({"part/b.md": "b\n"})
    top.commit()
    assert "part/ is not in" in refusal(replace(top, path=top.path / "part"), BaseOrder("HEAD~1")).message


@contextmanager
def shallow(tmp_path: Path) -> Iterator[tuple[Project, str, str]]:
    """A checkout of depth 1 without credentials of its own, its base commit, and the server that has it."""
    files = {"CLAUDE.md": "old\n", "octo.md": "\n"}
    upstream = repository(tmp_path / "served", files)
    base = upstream.git("rev-parse", "HEAD")
    upstream.write({"CLAUDE.md": "new\n"})
    upstream.commit()
    (tmp_path / "served/octo").mkdir()
    (tmp_path / "served/octo/shop").symlink_to(upstream.path / ".git")
    head = folder(tmp_path / "head", {"nothing": ""})
    head.git("clone", "-q", "--depth=1", f"file://{upstream.path}", str(head.path / "shop"))
    checkout = replace(head, path=head.path / "shop")
    (checkout.path / ".zelda").mkdir()
    with served(tmp_path / "served") as url:
        checkout.git("remote", "set-url", "origin", f"{url}/octo/shop")
        yield checkout, base, url


def test_a_shallow_checkout_without_credentials_gets_the_base_with_the_token_of_the_job(tmp_path: Path) -> None:
    with shallow(tmp_path) as (checkout, base, url):
        before = checkout.fingerprint()
        order = BaseOrder(base, source(checkout, url, TOKEN, base).fetch)
        found = tree(checkout, order)
        assert (found["CLAUDE.md"], found["commit"]) == ("old\n", base)
        assert checkout.fingerprint() == before
    kept = [file for file in checkout.base.rglob("*") if file.is_file() and TOKEN.encode() in file.read_bytes()]
    assert not kept


def test_a_base_that_nobody_hands_over_is_said_with_the_reason(tmp_path: Path) -> None:
    token = "ghs_fakeAndNobodys"
    with shallow(tmp_path) as (checkout, base, url):
        problem = refusal(checkout, BaseOrder(base, source(checkout, url, token, base).fetch))
    assert problem.code == "BASE_UNAVAILABLE"
    assert base[:7] in problem.message
    assert token not in problem.message
