"""Which part of a change made a suite worse, in sentences."""

from collections.abc import Iterator

from zelda_ci.domain.attribution import Attribution, Suspicion, unit_words
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.numbers import brief_money, format_count
from zelda_ci.report.builders.phrases import joined, line, listed, quoted
from zelda_ci.report.model import Cell, Line
from zelda_ci.report.text import visible

MAX_UNIT_LENGTH, MAX_SUBJECT_LENGTH = 120, 100
# Below, a suspicion is not worth a word.
WORTH_A_WORD = 0.02
MAX_SUSPICIONS = 3


def attribution_line(found: Attribution) -> Line:
    """The answer, as comment and terminal give it."""
    sessions = sum(each.sessions for each in found.rounds)
    ran = format_count(sessions, "session")
    first, second = (*found.suspicions[:2], None, None)[:2]
    match found.verdict:
        case "only":
            return line("Only {} changed of what this suite can feel: no session was needed to tell.", _unit(found, 0))
        case "named" if first:
            return line("Most likely {} ({}, {}). {}", _of(found, first), _share(first), ran, _confirmed(found))
        case "between" if first and second:
            shares = f"{100 * first.probability:.0f} / {_share(second)}"
            return line("Between these two: {} and {} ({}, {}).", _of(found, first), _of(found, second), shares, ran)
        case "length" if first:
            words = "Most likely the length of what was added, and no part of it by itself"
            return line(f"{words} ({{}}, {{}}).", _share(first), ran)
        case "none":
            units = listed([_unit(found, index) for index in range(len(found.units))])
            return line("None of these: {}. It was chance, or something else ({}).", units, ran)
        case _ if sessions:
            return line("Not decided after {}: {}. More money may tell.", ran, joined(_likely(found), ", "))
        case _:
            return line("Not decided: no session could be paid and counted.")


def round_words(found: Attribution) -> str:
    """What is known after a round."""
    ran = format_count(sum(each.sessions for each in found.rounds), "session")
    return f"{ran}: {', '.join(''.join(cell.text for cell in each) for each in _likely(found))}"


def subject_words(found: Attribution) -> str:
    """What got worse: a criterion or a measure."""
    if str(found.subject) in MEASURES:
        return MEASURES[Measure(found.subject)].label
    return quoted(found.subject, MAX_SUBJECT_LENGTH)


def details(found: Attribution) -> Iterator[str]:
    """What the answer rests on, round by round."""
    for each in found.rounds:
        names = " and ".join(unit_words(found.units[index]) for index in each.reverted)
        yield f"{f'With {names} as before' if names else 'With all of the change'}: {each.passed} of {each.sessions}"
    if found.cost_usd:
        yield f"The search cost {brief_money(found.cost_usd)}."


def _likely(found: Attribution) -> Iterator[Line]:
    worth = [it for it in found.suspicions if it.probability >= WORTH_A_WORD]
    for suspicion in worth[:MAX_SUSPICIONS]:
        yield line("{} {}", _of(found, suspicion), _share(suspicion))


def _of(found: Attribution, suspicion: Suspicion) -> Cell:
    if suspicion.unit is not None:
        return _unit(found, suspicion.unit)
    return Cell("the length" if suspicion.hypothesis == "length" else "none of them")


def _unit(found: Attribution, index: int) -> Cell:
    return Cell(visible(unit_words(found.units[index]), MAX_UNIT_LENGTH), whole=found.units[index].kind != "code")


def _share(suspicion: Suspicion) -> str:
    # What is not certain is not called so.
    return f"{min(99, round(100 * suspicion.probability))} %"


def _confirmed(found: Attribution) -> str:
    again = found.confirmation
    if again is None:
        return ""
    back = "these lines as they were" if found.units[again.reverted[0]].kind == "hunk" else "it as it was"
    like = " like the base" if str(found.subject) in MEASURES else ""
    return f"With {back}: {again.passed} of {again.sessions}{like}."
