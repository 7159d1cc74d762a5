"""Write docs/cli.md and the pages of `--help` from the commands, and docs/troubleshooting.md from the errors.

With --check they are only compared.

Usage: python scripts/reference.py [--check] [ROOT]
"""

import ast
import re
import sys
from collections.abc import Container, Iterator
from inspect import cleandoc
from itertools import groupby
from pathlib import Path

import click

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from zelda_ci.cli.commands import COMMANDS, PAGES_URL, zelda  # noqa: E402
from zelda_ci.errors import explanations  # noqa: E402

PACKAGE = REPOSITORY / "zelda_ci"
TABLE = "zelda_ci/error_codes.toml"
GENERATED = "<!-- Written by `make reference` from the code and zelda_ci/error_codes.toml; changes here are lost. -->"
CODE = re.compile(r"[A-Z]{2,}(_[A-Z]+)*")
# Functions and records that take a code in any place, not only as `code=`.
WITH_CODES = re.compile(r"_failed|SessionOutcome|_?Kind|.*Failure")
MAX_MESSAGES = 5
MIN_WORDS = 3
HELP = "Show this message and exit."


# --- docs/cli.md ---------------------------------------------------------------------------------------------------


def cli_page() -> str:
    """The reference of commands: what `--help` says, as a page."""
    context = _whole()
    intro = (
        "# Commands\n\n"
        f"{GENERATED}\n\n"
        "`zelda COMMAND --help` says the same on the terminal. `zelda --version` shows the version, and `--verbose`,\n"
        "before or after any command, shows details of failures. [Exit codes](results.md#exit-codes) are the same\n"
        "everywhere.\n"
    )
    index = "\n".join(f"| [`zelda {name}`](#zelda-{name}) | {does} |" for name, (does, _) in COMMANDS.items())
    sections = [_section(name, context) for name in COMMANDS]
    return "\n".join([intro, f"| Command | What it does |\n|---|---|\n{index}\n", *sections])


def _whole() -> click.Context:
    return zelda.make_context("zelda", [], resilient_parsing=True, terminal_width=80)


def _section(name: str, parent: click.Context) -> str:
    command = zelda.get_command(parent, name)
    assert command is not None  # it is in the table
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([f"zelda {name}", *command.collect_usage_pieces(context)])
    records = [record for each in command.get_params(context) if (record := each.get_help_record(context))]
    options = "\n".join(
        f"| `{_cell(' '.join(names.split()))}` | {_cell(says)} |" for names, says in records if says not in {"", HELP}
    )
    parts = [
        f"## zelda {name}\n",
        f"`{usage}`\n",
        _text(command.help or ""),
        f"\n| Option | Meaning |\n|---|---|\n{options}\n" if options else "",
        _epilog(command.epilog or ""),
    ]
    return "\n".join(part for part in parts if part)


def _text(help_text: str) -> str:
    """Paragraphs on lines of their own."""
    return "\n\n".join(" ".join(block.split()) for block in cleandoc(help_text).split("\n\n"))


def _epilog(epilog: str) -> str:
    """Examples, and the page that `--help` names as a link between pages."""
    lines = []
    for block in epilog.split("\n\n"):
        text = " ".join(block.removeprefix("\b").split())
        if text.startswith("More: "):
            path = text.removeprefix(f"More: {PAGES_URL}/")
            target = path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"
            text = f"More: [{path}]({target})"
        lines.append(text)
    return "\n\n".join(filter(None, lines)) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


# --- what `--help` prints --------------------------------------------------------------------------------------------


def help_pages() -> dict[str, str]:
    """By name of its file: what click makes of `zelda --help` and of `zelda COMMAND --help`, in 80 columns."""
    whole = _whole()
    pages = {"zelda": zelda.get_help(whole)}
    for name in COMMANDS:
        command = zelda.get_command(whole, name)
        assert command is not None  # it is in the table
        pages[name] = command.get_help(command.make_context(name, [], parent=whole, resilient_parsing=True))
    return {f"zelda_ci/cli/help/{name}.txt": f"{text}\n" for name, text in pages.items()}


# --- docs/troubleshooting.md ---------------------------------------------------------------------------------------


HEAD = f"""# Troubleshooting

{GENERATED}

First try `zelda check`: it looks at git, disk, isolation, models, credentials and commands, and costs next to nothing.
Then look at these places:

| Where | What |
|---|---|
| the message | the first line says what is wrong, with file, line and key; the second what to do |
| `zelda show latest` | the report of the newest run; `--transcript` shows the session |
| `.zelda/runs/RUN/` | `setup.log`, `build.log`, `test.log`, `transcript.json` |
| `~/.local/state/zelda/debug.log` | [details of Zelda's own failures](results.md#when-something-goes-wrong) |

Frequent questions have pages of their own: [mistakes in YAML](configuration.md#when-something-is-wrong),
[a program is not found in a Python project](python.md) or [a Node project](node.md), [what the log of the GitHub Action
says](action.md#troubleshooting), [why a run is INCOMPLETE](judges.md#what-a-verdict-can-be).

Every failure has a code, for programs: `failure.code` in [`result.json`](results.md#resultjson) and here.
`zelda explain CODE` says the same on the terminal. To find a message, search this page for its words; `…` stands for
what differs, and `zelda explain WORDS` searches, too.
"""


