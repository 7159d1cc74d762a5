"""`zelda completion`: the shell's script, and what is offered for suites, runs and batches."""

import re
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    shell_complete,
)

from zelda_ci.cli.commands import zelda
from zelda_ci.config import files
from zelda_ci.config.project import examine, results_folder
from zelda_ci.config.selection import usual_name
from zelda_ci.errors import ZeldaError
from zelda_ci.storage.history import RunHistory

VARIABLE = "_ZELDA_COMPLETE"
MAX_OFFERED = 200


class Bash(BashComplete):
    """Bash takes a colon for a word of its own, and puts what is offered behind it."""

    behind = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before, and the one that is being typed, as the user sees them."""
        args, last = super().get_completion_args()
        *before, typed = re.sub(r"\n?:\n?", ":", "\n".join([*args, last])).split("\n")
        self.behind = typed[: len(typed) - len(last.removeprefix(":"))]
        return before, typed

    def format_completion(self, item: CompletionItem) -> str:
        """One that is offered, from behind the colon on."""
        return f"{item.type},{item.value.removeprefix(self.behind)}"


add_completion_class(Bash, "bash")


@click.command(
    epilog='bash: add `eval "$(zelda completion bash)"` to ~/.bashrc; zsh: `eval "$(zelda completion zsh)"` to '
    "~/.zshrc; fish: `zelda completion fish > ~/.config/fish/completions/zelda.fish`.",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print the script that makes your shell complete commands, options, suites, run ids and batch ids."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the three shells that click knows
    click.echo(kind(zelda, {}, "zelda", VARIABLE).source())


def answer(instruction: str) -> int:
    """Answer a question of the shell's script."""
    return shell_complete(zelda, {}, "zelda", VARIABLE, instruction)


def suites(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the project's suites; of files that are broken, those that they probably have."""
    folder = Path(ctx.params.get("project") or ".")
    examination = examine(folder)
    if examination.project:
        names = [suite.resolved.name for suite in examination.project.suites]
    else:
        root = files.find_root(folder)
        names = [usual_name(path.name) for path in files.suite_files(root, files.DEFAULT_TEST_DIR)]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Runs and batches, the newest first."""
    try:
        stored = RunHistory(results_folder(Path(ctx.params.get("project") or "."))).overview().runs
    except ZeldaError:
        return []
    batches = {run.batch_id: f"batch of {run.started_at:%Y-%m-%d %H:%M} UTC" for run in stored}
    items = {"latest": "the newest", "latest~1": "the one before"} if stored else {}
    items |= {f"latest:{run.suite}": f"the newest of {run.suite}" for run in stored}
    items |= {**batches, **{run.run_id: run.outcome.value for run in stored}}
    offered = [CompletionItem(name, help=meaning) for name, meaning in items.items() if name.startswith(incomplete)]
    return offered[:MAX_OFFERED]
