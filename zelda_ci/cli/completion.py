"""`zelda completion`: the shell's script, and what is offered for suites, runs and batches."""

from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from zelda_ci.cli.commands import zelda
from zelda_ci.config import files
from zelda_ci.config.project import load, results_folder
from zelda_ci.config.suites import usual_name
from zelda_ci.errors import ZeldaError
from zelda_ci.storage.result_store import ResultStore

MAX_OFFERED = 200


@click.command(
    epilog='bash: add `eval "$(zelda completion bash)"` to ~/.bashrc; zsh: `eval "$(zelda completion zsh)"` to '
    "~/.zshrc; fish: `zelda completion fish > ~/.config/fish/completions/zelda.fish`.",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print the script that makes your shell complete commands, options, suites, run ids and batch ids."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the three shells that click knows
    click.echo(kind(zelda, {}, "zelda", "_ZELDA_COMPLETE").source())


def suites(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the project's suites; of files that are broken, those that they probably have."""
    folder = Path(ctx.params.get("project") or ".")
    try:
        names = [suite.resolved.name for suite in load(folder).suites]
    except ZeldaError:
        found = files.suite_files(files.find_root(folder), files.DEFAULT_TEST_DIR)
        names = [usual_name(path.name) for path in found]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Runs and batches, the newest first."""
    try:
        stored = ResultStore(results_folder(Path(ctx.params.get("project") or "."))).overview().runs
    except ZeldaError:
        return []
    items = {"latest": "the newest", "latest~1": "the one before"} if stored else {}
    items |= {f"latest:{run.suite}": f"the newest of {run.suite}" for run in stored}
    items |= {run.batch_id: f"batch of {run.started_at:%Y-%m-%d %H:%M} UTC" for run in stored}
    items |= {run.run_id: run.outcome.value for run in stored}
    offered = [CompletionItem(name, help=meaning) for name, meaning in items.items() if name.startswith(incomplete)]
    return offered[:MAX_OFFERED]
