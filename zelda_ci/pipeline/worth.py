"""What a skill, a rule or a section is worth: variants of the tested files without it, side by side with these."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from zelda_ci.compare.inference import of_pass_rates
from zelda_ci.domain.attribution import CriterionWorth, PassCount
from zelda_ci.domain.comparison import Comparison, TrialStatistics, Verdict
from zelda_ci.domain.run import StoredTrials
from zelda_ci.domain.trials import TrialPlan
from zelda_ci.errors import ConfigError
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline.invocation import Prepared, RunOrder
from zelda_ci.redact import Redactor
from zelda_ci.workspace import units
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.source import BaseOrder
from zelda_ci.workspace.units import Variant

# With fewer first trials, "no difference" would say little.
PLAN = TrialPlan(first=6, looks=(10, 16, 24))
VERDICTS: dict[Verdict, Literal["worse", "better"]] = {Verdict.REGRESSED: "worse", Verdict.IMPROVED: "better"}


async def check_parts(prepared: Prepared, names: Sequence[str]) -> None:
    """Raise `ConfigError` for a part that the tested files do not have."""
    project, git = await prepared.workspaces.tested()
    with TemporaryDirectory(prefix="zelda-parts-") as folder:
        there = units.prepare(Path(folder) / "objects", git, project.commit, project.objects)
        for name in names:
            if await units.without(there, project.commit, name) is None:
                hint = "Give a skill, rule or agent by its name, a file by its path, a section as CLAUDE.md:Heading."
                message = f"--without {name}: the tested files have no skill, rule, agent, file or section of it."
                raise ConfigError(message, hint=hint, code="UNKNOWN_PART")


def order_without(order: RunOrder, part: str, *, is_inert: bool = False) -> RunOrder:
    """The order for the files without a part, or with one that says nothing, beside the files as they are."""

    async def edit(git: Git, head: str) -> str:
        removed = await units.without(git, head, part)
        assert removed  # noqa: S101 - it was looked for before
        return removed.inert if is_inert else removed.gone

    variant = Variant(f"without {part}{', with inert text of its length' * is_inert}", edit)
    planned = order.overrides.above(Overrides({"trials": Given(PLAN, "option", "--without")}))
    return replace(order, overrides=planned, variant=variant, against=BaseOrder("the tested files"))


def order_whole(order: RunOrder, trials: int) -> RunOrder:
    """The order for the files as they are, so many times."""
    return replace(order, overrides=Overrides({"trials": Given(trials, "option", "--without")}).above(order.overrides))


def trials_missing(prepared: Prepared) -> int:
    """How many trials of the files as they are have to be made before those of a variant; no fewer than none."""
    known = (prepared.order.stored.get(suite.name, StoredTrials()) for suite in prepared.suites)
    return max(0, *(PLAN.first - len(each.base) - len(each.stored) for each in known))


def worth(part: str, gone: Comparison, inert: Comparison | None, redact: Redactor) -> Iterator[CriterionWorth]:
    """Of each suite, the criterion that fell most without a part."""
    controls = (
        {(it.suite, each.criterion): each.candidate for it in inert.suites for each in it.criteria} if inert else {}
    )
    for suite in gone.suites:
        sides = [(each, old, new) for each in suite.criteria if (old := each.baseline) and (new := each.candidate)]
        for each, old, new in sorted(sides, key=lambda side: side[2].mean - side[1].mean)[:1]:
            low, _ = of_pass_rates(_outcomes(old), _outcomes(new))
            control = controls.get((suite.suite, each.criterion))
            yield CriterionWorth(
                part=redact(part),
                suite=redact(suite.suite),
                criterion=redact(each.criterion),
                whole=_count(old),
                without=_count(new),
                inert=_count(control) if control else None,
                verdict=VERDICTS.get(each.verdict, "none"),
                at_most=max(0.0, -low),
            )


def _outcomes(statistics: TrialStatistics) -> list[float]:
    count = _count(statistics)
    return [100.0] * count.passed + [0.0] * (count.sessions - count.passed)


def _count(statistics: TrialStatistics) -> PassCount:
    return PassCount(passed=round(statistics.mean * statistics.trials / 100), sessions=statistics.trials)
