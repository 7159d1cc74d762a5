"""`zelda merge`, and the shards whose parts it puts together."""

import os
from datetime import UTC, datetime
from pathlib import Path

import anyio
import click

from zelda_ci import app
from zelda_ci.app import Invocation
from zelda_ci.cli import options, reporters
from zelda_ci.cli.output import echo, typed_path
from zelda_ci.cli.reporters import Reporting, RunReport
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import empty_batch
from zelda_ci.domain.shards import ShardOf, ShardPart
from zelda_ci.errors import EXIT_INTERRUPTED, StorageError
from zelda_ci.github.revisions import tree_in
from zelda_ci.pipeline.fingerprints import system_name
from zelda_ci.pipeline.parts import FOLDER, parts_in, write_part
from zelda_ci.pipeline.shards import (
    PlanFacts,
    bring_in,
    counted_trials,
    fitting,
    make_plan,
    order_of,
    stored_in,
    told,
)
from zelda_ci.storage.history import RunHistory, expected_seconds
from zelda_ci.workspace.git import read_commit


@click.command(
    epilog="Example: four jobs run `zelda run --against main --shard 1/4` to `4/4`, and a fifth, which has their files "
    "in the folder parts, `zelda merge parts`. Exit codes: those of `zelda run`; 2 also where a part is missing, "
    "doubled or of another run."
)
@click.argument("folder", type=options.FOLDER, metavar="DIR")
@options.project
@reporters.options
def merge(*, folder: Path, project: Path, reporting: Reporting) -> int:
    """Put the parts of a run that several machines shared together, and report it as one run.

    DIR holds the files zelda-shard-*.zip that shards (`zelda run --shard 1/4`) have left on each machine, in any
    folders. Their runs are stored here under .zelda/runs/. What is printed, compared and returned is what one `zelda
    run` of all suites would have.

    Every shard must be there once, and all must have made the same plan. Otherwise nothing is merged, the message
    names what is wrong, and the exit code is 2.
    """
    loaded = app.load(project)
    report = RunReport(reporting, loaded.results_dir, loaded.root.name)
    parts = fitting(parts_in(folder))
    planned, found = parts[0].part.plan.commit, anyio.run(read_commit, loaded.root, os.environ)
    if planned and found and found[0] != planned:
        message = f"The parts are of the commit {planned[:12]}, and {found[0][:12]} is checked out."
        hint = "Check out the same commit where the parts are merged, or give their folder alone."
        raise StorageError(message, hint=hint, code="OTHER_COMMIT")
    return report.show(bring_in(parts, loaded.results_dir), stored_in(parts))


def run_shard(whole: Invocation, shard: ShardOf, report: RunReport, *, is_empty: bool) -> int:
    """Run one shard's suites of the whole, if not all are left out, and leave its part.

    The exit code says only whether that could be done.
    """
    loaded, environ = whole.loaded, whole.settings.environ
    with report.progress() as emit:
        whole = whole if is_empty else whole.with_stored()
        found = anyio.run(read_commit, loaded.root, environ)
        order, replayed = whole.order, whole.order.replay is not None
        facts = PlanFacts(
            suites=() if is_empty else whole.masked,
            commit=found and found[0],
            tree=found and tree_in(found[1]),
            base=order.against.ref if order.against else None,
            sides=2 if order.against else 0,
            stored=order.stored,
            trial_seconds=expected_seconds(RunHistory(loaded.results_dir), replayed=replayed),
            budget_usd=None if replayed else order.budget_usd,
        )
        plan = make_plan(facts, shard.shards)
        names = plan.names_of(shard.number)
        echo([*told(plan)][shard.number - 1])
        own = whole.ordering(order_of(order, plan, shard.number))
        batch = own.run(emit) if names else empty_batch(datetime.now(UTC))
    counted = counted_trials(order.stored, names)
    part = ShardPart(shard=shard.number, plan=plan, platform=system_name(environ), counted=counted)
    file = write_part(loaded.results_dir / FOLDER, part, batch, loaded.results_dir)
    echo(f"Part {shard}: {typed_path(file)} (`zelda merge` puts all parts together, and judges)")
    outcome = batch_outcome(batch)
    if batch.interrupted:
        return EXIT_INTERRUPTED
    return outcome.exit_code if outcome >= Outcome.INCOMPLETE else 0