def troubleshooting_page() -> str:
    """Every code that the package can give, with what it says; exits where one has no explanation, or the reverse."""
    known = explanations()
    found = messages(known)
    if missing := sorted(found.keys() - known.keys()):
        sys.exit(f"{TABLE} does not explain: {', '.join(missing)}")
    if unused := sorted(known.keys() - found.keys()):
        sys.exit(f"{TABLE} explains what the code does not know: {', '.join(unused)}")
    page = [HEAD]
    for group, codes in groupby(known, lambda code: known[code].group):
        page += [f"## {group}\n", "| Code | What it means | What to do |", "|---|---|---|"]
        for code in sorted(codes):
            means, action = known[code].meaning, known[code].action
            said = [f"<br>`{_cell(text.replace('`', ''))}`" for text in found[code] if text.rstrip(".") not in means]
            page.append(f"| `{code}` | {means}{''.join(said[:MAX_MESSAGES])} | {action} |")
        page.append("")
    return "\n".join(page)


def messages(known: Container[str]) -> dict[str, list[str]]:
    """Each code that the package gives, with its messages, … for what is put in."""
    files = (path for path in sorted(PACKAGE.rglob("*.py")) if "demo_project" not in path.parts)
    nodes = [node for path in files for node in ast.walk(_inline(ast.parse(path.read_text("utf-8")), {}))]
    named: dict[str, str] = {}  # constants, and classes and partial calls with a code of their own
    for node in nodes:
        match node:
            case ast.ClassDef(name=name, body=body, keywords=keywords):
                own = dict(map(_assigned, body)) | {str(each.arg): _literal(each.value) for each in keywords}
                named[name] = own.get("default_code") or own.get("code", "")
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("partial"), [_], [ast.keyword("code", own_code)])):
                named[name] = _literal(own_code)
            case _:
                named |= {name: code for name, code in [_assigned(node)] if CODE.fullmatch(name)}
    found: dict[str, list[str]] = {}
    for node in nodes:
        for code, message in _codes(node, named, known):
            kept = found.setdefault(code, [])
            text = " ".join(message.split())
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= MIN_WORDS and text not in kept:
                kept.append(text)
    return found


def _inline(node: ast.AST, texts: dict[str, ast.expr]) -> ast.AST:
    """Put sentences in the place of the names that they were given before, in the same block or around it."""
    texts = dict(texts) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.If | ast.match_case) else texts
    for child in ast.iter_child_nodes(node):
        _inline(child, texts)
    if isinstance(node, ast.Call):
        node.args = [texts.get(getattr(it, "id", ""), it) for it in node.args]
    elif isinstance(node, ast.FormattedValue):
        node.value = texts.get(getattr(node.value, "id", ""), node.value)
    elif isinstance(node, ast.Assign):
        names, values = (it.elts if isinstance(it, ast.Tuple) else [it] for it in (node.targets[0], node.value))
        pairs = ((it, value) for it, value in zip(names, values, strict=False) if isinstance(it, ast.Name))
        texts |= {it.id: value if " " in _literal(value) else it for it, value in pairs}
    return node


def _codes(node: ast.AST, named: dict[str, str], known: Container[str]) -> Iterator[tuple[str, str]]:
    """The codes in a call or a pair of code and sentence, with the message beside them; and those that stand alone."""
    given: list[ast.expr] = []
    texts: list[str] = []
    match node:
        case ast.Call(func=func, args=args, keywords=keywords):
            name, texts = getattr(func, "id", "") or getattr(func, "attr", ""), [_literal(each) for each in args]
            given = [each.value for each in keywords if each.arg == "code"] or [ast.Constant(named.get(name, ""))]
            given += args if WITH_CODES.fullmatch(name) else []
        case ast.Tuple(elts=[first, second, *_]):
            texts = [_literal(second), _literal(first)]
            is_pair = " " in texts[0] or (isinstance(second, ast.Constant) and second.value is None)
            given = [first] if is_pair else [second] if " " in texts[1] else []
        case ast.Constant(value=str(code)) if code in known:
            yield code, ""
    message = next((text for text in texts if " " in text), "")
    for part in (part for each in given for part in ast.walk(each)):
        code = named.get(part.id, "") if isinstance(part, ast.Name) else _literal(part)
        if CODE.fullmatch(code) and (code in known or isinstance(node, ast.Call)):
            yield code, message


def _assigned(node: ast.AST) -> tuple[str, str]:
    """Name and code of an assignment; empty where it is none of a code."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    code = _literal(getattr(node, "value", None))
    return (target.id, code) if isinstance(target, ast.Name) and CODE.fullmatch(code) else ("", "")


def _literal(node: ast.AST | None) -> str:
    """A text in the code; what is put in is `…`."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_part, values))
        case ast.Call(args=[inner]):
            return _literal(inner)
        case _:
            return ""


def _part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else _literal(getattr(node, "value", None)) or "…"


def main(arguments: list[str]) -> int:
    """Write or compare."""
    check = "--check" in arguments
    root = next((Path(each) for each in arguments if each != "--check"), REPOSITORY)
    texts = {"docs/cli.md": cli_page(), "docs/troubleshooting.md": troubleshooting_page(), **help_pages()}
    pages = {root / name: text for name, text in texts.items()}
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print(f"{'stale' if check else 'wrote'}: {path.relative_to(root)}")
        if not check:
            path.write_text(pages[path], "utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
