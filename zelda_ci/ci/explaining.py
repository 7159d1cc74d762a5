"""After a regression, which part of the pull request did it: for what is left of the money, or by a label for more."""

from dataclasses import replace

from zelda_ci.app import Invocation
from zelda_ci.ci.context import CiResult
from zelda_ci.domain.attribution import Attribution
from zelda_ci.events import Emit
from zelda_ci.pipeline.attribution import Regressed, regressions

# Of a pull request: the budget counts once more for the search, and without one there is no limit.
LABEL = "zelda:why"


def explain(invocation: Invocation, emit: Emit, result: CiResult) -> None:
    """Search for the cause of what got worse first in each suite; what cannot be paid is noted."""
    batch, pull = result.batch, result.case.settings.event.pull_request
    comparison = result.comparison
    if comparison is None or pull is None or batch.base is None or batch.base.commit is None or invocation.replayed:
        return
    runs = {run.run_id: run for run in (*result.head, *result.bases)}
    worse: dict[str, Regressed] = {}
    for each in regressions(comparison.suites, runs.__getitem__):
        worse.setdefault(each.suite, each)
    is_asked = LABEL in {label["name"] for label in pull.labels}
    left = batch.budget_usd
    if left is not None and not is_asked:
        left = max(0.0, left - batch.cost_usd)
    for each in worse.values():
        order = replace(invocation.order, names=(each.suite,), stored={}, budget_usd=left, check=False, elsewhere=())
        found = _search(result, invocation.ordering(order), each, emit, pays=is_asked or bool(left))
        if found.verdict == "undecided" and not found.rounds:
            result.note(f"Which part of the change made {each.suite} worse was not searched: the label {LABEL} pays.")
        else:
            result.attributions = (*result.attributions, found)
        left = None if left is None else max(0.0, left - found.cost_usd)


def _search(result: CiResult, invocation: Invocation, worse: Regressed, emit: Emit, *, pays: bool) -> Attribution:
    with result.case.log.group(f"Which part of the change made {worse.suite} worse"):
        return invocation.why(worse, emit, pays=pays)
