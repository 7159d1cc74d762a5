"""Every picture of a page is there, and every picture is on a page."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
PICTURES = {
    (page.parent / name).resolve()
    for page in PAGES
    for name in re.findall(r"!\[[^\]]+\]\(([^)#]+)\)", page.read_text())
}


def test_pages_show_the_pictures_that_there_are() -> None:
    assert {*(ROOT / "docs" / "images").iterdir()} == PICTURES


def test_readme_shows_how_a_comparison_ends() -> None:
    """As text that was printed, small, and without anything from elsewhere, which a README is not given."""
    assert "](docs/images/terminal.svg)" in (ROOT / "README.md").read_text()
    drawn = (ROOT / "docs" / "images" / "terminal.svg").read_text()
    assert len(drawn) < 60_000
    assert re.findall(r"https?://[^\"]+", drawn) == ["http://www.w3.org/2000/svg"]
    assert {"worse", ".claude/rules/money.md"} <= set(re.findall(r"[\w./-]+", drawn.replace("&#160;", " ")))
