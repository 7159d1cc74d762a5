"""What a PASS can rest on: facts that were looked up, not words, echoes, headings, removed lines or context."""

import pytest

from tests.builders import safe, session
from tests.support.cited import place
from zelda_ci.domain.session import Entry, HookRan, McpServerState, Noticed, SessionTranscript, Turn
from zelda_ci.metrics.evidence import NEEDS, CitedPlace, Citing, Criterion, Sources, look_up

PATCH = """\
diff --git a/shop/cart.py b/shop/cart.py
index 1111111..2222222 100644
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -1,4 +1,4 @@ class Cart:
 def total(cart):
-    return first(cart)
+    return sum(cart)
 # end of the cart
--- a removed line of SQL
+++ an added line of C
diff --git "a/caf\\303\\251 menu.txt" "b/caf\\303\\251 menu.txt"
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ "b/caf\\303\\251 menu.txt"
@@ -0,0 +1 @@
+espresso
diff --git a/gone.py b/gone.py
deleted file mode 100644
index 4444444..0000000
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-print("debug")
diff --git a/old.txt b/new.txt
similarity index 100%
rename from old.txt
rename to new.txt
"""
CART = "def total(cart):\n    return sum(cart)\n# end of the cart\n++ an added line of C\n"
CAFE = "café menu.txt"


def told(*steps: str, **inputs: dict[str, object]) -> SessionTranscript:
    """A session whose calls were given more: `t3={...}` for the first call of turn 3."""
    transcript = session(*steps)
    entries: list[Entry] = []
    for entry in transcript.entries:
        given = inputs.get(f"t{entry.index}") if isinstance(entry, Turn) else None
        if given and isinstance(entry, Turn):
            call = entry.tool_calls[0].model_copy(update={"input": safe.json(given)})
            entries.append(entry.model_copy(update={"tool_calls": (call, *entry.tool_calls[1:])}))
        else:
            entries.append(entry)
    return transcript.model_copy(update={"entries": tuple(entries)})


def sources(transcript: SessionTranscript | None = None, **others: object) -> Sources:
    given = transcript or session('"Nothing."')
    files = {"shop/cart.py": CART, CAFE: "espresso\n"}
    return Sources(
        files,
        PATCH,
        given,
        "testCommand `make test` ended with exit code 0.\n13 passed in 1.5s",
        task="Make total work.\nKeep it short.",
        unchanged={"README.md": "# Shop\nOpen daily.\n"}.get,
        mark="a1b2c3d4",
        **others,  # type: ignore[arg-type]
    )


def weakness(where: str, quote: str, given: Sources) -> str:
    citing = look_up(place(where, quote), given)
    assert citing.problem is None, citing.problem
    return citing.weakness or ""


RUN = told(
    '"All 7 tests pass."',
    "Bash pytest -q -> 7 passed in 0.12s",
    'Bash echo "All tests pass" -> All tests pass',
    "Write /tmp/w/status.txt",
    "Bash cat status.txt -> 9 tests pass today",
    "Read a.py -> \t1\tfirst line\n\t2\tsecond line",
    "TodoWrite x -> Todos have been modified",
    "Agent checker -> All tests pass, says the checker",
    "Bash git push -> denied",
    "Edit /tmp/w/shop/cart.py",
    "Bash make check; echo done -> make: no such target",
    t4={"file_path": "/tmp/w/status.txt", "content": "9 tests pass today"},
    t7={"todos": [{"content": "run the tests", "status": "completed"}]},
    t8={"subagent_type": "checker", "prompt": "Say that everything is fine."},
    t10={"file_path": "/tmp/w/shop/cart.py", "old_string": "x", "new_string": "return min(cart)"},
)


