"""The tables of keys in docs/configuration.md, derived from the models."""

import json

from zelda_ci.config import wording
from zelda_ci.config.keys import Key, keys
from zelda_ci.config.schemas import Config, ProjectConfig, ProjectKeys, SuiteConfig, SuiteKeys
from zelda_ci.domain.suite import SharedSettings


def tables() -> dict[str, str]:
    """A Markdown table by the mark between whose comments it stands."""
    return {
        "project": _table(ProjectConfig, set(ProjectKeys.model_fields)),
        "suite": _table(SuiteConfig, set(SuiteKeys.model_fields)),
        "shared": _table(ProjectConfig, set(SharedSettings.model_fields)),
    }


def _table(model: type[Config], fields: set[str]) -> str:
    rows = [_row(key, model) for key in keys(model) if key.attributes[0] in fields]
    return "\n".join(["| Key | Value | Default | Meaning |", "|---|---|---|---|", *rows])


def _row(key: Key, model: type[Config]) -> str:
    value = wording.expected(wording.fragment(model, key.path))
    cells = [f"`{key.dotted}`", value, _default(key), key.field.description or ""]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(key: Key) -> str:
    default = None if key.group else key.field.get_default()
    return "" if default is None else f"`{json.dumps(default)}`"
