"""What real runners printed and wrote gives exactly the numbers that their projects were made to give."""

from tests.support.cases import for_each
from tests.unit.test_output.fixtures import Fixture, expected_numbers, fixtures, numbers
from zelda_ci.test_output.coverage.reading import read_coverage
from zelda_ci.test_output.tally import Output

FIXTURES = fixtures()
COVERED = [fixture for fixture in FIXTURES if fixture.only_coverage]


@for_each(FIXTURES)
def test_every_runner_of_the_output_gives_its_exact_numbers(fixture: Fixture) -> None:
    assert numbers(fixture.summary) == expected_numbers(fixture)


@for_each(FIXTURES)
def test_failed_tests_are_named(fixture: Fixture) -> None:
    named = [expect.get("failures") for expect in fixture.expected]
    found = [list(runner.failures) for runner in fixture.summary.runners]
    assert [names for names, wanted in zip(found, named, strict=True) if wanted is not None] == [
        wanted for wanted in named if wanted is not None
    ]


@for_each(FIXTURES)
def test_output_that_cannot_be_recognised_comes_with_a_way_out(fixture: Fixture) -> None:
    assert fixture.summary.recognised or "testReport" in str(fixture.summary.note)


@for_each(COVERED)
def test_coverage_is_exact_and_names_its_format(fixture: Fixture) -> None:
    found = read_coverage(Output(fixture.output), fixture.reports)
    assert found.model_dump(exclude_none=True) == fixture.about["expect"]["coverage"]
