"""The published JSON Schemas, which refer to each other by their file's name."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry, Resource

FOLDER = Path(__file__).parents[2] / "schemas"


def published(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((FOLDER / name).read_text("utf-8"))
    return schema


@cache
def checker(name: str) -> jsonschema.Draft202012Validator:
    """What says whether a file is valid by the schema of this name, which is a valid schema itself."""
    shared = "zelda.records.schema.json"
    registry: Registry[Any] = Registry().with_resource(shared, Resource.from_contents(published(shared)))
    jsonschema.Draft202012Validator.check_schema(published(name))
    return jsonschema.Draft202012Validator(published(name), registry=registry)
