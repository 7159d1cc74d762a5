"""What real runners printed and wrote gives exactly the numbers that their projects were made to give."""

from tests.support.cases import for_each
from tests.unit.test_output.fixtures import Fixture, expected_numbers, fixtures, numbers
from zelda_ci.test_output.coverage import read_coverage
from zelda_ci.test_output.tally import Output

FIXTURES = fixtures()
COVERED = [fixture for fixture in FIXTURES if fixture.only_coverage]


@for_each(FIXTURES)
def test_every_runner_of_the_output_gives_its_exact_numbers_and_names_what_failed(fixture: Fixture) -> None:
    assert numbers(fixture.summary) == expected_numbers(fixture)
    for found, wanted in zip(fixture.summary.runners, fixture.expected, strict=True):
        assert list(found.failures) == wanted.get("failures", list(found.failures))
    assert fixture.summary.recognised or "testReport" in str(fixture.summary.note)


@for_each(COVERED)
def test_coverage_is_exact_and_names_its_format(fixture: Fixture) -> None:
    found = read_coverage(Output(fixture.output), fixture.reports)
    assert found.model_dump(exclude_none=True) == fixture.about["expect"]["coverage"]
