"""`zelda explain`: what an error code means, and what to do."""

import re

import click
from click.shell_completion import CompletionItem

from zelda_ci.cli.commands import PAGES_URL
from zelda_ci.cli.output import echo
from zelda_ci.errors import explanations

_LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")


def _offered(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(code) for code in explanations() if code.startswith(incomplete.upper())]


@click.command(epilog="Examples: `zelda explain API_KEY_MISSING`; `zelda explain budget` for all codes about budgets.")
@click.argument("words", nargs=-1, required=True, metavar="CODE|WORD...", shell_complete=_offered)
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
        said = f"{name}: {table[name].meaning}\n  {table[name].action}"
        # As a terminal shows it, with full addresses of pages.
        echo(_LINK.sub(rf"\1 ({PAGES_URL}/docs/\2)", said))
