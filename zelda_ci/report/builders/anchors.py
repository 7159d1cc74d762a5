"""The names of places in the HTML report: what an address ends with, and what a comment may link to."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count

from zelda_ci.domain.details import Citation, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.report.ci_report import CiReport


class PageAnchors:
    """Anchors of suites and sessions, unique in a report and the same each time it is written.

    The suite `api/orders` is `suite-api-orders`, the second trial of its head `api-orders-head-2`, and the two sides
    stand beside each other at `sides-api-orders`.
    """

    def __init__(self, head: Sequence[RunResult], base: Sequence[RunResult] = ()) -> None:
        self.suites: dict[str, str] = {}
        """What the anchors of a suite have in common, by its name."""
        self.sessions: dict[tuple[Side, str], str] = {}
        suites: set[str] = set()
        sessions: set[str] = set()
        for side, runs in ((Side.HEAD, head), (Side.BASE, base)):
            for run in runs:
                if run.suite not in self.suites:
                    slug = re.sub(r"[^a-z0-9]+", "-", run.suite.lower()).strip("-")[:48].strip("-")
                    self.suites[run.suite] = _unique(slug or "suite", suites)
                name = f"{self.suites[run.suite]}-{side.value}-{run.trial}"
                self.sessions[side, run.run_id] = _unique(name, sessions)


def _unique(name: str, taken: set[str]) -> str:
    numbered = (f"{name}-x{number}" for number in count(2))
    taken.add(unique := next(it for it in chain([name], numbered) if it not in taken))
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
    name = anchors_of(report).suites.get(suite)
    return f"{report.links.report}#suite-{name}" if name else report.links.report


def cited_fragment(report: CiReport, suite: str, cited: Citation) -> str:
    """The end of the address of a line that a suite's session is cited with; empty where the page has none."""
    for run in reversed(report.batch.runs):
        if run.suite == suite and cited in _all(run):
            found = SessionCitations(run, anchors_of(report).sessions[Side.HEAD, run.run_id]).anchors.get(cited)
            return f"#{found}" if found else ""
    return ""


class Quotes(dict[str, tuple[str, bool]]):
    """Citations that lead into one text, by anchor: the first line that is quoted, and whether it was removed.

    Each is used for the first line that holds its quote; one without a quote leads to the whole.
    """

    def found_in(self, line: str, *, is_removed: bool) -> str:
        for anchor, (quote, of_removed) in self.items():
            if quote and quote in line and is_removed is of_removed:
                del self[anchor]
                return anchor
        return ""

    def rest(self) -> tuple[str, ...]:
        anchors = tuple(self)
        self.clear()
        return anchors


class SessionCitations:
    """Everything that the judges cite of one session; without a run, nothing leads anywhere."""

    def __init__(self, run: RunResult | None = None, anchor: str = "") -> None:
        self.anchors: dict[Citation, str] = {}
        """Where citations lead to, of those to a place of the report."""
        self.quotes: dict[str | tuple[int, int], Quotes] = {}
        """By file of its patch, or by turn and call; call 0 is the turn itself."""
        changed = frozenset(run.changes.files) if run and run.changes else frozenset()
        for number, cited in enumerate(dict.fromkeys(_all(run) if run else ()), start=1):
            of_turn = cited.turn > 0 and cited.kind in {"transcript", "said", "image"}
            # A file that the session did not change is nowhere in the report.
            if of_turn or cited.path in changed:
                anchor_of = self.anchors[cited] = f"{anchor}-q{number}"
                lines = (line.strip() for line in cited.quote.removesuffix("…").splitlines())
                quotes = self.quotes.setdefault((cited.turn, cited.call) if of_turn else cited.path, Quotes())
                quotes[anchor_of] = next(filter(None, lines), ""), cited.kind == "removed"

    def leftover(self) -> tuple[str, ...]:
        """Anchors of what was cited of the session and not found."""
        return tuple(anchor for quotes in self.quotes.values() for anchor in quotes.rest())


def _all(run: RunResult) -> Iterator[Citation]:
    if fulfilled := run.details(FulfillmentDetails):
        yield from (place for judged in fulfilled.criteria for place in judged.evidence)
    if used := run.details(ToolUsageDetails):
        for judged in (*used.missed, *used.misused, *used.instructions_ignored, *used.used_well, *used.rules):
            yield from judged.evidence
