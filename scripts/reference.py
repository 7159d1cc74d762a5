"""Write docs/cli.md from the commands and docs/troubleshooting.md from the errors; with --check only compare.

Usage: python scripts/reference.py [--check] [ROOT]
"""

import ast
import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from zelda_ci.cli.commands import COMMANDS, PAGES_URL, zelda  # noqa: E402

GENERATED = "<!-- Written by `make reference` from the code and scripts/troubles.yaml; changes here are lost. -->"
CODE = re.compile(r"[A-Z]{2,}(_[A-Z]+)*")
# Functions and records that take a code in any place, not only as `code=`.
WITH_CODES = re.compile(r"_failed|SessionEnding|_?Kind|.*Failure")
MAX_MESSAGES = 3
MIN_WORDS = 4
HELP = "Show this message and exit."


# --- docs/cli.md ---------------------------------------------------------------------------------------------------


def cli_page() -> str:
    """The reference of commands: what `--help` says, as a page."""
    context = click.Context(zelda, info_name="zelda")
    intro = (
        "# Commands\n\n"
        f"{GENERATED}\n\n"
        "`zelda COMMAND --help` says the same on the terminal. `zelda --version` shows the version, and `--verbose`,\n"
        "before or after any command, shows details of failures. [Exit codes](results.md#exit-codes) are the same\n"
        "everywhere.\n"
    )
    index = "\n".join(f"| [`zelda {name}`](#zelda-{name}) | {does} |" for name, does in COMMANDS.items())
    sections = [_section(name, context) for name in COMMANDS]
    return "\n".join([intro, f"| Command | What it does |\n|---|---|\n{index}\n", *sections])


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
    """Paragraphs on lines of their own; a block that click does not wrap becomes a sample."""
    blocks = []
    for block in cleandoc(help_text).split("\n\n"):
        if block.startswith("\b\n"):
            blocks.append(f"```yaml\n{cleandoc(block.removeprefix(chr(8)).strip(chr(10)))}\n```")
        else:
            blocks.append(" ".join(block.split()))
    return "\n\n".join(blocks)


def _epilog(epilog: str) -> str:
    """Examples, and the page that `--help` names as a link between pages."""
    lines = []
    for block in epilog.split("\n\n"):
        text = " ".join(block.split())
        if text.startswith("More: "):
            path = text.removeprefix(f"More: {PAGES_URL}/")
            target = path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"
            text = f"More: [{path}]({target})"
        lines.append(text)
    return "\n\n".join(filter(None, lines)) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


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
| `.zelda/debug.log` | details of Zelda's own failures; [outside of projects](results.md#when-something-goes-wrong) |

