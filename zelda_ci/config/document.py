"""A configuration file from disk to its tree of keys, with everything wrong that needs no model to see."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from zelda_ci.config import credentials, loader
from zelda_ci.config.files import read_text
from zelda_ci.config.nodes import Grouping, Scalar, key_places, value_of
from zelda_ci.config.problems import Position, Problem, Rejected, problem
from zelda_ci.config.resolver import Layer
from zelda_ci.config.validation import Model, check

TOP = Position(1, 1)


@dataclass(frozen=True)
class Document(Generic[Model]):
    """What a file says. With problems, it holds the top-level keys that are right."""

    root: Grouping
    config: Model
    layer: Layer
    problems: tuple[Problem, ...]

    def problem(self, key: str, message: str) -> Problem:
        """Something wrong with the value of a top-level key, or with its default."""
        entry = self.root.entries.get(key)
        return problem(self.layer.file, entry.node.at if entry else None, f"{key} {message}")


def empty(file: str, model: type[Model], *problems: Problem) -> Document[Model]:
    """Stands for a file that is missing or could not be used."""
    return Document(Grouping(TOP, {}), model(), Layer(file, model(), {}), problems)


def read(path: Path, file: str, model: type[Model]) -> Document[Model]:
    """Read and check a file.

    Args:
        path: Where it is.
        file: Its path in the project, with forward slashes.
        model: What it must hold.

    Raises:
        Rejected: nothing in it can be used.
    """
    text = read_text(path, file)
    leaked = tuple(credentials.shaped(text, file))
    try:
        node, problems = loader.parse(text, file)
    except Rejected as exc:
        raise Rejected(*leaked, *exc.problems) from None
    if node is None or (isinstance(node, Scalar) and value_of(node) is None):
        node = Grouping(TOP, {})
    if not isinstance(node, Grouping):
        what = "a single text" if isinstance(node, Scalar) else "a list"
        message = f"the file holds {what}; it must hold keys, each followed by a colon and its value"
        raise Rejected(*leaked, *problems, problem(file, node.at, message))
    named = tuple(credentials.named(node, file))
    lines = {it.line for it in named}
    leaked = (*named, *(it for it in leaked if it.line not in lines))
    checked = check(model, node, file, leaked)
    layer = Layer(file, checked.config, dict(key_places(node)))
    return Document(node, checked.config, layer, (*leaked, *problems, *checked.problems))
