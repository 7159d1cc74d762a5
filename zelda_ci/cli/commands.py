"""The table of commands, and those about Zelda itself. The module of another is imported when it is called."""

import gc
import re
from importlib import import_module

import click
from click.shell_completion import CompletionItem, get_completion_class

from zelda_ci import __version__
from zelda_ci.errors import explanations

# Whoever has installed Zelda has no docs/ folder.
PAGES_URL = "https://github.com/zelda-ci/zelda-ci/blob/main"
# Command → its line in `zelda --help`, and its page. Each is in a module of this name, or in that of `MODULES`.
COMMANDS = {
    "init": ("Set up a project: configuration, a first suite, .gitignore.", "docs/your-first-suite.md"),
    "new": ("Add a suite, about a skill or rule if you like.", "docs/your-first-suite.md"),
    "import": ("Make suites of cases for `claude plugin eval`, of evals.json, of promptfoo.", "docs/importing.md"),
    "check": ("Try everything that a run needs, without a session.", "docs/configuration.md#check-before-you-pay"),
    "run": ("Run suites, each in a real Claude Code session, and print a report.", "docs/your-first-suite.md"),
    "merge": ("Put the parts of a run that several machines shared together, and report it.", "docs/shards.md"),
    "list": ("List stored runs, the newest first.", "docs/history.md#zelda-list"),
    "show": ("Show a stored run or batch: its report, transcript or patch.", "docs/history.md#zelda-show"),
    "report": ("Write stored runs as one HTML file: verdicts, numbers, transcripts, two sides.", "docs/report.md"),
    "history": (
        "Show one suite over time: what passed, on which versions, what fell.",
        "docs/history.md#zelda-history",
    ),
    "compare": ("Compare two runs, batches or result files, and apply the gate.", "docs/comparison.md"),
    "why": ("Find out which lines of a change made a suite worse.", "docs/why.md"),
    "coverage": ("Show which suites used which skills, rules and other steering files.", "docs/selection.md"),
    "rejudge": ("Judge stored runs again, without a new session.", "docs/judges.md"),
    "prune": ("Remove old runs, and workspaces that killed runs left.", "docs/history.md#zelda-prune"),
    "validate": ("Check every file, and show what each suite asks for.", "docs/configuration.md"),
    "lint": ("Say what is weak in suites, with a better wording where one follows.", "docs/lint.md"),
    "context": ("Show what steering files take of every session's context, in tokens.", "docs/context.md"),
    "explain": ("Say what an error code means, and what to do.", "docs/troubleshooting.md"),
    "ci": ("Run in a GitHub workflow: run suites, compare, comment on the pull request.", "docs/action.md"),
    "completion": ("Make your shell complete commands, suites and run ids.", "docs/history.md#shell-completion"),
    "demo": ("Watch two suites run, replayed from a recording; no key needed.", "README.md"),
}
MODULES = {
    **dict.fromkeys(("new", "import"), "init"),
    **dict.fromkeys(("validate", "lint", "context"), "check"),
    **dict.fromkeys(("merge", "why", "demo"), "run"),
    **dict.fromkeys(("list", "show", "report", "history", "compare", "coverage", "rejudge", "prune"), "stored"),
    **dict.fromkeys(("explain", "completion"), "commands"),
}
LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")


class _Table(click.Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        there = vars(import_module(f"zelda_ci.cli.{MODULES.get(cmd_name, cmd_name)}")).values()
        gc.freeze()
        gc.enable()
        command = next(it for it in there if isinstance(it, click.Command) and it.name == cmd_name)
        # Not wrapped: an address would be broken at a hyphen.
        page = f"\b\nMore: {PAGES_URL}/{COMMANDS[cmd_name][1]}"
        if page not in (command.epilog or ""):
            command.epilog = f"{command.epilog or ''}\n\n{page}".strip()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, does) for name, (does, _) in COMMANDS.items()])


@click.group(
    cls=_Table,
    commands=dict.fromkeys(COMMANDS, click.Command(None)),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `zelda demo`, then `zelda init` in your project. Exit codes: 0 success, 1 an evaluation "
    "failed, 2 Zelda could not do its work, 130 interrupted.\n\nMore: https://github.com/zelda-ci/zelda-ci/tree/main/docs",
)
@click.version_option(__version__, "-V", "--version", prog_name="zelda", message="%(prog)s %(version)s")
@click.option("--verbose", is_flag=True, help="Show details of failures on the terminal, too.")
def zelda(*, verbose: bool) -> None:
    """Regression tests for the files that steer Claude Code.

    Suites are YAML files with a prompt and acceptance criteria. Each runs in a real Claude Code session, in a private
    copy of the project. The results are files under .zelda/.
    """


@click.command(
    epilog='bash: add `eval "$(zelda completion bash)"` to ~/.bashrc; zsh: `eval "$(zelda completion zsh)"` to '
    "~/.zshrc; fish: `zelda completion fish > ~/.config/fish/completions/zelda.fish`."
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print the script that makes your shell complete commands, options, suites, run ids and batch ids."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the three shells that click knows
    click.echo(kind(zelda, {}, "zelda", "_ZELDA_COMPLETE").source())


def _codes(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(code) for code in explanations() if code.startswith(incomplete.upper())]


@click.command(epilog="Examples: `zelda explain API_KEY_MISSING`; `zelda explain budget` for all codes about budgets.")
@click.argument("words", nargs=-1, required=True, metavar="CODE|WORD...", shell_complete=_codes)
def explain(*, words: tuple[str, ...]) -> None:
    """Say what an error code means, and what to do.

    CODE is `failure.code` of a result. Other words find every code whose explanation has them all.
    """
    code, table = "_".join(words).upper().replace("-", "_"), explanations()
    texts = {name: f"{name} {it.meaning} {it.action}".lower() for name, it in table.items()}
    found = [code] if code in table else [name for name in texts if all(word.lower() in texts[name] for word in words)]
    if not found:
        raise click.UsageError(f"No error code is {' '.join(words)!r}, and no explanation has these words.")
    for name in found:
        # As a terminal shows it, with full addresses of pages.
        text = LINK.sub(rf"\1 ({PAGES_URL}/docs/\2)", f"{name}: {table[name].meaning}\n  {table[name].action}")
        click.echo(text)
