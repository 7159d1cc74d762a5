"""Whatever a command prints or writes, reading it ends with a summary."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_output.fixtures import fixtures
from zelda_ci.domain.details import TestSummary
from zelda_ci.redact import Redactor
from zelda_ci.test_output.coverage import read_coverage
from zelda_ci.test_output.reading import contradictions, read_tests
from zelda_ci.test_output.reports import ReportFile
from zelda_ci.test_output.tally import Output

REDACT = Redactor()
LINES = sorted({line for fixture in fixtures() for line in fixture.output.split(b"\n") if len(line) < 200})
REPORTS = sorted({report.raw for fixture in fixtures() for report in fixture.reports if len(report.raw) < 5_000})
# Real lines in unreal order, mixed with anything, reach far deeper than random bytes alone.
SHUFFLED = st.lists(st.one_of(st.sampled_from(LINES), st.binary(max_size=30)), max_size=40).map(b"\n".join)
ANY_OUTPUT = st.one_of(st.binary(max_size=2_000), SHUFFLED)


@st.composite
def damaged_reports(draw: st.DrawFn) -> bytes:
    raw = draw(st.sampled_from(REPORTS))
    start = draw(st.integers(0, len(raw)))
    return raw[:start] + draw(st.binary(max_size=20)) + raw[start + draw(st.integers(0, 50)) :]


def sane(summary: TestSummary) -> bool:
    parts = [(one.passed, one.failed, one.errored, one.skipped, one.flaky) for one in summary.runners]
    return all(min(part) >= 0 for part in parts) and summary.flaky <= summary.passed


@given(head=ANY_OUTPUT, tail=st.one_of(st.none(), ANY_OUTPUT), exit_code=st.one_of(st.none(), st.integers(-15, 255)))
def test_any_output_is_read_without_an_exception(head: bytes, tail: bytes | None, exit_code: int | None) -> None:
    output = Output(head, tail)
    summary = read_tests(output, (), exit_code, REDACT)
    assert sane(summary)
    assert summary.recognised or summary.note
    assert len(contradictions(summary, exit_code)) <= 1
    coverage = read_coverage(output, ())
    assert coverage.lines is None or 0 <= coverage.lines <= 100


@given(raw=st.one_of(st.binary(max_size=500), damaged_reports(), ANY_OUTPUT))
def test_any_report_is_read_without_an_exception(raw: bytes) -> None:
    report = ReportFile("report", raw)
    assert sane(read_tests(Output(""), [report], 1, REDACT))
    coverage = read_coverage(Output(""), [report])
    assert coverage.lines is None or 0 <= coverage.lines <= 100
