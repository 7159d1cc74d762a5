"""Measures what everyday builds can do at every level, and writes it down.

python -m tests.hostile.compatibility [LEVEL...]
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.hostile import matrix
from tests.hostile.action import Action
from tests.hostile.campaign import CLOSED, Campaign
from tests.hostile.developer import Developer
from tests.hostile.everyday import EVERYDAY

EXPECTED = Path(__file__).with_name("everyday.json")
BORDERS = ("<!-- everyday: begin -->", "<!-- everyday: end -->")
NETWORKS: Mapping[str, Mapping[str, str]] = {"open": {}, "none": CLOSED}
LEVELS = matrix.LEVELS[1:]

Broken = dict[str, dict[str, list[str]]]
"""Ids of what does not work, by column and network."""


def broken(who: Developer, level: str, network: str, actions: Sequence[Action] = EVERYDAY) -> set[str]:
    """What does not work as a build command."""
    worked = Campaign(who, level, "build", NETWORKS[network]).succeed(actions)
    return {action.id for action in actions} - worked


def survey(levels: Sequence[str]) -> Broken:
    known: Broken = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for column in matrix.columns(levels):
        for network in NETWORKS:
            found = sorted(broken(column.developer, column.level, network))
            known.setdefault(column.name, {})[network] = found
            print(f"{column.name:18} {network}: {found}", flush=True)
            EXPECTED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return known


def table(found: Broken) -> str:
    """As Markdown, what does not work everywhere: yes or no, with the network open / closed where these differ."""
    names = [f"{level} {kind}" for level in LEVELS for kind in ("user", "root") if f"{level} {kind}" in found]
    lines = [
        "| what | " + " | ".join(name.replace(" ", "<br>") for name in names) + " |",
        "|---|" + ":-:|" * len(names),
    ]
    for action in EVERYDAY:
        cells = [_cell(action.id, found[name]) for name in names]
        if {*cells} != {"yes"}:
            lines.append(f"| {action.what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(action: str, failed: Mapping[str, Sequence[str]]) -> str:
    marks = ["no" if action in failed[network] else "yes" for network in NETWORKS]
    return marks[0] if len(set(marks)) == 1 else "/".join(marks)


if __name__ == "__main__":
    matrix.write(BORDERS, table(survey(sys.argv[1:] or LEVELS)))
