"""The least that GitHub's description demands of a value, so that the world need not know the hundred other fields."""

from typing import Any

from tests.support.github_server.contract import github_contract

MOMENT = "2026-01-01T00:00:00Z"
BY_FORMAT = {"date-time": MOMENT, "uri": "https://example.invalid/", "email": "octocat@example.com"}
BY_TYPE = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": (), "null": None}


def specimen(schema: str, /, **told: Any) -> dict[str, Any]:
    """An object of a schema with all required fields; those told are as told."""
    made: dict[str, Any] = {**_made(github_contract().schema(schema)), **told}
    return made


def _made(schema: Any) -> Any:
    schema = github_contract().resolved(schema)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            options = schema[choice]
            return None if {"type": "null"} in options else _made(options[0])
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object" or "properties" in schema:
        return {name: _made(schema["properties"][name]) for name in schema.get("required", ())}
    if schema.get("format") in BY_FORMAT:
        return BY_FORMAT[schema["format"]]
    value = BY_TYPE[schema.get("type", "string")]
    return list(value) if isinstance(value, tuple) else value
