"""The names of places in the HTML report: what an address ends with, and what a comment may link to."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from zelda_ci.domain.details import Citation, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.report.text import visible
from zelda_ci.report.told import CiReport

MAX_LENGTH = 48


class PageLink(NamedTuple):
    """Leads to an anchor of this report; one without an anchor is only its words."""

    text: str
    anchor: str = ""


class PageAnchors:
    """Anchors of suites and sessions, unique in a report and the same each time it is written.

    The suite `api/orders` is `suite-api-orders`, the second trial of its head `api-orders-head-2`, and the two sides
    stand beside each other at `sides-api-orders`.
    """

    def __init__(self, head: Sequence[RunResult], base: Sequence[RunResult] = ()) -> None:
        self._suites: dict[str, str] = {}
        self._sessions: dict[tuple[Side, str], str] = {}
        suites: set[str] = set()
        sessions: set[str] = set()
        for side, runs in ((Side.HEAD, head), (Side.BASE, base)):
            for run in runs:
                if run.suite not in self._suites:
                    slug = re.sub(r"[^a-z0-9]+", "-", run.suite.lower()).strip("-")[:MAX_LENGTH].strip("-")
                    self._suites[run.suite] = _unique(slug or "suite", suites)
                name = f"{self._suites[run.suite]}-{side.value}-{run.trial}"
                self._sessions[side, run.run_id] = _unique(name, sessions)

    def __contains__(self, suite: str) -> bool:
        """Whether a suite has a page."""
        return suite in self._suites

    def suite(self, name: str) -> str:
        """Of a suite's page."""
        return f"suite-{self._suites[name]}"

    def sides(self, name: str) -> str:
        """Of two sessions of a suite side by side."""
        return f"sides-{self._suites[name]}"

    def session(self, run: RunResult, side: Side) -> str:
        """Of a session's page."""
        return self._sessions[side, run.run_id]


def _unique(name: str, taken: set[str]) -> str:
    """A name that is not taken, and is from now on."""
    number, unique = 2, name
    while unique in taken:
        unique, number = f"{name}-x{number}", number + 1
    taken.add(unique)
    return unique


def base_runs(report: CiReport) -> tuple[RunResult, ...]:
    """The sessions of the base, those that ran beside the head's first."""
    return (*report.batch.base_runs, *(report.baseline_batch.runs if report.baseline_batch else ()))


def anchors_of(report: CiReport) -> PageAnchors:
    """Those of the page that shows a report."""
    return PageAnchors(report.batch.runs, base_runs(report))


def suite_address(report: CiReport, suite: str) -> str | None:
    """Where the stored page shows a suite: its beginning where it has no session; nothing where no page is stored."""
    if not report.links.report:
        return None
    anchors = anchors_of(report)
    return f"{report.links.report}#{anchors.suite(suite)}" if suite in anchors else report.links.report


def cited_fragment(report: CiReport, suite: str, cited: Citation) -> str:
    """The end of the address of a line that a suite's session is cited with; empty where the page has none."""
    runs = (run for run in reversed(report.batch.runs) if run.suite == suite)
    run = next((run for run in runs if cited in _all(run)), None)
    if run is None:
        return ""
    anchor = citations(run, anchors_of(report).session(run, Side.HEAD)).link(cited).anchor
    return f"#{anchor}" if anchor else ""


@dataclass
class Quotes:
    """Citations that lead into one text: each is used for the first line that holds its quote."""

    wanted: list[tuple[str, str]] = field(default_factory=list)
    """The first line of a quote, without blanks at its ends, and the anchor; without a line it leads to the whole."""

    def found_in(self, line: str) -> str:
        """The anchor for this line, each given once."""
        for place, (quote, anchor) in enumerate(self.wanted):
            if quote and quote in line:
                del self.wanted[place]
                return anchor
        return ""

    def rest(self) -> tuple[str, ...]:
        """The anchors of those that no line was found for."""
        anchors = tuple(anchor for _, anchor in self.wanted)
        self.wanted.clear()
        return anchors


@dataclass(frozen=True)
class SessionCitations:
    """Everything that the judges cite of one session, with the anchor of each citation."""

    quotes: dict[str | tuple[int, int], Quotes] = field(default_factory=dict)
    """By file of its patch, or by turn and call; call 0 is the turn itself."""
    links: dict[tuple[str, str | None], PageLink] = field(default_factory=dict)
    """By place and quote."""

    def link(self, cited: Citation) -> PageLink:
        """Where a citation leads to."""
        return self.links.get((cited.where, cited.quote)) or PageLink(visible(cited.where, 80))

    def leftover(self) -> tuple[str, ...]:
        """Anchors of what was cited of the session and not found."""
        return tuple(anchor for quotes in self.quotes.values() for anchor in quotes.rest())


_TURN = re.compile(r"turn (\d{1,7})(?: call (\d{1,5}))?")
_PATCH = re.compile(r"(?:patch:)?(.+?)(?::\d+(?:-\d+)?)?")


def citations(run: RunResult, anchor: str) -> SessionCitations:
    """Those of one session; two that say the same are one."""
    cited = SessionCitations()
    changed = frozenset(map(str, run.changes.files)) if run.changes else frozenset()
    for place in _all(run):
        if (place.where, place.quote) in cited.links:
            continue
        name = f"{anchor}-q{len(cited.links) + 1}"
        key: str | tuple[int, int] | None = None
        if match := _TURN.match(place.where):
            key = int(match[1]), int(match[2] or 0)
        elif (match := _PATCH.fullmatch(place.where)) and match[1] in changed:
            key = match[1]
        # A file that the session did not change is nowhere in the report.
        cited.links[place.where, place.quote] = PageLink(visible(place.where, 80), name if key else "")
        if key:
            lines = [
                line.strip() for line in (place.quote or "").strip().removesuffix("…").splitlines() if line.strip()
            ]
            cited.quotes.setdefault(key, Quotes()).wanted.append((lines[0] if lines else "", name))
    return cited


def _all(run: RunResult) -> Iterator[Citation]:
    if fulfilled := run.details(FulfillmentDetails):
        yield from (place for judged in fulfilled.criteria for place in judged.evidence)
    if used := run.details(ToolUsageDetails):
        for judged in (*used.missed, *used.misused, *used.instructions_ignored, *used.used_well, *used.rules):
            yield from judged.evidence
