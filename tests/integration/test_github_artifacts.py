"""Artifacts on their way to a server that speaks GitHub's protocol."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.github_clients import Sleeper, artifacts_of, patient_http
from tests.support.github_server import GitHubServer, Run, answered, hang_up, lose_answer
from tests.support.patience import PATIENCE
from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.artifacts import ArtifactService

SERVICE = "/twirp/github.actions.results.api.v1.ArtifactService"
FILES = {"zelda-ci.json": b"{}", "runs/r-1/result.json": b'{"score": 1}'}


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        yield server


@pytest.fixture
def run(github: GitHubServer) -> Run:
    return github.repository.add_run(github.repository.add_commits(1)[0])


def refused(
    github: GitHubServer, run: Run, name: str = "zelda", files: dict[str, Path | bytes] | None = None
) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        artifacts_of(github, run).upload(name, FILES if files is None else files, retention_days=None)
    return caught.value


def methods(github: GitHubServer) -> list[str]:
    return [asked.rpartition("/")[2] for asked in github.calls("POST /twirp")]


def test_files_are_stored(github: GitHubServer, run: Run, tmp_path: Path) -> None:
    (tmp_path / "on disk").write_bytes(b"from a file")
    uploaded = artifacts_of(github, run).upload("zelda", {**FILES, "d/f": tmp_path / "on disk"}, retention_days=None)
    (artifact,) = github.repository.artifacts
    assert artifact.files == {**FILES, "d/f": b"from a file"}
    assert (uploaded.id, uploaded.size) == (artifact.id, artifact.size)
    assert artifact.run is run


def test_storage_gets_no_token_and_the_log_no_signature(github: GitHubServer, run: Run) -> None:
    masked: list[str] = []
    service = ArtifactService(github.environment(run), patient_http(mask=masked.append))
    service.upload("zelda", FILES, retention_days=None)
    puts = [seen for seen in github.requests if seen.method == "PUT"]
    assert [seen.query["comp"] for seen in puts] == ["block", "blocklist"]
    assert not any("authorization" in seen.headers for seen in puts)
    assert puts[0].query["sig"] in masked


@pytest.mark.parametrize("job", ["one", "two"])
def test_what_is_stored_stays_whoever_stored_it(github: GitHubServer, run: Run, job: str) -> None:
    artifacts_of(github, run, job="one").upload("zelda", FILES, retention_days=None)
    with pytest.raises(ArtifactError) as caught:
        artifacts_of(github, run, job=job).upload("zelda", {"other": b""}, retention_days=None)
    assert caught.value.code == "ARTIFACT_EXISTS"
    assert "`artifact-name`" in str(caught.value.hint)
    assert [artifact.files for artifact in github.repository.artifacts] == [FILES]


def test_a_creation_whose_answer_was_lost_is_done_again(github: GitHubServer, run: Run) -> None:
    github.script_failures([lose_answer(on=f"POST {SERVICE}/CreateArtifact")])
    artifacts_of(github, run).upload("zelda", FILES, retention_days=None)
    assert methods(github) == [
        "CreateArtifact",
        "CreateArtifact",
        "ListArtifacts",
        "DeleteArtifact",
        "CreateArtifact",
        "FinalizeArtifact",
    ]
    assert [artifact.files for artifact in github.repository.artifacts] == [FILES]


@pytest.mark.parametrize("on", ["PUT *", "POST *CreateArtifact", "POST *FinalizeArtifact"])
def test_a_redirect_is_no_success(github: GitHubServer, run: Run, on: str) -> None:
    """Of neither is one expected; a block that went nowhere was taken for one that is stored."""
    location = "http://me:hunter2@elsewhere.invalid/x?sig=hunter2"
    github.script_failures([answered(307, b"", on=on, headers={"location": location})])
    error = refused(github, run)
    assert error.code == "GITHUB_REFUSED"
    assert "It is redirected, which is not followed." in error.user_message
    assert "hunter2" not in error.user_message


def test_a_service_that_stays_away_is_given_up_within_patience(github: GitHubServer, run: Run) -> None:
    sleeper = Sleeper()
    github.script_failures([hang_up(on="POST *") for _ in range(9)])
    with pytest.raises(GitHubError) as caught:
        artifacts_of(github, run, http=patient_http(sleeper)).upload("zelda", FILES, retention_days=None)
    assert caught.value.code == "GITHUB_UNREACHABLE"
    assert sleeper.seconds == pytest.approx(15)


NO_SERVICE = (
    *({"GITHUB_SERVER_URL": server} for server in ("https://github.com.evil.example", "nonsense")),
    *({name: ""} for name in ("ACTIONS_RUNTIME_TOKEN", "ACTIONS_RESULTS_URL")),
    {"ACTIONS_RESULTS_URL": "nonsense"},
    *({"ACTIONS_RUNTIME_TOKEN": token} for token in ("no token", "a.b.c", "a.W10.c", "a.ä.c")),
    {"ACTIONS_RUNTIME_TOKEN": "a.eyJzY3AiOiAiQWN0aW9ucy5SZXN1bHRzOjEifQ.c"},
)


def test_a_service_is_used_where_there_is_one_and_where_there_is_none_it_says_so(
    github: GitHubServer, run: Run
) -> None:
    for number, server in enumerate(("https://GitHub.com", "https://acme.ghe.com", "http://x.localhost:3000", "")):
        environ = {**github.environment(run), "GITHUB_SERVER_URL": server}
        assert ArtifactService(environ, patient_http()).upload(f"zelda-{number}", FILES, retention_days=None).id
    for more in NO_SERVICE:
        with pytest.raises(ArtifactError) as caught:
            ArtifactService({**github.environment(run), **more}, patient_http())
        assert caught.value.code == "ARTIFACTS_UNAVAILABLE", more


def test_files_that_cannot_be_stored_are_refused_before(github: GitHubServer, run: Run, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing", "."):
        error = refused(github, run, files={"x": tmp_path / name})
        assert isinstance(error, ArtifactError)
    assert github.requests == []


PACK = """
import os, resource, sys
from zelda_ci.errors import ArtifactError
from zelda_ci.github.archives import packed
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for files in ({"a": os.urandom(3 << 20)}, {"a": b"x", "b": os.urandom(3 << 20), "c": b"y"}):
    try:
        with packed(files):
            print("packed")
    except ArtifactError as exc:
        print(exc.message)
"""


def test_a_disk_without_room_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PACK], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.splitlines() == ["The artifact's archive could not be made: File too large."] * 2
    assert done.stderr == ""
