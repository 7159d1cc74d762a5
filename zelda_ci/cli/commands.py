"""The table of commands. A command's module is imported when it is called, so that `zelda --help` stays fast."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from zelda_ci import __version__

# Command → its line in `zelda --help`. Each is a `click.Command` of the same name in a module of the same name, but for
# those in `MODULES`.
COMMANDS = {
    "init": "Set up a project: configuration, a first suite, .gitignore.",
    "new": "Add a suite, about a skill or rule if you like.",
    "check": "Try everything that a run needs, without a session.",
    "run": "Run suites, each in a real Claude Code session, and print a report.",
    "merge": "Put the parts of a run that several machines shared together, and report it.",
    "list": "List stored runs, the newest first.",
    "show": "Show a stored run or batch: its report, transcript or patch.",
    "report": "Write stored runs as one HTML file: verdicts, numbers, transcripts, two sides beside each other.",
    "history": "Show one suite over time: what passed, on which versions, and what fell.",
    "compare": "Compare two runs, batches or result files, and apply the gate.",
    "coverage": "Show which suites used which skills, rules and other files that steer.",
    "rejudge": "Judge stored runs again, without a new session.",
    "prune": "Remove old runs, and workspaces that killed runs left.",
    "validate": "Check every file, and show what each suite asks for.",
    "explain": "Say what an error code means, and what to do.",
    "ci": "Run in a GitHub workflow: run suites, compare, comment on the pull request.",
    "completion": "Make your shell complete commands, suites and run ids.",
    "demo": "Watch two suites run, replayed from a recording; no key needed.",
}

# Commands whose module has another name: `report.py` is how all of them print.
MODULES = {"report": "html_report"}

# Whoever has installed Zelda has no docs/ folder.
PAGES_URL = "https://github.com/zelda-ci/zelda-ci/blob/main"
# Command → its page.
PAGES = {
    "init": "docs/your-first-suite.md",
    "new": "docs/your-first-suite.md",
    "check": "docs/configuration.md#check-before-you-pay",
    "run": "docs/your-first-suite.md",
    "merge": "docs/shards.md",
    "list": "docs/history.md#zelda-list",
    "show": "docs/history.md#zelda-show",
    "report": "docs/report.md",
    "history": "docs/history.md#zelda-history",
    "compare": "docs/comparison.md",
    "coverage": "docs/selection.md",
    "rejudge": "docs/judges.md",
    "prune": "docs/history.md#zelda-prune",
    "validate": "docs/configuration.md",
    "explain": "docs/troubleshooting.md",
    "ci": "docs/action.md",
    "completion": "docs/history.md#shell-completion",
    "demo": "README.md",
}


class _Table(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"zelda_ci.cli.{MODULES.get(cmd_name, cmd_name)}"), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101
        page = f"More: {PAGES_URL}/{PAGES[cmd_name]}"
        if page not in (command.epilog or ""):
            command.epilog = f"{command.epilog or ''}\n\n{page}".strip()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            near = get_close_matches(args[0], COMMANDS, n=1)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(exc.message + guess, ctx) from exc


@click.group(
    cls=_Table,
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