@pytest.mark.parametrize(
    ("where", "quote"),
    [
        ("turn 2 call 1", "7 passed in 0.12s"),
        ("turn 2", "command: pytest -q\n[a1b2c3d4 returned]\n7 passed in 0.12s"),
        ("turn 6 call 1", "first line\nsecond line"),
        ("turn 11 call 1", "make check; echo done"),
        ("turn 10", "file_path: /tmp/w/shop/cart.py"),
        ("patch:shop/cart.py", "+    return sum(cart)"),
        ("patch:shop/cart.py", "-    return first(cart)\n+    return sum(cart)"),
        ("patch:shop/cart.py", "++ an added line of C"),
        ("patch:shop/cart.py", "return sum(cart)"),
        ("shop/cart.py:2", "+    return sum(cart)"),
        ("removed:shop/cart.py", "return first(cart)"),
        ("removed:gone.py", '-print("debug")'),
        ("patch:gone.py", "deleted file mode 100644"),
        ("README.md:2", "Open daily."),
        ("build-and-tests", "13 passed in 1.5s"),
        ("turn 8 call 1", "subagent_type: checker"),
    ],
)
def test_a_pass_rests_on_facts(where, quote):
    assert weakness(where, quote, sources(RUN)) == ""


@pytest.mark.parametrize(
    ("where", "quote", "why"),
    [
        ("turn 1", "All 7 tests pass.", "own words"),
        ("turn 3 call 1", "All tests pass", "own words|written this itself"),
        ("turn 3 call 1", 'echo "All tests pass"', "own words"),
        ("turn 5 call 1", "9 tests pass today", "written this itself"),
        ("turn 7 call 1", "run the tests", "own words"),
        ("turn 7 call 1", "Todos have been modified", "own words"),
        ("turn 8 call 1", "All tests pass, says the checker", "own words"),
        ("turn 8 call 1", "Say that everything is fine.", "own words"),
        ("turn 9 call 1", "git push", "own words"),
        ("turn 10 call 1", "return min(cart)", "does not have it"),
        ("patch:shop/cart.py", "diff --git a/shop/cart.py b/shop/cart.py", "headings"),
        ("patch:shop/cart.py", "--- a/shop/cart.py\n+++ b/shop/cart.py", "headings"),
        ("patch:shop/cart.py", "class Cart:", "headings"),
        ("task", "Keep it short.", "what was asked for"),
        ("patch:shop/cart.py", "return first(cart)", "removed"),
        ("patch:shop/cart.py", "-- a removed line of SQL", "removed"),
        ("gone.py:1", 'print("debug")', "removed"),
        ("patch:shop/cart.py", "# end of the cart", "were there before"),
        ("removed:shop/cart.py", "return sum(cart)", "headings"),
        ("shop/cart.py:1", "def", "too short"),
        ("said:turn 1", "All 7 tests pass.", "own words"),
    ],
)
def test_a_pass_cannot_rest_on_what_proves_nothing(where, quote, why):
    found = weakness(where, quote, sources(RUN))
    assert any(reason in found for reason in why.split("|")), found


def test_words_prove_only_what_the_suite_marks_as_being_about_words():
    about = Criterion("It names the tests that pass.", is_about_answer=True)
    assert look_up(place("said:turn 1", "All 7 tests pass."), sources(RUN), about) == Citing()
    # Without the mark in front it is a claim there, too; and what a tool returned was not said.
    assert "own words" in (look_up(place("turn 1", "All 7 tests pass."), sources(RUN), about).weakness or "")
    assert look_up(place("said:turn 2", "7 passed in 0.12s"), sources(RUN), about).weakness


@pytest.mark.parametrize(
    ("where", "quote"),
    [
        ("turn 2 call 1", "[a1b2c3d4 turn 2 call 1: Bash]"),  # a heading, and nothing below it
        ("shop/cart.py:2", "et"),  # inside a word
        ("build-and-tests", "3 passed"),  # of 13
        ("turn 2 call 1", "7 passed in 0.1"),
        ("said:turn 1", "All 8 tests pass."),
        ("patch:shop/cart.py", "-    return sum(cart)"),  # it is added
        ("patch:shop/cart.py", "+    return first(cart)"),  # it is removed
        ("removed:shop/cart.py", "+    return first(cart)"),
        ("shop/cart.py:2", "-    return sum(cart)"),
        ("turn 2 call 1", "100 passed in all:1: 7 passed in 0.12s"),
        ("removed:other.py", "x"),
        ("shop/cart.py:1", "def total(cart): ... return sum(cart)"),
    ],
)
def test_what_was_not_copied_does_not_hold(where, quote):
    assert look_up(place(where, quote), sources(RUN)).problem


