"""Measures the whole corpus at every level that this machine offers, and writes what it finds.

    python -m tests.hostile.matrix                    all columns, into tests/hostile/expected.json and docs/security.md
    python -m tests.hostile.matrix full none          only these levels
    python -m tests.hostile.matrix --table            only the table, from what was found before

Takes about 15 minutes on two cores, and up to 4 GB of memory and disk. Run it as root for all columns.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.hostile import developer, unprotected
from tests.hostile.action import Action, Channel
from tests.hostile.campaign import Campaign
from tests.hostile.corpus import CLASSES, CONTROLS, CORPUS
from tests.hostile.developer import REPOSITORY, Developer

EXPECTED = Path(__file__).with_name("expected.json")
PAGE = REPOSITORY / "docs" / "security.md"
BORDERS = ("<!-- matrix: begin -->", "<!-- matrix: end -->")
LEVELS = ("unprotected", "none", "landlock", "uid", "full")
CHANNELS: tuple[Channel, ...] = ("agent", "build")
APART = frozenset({"c13", "c17", "n10", "p05", "p20"})
"""Where nothing is isolated, these disturb others as well."""
SIGNALS = ("unprotected", "none")
"""Levels at which an action may end the whole run, so that those after it would never begin."""

Succeed = Callable[[Sequence[Action]], set[str]]
Found = dict[str, dict[str, list[str]]]
"""Ids of what succeeded, by column (`full user`) and channel."""


@dataclass(frozen=True)
class Column:
    """One level, attacked as one user."""

    level: str
    developer: Developer

    @property
    def name(self) -> str:
        return f"{self.level} {self.developer.kind}"

    def succeed(self, channel: Channel) -> Succeed:
        if self.level == "unprotected":
            return partial(unprotected.succeed, self.developer, channel)
        return Campaign(self.developer, self.level, channel).succeed


def columns(levels: Iterable[str] = LEVELS) -> Iterator[Column]:
    """Those that can be measured here: as root all, else the user's own."""
    wanted = set(levels)
    for level in LEVELS:
        if level not in wanted:
            continue
        if level != "uid":
            yield Column(level, developer.unprivileged())
        if os.geteuid() == 0 and level != "unprotected":
            yield Column(level, developer.root_in_a_container() if level == "uid" else developer.root())


def measure(succeed: Succeed, channel: Channel, level: str) -> set[str]:
    """All together, those that disturb last; again and one by one where one of these succeeded or may."""
    apart = APART if level == "unprotected" else frozenset()
    actions = [action for action in CORPUS if channel in action.channels and not action.heavy]
    alone = [action for action in actions if action.alone or action.id in apart]
    others = [action for action in actions if action not in alone]
    if level not in SIGNALS:
        found = succeed([*others, *sorted(alone, key=lambda action: action.id == "p06")])
        if not found & {action.id for action in alone} and _controlled(found, channel):
            return found
    found = succeed(others)
    if not _controlled(found, channel):
        raise AssertionError(f"what must succeed did not: {sorted(CONTROLS - found)}")
    return found.union(*(succeed([action]) for action in alone))


def _controlled(found: set[str], channel: Channel) -> bool:
    return {action.id for action in CORPUS if action.id in CONTROLS and channel in action.channels} <= found


def survey(chosen: Iterable[Column]) -> Found:
    """Measure columns, telling on the way; what was measured before and is not chosen stays."""
    known: Found = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for column in chosen:
        for channel in CHANNELS:
            began = time.monotonic()
            found = measure(column.succeed(channel), channel, column.level) - CONTROLS
            known.setdefault(column.name, {})[channel] = sorted(found)
            print(f"{column.name:18} {channel}: {len(found):3} succeeded, {time.monotonic() - began:.0f} s", flush=True)
            EXPECTED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return known


def table(found: Found) -> str:
    """As Markdown: X where an action succeeded, by the session's hand / as a build command where these differ.

    Actions that fail even where nothing isolates, since Zelda's own care suffices, follow as a sentence.
    """
    names = [f"{level} {kind}" for level in LEVELS for kind in ("user", "root") if f"{level} {kind}" in found]
    lines = ["| id | action | " + " | ".join(name.replace(" ", "<br>") for name in names) + " |"]
    lines.append("|---|---|" + ":-:|" * len(names))
    harmless = []
    for letter, meaning in CLASSES.items():
        lines.append(f"| **{letter}** | **{meaning}** |" + " |" * len(names))
        for action in sorted(CORPUS, key=lambda action: action.id):
            if not action.id.startswith(letter) or action.heavy:
                continue
            cells = [_cell(action, found[name]) for name in names]
            if {*cells[1:]} == {"-"}:
                harmless.append(f"{action.id} ({action.what})")
            else:
                lines.append(f"| {action.id} | {action.what} | " + " | ".join(cells) + " |")
    counts = [_count(found[name]) for name in names]
    lines.append("| | **succeeded** | " + " | ".join(counts) + " |")
    return "\n".join([*lines, "", f"Failed at every level, also at `none`: {', '.join(harmless)}."])


def _cell(action: Action, measured: Mapping[str, Sequence[str]]) -> str:
    marks = ["X" if action.id in measured[channel] else "-" for channel in CHANNELS if channel in action.channels]
    return marks[0] if len(set(marks)) == 1 else "/".join(marks)


def _count(measured: Mapping[str, Sequence[str]]) -> str:
    tried = {channel: sum(channel in a.channels for a in CORPUS if not a.heavy) - len(CONTROLS) for channel in CHANNELS}
    tried["build"] += sum("build" not in a.channels for a in CORPUS if a.id in CONTROLS)
    return "<br>".join(f"{len(measured[channel])} of {tried[channel]}" for channel in CHANNELS)


def write(borders: tuple[str, str], text: str) -> None:
    """Put a table between its borders in the page."""
    begin, end = borders
    page = PAGE.read_text("utf-8")
    inner = f"{begin}\n{text}\n{end}"
    PAGE.write_text(re.sub(f"{begin}.*{end}", lambda _: inner, page, flags=re.DOTALL), "utf-8")


def main(arguments: Sequence[str]) -> None:
    if "--table" in arguments:
        write(BORDERS, table(json.loads(EXPECTED.read_text())))
        return
    write(BORDERS, table(survey(columns(arguments or LEVELS))))


if __name__ == "__main__":
    main(sys.argv[1:])
