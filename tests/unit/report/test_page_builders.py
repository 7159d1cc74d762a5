"""What the pages of the HTML report are made of: folds, cuts, citations, anchors, sides, time line."""

from typing import Any

import pytest

from tests.builders import result, safe, session, suite
from tests.support.cited import citation
from tests.support.page_structure import structure
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus, SessionTranscript
from zelda_ci.domain.trials import Side
from zelda_ci.domain.workspace import ChangeSummary
from zelda_ci.report.builders.anchors import PageAnchors, SessionCitations
from zelda_ci.report.html.conversation import ShownConversation, patched_files, shortened, spans, time_line
from zelda_ci.report.html.rendering import environment
from zelda_ci.report.html.writer import SuiteSessions, sides_page


def template(name: str) -> Any:
    return environment().get_template(name).module


def test_a_short_text_is_whole_and_a_long_one_is_folded_around_its_middle() -> None:
    short, long = (
        str(template("parts.html.j2").block(spans(text))) for text in ("a\nb", "\n".join(map(str, range(100))))
    )
    assert short == '<pre class="code">\na\nb\n</pre>'
    first, middle, last = long.split("<pre")[1:]
    assert "<summary>80 more lines</summary>" in first
    assert structure(long).text.replace("80 more lines", "").split() == [str(number) for number in range(100)]
    assert [">\n0\n" in first, ">\n14\n" in middle, ">\n94\n" in last] == [True] * 3


@pytest.mark.parametrize("limit", [200, 5000])
def test_a_cut_text_keeps_whole_lines_of_both_ends_and_says_how_much_is_missing(limit: int) -> None:
    text = "\n".join(f"line {number}" for number in range(1000))
    cut = shortened(text, limit)
    first, _, rest = cut.partition("\n[… ")
    missing, _, last = rest.partition(" characters are left out here …]\n")
    assert text.startswith(first + "\n")
    assert text.endswith("\n" + last)
    assert len(first) + len(last) <= limit
    assert len(first) + len(last) + int(missing.replace(",", "")) == len(text)


def run(name: str = "example", trial: int = 1, *, good: bool = True, **fields: object) -> RunResult:
    status = SessionStatus.COMPLETED if good else SessionStatus.MAX_TURNS
    given = {"suite": name, "trial": trial, "config": suite(name), "status": status, **fields}
    return result(f"{name.replace('/', '-')}-2026-02-13T14-30-00-{trial + 1}", **given)


def test_anchors_are_safe_unique_and_the_same_each_time() -> None:
    runs = [run("api/Orders"), run("api-orders"), run('"><script>'), run("漢字")]
    anchors = PageAnchors(runs, [run("api/Orders", 2)])
    assert [*anchors.suites.values()] == ["api-orders", "api-orders-x2", "script", "suite"]
    assert anchors.sessions[Side.HEAD, runs[1].run_id] == "api-orders-x2-head-1"
    assert anchors.sessions[Side.BASE, run("api/Orders", 2).run_id] == "api-orders-base-2"


def cited(*places: tuple[str, str]) -> SessionCitations:
    evidence = tuple(citation(*each) for each in places)
    judged = CriterionJudgement(
        criterion=safe("c"), verdict=CriterionVerdict.PASS, reasoning=safe(""), evidence=evidence
    )
    details = FulfillmentDetails(criteria=(judged,))
    found = EvalResult(metric=Metric.REQUIREMENT_FULFILLMENT, version="1", reasoning=safe(""), details=details)
    changes = ChangeSummary(files=(safe("a.py"),))
    return SessionCitations(run(evaluations={Metric.REQUIREMENT_FULFILLMENT: found}, changes=changes), "s")


def test_a_citation_leads_to_its_line_or_else_to_its_call_or_turn() -> None:
    found = cited(
        *(("turn 1 call 1", "second"), ("turn 1 call 1", "not there"), ("said:turn 2", "Done")),
        *(("turn 9 call 9", "x"), ("turn 2", "not there")),
    )
    talk = ShownConversation(session("Read a.py -> first\nsecond\nthird", '"All Done."'), "s", found)
    first, second = (str(template("conversation.html.j2").turn(talk, turn)) for turn in talk.transcript.turns)
    assert '<span class="l-cited" id="s-q1">second\n</span>' in first
    assert '</summary><i id="s-q2">' in first
    assert '</p><i id="s-q5">' in second
    assert '<span class="l-cited" id="s-q3">All Done.\n</span>' in second
    assert found.leftover() == ("s-q4",)


def test_what_a_patch_removes_is_cited_where_it_is_removed() -> None:
    patch = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 1\n"
    found = cited(("patch:a.py", "x = 1"), ("removed:a.py", "x = 1"))
    ((_, _, _, lines),) = patched_files(patch, found.quotes, 1_000)
    assert [(line.text, line.anchor) for line in lines[1:]] == [("-x = 1", "s-q2"), ("+x = 1", "s-q1")]


def test_the_time_line_shows_who_was_busy_within_its_scale() -> None:
    talk = session("Read a.py", "Agent x", "> Read b.py", "Bash ls -> error", '"Done."', seconds=30)
    lanes = time_line(talk)
    assert [*lanes] == ["Model", "Tools", "Waiting"]
    assert len(lanes["Model"]) == 4
    assert [(kind, place) for kind, _, _, _, place in lanes["Tools"]] == [
        *(("tool", "t1-c1"), ("agent", "t2-c1"), ("tool", "t3-c1"), ("bad", "t4-c1"))
    ]
    assert all(0 <= start <= end <= 30 for bars in lanes.values() for _, start, end, _, _ in bars)


def page(base: SessionTranscript, head: SessionTranscript) -> dict[str, Any]:
    suite = SuiteSessions("example", [run()], [run()], None, PageAnchors([run()], [run()]))
    return sides_page(suite, base, head)


def kinds(shown: dict[str, Any]) -> list[str]:
    return [row.kind for row in shown["rows"]]


def test_turns_are_aligned_by_what_they_called() -> None:
    shown = page(
        session("Read a.py", "Skill changelog", "Bash make test", '"Done."'),
        session("Read a.py", "Bash make test", "Bash make lint", '"Finished."'),
    )
    assert kinds(shown) == ["same", "only", "same", "only", "same"]
    assert shown["rows"][1].head is None
    assert shown["first"] == 1
    assert shown["summary"] == "3 of 5 steps alike."


def test_other_text_is_marked_where_there_is_no_other_step_and_shown_as_a_difference() -> None:
    def talk(body: str) -> SessionTranscript:
        made = session("Write a.py", '"Done."')
        turn = made.turns[0]
        call = turn.tool_calls[0].replace(input=safe.json({"file_path": "a.py", "content": body}))
        return made.replace(entries=(turn.replace(tool_calls=(call,)), *made.entries[1:]))

    shown = page(talk("one\ntwo\nthree\n"), talk("one\n2\nthree\n"))
    assert kinds(shown) == ["alike", "same"]
    assert shown["first"] == 0
    assert shown["summary"] == "Both took the same steps and differ in what they wrote."
    difference = [(line.kind, line.text) for line in shown["rows"][0].difference]
    assert difference == [("", " one"), ("del", "-two"), ("add", "+2"), ("", " three")]


def test_the_worst_of_the_head_stands_beside_the_best_of_the_base() -> None:
    head = (run(trial=1), run(trial=2, good=False), run(trial=3, good=False))
    base = (run(trial=1, good=False), run(trial=2))
    pair = SuiteSessions("example", head, base, None, PageAnchors(head, base)).pair
    assert pair
    assert [session.text for session in pair[:2]] == ["base 2", "head 2"]
