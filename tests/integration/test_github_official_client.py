"""What Zelda stores GitHub's own client can read, and the other way round."""

from pathlib import Path

import pytest

from tests.support import npm_packages, official_client
from tests.support.github_clients import api_of, artifacts_of
from tests.support.github_server import GitHubServer
from tests.support.official_client import OfficialClient
from zelda_ci.github.archives import MemberReader

# Once per version of the lock file, npm may need a minute.
pytestmark = pytest.mark.timeout(900)

FILES = {
    "zelda-ci.json": b'{"schemaVersion": 1}',
    "runs/r-1/transcript.json": b"transcript " * 5000,
    "with blank/ä.txt": b"umlaut",
    "empty": b"",
}


@pytest.fixture(scope="session")
def official() -> OfficialClient:
    try:
        return official_client.installed()
    except npm_packages.UnavailableError as exc:
        pytest.skip(f"needs GitHub's own client for artifacts: {exc}")


def test_the_official_client_reads_what_zelda_stored(official: OfficialClient, tmp_path: Path) -> None:
    with GitHubServer() as github:
        run = github.repository.add_run(github.repository.add_commits(1)[0])
        uploaded = artifacts_of(github, run).upload("zelda-results", FILES, retention_days=7)
        told = official.download("zelda-results", tmp_path, github.environment(run))
    assert told["artifact"]["id"] == uploaded.id
    assert told["artifact"]["digest"] == github.repository.artifacts[0].digest
    assert told["artifact"]["size"] == uploaded.size
    assert told["digestMismatch"] is False
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == FILES


def test_zelda_reads_what_the_official_client_stored(official: OfficialClient, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with GitHubServer() as github:
        run = github.repository.add_run(github.repository.add_commits(1)[0])
        paths = [tmp_path / name for name in FILES]
        told = official.upload("zelda-results", tmp_path, paths, github.environment(run))
        found = api_of(github).get(f"actions/artifacts/{told['id']}")
        with api_of(github).download(told["id"], digest=found["digest"], max_bytes=1_000_000) as file:
            archive = MemberReader(file, max_members=50)
            assert archive.read(FILES, max_member_bytes=100_000, max_total_bytes=200_000) == FILES
