"""The base commit through GitHub's API: the very tree that git would have fetched, or a refusal in a sentence."""

import io
import os
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.integration.test_base_commit import tree
from tests.support.github_clients import api_of
from tests.support.github_server import GitHubServer
from tests.support.projects import Project, folder, repository
from zelda_ci.ci import base_api
from zelda_ci.ci.base import BaseSource
from zelda_ci.ci.base_arm import bring
from zelda_ci.redact import Redactor
from zelda_ci.workspace.base_commit import BaseOrder
from zelda_ci.workspace.git import prepare

SUBMODULE = "1" * 40


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        yield server


class Place:
    """A checkout of depth 1 that git can fetch nothing into, and GitHub with the whole repository."""

    def __init__(self, tmp_path: Path, github: GitHubServer, files: dict[str, str | bytes]) -> None:
        self.tmp_path, self.github, self.said = tmp_path, github, list[str]()
        self.upstream = repository(tmp_path / "upstream", {"CLAUDE.md": "old\n", **files})
        self.upstream.write({"run.sh": "#!/bin/sh\n"})
        (self.upstream.path / "run.sh").chmod(0o755)
        (self.upstream.path / "link").symlink_to("../elsewhere/CLAUDE.md")
        self.upstream.git("update-index", "--add", "--cacheinfo", f"160000,{SUBMODULE},vendored")
        self.base = self.upstream.commit("the base\n\nwith a body")
        self.upstream.write({"CLAUDE.md": "new\n"})
        self.upstream.commit()
        github.repository.learn(self.upstream.path)
        head = folder(tmp_path / "head", {"nothing": ""})
        head.git("clone", "-q", "--depth=1", f"file://{self.upstream.path}", str(head.path / "shop"))
        self.checkout: Project = replace(head, path=head.path / "shop")
        (self.checkout.path / ".zelda").mkdir()
        self.checkout.git("remote", "set-url", "origin", f"file://{tmp_path}/nowhere")

    @property
    def source(self) -> BaseSource:
        place = self.checkout.path
        nowhere, environ = f"file://{self.tmp_path}", {"PATH": os.environ["PATH"]}
        return BaseSource(place, place, nowhere, "octo/none", None, environ, api_of(self.github))

    @property
    def order(self) -> BaseOrder:
        return BaseOrder(self.base, bring(self.source, self.said.append))

    def supplied(self) -> Project:
        """The repository that is filled through the API."""
        self.checkout.git("init", "-q", "--bare", str(self.tmp_path / "bare"))
        git = prepare(self.tmp_path, {"PATH": os.environ["PATH"]}, Redactor()).within(self.tmp_path / "bare")
        made = replace(self.checkout, path=git.cwd)
        made.git("update-ref", "refs/heads/main", anyio.run(base_api.supply, git, api_of(self.github), self.base))
        return made


def test_it_is_the_tree_that_git_would_have_fetched(tmp_path: Path, github: GitHubServer) -> None:
    place = Place(tmp_path, github, {"a ü\n.md": "odd name\n", "A ü\n.md": "another case\n", "empty": ""})
    made, upstream = place.supplied(), place.upstream
    assert made.git("ls-tree", "-r", "-t", "main") == upstream.git("ls-tree", "-r", "-t", place.base)
    assert "100755 blob" in made.git("ls-tree", "main", "run.sh")
    assert made.git("cat-file", "blob", "main:link") == "../elsewhere/CLAUDE.md"
    assert made.git("log", "-1", "--format=%B", "main") == upstream.git("log", "-1", "--format=%B", place.base)
    assert "?" not in made.git("rev-list", "--objects", "--missing=print", "main")
    assert len(github.calls("GET /codeload/")) == 1
    assert github.calls("GET /repos/*/git/blobs/*") == []


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


def _with_hostile_members(archive: bytes) -> bytes:
    """The right archive with everything that could do harm before its own files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar, tarfile.open(fileobj=io.BytesIO(archive)) as right:
        for member, content in (
            (entry("../../up.md"), b"out\n"),
            (entry("/tmp/zelda-absolute.md"), b"out\n"),
            (entry("top/.git/config"), b"[core]\n"),
            (entry("top/out", tarfile.SYMTYPE, "/etc"), b""),
            (entry("top/out/passwd"), b"out\n"),
            (entry("top/hard", tarfile.LNKTYPE, "/etc/passwd"), b""),
            (entry("top/fifo", tarfile.FIFOTYPE), b""),
            (entry("top/disk", tarfile.BLKTYPE), b""),
            (entry("top/claude.MD"), b"twin\n"),
            (entry("top/CLAUDE.md"), b"bad\n"),
        ):
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for own in right:
            tar.addfile(own, right.extractfile(own) if own.isreg() else None)
    return made.getvalue()


def test_nothing_of_a_hostile_archive_counts_but_what_is_of_the_commit(tmp_path: Path, github: GitHubServer) -> None:
    place = Place(tmp_path, github, {})
    github.codeload.change = _with_hostile_members
    found = tree(place.checkout, place.order)
    assert (found["CLAUDE.md"], found["run.sh"], found["commit"]) == ("old\n", "#!/bin/sh\n", place.base)
    (said,) = place.said
    assert "came as an archive through GitHub's API" in said
    assert not {"claude.MD", "out", "hard", "fifo", "disk", "up.md"} & found.keys()
    assert not [path for path in tmp_path.rglob("*") if path.name in {"up.md", "claude.MD", "passwd", "fifo", "hard"}]
    assert not Path("/tmp/zelda-absolute.md").exists()