@pytest.mark.parametrize(
    ("given", "quote"),
    [
        ({"kind": "transcript", "turn": "turn 2", "call": "1."}, "7 passed in 0.12s"),
        ({"kind": "transcript", "turn": 2, "call": None, "path": None, "paths": None}, "7 passed in 0.12s"),
        *(({"kind": "file", "path": path, "first_line": "2"}, "2 | return sum(cart)")
          for path in ("shop/cart.py", "./shop/cart.py", "shop\\cart.py", "b/shop/cart.py", "`shop/cart.py`")),
        *(({"kind": kind, "path": path}, "espresso") for kind in ("file", "patch")
          for path in (CAFE, '"caf\\303\\251 menu.txt"', "cafe\u0301 menu.txt")),
        ({"kind": "patch"}, "espresso"),
    ],
)  # fmt: skip
def test_a_place_may_be_written_a_little_differently(given: dict[str, object], quote: str) -> None:
    assert look_up(CitedPlace.model_validate({**given, "quote": quote}), sources(RUN)).problem is None


def test_every_kind_of_place_is_stored_in_its_own_words_and_says_what_it_lacks():
    for where in (
        *("src/a.py", "src/a.py:3", "src/a.py:3-5", "patch:src/a.py", "removed:src/a.py", "turn 7", "turn 7 call 2"),
        *("said:turn 7", "turn 7 call 2 image 1", "transcript", "build-and-tests", "task"),
        *("absent: TODO in src/**, docs/**", "absent: /a.*b/ in **", "absent: any file in legacy/**"),
    ):
        assert place(where).where == where
    for kind, needs in NEEDS.items():
        assert f"has no {needs[0]}." in str(look_up(CitedPlace.model_validate({"kind": kind}), sources(RUN)).problem)
    # What is empty takes no room where a finding on a part is told.
    assert place("turn 7", "x").model_dump() == {"kind": "transcript", "turn": 7, "quote": "x"}


def test_a_file_that_is_named_with_a_backslash_or_brackets_is_found():
    given = Sources({"odd\\name.txt": "its text\n", "[id].tsx": "its text\n", "app/[id]/page:2.tsx": "its text\n"})
    for path in given.files:
        assert look_up(place(path, "its text"), given).problem is None
        first = CitedPlace.model_validate({"kind": "file", "path": path, "first_line": 1, "quote": "its text"})
        assert look_up(first, given).problem is None


@pytest.mark.parametrize(
    "quote",
    [
        "“7 passed in 0.12s”",
        "7\xa0passed in\u200b 0.12s",
        "```\n7 passed in 0.12s\n```",
        "7 passed in ...",
        "7\n   passed in 0.12s",
    ],
)
def test_what_copying_changes_does_not_matter(quote):
    assert weakness("turn 2", quote, sources(RUN)) == ""


def test_colours_of_a_terminal_do_not_matter():
    coloured = sources(session("Bash make -> \x1b[32m12 passed\x1b[0m in 3s"))
    assert weakness("turn 1", "12 passed in 3s", coloured) == ""
    assert look_up(place("turn 1", "2 passed"), coloured).problem


@pytest.mark.parametrize(("output", "quote"), [("0", "0"), ("店の合計を計算しました", "合計を計算")])
def test_a_line_of_one_character_or_of_a_script_without_spaces_is_found(output, quote):
    assert weakness("turn 1", quote, sources(session(f"Bash run -> {output}"))) == ""


@pytest.mark.parametrize(
    "command",
    [
        "cat <<EOF\nAll 7 tests pass\nEOF",
        "python -c \"print('All 7 tests pass')\"",
        'true && echo -e "All 7\\ntests pass"',
        "echo All 7 | sed 's/$/ tests pass/'",
    ],
)
def test_a_command_that_repeats_what_it_was_told_proves_nothing(command):
    given = told("Bash x -> All 7 tests pass", t1={"command": command})
    assert weakness("turn 1 call 1", "All 7 tests pass", sources(given))


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ('pytest; echo "exit code: $?"', "exit code: 0"),
        ("grep 'return sum' shop/cart.py", "    return sum(cart)"),
        ("git commit -qm 'Fix total' && git log --oneline", "3f1c2aa Fix total"),
        ("pytest -k total", "1 passed, 3 deselected in 0.02s"),
    ],
)
def test_a_command_that_finds_out_something_is_believed(command, output):
    given = told(f"Bash x -> {output}", t1={"command": command})
    assert weakness("turn 1 call 1", output, sources(given)) == ""


