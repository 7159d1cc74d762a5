"""Citations: the place exists and the quote stands there, or the citation does not hold."""

import anthropic
import pytest

from tests.builders import session
from tests.support.cited import place
from zelda_ci.metrics.citable import Standing, patch_lines, sections
from zelda_ci.metrics.evidence import Sources, look_up
from zelda_ci.metrics.requirement_fulfillment import Verdicts
from zelda_ci.metrics.tool_usage import ToolFindings

PATCH = """\
diff --git a/shop/cart.py b/shop/cart.py
index 1..2 100644
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -1,2 +1,2 @@
-    return 1
+    return 2
diff --git a/old name.txt b/new name.txt
similarity index 90%
+hello
"""
FILE = "".join(f"line {number} of the file\n" for number in range(1, 21))
SOURCES = Sources(
    {"shop/cart.py": FILE},
    PATCH,
    session("Read a.py -> found it", 'Bash "make  test" -> 3 passed'),
    "testCommand `make test` ended with exit code 0.",
    unchanged={"README.md": "# Shop\nOpen daily.\n"}.get,
)


@pytest.mark.parametrize(
    ("where", "quote"),
    [
        ("shop/cart.py:3-4", "line 3 of the file\nline 4 of the file"),
        ("shop/cart.py:3", "3 of   the file"),
        ("shop/cart.py:3", "line 5 of the file"),
        ("patch:shop/cart.py", "return 2"),
        ("patch:new name.txt", "hello"),
    ],
)
def test_what_is_there_holds(where, quote):
    assert look_up(place(where, quote), SOURCES).problem is None


@pytest.mark.parametrize(
    ("where", "quote", "problem"),
    [
        ("shop/cart.py:3", "line 9 of the file", "The quote is not found at 'shop/cart.py:3'"),
        ("shop/cart.py:19-25", "line 19", "The cited place 'shop/cart.py:19-25' does not exist."),
        ("shop/cart.py:4-3", "line 4", "The cited place 'shop/cart.py:4-3' does not exist."),
        ("shop/other.py:1", "line 1", "The cited place 'shop/other.py:1' does not exist."),
        ("patch:shop/cart.py", "hello", "The quote is not found at 'patch:shop/cart.py'"),
        ("turn 3", "found", "The cited place 'turn 3' does not exist."),
        ("turn 1 call 2", "found", "The cited place 'turn 1 call 2' does not exist."),
        ("README.md:9", "Open daily.", "The cited place 'README.md:9' does not exist."),
        ("everywhere", "found", "The cited place 'everywhere' does not exist."),
        ("turn 1", "", "The citation of 'turn 1' has no quote."),
    ],
)
def test_what_is_not_there_is_told(where, quote, problem):
    assert problem in (look_up(place(where, quote), SOURCES).problem or "")


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ("diff --git a/a b.bin b/a b.bin\nBinary files a/a b.bin and b/a b.bin differ\n", "a b.bin"),
        ('diff --git "a/caf\\303\\251" "b/caf\\303\\251"\nold mode 100644\nnew mode 100755\n', "café"),
        ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "y"),
        ("diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n", "y"),
        ("diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-+++ b/z\n", "x"),
        ("diff --git a/x b/x\n--- a/x\n+++ b/x y\t\n@@ -1 +1 @@\n-a\n+++ b/z\n", "x y"),
    ],
)
def test_a_section_of_a_patch_has_the_path_after_the_change(section: str, path: str) -> None:
    other = "diff --git a/o b/o\nnew file mode 100644\n"
    assert sections(other + section + other) == {"o": other, path: section}


def test_every_line_of_a_patch_knows_whether_it_is_of_a_file() -> None:
    """Within a hunk, as many lines as it says, one that looks like a heading is content."""
    patch = """\
diff --git a/x b/x
new mode 100755
--- a/x
+++ b/x
@@ -1 +1 @@ def f():
---- was there
+++++ is there
\\ No newline at end of file
--- a/none
@@ -5,2 +5,3 @@
 kept

+++ b/added
--- a/none
 kept
@@ -9,0 +9 @@
+added
+++ b/none
"""
    told: dict[object, str] = {Standing.FRAME: "=", Standing.FACT: "+", Standing.REMOVED: "-", Standing.CONTEXT: " "}
    assert "".join(told[line.standing] for line in patch_lines(patch)) == "=+===-+===  += =+="


def test_both_forms_together_leave_out_no_more_than_strict_tools_may() -> None:
    """Beyond 24 optional parameters of one request, the API calls strict tools too complex."""
    schemas = [anthropic.transform_schema(form) for form in (Verdicts, ToolFindings)]
    parts = [part for schema in schemas for part in (schema, *schema["$defs"].values())]
    assert 0 < sum(len({*part["properties"]} - {*part["required"]}) for part in parts) <= 24
