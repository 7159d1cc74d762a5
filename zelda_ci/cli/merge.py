"""`zelda merge`, and the shards whose parts it puts together."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import click

from zelda_ci import app
from zelda_ci.app import Invocation
from zelda_ci.cli import options, report, reporters
from zelda_ci.cli.output import echo
from zelda_ci.cli.reporters import Reporter, Reporting, RunReport
from zelda_ci.config.environment import EnvironmentSettings, read_environment
from zelda_ci.config.project import LoadedProject
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import empty_batch
from zelda_ci.domain.shards import ShardOf, ShardPart, ShardPlan
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
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIR")
@options.project
@reporters.option
@reporters.page
@reporters.quiet
@click.option("--json", "as_json", is_flag=True, help="The same as --reporter json.")
def merge(
    *,
    folder: Path,
    project: Path,
    chosen_reporters: tuple[Reporter, ...],
    page: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Put the parts of a run that several machines shared together, and report it as one run.

    DIR holds the files zelda-shard-*.zip that shards (`zelda run --shard 1/4`) have left on each machine, in any
    folders. Their runs are stored here under .zelda/runs/. What is printed, compared and returned is what one `zelda
    run` of all suites would have.

    Every shard must be there once, and all must have made the same plan. Otherwise nothing is merged, the message
    names what is wrong, and the exit code is 2.
    """
    reporting = reporters.chosen(chosen_reporters, as_json=as_json, quiet=quiet, page=page)
    reporting.need_folders()
    loaded, settings = app.load(project), read_environment(os.environ)
    parts = fitting(parts_in(folder))
    _need_commit(parts[0].part.plan, loaded, settings)
    return RunReport(reporting, loaded).show(bring_in(parts, loaded.results_dir), stored_in(parts))


def _need_commit(plan: ShardPlan, loaded: LoadedProject, settings: EnvironmentSettings) -> None:
    commit, _ = _tested(loaded, settings)
    if plan.commit and commit and commit != plan.commit:
        message = f"The parts are of the commit {plan.commit[:12]}, and {commit[:12]} is checked out."
        hint = "Check out the same commit where the parts are merged, or give their folder alone."
        raise StorageError(message, hint=hint, code="OTHER_COMMIT")


def _tested(loaded: LoadedProject, settings: EnvironmentSettings) -> tuple[str | None, str | None]:
    """Commit and tree; outside git neither."""
    found = anyio.run(read_commit, loaded.root, settings.environ)
    return (found[0], tree_in(found[1])) if found else (None, None)


def _refuse_together(reporting: Reporting, given: Mapping[str, Any]) -> None:
    """What a shard cannot be asked for.

    Raises:
        ConfigError: It was.
    """
    for name in ("all_projects", "last_failed", "commit", "dry_run"):
        if given[name]:
            hint = "Every shard must see the same suites and the same commit."
            message = f"--shard and --{name.replace('_', '-')} exclude each other."
            raise ConfigError(message, hint=hint, code="USAGE")
    if reporting.printed or reporting.files or reporting.page:
        hint = "Give --json, --reporter and --report to `zelda merge`."
        raise ConfigError("A shard reports nothing to programs: it knows a part only.", hint=hint, code="USAGE")


def run_shard(whole: Invocation, shard: ShardOf, running: RunReport, changed_since: str | None) -> int:
    """Run the suites of one shard and leave its part; the exit code says only whether it could be done.

    Raises:
        ZeldaError: Nothing could be run, or the part could not be written.
    """
    _refuse_together(running.reporting, click.get_current_context().params)
    loaded, environ = whole.loaded, whole.settings.environ
    narrowed = reporters.narrowed(whole, changed_since)
    if narrowed:
        report.ask_about_isolation(narrowed)
    with running.progress() as emit:
        whole = narrowed.with_stored() if narrowed else whole
        plan = _plan(whole, shard, is_empty=narrowed is None)
        names = plan.names_of(shard.number)
        echo([*told(plan)][shard.number - 1])
        own = whole.ordering(order_of(whole.order, plan, shard.number))
        batch = own.run(emit) if names else empty_batch(datetime.now(UTC))
    counted = counted_trials(whole.order.stored, names)
    part = ShardPart(shard=shard.number, plan=plan, platform=system_name(environ), counted=counted)
    file = write_part(loaded.results_dir / FOLDER, part, batch, loaded.results_dir)
    echo(f"Part {shard}: {report.typed_path(file)} (`zelda merge` puts all parts together, and judges)")
    outcome = batch_outcome(batch)
    if batch.interrupted:
        return EXIT_INTERRUPTED
    return outcome.exit_code if outcome >= Outcome.INCOMPLETE else 0


def _plan(whole: Invocation, shard: ShardOf, *, is_empty: bool) -> ShardPlan:
    commit, tree = _tested(whole.loaded, whole.settings)
    order, replayed = whole.order, whole.order.replay is not None
    facts = PlanFacts(
        suites=() if is_empty else whole.masked,
        commit=commit,
        tree=tree,
        base=order.against.ref if order.against else None,
        sides=2 if order.against else 0,
        stored=order.stored,
        trial_seconds=expected_seconds(RunHistory(whole.loaded.results_dir), replayed=replayed),
        budget_usd=order.budget_usd,
    )
    return make_plan(facts if not replayed else replace(facts, budget_usd=None), shard.shards)
