"""The names of places in the HTML report: what an address ends with, and what a comment may link to."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from zelda_ci.domain.details import Citation, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.told import CiReport

MAX_LENGTH = 48
MAX_QUOTE_LENGTH = 200


@dataclass(frozen=True)
class PageLink:
    """Leads to an anchor of this report; one without an anchor is only its words."""

    text: str
    anchor: str = ""
    title: str = ""


@dataclass
class Quotes:
    """Citations that lead into one text: each is used for the first line that holds its quote."""

    wanted: list[tuple[str, str]] = field(default_factory=list)
    """The first line of a quote, without blanks at its ends, and the anchor."""

    def add(self, quote: str, anchor: str) -> None:
        """Have a line be found; a citation without a quote leads to the whole."""
        lines = [line.strip() for line in quote.strip().removesuffix("…").splitlines() if line.strip()]
        self.wanted.append((lines[0] if lines else "", anchor))

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
class PageAnchors:
    """Anchors of suites and sessions, unique in a report and the same each time it is written.

    The suite `api/orders` is `suite-api-orders`, the second trial of its head `api-orders-head-2`, and the two sides
    stand beside each other at `sides-api-orders`.
    """

    head: Sequence[RunResult]
    base: Sequence[RunResult] = ()

    def suite(self, name: str) -> str:
        """Of a suite's page."""
        return f"suite-{self._slugs[name]}"

    def sides(self, name: str) -> str:
        """Of two sessions of a suite side by side."""
        return f"sides-{self._slugs[name]}"

    def session(self, run: RunResult, side: Side) -> str:
        """Of a session's page."""
        return self._sessions[side, run.run_id]

    @cached_property
    def _slugs(self) -> Mapping[str, str]:
        slugs: dict[str, str] = {}
        taken: set[str] = set()
        for run in (*self.head, *self.base):
            if run.suite not in slugs:
                slugs[run.suite] = _unique(_slug(run.suite), taken)
        return slugs

    @cached_property
    def _sessions(self) -> Mapping[tuple[Side, str], str]:
        sessions: dict[tuple[Side, str], str] = {}
        taken: set[str] = set()
        for side, runs in ((Side.HEAD, self.head), (Side.BASE, self.base)):
            for run in runs:
                name = f"{self._slugs[run.suite]}-{side.value}-{run.trial}"
                sessions[side, run.run_id] = _unique(name, taken)
        return sessions


def anchors_of(report: CiReport) -> PageAnchors:
    """Those of the page that shows a report."""
    base = (*report.batch.base_runs, *(report.baseline_batch.runs if report.baseline_batch else ()))
    return PageAnchors(report.batch.runs, base)


def suite_address(report: CiReport, suite: str) -> str | None:
    """Where the stored page shows a suite: its beginning where it has no session; nothing where no page is stored."""
    return f"{report.links.report}{_suite_fragment(report, suite)}" if report.links.report else None


def _suite_fragment(report: CiReport, suite: str) -> str:
    anchors = anchors_of(report)
    is_shown = any(run.suite == suite for run in (*anchors.head, *anchors.base))
    return f"#{anchors.suite(suite)}" if is_shown else ""


def cited_fragment(report: CiReport, suite: str, cited: Citation) -> str:
    """The end of the address of a line that a suite's session is cited with; empty where the page has none."""
    runs = (run for run in reversed(report.batch.runs) if run.suite == suite)
    run = next((run for run in runs if cited in _all(run)), None)
    if run is None:
        return ""
    anchor = citations(run, anchors_of(report).session(run, Side.HEAD)).link(cited).anchor
    return f"#{anchor}" if anchor else ""


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_LENGTH].strip("-") or "suite"


def _unique(name: str, taken: set[str]) -> str:
    """A name that is not taken, and is from now on."""
    number, unique = 2, name
    while unique in taken:
        unique, number = f"{name}-x{number}", number + 1
    taken.add(unique)
    return unique


_TURN = re.compile(r"turn (\d{1,7})(?: call (\d{1,5}))?")
_PATCH = re.compile(r"(?:patch:)?(.+?)(?::\d+(?:-\d+)?)?")


@dataclass
class SessionCitations:
    """Everything that the judges cite of one session, with the anchor of each citation."""

    changed: frozenset[str]
    """Files that the session changed: its patch shows them."""
    by_call: dict[tuple[int, int], Quotes] = field(default_factory=dict)
    """By turn and call; 0 is the turn itself."""
    by_file: dict[str, Quotes] = field(default_factory=dict)
    links: dict[tuple[str, str | None], PageLink] = field(default_factory=dict)
    """By place and quote."""

    def link(self, cited: Citation) -> PageLink:
        """Where a citation leads to."""
        return self.links.get((cited.where, cited.quote)) or PageLink(visible(cited.where, 80))

    def leftover(self) -> tuple[str, ...]:
        """Anchors of what was cited of the session and not found: they lead to its beginning."""
        lines = (*self.by_call.values(), *self.by_file.values())
        return tuple(anchor for quotes in lines for anchor in quotes.rest())


def citations(run: RunResult, anchor: str) -> SessionCitations:
    """Those of one session; two that say the same are one."""
    cited = SessionCitations(frozenset(map(str, run.changes.files)) if run.changes else frozenset())
    for place in _all(run):
        if (place.where, place.quote) not in cited.links:
            _add(place, f"{anchor}-q{len(cited.links) + 1}", cited)
    return cited


def _add(place: Citation, anchor: str, cited: SessionCitations) -> None:
    text, quote = visible(place.where, 80), place.quote or ""
    if match := _TURN.match(place.where):
        cited.by_call.setdefault((int(match[1]), int(match[2] or 0)), Quotes()).add(quote, anchor)
    elif (match := _PATCH.fullmatch(place.where)) and match[1] in cited.changed:
        cited.by_file.setdefault(match[1], Quotes()).add(quote, anchor)
    else:
        # A file that the session did not change is nowhere in the report.
        anchor = ""
    cited.links[place.where, place.quote] = PageLink(text, anchor)


def _all(run: RunResult) -> Iterator[Citation]:
    if fulfilled := run.details(FulfillmentDetails):
        yield from (place for judged in fulfilled.criteria for place in judged.evidence)
    if used := run.details(ToolUsageDetails):
        remarks = (*used.missed, *used.misused, *used.instructions_ignored, *used.used_well)
        yield from (place for remark in remarks for place in remark.evidence)
        yield from (place for rule in used.rules for place in rule.evidence)


def quoted(cited: Citation) -> str:
    """The words of a citation in a line."""
    return sentence(cited.quote, MAX_QUOTE_LENGTH) if cited.quote else ""
