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
    code = "_".join(words).upper().replace("-", "_")
    wanted = [word.lower() for word in words]
    found = [code] if code in explanations() else [name for name in explanations() if _has(name, wanted)]
    if not found:
        raise click.UsageError(f"No error code is {' '.join(words)!r}, and no explanation has these words.")
    for name in found:
        explanation = explanations()[name]
        echo(f"{name}: {_plain(explanation.meaning)}\n  {_plain(explanation.action)}")


def _has(code: str, words: list[str]) -> bool:
    explanation = explanations()[code]
    text = f"{code} {explanation.meaning} {explanation.action}".lower()
    return all(word in text for word in words)


def _plain(markdown: str) -> str:
    """The text as a terminal shows it, with full addresses of pages."""
    return _LINK.sub(rf"\1 ({PAGES_URL}/docs/\2)", markdown)