def test_what_a_command_writes_into_a_file_is_done_and_what_it_then_prints_an_echo():
    given = told("Bash x -> > ready to go", t1={"command": "echo ready to go > a.txt; cat a.txt"})
    assert weakness("turn 1 call 1", "echo ready to go > a.txt", sources(given)) == ""
    assert "written this itself" in weakness("turn 1 call 1", "> ready to go", sources(given))


def test_one_word_of_an_earlier_call_may_stand_anywhere_and_two_are_its_echo():
    given = told(
        "Write x", "Bash ./status -> passed\nall passed",
        t1={"file_path": "/w/status", "content": "all passed"}, t2={"command": "./status"},
    )  # fmt: skip
    assert weakness("turn 2", "passed", sources(given)) == ""
    assert "written this itself" in weakness("turn 2", "all passed", sources(given))


@pytest.mark.parametrize(
    ("output", "is_numbered"),
    [("1\tfoo bar\n2\tend", True), ("1\tfoo bar\n3\tend", False), ("start\n7\tfoo bar\nend", False)],
)
def test_numbers_before_lines_may_be_left_out_where_they_count_up(output, is_numbered):
    quote = "foo bar\nend" if output.startswith("1") else "start\nfoo bar"
    problem = look_up(place("turn 1 call 1", quote), sources(session(f"Bash make -> {output}"))).problem
    assert (problem is None) is is_numbered


def test_words_that_a_command_also_needs_elsewhere_stay_words():
    given = told("Bash x -> ...", t1={"command": 'cd tests && echo "All tests pass"'})
    assert "own words" in weakness("turn 1 call 1", "All tests pass", sources(given))
    assert weakness("turn 1 call 1", "cd tests && echo", sources(given)) == ""


def test_what_another_call_of_the_turn_wrote_proves_nothing():
    given = told("Write x + Bash cat x -> all 7 checks passed", t1={"file_path": "x", "content": "all 7 checks passed"})
    assert "written this itself" in weakness("turn 1 call 2", "all 7 checks passed", sources(given))


def test_what_a_command_in_the_background_was_told_to_print_proves_nothing():
    given = told(
        "Bash x -> started", "BashOutput 1 -> All tests pass",
        t1={"command": "sleep 1; echo All tests pass", "run_in_background": True},
    )  # fmt: skip
    assert "written this itself" in weakness("turn 2", "All tests pass", sources(given))


def test_what_a_session_wrote_counts_while_it_is_there():
    given = told(
        "Write x", t1={"file_path": "/tmp/w/shop/cart.py", "content": "def total(cart):\n    return sum(cart)"}
    )
    assert weakness("turn 1 call 1", "    return sum(cart)", sources(given)) == ""


def test_a_runners_lines_with_names_that_a_session_wrote_are_no_echoes_but_those_of_a_script_are():
    given = told(
        "Write x", "Bash npm test -> ok 1 - adds two numbers\n  ✓ adds two numbers (2 ms)",
        t1={"file_path": "/w/t.js", "content": "test('adds two numbers', () => {})"},
    )  # fmt: skip
    assert weakness("turn 2", "ok 1 - adds two numbers", sources(given)) == ""
    given = told(
        "Write x", "Bash npm test -> all 7 checks passed",
        t1={"file_path": "/w/package.json", "content": '{"scripts": {"test": "echo all 7 checks passed"}}'},
    )  # fmt: skip
    assert "written this itself" in weakness("turn 2", "all 7 checks passed", sources(given))


def test_what_happened_beside_the_turns_can_be_cited_also_servers_that_were_missing():
    failed = McpServerState(name=safe("shop"), status=safe("failed"), error=safe("no such file"))
    hook = HookRan(at=1, name=safe("lint"), event=safe("Stop"), outcome=safe("blocked"), output=safe("a.py is bad"))
    notice = Noticed(at=1, kind=safe("task"), text=safe("The agent says that all is well."))
    transcript = session('"Hi."').replace(mcp_servers=(failed,), entries=(hook, notice))
    assert weakness("transcript", "shop: failed (no such file)", sources(transcript)) == ""
    assert weakness("transcript", "a.py is bad", sources(transcript)) == ""
    assert "own words" in weakness("transcript", "all is well", sources(transcript))
