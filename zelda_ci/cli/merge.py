"""`zelda merge`, and the shards whose parts it puts together."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import anyio
import click

from zelda_ci import app
from zelda_ci.app import Invocation
from zelda_ci.cli import options, reporters
from zelda_ci.cli.output import echo, typed_path
from zelda_ci.cli.reporters import Reporting, RunReport
from zelda_ci.config.environment import EnvironmentSettings, read_environment
from zelda_ci.config.project import LoadedProject
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import empty_batch
from zelda_ci.domain.shards import ShardOf, ShardPart
from zelda_ci.errors import EXIT_INTERRUPTED, ConfigError, StorageError
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
    told,
)
from zelda_ci.workspace.git import read_commit


@click.command(
    epilog="Example: four jobs run `zelda run --against main --shard 1/4` to `4/4`, and a fifth, which has their files "
    "in the folder parts, `zelda merge parts`. Exit codes: those of `zelda run`; 2 also where a part is missing, "
    "doubled or of another run."
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIR")
@options.project
@reporters.options
def merge(*, folder: Path, project: Path) -> int:
    """Put the parts of a run that several machines shared together, and report it as one run.

    DIR holds the files zelda-shard-*.zip that shards (`zelda run --shard 1/4`) have left on each machine, in any
    folders. Their runs are stored here under .zelda/runs/. What is printed, compared and returned is what one `zelda
    run` of all suites would have.

    Every shard must be there once, and all must have made the same plan. Otherwise nothing is merged, the message
    names what is wrong, and the exit code is 2.
    """
    reporting = reporters.chosen().within(Path())
    loaded, settings = app.load(project), read_environment(os.environ)
    parts = fitting(parts_in(folder))
    planned, (commit, _) = parts[0].part.plan.commit, _tested(loaded, settings)
    if planned and commit and commit != planned:
        message = f"The parts are of the commit {planned[:12]}, and {commit[:12]} is checked out."
        hint = "Check out the same commit where the parts are merged, or give their folder alone."
        raise StorageError(message, hint=hint, code="OTHER_COMMIT")
    stored = {name: each for part in parts for name, each in part.part.counted.items()}
    return RunReport(reporting, loaded).show(bring_in(parts, loaded.results_dir), stored)


def _tested(loaded: LoadedProject, settings: EnvironmentSettings) -> tuple[str | None, str | None]:
    """Commit and tree; outside git neither."""
    found = anyio.run(read_commit, loaded.root, settings.environ)
    return (found[0], tree_in(found[1])) if found else (None, None)


def check_shard(reporting: Reporting, excluded: Mapping[str, bool]) -> None:
    """Refuse what a shard cannot be asked for: options that were given of those that exclude it, and reports."""
    if option := next((name for name, given in excluded.items() if given), None):
        hint = "Every shard must see the same suites and the same commit."
        raise ConfigError(f"--shard and --{option} exclude each other.", hint=hint, code="USAGE")
    if reporting.printed or reporting.files:
        hint = "Give --json, --reporter and --report to `zelda merge`."
        raise ConfigError("A shard reports nothing to programs: it knows a part only.", hint=hint, code="USAGE")


def run_shard(whole: Invocation, shard: ShardOf, report: RunReport, *, is_empty: bool) -> int:
    """Run one shard's suites of the whole, if not all are left out, and leave its part.

    The exit code says only whether that could be done.
    """
    loaded, environ = whole.loaded, whole.settings.environ
    with report.progress() as emit:
        whole = whole if is_empty else whole.with_stored()
        commit, tree = _tested(loaded, whole.settings)
        order, replayed = whole.order, whole.order.replay is not None
        facts = PlanFacts(
            suites=() if is_empty else whole.masked,
            commit=commit,
            tree=tree,
            base=order.against.ref if order.against else None,
            sides=2 if order.against else 0,
            stored=order.stored,
            trial_seconds=whole.expected_seconds,
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
