"""The client of GitHub's API against a server that holds it to GitHub's own description."""

import hashlib
from collections.abc import Iterator

import pytest

from tests.support.github_clients import api_of, patient_http
from tests.support.github_server import GitHubServer, Repository, answered, hang_up, truncated
from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.api import Api, Http, HttpRequest

COMMENTS = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { comments(first: 100) { nodes { fullDatabaseId viewerDidAuthor } } }
  }
}"""


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.repository.add_pull(head_sha="a" * 40)
        yield server


@pytest.fixture
def repository(github: GitHubServer) -> Repository:
    return github.repository


def test_all_pages_of_a_list_are_read_as_they_are_needed(github: GitHubServer, repository: Repository) -> None:
    for number in range(250):
        repository.add_comment(1, f"comment {number}")
    found = api_of(github).pages("issues/1/comments")
    assert next(found)["body"] == "comment 0"
    assert len(github.requests) == 1
    assert [each["body"] for each in found] == [f"comment {number}" for number in range(1, 250)]
    assert [seen.query["per_page"] for seen in github.requests] == ["100"] * 3
    assert len(list(api_of(github).pages("issues/1/comments", limit=2))) == 200


@pytest.mark.parametrize("target", ["https://evil.invalid/x", "//evil.invalid/", "http://[::1"])
def test_the_token_goes_to_no_other_host(github: GitHubServer, target: str) -> None:
    links = {"link": f'<{target}>; rel="next"'}
    github.script_failures([answered(200, [], headers=links), answered(301, b"", headers={"location": target})])
    with pytest.raises(GitHubError, match="not its own"):
        list(api_of(github).pages("pulls"))
    with pytest.raises(GitHubError, match=r"not its own|not proper HTTP"):
        api_of(github).get("pulls/1")
    assert len(github.requests) == 2


def test_a_repository_of_another_name_is_followed(github: GitHubServer) -> None:
    moved = {"location": f"{github.api_url}/repos/octo/zelda/pulls/1"}
    github.script_failures([answered(301, b"", headers=moved)])
    assert api_of(github).get("pulls/7")["number"] == 1


@pytest.mark.parametrize(
    ("number", "permission", "code"), [(9, "read", "GITHUB_NOT_FOUND"), (1, "none", "GITHUB_NOT_PERMITTED")]
)
def test_graphql_refuses_with_status_200(github: GitHubServer, number: int, permission: str, code: str) -> None:
    github.permissions = {"pull_requests": permission}
    with pytest.raises(GitHubError) as caught:
        api_of(github).graphql(COMMENTS, owner="octo", name="zelda", number=number)
    assert (caught.value.code, caught.value.status) == (code, 200)


def test_a_query_is_repeated(github: GitHubServer) -> None:
    github.script_failures([hang_up(), answered(502)])
    assert api_of(github).graphql(COMMENTS, owner="octo", name="zelda", number=1)


def stored(repository: Repository, **more: object) -> int:
    run = repository.add_run(repository.add_commits(1)[0])
    return repository.add_artifact("zelda", {"a.json": b"{}"}, run=run, **more).id


def downloaded(api: Api, number: int, digest: str | None, max_bytes: int = 1000) -> bytes:
    with api.download(number, digest=digest, max_bytes=max_bytes) as file:
        file.seek(0)
        return file.read()


def test_an_archive_is_downloaded_without_the_token(github: GitHubServer, repository: Repository) -> None:
    masked: list[str] = []
    number = stored(repository)
    artifact = repository.artifacts[0]
    assert downloaded(api_of(github, patient_http(mask=masked.append)), number, artifact.digest) == artifact.content
    link, storage = github.requests
    assert link.headers["authorization"] == f"Bearer {github.token}"
    assert "authorization" not in storage.headers
    assert storage.query["sig"] in masked


def test_an_archive_that_cannot_be_used_is_refused_with_a_code(github: GitHubServer, repository: Repository) -> None:
    number = stored(repository)
    other = f"sha256:{hashlib.sha256(b'other').hexdigest()}"
    for asked, digest, most, code in (
        (number, other, 1000, "ARTIFACT_INVALID"),
        (number, None, 1000, "ARTIFACT_INVALID"),
        (number, None, 50, "ARTIFACT_TOO_LARGE"),
        (stored(repository, expired=True), None, 1000, "ARTIFACT_EXPIRED"),
        (1, None, 1000, "ARTIFACT_EXPIRED"),
    ):
        with pytest.raises((ArtifactError, GitHubError)) as caught:
            downloaded(api_of(github), asked, digest, most)
        assert caught.value.code == code
    github.permissions = {"contents": "read"}
    with pytest.raises(GitHubError, match="not accessible") as caught:
        downloaded(api_of(github), number, None)
    assert caught.value.code == "GITHUB_NOT_PERMITTED"
    assert "actions: read" in str(caught.value.hint)


def test_a_signed_address_that_died_is_asked_for_once_more(github: GitHubServer, repository: Repository) -> None:
    broken = [failure(on="GET /storage/*") for failure in (truncated, hang_up)]
    github.script_failures([*broken, answered(403, b"<Error/>", on="GET /storage/*")])
    number, artifact = stored(repository), repository.artifacts[0]
    assert downloaded(api_of(github), number, artifact.digest) == artifact.content
    assert len(github.calls("GET /repos")) == 2


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, "ARTIFACT_EXPIRED"), (401, "GITHUB_REFUSED"), (403, "GITHUB_REFUSED"), (429, "GITHUB_RATE_LIMITED")],
)
def test_what_storage_refuses_is_told_as_no_matter_of_the_token(
    github: GitHubServer, repository: Repository, status: int, code: str
) -> None:
    github.script_failures([answered(status, b"<Error/>", on="GET /storage/*")] * 5)
    with pytest.raises(GitHubError) as caught:
        downloaded(api_of(github), stored(repository), repository.artifacts[0].digest)
    assert (caught.value.code, caught.value.status) == (code, status if status == 429 else None)
    assert "token" not in caught.value.user_message


def test_a_signature_is_known_in_the_spellings_of_a_log() -> None:
    masked: list[str] = []
    for url in ("https://x/?a=1&sig=ab%2Bc%3D&se=2", "https://x/", "http://[::1"):
        with pytest.raises(GitHubError):
            Http(patience_seconds=0, mask=masked.append).send(HttpRequest("GET", url))
    assert masked == ["ab+c=", "ab%2Bc%3D"]
