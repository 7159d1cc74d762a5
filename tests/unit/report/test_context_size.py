"""What a change costs of the context, in words and as a table."""

import io
from typing import Any

from rich.console import Console

from zelda_ci.domain.check import ContextFinding, ContextItem, ContextListing, ContextReport
from zelda_ci.redact import Redactor
from zelda_ci.report.builders.steering import context_report, moved_line, size_line
from zelda_ci.report.comment.view import context_details
from zelda_ci.report.model import plain
from zelda_ci.report.terminal.pages import print_details

safe = Redactor(())


def _listing(*items: tuple[str, str, int, int, int], **facts: Any) -> ContextListing:
    made = (
        ContextItem.model_validate({"kind": kind, "name": name, "always": always, "onDemand": more, "cut": cut})
        for kind, name, always, more, cut in items
    )
    known = {"model": safe("claude-sonnet-5-5"), "window": 200_000, "own": 18_000, "is_estimated": False, **facts}
    return ContextListing(items=tuple(made), **known)


BASE = _listing(("claudeMd", "CLAUDE.md", 9000, 0, 0), ("skill", "openapi", 240, 2100, 0), ("rule", "a.md", 2000, 0, 0))
HEAD = _listing(
    ("claudeMd", "CLAUDE.md", 10_900, 0, 0),
    ("skill", "deploy", 310, 900, 212),
    ("skill", "openapi", 240, 6840, 0),
    ("rule", "a.md", 2000, 0, 0),
)


def test_one_line_says_what_the_change_costs_and_which_units_did_it() -> None:
    report = ContextReport(head=HEAD, base=BASE)

    assert plain(size_line(report)) == "Always in context: 11,240 \u2192 13,450 tokens (+2,210, +20%)"
    assert plain(moved_line(report)) == "CLAUDE.md +1,900 and skill deploy +310"
    back = ContextReport(head=BASE.replace(is_estimated=True), base=HEAD)
    assert plain(size_line(back)).endswith("11,240 tokens (\u22122,210, \u221216%, estimated)")
    same = ContextReport(head=BASE, base=BASE)
    assert plain(size_line(same)) == "Always in context: 11,240 tokens (as before)"
    assert not moved_line(same)
    assert plain(size_line(ContextReport(head=HEAD, base=_listing()))).endswith("(+13,450)")


def test_the_fold_holds_changed_units_cuts_new_findings_and_the_price() -> None:
    places = (("CLAUDE.md", "imports a.md, which does not exist"), ("CLAUDE.md", "imports b.md, which does not exist"))
    found = [ContextFinding(file=safe(a), line=3, problem=safe(b), fix=safe("Correct the path.")) for a, b in places]
    head, base = HEAD.replace(findings=tuple(found), own=22_000), BASE.replace(findings=tuple(found[:1]))

    details = context_report(ContextReport(head=head, base=base), limit=12_000)

    rows = {row.label: [cell.text for cell in (*row.cells, *row.lines)] for row in details.rows}
    assert "at most 12,000 are allowed (gate.maxAlwaysOnTokens): 1,450 too many" in rows["Too large"][0]
    assert rows["Cut from the listing"] == ["skill deploy loses 212 characters of its description"]
    assert rows["Does not work as written"] == [
        "1 that the base has, too",
        "CLAUDE.md:3: imports b.md, which does not exist. Correct the path.",
    ]
    # 1.25 times the price of input once, and 19 times that of reading from the cache.
    assert rows["1,000 sessions"][0] == "$49.46 \u2192 $59.18"
    assert rows["Share of the window"] == [
        "5.6% \u2192 6.7% of 200,000 tokens",
        "Claude Code's own part takes 18,000 \u2192 22,000 more",
    ]
    assert details.table
    assert [[cell.text for cell in line.cells] for line in details.table.lines] == [
        ["CLAUDE.md", "CLAUDE.md file", "9,000 \u2192 10,900", "0"],
        ["deploy", "skill (new)", "0 \u2192 310", "0 \u2192 900"],
        ["openapi", "skill", "240", "2,100 \u2192 6,840"],
    ]
    assert details.table.remarks[-1].text == "1 unit as before: 2,000 tokens always."


def test_a_comment_says_how_many_units_it_leaves_out() -> None:
    table = context_details(ContextReport(head=_listing(*(("rule", f"{n}.md", n, 0, 0) for n in range(103))))).table
    assert table
    assert (len(table.lines), table.remarks[0].text) == (100, "and 3 more")


def test_without_a_base_every_unit_is_listed_by_its_size() -> None:
    details, out = context_report(ContextReport(head=HEAD), limit=13_450), io.StringIO()

    print_details(Console(file=out, width=100), details)

    text = out.getvalue()
    assert text.startswith("Always in context: 13,450 tokens\n")
    assert "Too large" not in text
    assert [line.split()[0] for line in text.splitlines() if " skill " in line or "a.md" in line] == [
        "Cut", "a.md", "deploy", "openapi",
    ]  # fmt: skip
