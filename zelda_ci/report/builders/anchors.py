"""The names of places in the HTML report: what an address ends with, and what a comment may link to."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, count

from zelda_ci.domain.details import Citation, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.report.told import CiReport

MAX_LENGTH = 48


class PageAnchors:
    """Anchors of suites and sessions, unique in a report and the same each time it is written.

    The suite `api/orders` is `suite-api-orders`, the second trial of its head `api-orders-head-2`, and the two sides
    stand beside each other at `sides-api-orders`.
    """

    def __init__(self, head: Sequence[RunResult], base: Sequence[RunResult] = ()) -> None:
        self._suites: dict[str, str] = {}
        self._sessions: dict[tuple[Side, str], str] = {}
        for side, runs in ((Side.HEAD, head), (Side.BASE, base)):
            for run in runs:
                if run.suite not in self._suites:
                    slug = re.sub(r"[^a-z0-9]+", "-", run.suite.lower()).strip("-")[:MAX_LENGTH].strip("-")
                    self._suites[run.suite] = _unique(slug or "suite", {*self._suites.values()})
                name = f"{self._suites[run.suite]}-{side.value}-{run.trial}"
                self._sessions[side, run.run_id] = _unique(name, {*self._sessions.values()})

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


def _unique(name: str, taken: Collection[str]) -> str:
    return next(it for it in chain([name], (f"{name}-x{number}" for number in count(2))) if it not in taken)


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
    anchor = SessionCitations(run, anchors_of(report).session(run, Side.HEAD)).anchor(cited)
    return f"#{anchor}" if anchor else ""


class Quotes(dict[str, tuple[str, bool]]):
    """Citations that lead into one text, by anchor: the first line that is quoted, and whether it was removed.

    Each is used for the first line that holds its quote; one without a quote leads to the whole.
    """

    def found_in(self, line: str, *, is_removed: bool) -> str:
        """The anchor for this line, each given once."""
        for anchor, (quote, of_removed) in self.items():
            if quote and quote in line and is_removed is of_removed:
                del self[anchor]
                return anchor
        return ""

    def rest(self) -> tuple[str, ...]:
        """The anchors of those that no line was found for."""
        anchors = tuple(self)
        self.clear()
        return anchors


class SessionCitations:
    """Everything that the judges cite of one session; without a run, nothing leads anywhere."""

    def __init__(self, run: RunResult | None = None, anchor: str = "") -> None:
        self._anchors: dict[Citation, str] = {}
        self.quotes: dict[str | tuple[int, int], Quotes] = {}
        """By file of its patch, or by turn and call; call 0 is the turn itself."""
        changed = frozenset(run.changes.files) if run and run.changes else frozenset()
        for number, cited in enumerate(dict.fromkeys(_all(run) if run else ()), start=1):
            of_turn = cited.turn > 0 and cited.kind in {"transcript", "said", "image"}
            # A file that the session did not change is nowhere in the report.
            if of_turn or cited.path in changed:
                anchor_of = self._anchors[cited] = f"{anchor}-q{number}"
                lines = (line.strip() for line in cited.quote.removesuffix("…").splitlines())
                quotes = self.quotes.setdefault((cited.turn, cited.call) if of_turn else cited.path, Quotes())
                quotes[anchor_of] = next(filter(None, lines), ""), cited.kind == "removed"

    def anchor(self, cited: Citation) -> str:
        """Where a citation leads to; empty where the report has no such place."""
        return self._anchors.get(cited, "")

    def leftover(self) -> tuple[str, ...]:
        """Anchors of what was cited of the session and not found."""
        return tuple(anchor for quotes in self.quotes.values() for anchor in quotes.rest())


def _all(run: RunResult) -> Iterator[Citation]:
    if fulfilled := run.details(FulfillmentDetails):
        yield from (place for judged in fulfilled.criteria for place in judged.evidence)
    if used := run.details(ToolUsageDetails):
        for judged in (*used.missed, *used.misused, *used.instructions_ignored, *used.used_well, *used.rules):
            yield from judged.evidence
