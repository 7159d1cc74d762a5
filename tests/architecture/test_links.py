"""What a page points to is there: files, folders, images, and headings of pages."""

import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/**/*.md", ".github/**/*.md")
    for page in REPOSITORY.glob(pattern)
)
TEMPLATES = sorted((REPOSITORY / "zelda_ci").rglob("*.j2"))
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
OURS = re.compile(r"https://github\.com/zelda-ci/zelda-ci/blob/main/([^)\s#\"'>]*)(#[^)\s\"'>]*)?")


def prose(page: Path) -> str:
    """A page without its examples of code."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    return frozenset(map(slug, re.findall(r"^#+ (.+?)\s*$", prose(page), re.MULTILINE)))


def is_there(target: Path, anchor: str) -> bool:
    return target.exists() and (not anchor or (target.suffix == ".md" and anchor in anchors(target)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(<?([^)\s>]+)>?\)", prose(page)) if not SCHEME.match(link)]
    parts = [link.partition("#") for link in links]
    dead = [
        f"{path}#{anchor}"
        for path, _, anchor in parts
        if not is_there((page.parent / path).resolve() if path else page, anchor)
    ]
    assert dead == []


@pytest.mark.parametrize("source", [*PAGES, *TEMPLATES, REPOSITORY / "Dockerfile"], ids=lambda path: path.name)
def test_every_full_address_of_a_page_of_ours_leads_somewhere(source: Path) -> None:
    found = OURS.findall(source.read_text("utf-8"))
    assert [path for path, anchor in found if not is_there(REPOSITORY / path, anchor.removeprefix("#"))] == []


@pytest.mark.parametrize("folder", ["zelda_ci", "scripts"])
def test_pages_that_texts_of_ours_name_exist(folder: str) -> None:
    sources = [path for path in (REPOSITORY / folder).rglob("*") if path.suffix in {".py", ".j2", ".yml", ".yaml", ""}]
    named = {
        name for path in sources if path.is_file() for name in re.findall(r"\bdocs/[\w-]+\.md", path.read_text("utf-8"))
    }
    assert named
    assert sorted(name for name in named if not (REPOSITORY / name).is_file()) == []


def test_the_list_of_pages_has_all_of_them() -> None:
    listed = set(re.findall(r"\]\(([\w-]+\.md)", (REPOSITORY / "docs/README.md").read_text("utf-8")))
    assert {page.name for page in REPOSITORY.glob("docs/*.md")} - listed == {"README.md"}
