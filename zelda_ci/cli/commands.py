"""The table of commands. A command's module is imported when it is called, so that none waits for the others'."""

from importlib import import_module

import click

from zelda_ci import __version__

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
STORED = dict.fromkeys(("list", "show", "coverage", "rejudge", "prune"), "stored")
MODULES = {"new": "init", "import": "init", "merge": "run", "validate": "check", "lint": "check", **STORED}


class _Table(click.Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        there = vars(import_module(f"zelda_ci.cli.{MODULES.get(cmd_name, cmd_name)}")).values()
        command = next(it for it in there if isinstance(it, click.Command) and it.name == cmd_name)
        page = f"More: {PAGES_URL}/{COMMANDS[cmd_name][1]}"
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
