"""The HTML report of many sessions is written in the memory of a few."""

import tracemalloc
from pathlib import Path

from tests.support.page_samples import PageSample
from zelda_ci.report.html.writer import write_report


def test_memory_is_that_of_a_few_sessions_however_many_there_are(tmp_path: Path) -> None:
    def peak(trials: int) -> int:
        sample = PageSample(suites=1, trials=trials, turns=20, length=400)
        for run in sample.report.batch.runs:
            sample.size(run.run_id)
        write_report(tmp_path / "warm.html", sample.report, sample)
        tracemalloc.start()
        write_report(tmp_path / "measured.html", sample.report, sample)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    assert peak(8) < 1.5 * peak(2)
