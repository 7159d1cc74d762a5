"""The HTML report in a real browser: links, filter, keys, two sides, without scripts, and for everybody."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.support import npm_packages
from tests.support.browser import NARROW, WIDE, Reader, chromium, reading
from tests.support.needs import CHROMIUM
from tests.support.page_samples import EXCEPTION, PAYLOADS, HostileSessions, PageSample
from zelda_ci.report.html.writer import write_report

pytestmark = [CHROMIUM, pytest.mark.timeout(900)]

SAMPLE = PageSample(suites=4, trials=8, turns=14)
# A session that passed, of a suite that did not change.
PASSED = "add-logging-base-8"
PAGES = ("overview", "suite-rest-endpoint", "rest-endpoint-head-1", "sides-rest-endpoint", PASSED)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report with blank.html"
    write_report(path, SAMPLE.report, SAMPLE)
    return path


@pytest.fixture
def reader(browser: Browser, file: Path) -> Iterator[Reader]:
    with reading(browser, file) as opened:
        yield opened
    assert opened.complaints == []
    assert opened.requests == []


def press(reader: Reader, *keys: str) -> None:
    for key in keys:
        reader.page.keyboard.press(key)


def suites(reader: Reader) -> list[str]:
    """Names of the suites that are seen."""
    return [row.inner_text() for row in reader.page.query_selector_all("tr[data-suite] .suite") if row.is_visible()]


def test_one_leads_to_the_other_and_the_browser_leads_back(reader: Reader) -> None:
    reader.go()
    assert reader.shown() == "overview"
    assert "worse in 1 of 4 suites" in reader.page.inner_text("#overview .verdict")
    reader.page.click("#overview .suite >> text=rest-endpoint")
    assert reader.shown() == "suite-rest-endpoint"
    reader.page.click("#suite-rest-endpoint .card >> text=head 1")
    assert reader.shown() == "rest-endpoint-head-1"
    assert reader.page.title() == "rest-endpoint, head 1 · Zelda CI"
    reader.page.click("#rest-endpoint-head-1 .around >> text=head 2")
    assert reader.shown() == "rest-endpoint-head-2"
    reader.page.go_back()
    assert reader.shown() == "rest-endpoint-head-1"
    press(reader, "u", "u")
    reader.page.wait_for_url("**#overview")
    assert reader.shown() == "overview"


def test_suites_are_filtered_by_name_verdict_and_tag(reader: Reader) -> None:
    reader.go()
    assert suites(reader)[0] == "rest-endpoint"
    assert len(suites(reader)) == 4
    press(reader, "/")
    reader.page.keyboard.type("ENDPOINT")
    assert suites(reader) == ["rest-endpoint"]
    assert reader.page.inner_text("#hits") == "1 of 4"
    reader.page.fill("#query", "")
    reader.page.click(".chip >> text=worse")
    assert suites(reader) == ["rest-endpoint"]
    reader.page.click(".chip >> text=all")
    reader.page.click(".chip >> text=smoke")
    assert suites(reader) == ["rest-endpoint", "receipt-tax"]
    reader.page.fill("#query", "nothing like it")
    assert suites(reader) == []
    assert reader.page.is_visible("text=No suite fits this filter.")
    reader.go("suite-rest-endpoint")
    press(reader, "/")
    reader.page.keyboard.type("receipt")
    assert (reader.shown(), suites(reader)) == ("overview", ["receipt-tax"])


def test_keys_lead_from_item_to_item_and_from_failure_to_failure(reader: Reader) -> None:
    reader.go()
    press(reader, "j", "j", "k")
    assert reader.page.locator(".here").inner_text() == reader.page.locator(".worst li").first.inner_text()
    reader.go("rest-endpoint-head-1")
    press(reader, "n")
    assert "problem document" in reader.page.inner_text(".here")
    press(reader, "n")
    # The call that failed in turn 4; the next failures are a denied call, and then another session.
    assert reader.page.get_attribute(".here", "id") == "rest-endpoint-head-1-t4"
    press(reader, "n", "n")
    reader.page.wait_for_url("**#rest-endpoint-head-2")
    press(reader, "?")
    assert reader.page.is_visible("#help")
    press(reader, "?")
    assert not reader.page.is_visible("#help")


def test_a_citation_leads_to_the_very_line(reader: Reader) -> None:
    reader.go("suite-rest-endpoint")
    reader.page.locator("#suite-rest-endpoint .judged.edge-bad p + p + p a").first.click()
    assert reader.shown() == "rest-endpoint-head-1"
    assert reader.page.inner_text(":target").strip() == f"+        {EXCEPTION}".strip()
    assert 0 <= reader.top(":target") < WIDE["height"]


def test_two_sides_are_aligned_and_the_first_difference_is_a_key_away(reader: Reader) -> None:
    reader.go("sides-rest-endpoint")
    rows = reader.page.locator("#sides-rest-endpoint .sides-row")
    first = rows.nth(0)
    assert "The sides part here" in first.inner_text()
    assert "Skill" in first.locator(".side-base").inner_text()
    assert "Skill" not in first.locator(".side-head").inner_text()
    press(reader, "d")
    reader.page.wait_for_url("**#sides-rest-endpoint-first")
    # What both did stands on one line, whatever they wrote.
    assert reader.top(rows.nth(2).locator(".side-base")) == reader.top(rows.nth(2).locator(".side-head"))
    assert "Write" in rows.nth(2).inner_text()


def test_images_are_shown_and_nothing_is_loaded_for_them(reader: Reader) -> None:
    reader.go("rest-endpoint-head-1")
    press(reader, "e")
    decoded = "image => image.decode().then(() => image.naturalWidth)"
    assert reader.page.eval_on_selector("#rest-endpoint-head-1 img", decoded) == 320


# --- without scripts --------------------------------------------------------------------------------------------


@pytest.fixture
def plain_reader(browser: Browser, file: Path) -> Iterator[Reader]:
    with reading(browser, file, scripts=False) as opened:
        yield opened
    assert opened.complaints == []


def seen(reader: Reader, text: str) -> bool:
    return bool(reader.page.get_by_text(text).locator("visible=true").count())


def test_without_scripts_every_page_is_reached_and_failures_are_whole(plain_reader: Reader) -> None:
    reader = plain_reader
    reader.go()
    assert seen(reader, "First to look at")
    assert not reader.page.is_visible("#query")
    assert not reader.page.is_visible("#filters")
    reader.page.click("#overview .suite >> text=rest-endpoint")
    assert not seen(reader, "First to look at")
    reader.page.click("#suite-rest-endpoint .card >> text=head 1")
    assert seen(reader, "Done: GET /orders/{id} answers")
    reader.go(PASSED)
    assert seen(reader, "left out, since it passed")
    reader.go("rest-endpoint-head-1")
    reader.page.click("#rest-endpoint-head-1 summary:has-text('thinking')")
    assert reader.page.is_visible("#rest-endpoint-head-1 .thinking pre")
    reader.page.click("#rest-endpoint-head-1 .around >> text=base and head side by side")
    assert seen(reader, "The sides part here")


# --- what is hostile --------------------------------------------------------------------------------------------


def test_no_text_of_a_session_runs_loads_or_leads_out(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    sample = PageSample(suites=1, trials=2, turns=12, names=PAYLOADS)
    write_report(path, sample.report, HostileSessions(sample))
    with reading(browser, path) as reader:
        for place in ("overview", "rest-endpoint-head-1", "sides-rest-endpoint"):
            reader.go(place.replace("rest-endpoint", "script-alert-1-script"))
            press(reader, "e")
            for bold in reader.page.query_selector_all("summary"):
                bold.dispatch_event("mouseover")
            reader.page.wait_for_timeout(200)
            assert reader.complaints == []
            assert reader.requests == []
            links = "[...document.links].every((link) => link.hash && link.pathname == location.pathname)"
            assert reader.page.evaluate(links)
            assert reader.page.evaluate("document.scripts.length") == 1


# --- for everybody ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def axe() -> str:
    try:
        return (npm_packages.installed("axe-core") / "node_modules/axe-core/axe.min.js").read_text("utf-8")
    except npm_packages.UnavailableError as exc:
        pytest.skip(f"needs axe-core: {exc}")


def violations(reader: Reader, axe: str, options: str) -> list[tuple[str, str]]:
    reader.page.evaluate(axe)
    found: dict[str, Any] = reader.page.evaluate(f"axe.run({{resultTypes: ['violations'], {options}}})")
    return [(each["id"], node["html"][:200]) for each in found["violations"] for node in each["nodes"][:3]]


# The same kinds of pages with fewer sessions: axe looks at hidden ones, too.
SMALL = PageSample(suites=2, trials=2, turns=6, names=("rest-endpoint", "add-logging"))


def test_axe_finds_nothing(browser: Browser, tmp_path: Path, axe: str) -> None:
    path = tmp_path / "report.html"
    write_report(path, SMALL.report, SMALL)
    with reading(browser, path, color_scheme="light") as reader:
        for place in (*PAGES[:-1], "add-logging-base-2"):
            reader.go(place)
            assert violations(reader, axe, "") == [], place
            # Of the dark page only the colours are others.
            reader.page.emulate_media(color_scheme="dark")
            assert violations(reader, axe, "runOnly: ['color-contrast']") == [], place
            reader.page.emulate_media(color_scheme="light")


def test_a_narrow_page_does_not_scroll_sideways(browser: Browser, file: Path) -> None:
    with reading(browser, file, viewport=NARROW) as reader:
        for place in PAGES:
            reader.go(place)
            assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
        reader.go("overview")
        # The sessions of both sides begin at one edge, below each other.
        sides = reader.page.locator("tr[data-suite]").first.locator(".pip-side").all()
        left, other = (side.bounding_box() for side in sides)
        assert left
        assert other
        assert left["x"] == other["x"]
        assert left["y"] < other["y"]
        reader.go("suite-rest-endpoint")
        # No word of a table is broken.
        heights = reader.page.evaluate(
            "[...document.querySelectorAll('td .t-good, td .t-bad')].map(it => it.offsetHeight)"
        )
        assert 0 < max(heights) < 30
