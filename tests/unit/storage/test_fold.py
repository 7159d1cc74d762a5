"""Records become a transcript: grouped, joined, in order, and nothing is lost."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import MODEL, records, result, safe
from zelda_ci.domain.session import (
    AssistantSaid,
    Denied,
    Ended,
    HookRan,
    ModelUsage,
    Noticed,
    ResponseEnded,
    Retried,
    SessionRecord,
    SessionTranscript,
    Started,
    ToolCalled,
    ToolReturned,
    Turn,
    Usage,
    UserSaid,
)
from zelda_ci.storage.codec import transcript_of


def folded(*happened: SessionRecord) -> SessionTranscript:
    return transcript_of(result(), safe("p"), happened, 1)


def said(text: str, message: str = "m1", at: float = 1, model: str = MODEL, **more: Any) -> AssistantSaid:
    return AssistantSaid(at=at, message_id=safe(message), model=safe(model), text=safe(text), **more)


def called(call: str = "t1", message: str = "m1", at: float = 2, **more: Any) -> ToolCalled:
    return ToolCalled(
        at=at, message_id=safe(message), model=MODEL, id=safe(call), name=safe("Bash"), input=safe.json({}), **more
    )


def returned(call: str = "t1", output: str = "ok", at: float = 3, **more: Any) -> ToolReturned:
    return ToolReturned(at=at, id=safe(call), output=safe(output), **more)


def test_the_blocks_of_one_response_are_one_turn_whose_tokens_come_from_its_end() -> None:
    blocks = said("hm", thinking=True), said("a"), said("b"), called("t1"), called("t2")
    ends = [ResponseEnded(at=3, message_id=safe("m1"), usage=Usage(output_tokens=tokens)) for tokens in (1, 7)]
    [turn] = folded(*blocks, *ends).turns
    assert (turn.thinking, turn.text, [call.id for call in turn.tool_calls]) == ("hm", "a\n\nb", ["t1", "t2"])
    assert (turn.index, turn.at, turn.model, turn.usage) == (1, 1, MODEL, Usage(output_tokens=7))


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_denied_call_is_marked_and_the_reason_kept(order: str) -> None:
    denied = Denied(at=2, tool=safe("Bash"), tool_call_id=safe("t1"), reason=safe("no"))
    transcript = folded(*((denied, called()) if order == "before" else (called(), denied)))
    assert transcript.tool_calls[0].denied
    assert denied in transcript.entries


def test_of_several_results_and_starts_the_last_wins() -> None:
    first, *_, last = records("Read a.py", cost=0.1)
    assert isinstance(first, Started)
    assert isinstance(last, Ended)
    later = last.model_copy(update={"cost_usd": 0.3})
    again = first.model_copy(update={"at": 9.0})
    transcript = folded(first, last, again, later)
    assert (transcript.ended, transcript.started) == (later, again)


def test_entries_keep_the_order_in_which_they_began() -> None:
    hook = HookRan(at=1, name=safe("h"), event=safe("e"), outcome=safe("success"), output=safe(""))
    retry = Retried(at=2, attempt=1, error=safe("overloaded"))
    notice = Noticed(at=3, kind=safe("k"), text=safe("t"))
    nudge = UserSaid(at=4, text=safe("go on"))
    transcript = folded(hook, said("a"), retry, called(), notice, returned(), nudge, said("b", "m2"))
    assert [entry.type for entry in transcript.entries] == ["hookRan", "turn", "retried", "noticed", "userSaid", "turn"]
    assert [turn.index for turn in transcript.turns] == [1, 2]


ids = st.sampled_from(["1", "2", "3"]).map(safe)
threads = st.none() | ids
words = st.text(st.characters(exclude_characters="\n"), max_size=5).map(safe)
models = st.sampled_from([MODEL, safe("<synthetic>")])
usages = st.builds(Usage, output_tokens=st.integers(0, 99))
times = st.floats(0, 100)
any_record = st.one_of(
    st.builds(Started, at=times, session_id=ids, cli_version=words, model=models, permission_mode=words),
    st.builds(AssistantSaid, at=times, message_id=ids, model=models, text=words, parent_tool_call_id=threads),
    st.builds(ToolCalled, at=times, message_id=ids, model=models, id=ids, name=words, input=st.just(safe.json({}))),
    st.builds(ToolReturned, at=times, id=ids, output=words, is_error=st.booleans()),
    st.builds(UserSaid, at=times, text=words),
    st.builds(ResponseEnded, at=times, message_id=ids, usage=usages, parent_tool_call_id=threads),
    st.builds(Retried, at=times, attempt=st.integers(1, 9), error=words),
    st.builds(Denied, at=times, tool=words, tool_call_id=st.none() | ids, reason=words),
    st.builds(HookRan, at=times, name=words, event=words, outcome=words, output=words),
    st.builds(Noticed, at=times, kind=words, text=words),
    st.builds(
        Ended,
        at=times,
        subtype=words,
        is_error=st.booleans(),
        model_usage=st.dictionaries(words, st.builds(ModelUsage, output_tokens=st.integers(0, 9))),
    ),
)
journals = st.lists(any_record, max_size=40)


@settings(max_examples=40)
@given(journals)
def test_every_record_is_accounted_for(journal: list[SessionRecord]) -> None:
    transcript = folded(*journal)
    entries = [entry for entry in transcript.entries if not isinstance(entry, Turn)]

    alone = [r for r in journal if isinstance(r, UserSaid | Retried | Denied | HookRan | Noticed)]
    assert Counter(repr(entry) for entry in entries if not isinstance(entry, ToolReturned)) == Counter(map(repr, alone))

    answers = Counter((r.id, r.output, r.at) for r in journal if isinstance(r, ToolReturned))
    joined = Counter((c.id, c.output, c.ended_at) for c in transcript.tool_calls if c.output is not None)
    orphans = Counter((e.id, e.output, e.at) for e in entries if isinstance(e, ToolReturned))
    assert joined + orphans == answers

    in_turns = [r for r in journal if isinstance(r, AssistantSaid | ToolCalled | ResponseEnded)]
    assert len(transcript.turns) == len({(r.message_id, r.parent_tool_call_id) for r in in_turns})
    calls = {(r.message_id, r.parent_tool_call_id, r.id) for r in journal if isinstance(r, ToolCalled)}
    assert len(transcript.tool_calls) == len(calls)
    letters = sum(len(turn.text.replace("\n\n", "")) for turn in transcript.turns if turn.text)
    assert letters == sum(len(r.text) for r in journal if isinstance(r, AssistantSaid))


@settings(max_examples=40)
@given(journals, st.integers(0, 40))
def test_every_thread_of_a_journal_cut_off_anywhere_begins_like_the_whole(
    journal: list[SessionRecord], cut: int
) -> None:
    whole, part = folded(*journal), folded(*journal[:cut])
    for thread in {turn.parent_tool_call_id for turn in part.turns}:
        heard = [turn.message_id for turn in part.turns if turn.parent_tool_call_id == thread]
        assert heard == [turn.message_id for turn in whole.turns if turn.parent_tool_call_id == thread][: len(heard)]
    assert [turn.index for turn in part.turns] == list(range(1, len(part.turns) + 1))


def in_thread(text: str, call: str) -> AssistantSaid:
    return said(text, f"m-{text}", parent_tool_call_id=safe(call))


def test_which_of_several_threads_speaks_first_does_not_change_the_transcript() -> None:
    start = [called("one", "m0"), called("two", "m0")]
    first, second = [in_thread("a", "one"), in_thread("b", "one")], [in_thread("c", "two"), in_thread("d", "two")]
    late = Noticed(at=9, kind=safe("task_notification"), text=safe("ended"), parent_tool_call_id=safe("one"))
    orders: list[list[SessionRecord]] = [
        [*start, *first, late, *second, said("end", "m9")],
        [*start, second[0], *first, said("end", "m9"), second[1], late],
    ]
    read = [[(e.index, e.text) if isinstance(e, Turn) else e.type for e in folded(*order).entries] for order in orders]
    assert read[0] == read[1] == [(1, None), (2, "a"), (3, "b"), "noticed", (4, "c"), (5, "d"), (6, "end")]