Frequent questions have pages of their own: [mistakes in YAML](configuration.md#when-something-is-wrong),
[a program is not found in a Python project](python.md) or [a Node project](node.md), [what the log of the GitHub Action
says](action.md#troubleshooting), [why a run is INCOMPLETE](judges.md#what-a-verdict-can-be).

Every failure has a code, for programs: `failure.code` in [`result.json`](results.md#resultjson) and here. To
find a message, search this page for its words; `…` stands for what differs.
"""


def troubleshooting_page() -> str:
    """Every code that the package can give, with what it says.

    Raises:
        SystemExit: A code has no explanation, or an explanation no code.
    """
    found = messages()
    troubles: dict[str, dict[str, list[str]]] = yaml.safe_load(
        (REPOSITORY / "scripts/troubles.yaml").read_text("utf-8")
    )
    known = {code: both for group in troubles.values() for code, both in group.items()}
    if missing := sorted(found.keys() - known.keys()):
        sys.exit(f"scripts/troubles.yaml does not explain: {', '.join(missing)}")
    if unused := sorted(known.keys() - found.keys()):
        sys.exit(f"scripts/troubles.yaml explains what the code does not know: {', '.join(unused)}")
    sections = [_group(title, codes, found) for title, codes in troubles.items()]
    return "\n".join([HEAD, *sections])


def _group(title: str, codes: dict[str, list[str]], found: dict[str, list[str]]) -> str:
    rows = [
        f"| `{code}` | {means}{_said(found[code], means)} | {action} |"
        for code, (means, action) in sorted(codes.items())
    ]
    return "\n".join([f"## {title}\n", "| Code | What it means | What to do |", "|---|---|---|", *rows, ""])


def _said(texts: list[str], means: str) -> str:
    """What the message says, if that is more than the meaning."""
    told = [f"`{_cell(text.replace('`', ''))}`" for text in dict.fromkeys(texts) if text.rstrip(".") not in means]
    return "".join(f"<br>{each}" for each in told[:MAX_MESSAGES])


class _Module:
    """What one file says of codes."""

    def __init__(self, tree: ast.Module, constants: dict[str, str], defaults: dict[str, str]) -> None:
        self.tree, self.constants, self.defaults = tree, constants, defaults

    def says(self) -> Iterator[tuple[str, str]]:
        """Code and message, which may be empty."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield from self._of_call(node)
            elif isinstance(node, ast.Tuple) and len(node.elts) > 1:
                yield from self._of_tuple(*node.elts[:2])
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and _is_table(node.targets[0]):
                yield from ((code, "") for value in node.value.values for code in self._codes(value))

    def _of_tuple(self, first: ast.expr, second: ast.expr) -> Iterator[tuple[str, str]]:
        """A code beside its sentence, or beside none; names of variables stand beside each other."""
        message = _literal(second)
        is_pair = " " in message or (isinstance(second, ast.Constant) and second.value is None)
        if is_pair and "_" in _literal(first):
            yield from ((code, message) for code in self._codes(first))

    def _of_call(self, call: ast.Call) -> Iterator[tuple[str, str]]:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        codes = [code for value in given for code in self._codes(value)]
        if not given and name in self.defaults:
            codes = [self.defaults[name]]
        if WITH_CODES.fullmatch(name):
            codes += [code for each in call.args if (code := _literal(each)) and CODE.fullmatch(code)]
        texts = [_literal(each) for each in call.args]
        message = next((text for text in texts if " " in text), "")
        for code in codes:
            yield code, message

    def _codes(self, value: ast.expr) -> Iterator[str]:
        for node in ast.walk(value):
            text = self.constants.get(node.id, "") if isinstance(node, ast.Name) else _literal(node)
            if CODE.fullmatch(text):
                yield text


def messages(package: Path = REPOSITORY / "zelda_ci") -> dict[str, list[str]]:
    """Each code with its messages, … for what is put in."""
    trees = [
        ast.parse(path.read_text("utf-8")) for path in sorted(package.rglob("*.py")) if "demo_project" not in path.parts
    ]
    constants = dict(pair for tree in trees for pair in _assigned(tree.body))
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    defaults = {
        each.name: value for each in classes for name, value in _assigned(each.body) if name in {"default_code", "code"}
    }
    found: dict[str, list[str]] = {code: [] for code in defaults.values()}
    for tree in trees:
        for code, message in _Module(tree, constants, defaults).says():
            kept = found.setdefault(code, [])
            if len(re.findall(r"[A-Za-z]{2,}", message)) >= MIN_WORDS:
                kept.append(" ".join(message.split()))
    return found


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(target, ast.Name) and value is not None and CODE.fullmatch(text := _literal(value)):
            yield target.id, text


def _is_table(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id.endswith("_CODES")


def _literal(node: ast.AST) -> str:
    """A text in the code; what is put in is `…`."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in values)
        case _:
            return ""


def main(arguments: list[str]) -> int:
    """Write or compare."""
    check = "--check" in arguments
    root = next((Path(each) for each in arguments if each != "--check"), REPOSITORY)
    pages = {root / "docs/cli.md": cli_page(), root / "docs/troubleshooting.md": troubleshooting_page()}
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print(f"{'stale' if check else 'wrote'}: {path.relative_to(root)}")
        if not check:
            path.write_text(pages[path], "utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
