"""The HTML report in Firefox, where that is installed: pages, links, keys and the filter work there, too."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.firefox import Firefox, firefox
from tests.support.page_samples import PageSample
from zelda_ci.report.html.writer import write_report

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
pytestmark = [pytest.mark.skipif(PROGRAM is None, reason="needs firefox"), pytest.mark.timeout(600)]

SHOWN = "return [...document.querySelectorAll('.page')].filter(page => page.checkVisibility()).map(page => page.id)"
SUITES = "return [...document.querySelectorAll('tr[data-suite] .suite')].filter(s => s.checkVisibility()).length"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with firefox(str(PROGRAM), tmp_path_factory.mktemp("firefox")) as started:
        yield started


def test_pages_links_and_the_filter_work_in_firefox(reader: Firefox, tmp_path: Path) -> None:
    sample, file = PageSample(suites=4, trials=2, turns=6), tmp_path / "report.html"
    write_report(file, sample.report, sample)
    for place in ("overview", "suite-rest-endpoint", "rest-endpoint-head-1", "sides-rest-endpoint"):
        reader.go(file, place)
        assert reader.run(SHOWN) == [place]
    reader.go(file)
    assert reader.run(SHOWN) == ["overview"]
    assert reader.run(SUITES) == 4
    # A policy of the page that Firefox reads otherwise would keep script and style from it.
    typed = "new Event('input', {bubbles: true})"
    fill = f"const box = document.querySelector('input'); box.value = arguments[0]; box.dispatchEvent({typed});"
    reader.run(fill, "ENDPOINT")
    assert reader.run(SUITES) == 1
    assert reader.run("return getComputedStyle(document.querySelector('.badge')).display") != "inline"
    reader.run("document.querySelector('#overview .suite').click()")
    assert reader.run(SHOWN) == ["suite-rest-endpoint"]
    overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    reader.ask("WebDriver:SetWindowRect", width=500, height=800)
    assert reader.run(overflow) <= 0
