"""GitHub's OpenAPI description as a judge of requests and answers."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator, FormatChecker

DESCRIPTION = Path(__file__).parents[2] / "data" / "github-rest-subset.json"
MOST_PER_PAGE = 100

FORMATS = FormatChecker(formats=())


@FORMATS.checks("date-time", raises=ValueError)
def _is_moment(value: Any) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@FORMATS.checks("uri")
def _is_uri(value: Any) -> bool:
    return not isinstance(value, str) or bool(re.match(r"[a-z]+://", value))


@dataclass(frozen=True)
class Operation:
    """A documented request; `key` is its method and the path as documented."""

    key: str
    described: Mapping[str, Any]
    path: Mapping[str, str]
    """Values of the path's parameters."""


class Contract:
    """The description, read once."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self._root = _as_json_schema(description)
        self._allow_deleted_forks()
        templates = [(path, method) for path, methods in description["paths"].items() for method in methods]
        self._templates = sorted(templates, key=lambda each: each[0].count("{"))

    def _allow_deleted_forks(self) -> None:
        """GitHub sends null for a fork that was deleted, although the description does not allow it."""
        run, pull, simple = (self.schema(name) for name in ("workflow-run", "pull-request", "pull-request-simple"))
        sides = [side["properties"]["head"] for side in (pull, simple)]
        for owner, name in [(run, "head_repository"), *((side, "repo") for side in sides)]:
            owner["properties"][name] = {"anyOf": [owner["properties"][name], {"type": "null"}]}

    def schema(self, name: str) -> Any:
        return self._root["components"]["schemas"][name]

    def resolved(self, schema: Any) -> Any:
        """What a reference refers to."""
        while "$ref" in schema:
            found: Any = self._root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def operation(self, method: str, path: str) -> Operation | None:
        """The documented request that this is, if there is one."""
        for template, known in self._templates:
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template))
            if known.upper() == method and (match := re.fullmatch(pattern, path)):
                values = {name: unquote(value) for name, value in match.groupdict().items()}
                return Operation(f"{method} {template}", self._root["paths"][template][known], values)
        return None

    def request_violations(self, operation: Operation, query: Mapping[str, list[str]], body: bytes) -> Iterator[str]:
        """What is wrong with a request."""
        parameters = [self.resolved(each) for each in operation.described.get("parameters", ())]
        known = {each["name"]: each["schema"] for each in parameters if each["in"] == "query"}
        for name, values in query.items():
            if name not in known or len(values) > 1:
                yield f"{operation.key}: query parameter {name}={values} is not documented"
                continue
            yield from self._problems(operation, f"?{name}", known[name], _parsed(values[0]), values[0])
        for each in parameters:
            if each["in"] == "path":
                value = operation.path[each["name"]]
                yield from self._problems(operation, each["name"], each["schema"], _parsed(value), value)
        size = query.get("per_page", ["1"])[0]
        if size.isdecimal() and int(size) > MOST_PER_PAGE:
            yield f"{operation.key}: per_page is larger than {MOST_PER_PAGE}"
        yield from self._body_violations(operation, body)

    def answer_violations(self, operation: Operation, status: int, body: Any) -> Iterator[str]:
        """What is wrong with an answer of this server."""
        documented = operation.described["responses"].get(str(status))
        if documented is None and status < 400:
            yield f"{operation.key}: status {status} is not documented"
        described = self.resolved(documented) if documented else {}
        content = described.get("content", {}).get("application/json")
        # Limits and missing permissions may meet any request and are not documented with each.
        schema = content["schema"] if content else self.schema("basic-error") if status >= 400 else None
        if schema is not None:
            yield from self._problems(operation, f"answer {status}", schema, body)

    def _body_violations(self, operation: Operation, body: bytes) -> Iterator[str]:
        described = operation.described.get("requestBody")
        if described is None:
            if body:
                yield f"{operation.key}: a body is not documented"
            return
        try:
            value = json.loads(body)
        except ValueError:
            yield f"{operation.key}: the body is no JSON"
            return
        schema = described["content"]["application/json"]["schema"]
        yield from self._problems(operation, "body", schema, value)
        # The description tolerates unknown keys, and GitHub ignores them: here they are mistakes.
        if isinstance(value, dict) and (extra := value.keys() - schema.get("properties", {}).keys()):
            yield f"{operation.key}: body: {sorted(extra)} is not documented"

    def _problems(self, operation: Operation, where: str, schema: Any, *readings: Any) -> Iterator[str]:
        """Why none of the readings of a value fits; text in a path or query can be read as a number, too."""
        problems: list[str] = []
        for value in readings:
            whole = {"components": self._root["components"], "allOf": [schema]}
            found = [
                error.message[:300] for error in Draft202012Validator(whole, format_checker=FORMATS).iter_errors(value)
            ]
            if not found:
                return
            problems = found
        yield from (f"{operation.key}: {where}: {problem}" for problem in problems)


@cache
def github_contract() -> Contract:
    return Contract(json.loads(DESCRIPTION.read_text("utf-8")))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_json_schema(value: Any) -> Any:
    """OpenAPI 3.0 says `nullable` where JSON Schema names the type null."""
    if isinstance(value, list):
        return [_as_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _as_json_schema(item) for key, item in value.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if value.get("nullable") is True else plain
