"""As much of GraphQL as a client of pull requests' comments can ask: a reader of queries, and GitHub's fields."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.github_server import rendering
from tests.support.github_server.replies import NOT_ACCESSIBLE
from tests.support.github_server.world import Comment, Pull, Repository

if TYPE_CHECKING:
    from tests.support.github_server.server import GitHubServer

TOKEN = re.compile(r'[{}()\[\]:!$=]|"(?:[^"\\]|\\.)*"|[\w-]+')
MOST_NODES = 100


class GraphQLError(Exception):
    """An entry of `errors`."""

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.told = {"message": message, **({"type": kind} if kind else {})}


@dataclass(frozen=True)
class Field:
    name: str
    alias: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    selection: tuple["Field", ...] = ()


def answer(server: "GitHubServer", request: Mapping[str, Any]) -> dict[str, Any]:
    """What GitHub answers to a query, always with HTTP 200."""
    reader = _Reader(str(request.get("query", "")), request.get("variables") or {})
    try:
        return {"data": _project(_query(server), reader.operation(), "Query")}
    except GraphQLError as exc:
        return {"data": None, "errors": [exc.told]}


class _Reader:
    def __init__(self, text: str, variables: Mapping[str, Any]) -> None:
        self._tokens = TOKEN.findall(re.sub(r"[,\s]+", " ", text))
        self._variables = variables

    def operation(self) -> tuple[Field, ...]:
        declared = set()
        while self._tokens and self._tokens[0] != "{":
            if self._tokens.pop(0) == "$":
                declared.add(self._tokens[0])
        if self._variables.keys() - declared:
            raise GraphQLError(f"Variables {sorted(self._variables.keys() - declared)} are not declared")
        return tuple(self._selection())

    def _take(self, expected: str | None = None) -> str:
        if not self._tokens or expected not in {None, self._tokens[0]}:
            raise GraphQLError(f"Parse error: expected {expected}, found {self._tokens[:1]}")
        return str(self._tokens.pop(0))

    def _next_is(self, token: str) -> bool:
        return self._tokens[:1] == [token]

    def _selection(self) -> Iterator[Field]:
        self._take("{")
        while not self._next_is("}"):
            name = alias = self._take()
            if self._next_is(":"):
                self._take()
                name = self._take()
            arguments = self._object("(", ")") if self._next_is("(") else {}
            yield Field(name, alias, arguments, tuple(self._selection()) if self._next_is("{") else ())
        self._take("}")

    def _object(self, start: str, end: str) -> dict[str, Any]:
        self._take(start)
        found: dict[str, Any] = {}
        while not self._next_is(end):
            name = self._take()
            self._take(":")
            found[name] = self._value()
        self._take(end)
        return found

    def _value(self) -> Any:
        if self._next_is("{"):
            return self._object("{", "}")
        token = self._take()
        if token == "$":
            return self._variables.get(self._take())
        return token[1:-1] if token.startswith('"') else int(token) if token.isdecimal() else token


def _project(value: Any, selection: tuple[Field, ...], kind: str) -> Any:
    """Of a value, what was asked for."""
    if isinstance(value, list):
        return [_project(item, selection, kind) for item in value]
    if value is None:
        return None
    if bool(selection) != isinstance(value, dict):
        raise GraphQLError(f"Field of type {kind} must{'' if isinstance(value, dict) else ' not'} have a selection")
    if not selection:
        return value
    return {each.alias: _project(_resolve(value, each, kind), each.selection, each.name) for each in selection}


def _resolve(value: Mapping[str, Any], asked: Field, kind: str) -> Any:
    if asked.name not in value:
        raise GraphQLError(f"Field '{asked.name}' doesn't exist on type '{kind}'")
    found = value[asked.name]
    if callable(found):
        return found(asked.arguments)
    if asked.arguments:
        raise GraphQLError(f"Field '{asked.name}' doesn't accept arguments")
    return found


def _query(server: "GitHubServer") -> dict[str, Any]:
    return {
        "viewer": {"login": server.login.removesuffix("[bot]")},
        "repository": lambda arguments: _repository(server, _repository_called(server, arguments)),
    }


def _repository_called(server: "GitHubServer", arguments: Mapping[str, Any]) -> Repository:
    name = f"{arguments.get('owner')}/{arguments.get('name')}"
    found = [each for each in server.repositories if each.full_name == name]
    if not found:
        raise GraphQLError(f"Could not resolve to a Repository with the name '{name}'.", "NOT_FOUND")
    if not (server.may("pull_requests=read; issues=read") or not found[0].private):
        raise GraphQLError(NOT_ACCESSIBLE, "FORBIDDEN")
    return found[0]


def _repository(server: "GitHubServer", repository: Repository) -> dict[str, Any]:
    def pull(arguments: Mapping[str, Any]) -> dict[str, Any]:
        for each in repository.pulls:
            if each.number == arguments.get("number"):
                return _pull(server, each)
        message = f"Could not resolve to a PullRequest with the number of {arguments.get('number')}."
        raise GraphQLError(message, "NOT_FOUND")

    return {"pullRequest": pull}


def _pull(server: "GitHubServer", pull: Pull) -> dict[str, Any]:
    return {"headRefOid": pull.head_sha, "comments": lambda arguments: _comments(server, pull, arguments)}


def _comments(server: "GitHubServer", pull: Pull, arguments: Mapping[str, Any]) -> dict[str, Any]:
    count = arguments.get("first")
    if not isinstance(count, int) or not 0 < count <= MOST_NODES or arguments.keys() - {"first", "after"}:
        raise GraphQLError(f"You must provide a `first` value of at most {MOST_NODES}")
    everything = sorted(pull.comments, key=lambda each: each.id)
    start = int(str(arguments.get("after") or "cursor:0").partition(":")[2])
    part, end = everything[start : start + count], start + count
    more = end < len(everything)
    return {
        "nodes": [_comment(server, pull, each) for each in part],
        "pageInfo": {"hasNextPage": more, "endCursor": f"cursor:{end}" if part else None},
    }


def _comment(server: "GitHubServer", pull: Pull, comment: Comment) -> dict[str, Any]:
    return {
        "id": comment.node_id,
        "fullDatabaseId": str(comment.id),
        "body": comment.body,
        "url": rendering.comment_page(comment, pull),
        "isMinimized": comment.minimized is not None,
        "viewerDidAuthor": comment.author == server.login,
        "author": {
            "login": comment.author.removesuffix("[bot]"),
            "__typename": "Bot" if comment.author.endswith("[bot]") else "User",
        },
        "lastEditedAt": rendering.moment(comment.updated_at) if comment.edits else None,
    }
