"""Size and speed of the HTML report: `python -m benchmarks.html_report`, with Chromium for waits of readers.

Prints each figure beside the limit that it is held to; the exit code is 1 where one is exceeded. Times are of this
machine, the best of several attempts.
"""

import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import Browser

from tests.support.browser import Reader, chromium, reading
from tests.support.page_samples import PageSample
from zelda_ci.report.html.writer import write_report

# Ten sessions of each of ten suites, half of them of the base.
USUAL = PageSample(suites=10, trials=5, turns=30, length=30)
# One session on each side, of about 20 MB together, and one session of as much alone: more would be cut.
PAIR = PageSample(suites=1, trials=1, turns=400, length=2150)
ALONE = PageSample(suites=1, trials=1, turns=400, length=4100, is_compared=False)
ATTEMPTS = 3

FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
FILTER = """() => {
  const query = document.querySelector('#query');
  const begun = performance.now();
  query.value = 'retry';
  query.dispatchEvent(new Event('input', { bubbles: true }));
  document.body.getBoundingClientRect();
  return performance.now() - begun;
}"""
SCROLL = """async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  let longest = 0;
  for (let step = 0; step < 40; step += 1) {
    const begun = performance.now();
    scrollBy(0, 2000);
    await frame();
    await frame();
    longest = Math.max(longest, performance.now() - begun);
  }
  return longest;
}"""


Figure = tuple[str, float, float, str]
"""A name, its value, what the value may be at most, and its unit."""


def main() -> int:
    """Print all figures; 1 if one is exceeded."""
    is_met = True
    with tempfile.TemporaryDirectory() as folder:
        for name, value, limit, unit in measured(Path(folder)):
            is_met &= value <= limit
            said = "" if value <= limit else "  EXCEEDED"
            print(f"{name:<58} {value:>8.2f} {unit:<3} (at most {limit:g}){said}", flush=True)
    return int(not is_met)


def measured(folder: Path) -> Iterator[Figure]:
    """Everything, in order."""
    usual = folder / "usual.html"
    seconds = _written(usual, USUAL)
    yield "size of 10 suites x 10 sessions x 30 turns", usual.stat().st_size / 1e6, 3, "MB"
    yield "time to write it, by session", 1000 * seconds / 100, 200, "ms"
    yield "memory of writing 16 sessions, in that of 4", _peak(folder, 8) / _peak(folder, 2), 1.5, ""
    with chromium() as browser:
        with reading(browser, usual) as reader:
            yield "first paint of the overview", _best(lambda: _paint(reader)), 1000, "ms"
            yield "filter of suites", _best(lambda: reader.page.evaluate(FILTER)), 100, "ms"
        for sample in (PAIR, ALONE):
            yield from _long(browser, folder / "long.html", sample)


def _long(browser: Browser, page: Path, sample: PageSample) -> Iterator[Figure]:
    """What a reader waits for where sessions are as long as a report takes whole."""
    _written(page, sample)
    sizes = [sample.size(run.run_id) / 1e6 for run in sample.report.batch.runs + sample.base]
    what = " + ".join(f"{size:.1f}" for size in sizes) + " MB"
    yield f"{what}: size of the report", page.stat().st_size / 1e6, 30, "MB"
    with reading(browser, page) as reader:
        session = "rest-endpoint-head-1"
        yield f"{what}: beginning of a session", _best(lambda: _opened(reader, session, "t1")), 2000, "ms"
        yield f"{what}: its end", _best(lambda: _opened(reader, session, "t400")), 8000, "ms"
        yield f"{what}: longest step of scrolling", _best(lambda: reader.page.evaluate(SCROLL)), 250, "ms"


def _written(path: Path, sample: PageSample) -> float:
    report = sample.report
    for run in (*report.batch.runs, *sample.base):
        sample.size(run.run_id)
    begun = time.perf_counter()
    write_report(path, report, sample)
    return time.perf_counter() - begun


def _peak(folder: Path, trials: int) -> int:
    sample = PageSample(suites=1, trials=trials, turns=30, length=300)
    _written(folder / "peak.html", sample)
    tracemalloc.start()
    write_report(folder / "peak.html", sample.report, sample)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def _best(measure: Callable[[], float]) -> float:
    return min(float(measure()) for _ in range(ATTEMPTS))


def _paint(reader: Reader) -> float:
    reader.go()
    reader.until(FIRST_PAINT.replace("[0].startTime", ".length"))
    return float(reader.page.evaluate(FIRST_PAINT))


def _opened(reader: Reader, session: str, turn: str) -> float:
    """From the call of the address to the sight of a turn."""
    begun = time.perf_counter()
    reader.go(f"{session}-{turn}")
    reader.wait_for(f"article#{session}-{turn}")
    return 1000 * (time.perf_counter() - begun)


if __name__ == "__main__":
    sys.exit(main())
