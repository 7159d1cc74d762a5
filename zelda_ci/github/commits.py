"""Which commits precede which, asked of GitHub, because a checkout of depth 1 cannot tell."""

from collections.abc import Iterator
from urllib.parse import quote

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import Api
from zelda_ci.github.schemas import Commit, CommitComparison, understand

PAGES_OF_ANCESTORS = 3
"""Of 100 commits each."""


def ancestors(api: Api, start: str) -> Iterator[str]:
    """The commit that `start`, a commit or branch, names, and then those before it, newest first, within reason.

    None where GitHub does not know it, like what was on a branch before its history was rewritten.
    """
    try:
        for commit in api.pages("commits", limit=PAGES_OF_ANCESTORS, sha=start):
            yield understand(Commit, commit).sha
    except GitHubError as error:
        if error.code != "GITHUB_NOT_FOUND":
            raise


def behind(api: Api, commit: str, wanted: str) -> int:
    """How many commits `wanted` has that `commit` has not."""
    return 0 if commit == wanted else _compare(api, wanted, commit).behind_by


def merge_base(api: Api, base: str, head: str) -> str:
    """The newest commit that two commits or branches have in common.

    Raises:
        GitHubError: `GITHUB_NOT_FOUND` where they have none, or GitHub does not know one of them.
    """
    return _compare(api, base, head).merge_base_commit.sha


def _compare(api: Api, base: str, head: str) -> CommitComparison:
    path = f"compare/{quote(base, safe='')}...{quote(head, safe='')}"
    # The changed files come with the first page whatever its size; commits need not.
    return understand(CommitComparison, api.get(path, per_page=1))
