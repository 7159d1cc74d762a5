"""A patch to look at."""

from collections.abc import Iterator

from zelda_ci.reporter.view.escape import visible
from zelda_ci.reporter.view.nouns import Cell, Tone

TAB = 8


def patch_lines(patch: bytes) -> Iterator[Cell]:
    """Lines in their colours, in which nothing acts on a terminal."""
    in_hunk = False
    for raw in patch.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n"):
        in_hunk = raw.startswith("@@") or (in_hunk and not raw.startswith("diff --git "))
        line = raw.expandtabs(TAB)
        yield Cell(visible(line, len(line)), _tone(raw, in_hunk=in_hunk))


def _tone(line: str, *, in_hunk: bool) -> Tone:
    if not in_hunk or line.startswith("@@"):
        return Tone.DIM
    if line.startswith("+"):
        return Tone.GOOD
    return Tone.BAD if line.startswith("-") else Tone.NEUTRAL
