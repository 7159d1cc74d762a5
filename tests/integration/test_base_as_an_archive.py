"""The base commit through GitHub's API: the very tree that git would have fetched, or a refusal in a sentence."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.integration.test_base_commit import refusal, tree
from tests.support.github_clients import api_of
from tests.support.github_server import GitHubServer, answered, hang_up, truncated
from tests.support.projects import Project, folder, repository
from zelda_ci.ci import base_api
from zelda_ci.ci.base import BaseSource, fetch_files, read_base
from zelda_ci.ci.base_arm import bring
from zelda_ci.config import project as configuration
from zelda_ci.errors import ConfigError, GitHubError
from zelda_ci.github import source_tree
from zelda_ci.redact import Redactor
from zelda_ci.workspace.base_commit import BaseOrder
from zelda_ci.workspace.git import prepare

SUITE = "prompt: Go.\n"
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


def test_a_workspace_of_the_base_comes_as_an_archive_where_git_cannot_fetch(
    tmp_path: Path, github: GitHubServer
) -> None:
    place = Place(tmp_path, github, {})
    before = place.checkout.fingerprint()
    found = tree(place.checkout, place.order)
    assert (found["CLAUDE.md"], found["run.sh"], found["commit"]) == ("old\n", "#!/bin/sh\n", place.base)
    assert place.checkout.fingerprint() == before
    (said,) = place.said
    assert "came as an archive through GitHub's API" in said
    assert "git fetch failed" in said
    asked = len(github.requests)
    assert tree(place.checkout, place.order)["CLAUDE.md"] == "old\n"
    assert len(github.requests) == asked
    (archive,) = (seen for seen in github.requests if seen.path.startswith("/codeload/"))
    assert "authorization" not in archive.headers


def test_what_attributes_change_in_an_archive_is_had_file_by_file(tmp_path: Path, github: GitHubServer) -> None:
    attributes = "secret.md export-ignore\nversion export-subst\n"
    files: dict[str, str | bytes] = {".gitattributes": attributes, "secret.md": "kept\n", "version": "$Format:%H$\n"}
    place = Place(tmp_path, github, files)
    found = tree(place.checkout, place.order)
    assert (found["secret.md"], found["version"]) == ("kept\n", "$Format:%H$\n")
    assert len(github.calls("GET /repos/*/git/blobs/*")) == 2


def test_an_archive_that_lacks_too_much_is_refused_with_the_reason(
    tmp_path: Path, github: GitHubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_api, "MAX_SINGLE_FILES", 2)
    files: dict[str, str | bytes] = {f"docs/{number}.md": f"{number}\n" for number in range(5)}
    place = Place(tmp_path, github, {**files, ".gitattributes": "docs export-ignore\n"})
    problem = refusal(place.checkout, place.order)
    assert problem.code == "BASE_UNAVAILABLE"
    assert "lacks 5 of 10 files" in problem.message
    assert "export-ignore" in problem.message


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", **more: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    for key, value in more.items():
        setattr(member, key, value)
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
            (entry("top/disk", tarfile.BLKTYPE, devmajor=8), b""),
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
    assert found["CLAUDE.md"] == "old\n"
    assert not {"claude.MD", "out", "hard", "fifo", "disk", "up.md"} & found.keys()
    assert not [path for path in tmp_path.rglob("*") if path.name in {"up.md", "claude.MD", "passwd", "fifo", "hard"}]
    assert not Path("/tmp/zelda-absolute.md").exists()


def _header_of_a_gigabyte(_: bytes) -> bytes:
    member = entry("top/long", tarfile.GNUTYPE_LONGNAME)
    member.size = 1 << 30
    return gzip.compress(member.tobuf(tarfile.GNU_FORMAT) + b"x" * 4096)


def _endless_sparse_file(_: bytes) -> bytes:
    member = entry("top/CLAUDE.md", tarfile.GNUTYPE_SPARSE)
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[483:495] = b"77777777777\0"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return gzip.compress(bytes(block))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda _: b"<html>Sorry</html>", "damaged"),
        (lambda archive: archive[: len(archive) // 2], "damaged"),
        (lambda _: gzip.compress(b"no tar" * 1000), "damaged"),
        (lambda _: gzip.compress(bytes(70 << 20)), "unpacked it is larger than 64 MB"),
        (lambda archive: archive * 20_000, "larger than"),
        (_header_of_a_gigabyte, "damaged"),
        (_endless_sparse_file, "lacks"),
        (lambda _: packed(), "lacks"),
    ],
    ids=["html", "cut", "no-tar", "bomb", "long", "header", "sparse", "empty"],
)
def test_an_archive_of_another_kind_is_refused_in_a_sentence(
    tmp_path: Path,
    github: GitHubServer,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[bytes], bytes],
    why: str,
) -> None:
    monkeypatch.setattr(base_api, "MAX_SINGLE_FILES", 0)
    monkeypatch.setattr(base_api, "MAX_ARCHIVE_BYTES", 4 << 20)
    place = Place(tmp_path, github, {})
    github.codeload.change = change
    problem = refusal(place.checkout, place.order)
    assert (problem.code, why in problem.message) == ("BASE_UNAVAILABLE", True), problem.message
    assert not [left for left in place.checkout.base.glob("*/bases/*") if os.path.lexists(left)]


def test_a_listing_that_is_not_whole_is_refused_before_anything_is_downloaded(
    tmp_path: Path, github: GitHubServer
) -> None:
    place = Place(tmp_path, github, {})
    github.longest_tree = 2
    assert "more files than GitHub lists" in refusal(place.checkout, place.order).message
    assert not github.calls("GET /codeload/")


@pytest.mark.parametrize("path", [".git/hooks/post-checkout", "../up.md", "/absolute.md", "CLAUDE.md/under"])
def test_a_listing_that_is_not_the_commits_is_refused(tmp_path: Path, github: GitHubServer, path: str) -> None:
    place = Place(tmp_path, github, {})
    blob, top = (place.upstream.git("rev-parse", f"{place.base}{what}") for what in (":CLAUDE.md", "^{tree}"))
    listed = [{"path": each, "mode": "100644", "type": "blob", "sha": blob, "size": 4} for each in ("CLAUDE.md", path)]
    told = {"sha": top, "truncated": False, "tree": listed}
    github.script_failures([answered(200, told, on="GET /repos/*/git/trees/*")])
    assert "not those of the commit" in refusal(place.checkout, place.order).message
    assert not (tmp_path / "up.md").exists()


def test_a_file_that_is_another_one_is_refused(tmp_path: Path, github: GitHubServer) -> None:
    place = Place(tmp_path, github, {".gitattributes": "CLAUDE.md export-ignore\n"})
    other = {"sha": "0" * 40, "node_id": "", "url": "https://x.invalid/", "size": 3, "content": "YmFk", "encoding": ""}
    github.script_failures([answered(200, {**other, "encoding": "base64"}, on="GET /repos/*/git/blobs/*")])
    assert "is not that file" in refusal(place.checkout, place.order).message


@pytest.mark.parametrize("size", [101 << 20, 3 << 30])
def test_what_is_too_large_is_not_downloaded(tmp_path: Path, github: GitHubServer, size: int) -> None:
    place = Place(tmp_path, github, {})
    blob = place.upstream.git("rev-parse", f"{place.base}:CLAUDE.md")
    listed = [{"path": "CLAUDE.md", "mode": "100644", "type": "blob", "sha": blob, "size": size}]
    told = {"sha": blob, "truncated": False, "tree": listed}
    github.script_failures([answered(200, told, on="GET /repos/*/git/trees/*")])
    assert "have more than" in refusal(place.checkout, place.order).message
    assert not github.calls("GET /codeload/")


def test_a_token_without_contents_read_is_said(tmp_path: Path, github: GitHubServer) -> None:
    place = Place(tmp_path, github, {})
    github.permissions["contents"] = "none"
    problem = refusal(place.checkout, place.order)
    assert "As an archive neither" in problem.message
    assert "contents: read" in (problem.hint or "")
    assert github.token not in problem.message


def test_rights_and_changes_are_read_through_the_api_without_the_archive(tmp_path: Path, github: GitHubServer) -> None:
    files: dict[str, str | bytes] = {"zelda.config.yaml": "historyDepth: 7\n", "zelda/test-a.yaml": SUITE}
    place = Place(tmp_path, github, files)
    loaded = configuration.load(place.checkout.path)
    settings = read_base(place.base, place.source, loaded, Redactor()).settings
    assert (settings.config.history_depth, set(settings.suites)) == (7, {"zelda/test-a.yaml"})

    async def fetched() -> str:
        git = prepare(tmp_path, {"PATH": os.environ["PATH"]}, Redactor())
        found = await fetch_files(
            git, place.base, place.source, tmp_path / "fetched", lambda path: path.name == "CLAUDE.md"
        )
        assert found
        return (await found.git("cat-file", "blob", f"{found.commit}:CLAUDE.md")).decode()

    assert anyio.run(fetched) == "old\n"
    assert not github.calls("GET /codeload/")
    github.script_failures([answered(404, on="GET /repos/*/git/commits/*")])
    with pytest.raises(ConfigError, match="404") as caught:
        read_base(place.base, place.source, loaded, Redactor())
    assert caught.value.code == "BASE_UNREADABLE"


def test_a_repository_of_another_name_now_is_followed_with_the_token(tmp_path: Path, github: GitHubServer) -> None:
    place = Place(tmp_path, github, {})
    moved = {"location": f"{github.api_url}/repos/octo/zelda/tarball/{place.base}"}
    github.script_failures([answered(301, {}, on="GET /repos/*/tarball/*", headers=moved)])
    with api_of(github).source_archive(place.base, max_bytes=1 << 20) as archive:
        wanted = {source_tree.blob_name(b"old\n"): 4}
        assert list(source_tree.contents(archive, wanted)) == [(next(iter(wanted)), b"old\n")]


def test_an_archive_of_which_half_arrives_is_asked_for_again(tmp_path: Path, github: GitHubServer) -> None:
    place = Place(tmp_path, github, {"large.bin": os.urandom(300_000)})
    github.script_failures([truncated(on="GET /codeload/*"), hang_up(on="GET /codeload/*")])
    assert place.supplied().git("rev-parse", "main:large.bin") == place.upstream.git("rev-parse", "HEAD:large.bin")
    assert len(github.calls("GET /codeload/")) == 3


def test_the_address_of_an_archive_is_kept_out_of_the_log(tmp_path: Path, github: GitHubServer) -> None:
    place, masked = Place(tmp_path, github, {}), list[str]()
    github.script_failures([answered(500, b"", on="GET /codeload/*")])
    with suppress(GitHubError):
        api_of(github, mask=masked.append).source_archive(place.base, max_bytes=1 << 20).close()
    (token,) = {seen.query["token"] for seen in github.requests if seen.path.startswith("/codeload/")}
    assert token in masked
