"""What in the files that steer does not work as it is written: facts of the scan, each with its line and the fix."""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

from zelda_ci.domain.context_size import ContextFinding
from zelda_ci.domain.kinds import CALLED, KINDS, ItemKind, Shown
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.numbers import whole
from zelda_ci.execution.manifest.folders import SAME_NAME
from zelda_ci.execution.manifest.front_matter import COMMENT, MarkdownDocument, mentioned, parse
from zelda_ci.execution.manifest.scan import IMPORTED_BY
from zelda_ci.execution.manifest.tree import MAX_DESCRIPTION_LENGTH, Tree, Unfit
from zelda_ci.files import globs
from zelda_ci.pipeline.wording import word_runs
from zelda_ci.redact import Redactor

MAX_QUOTE = 60
# A file, its line, what is wrong there, and what to do.
_Problem = tuple[str, int, str, str]


def steering_problems(
    found: ToolsManifest, top: Path, files: Collection[str], redact: Redactor
) -> tuple[ContextFinding, ...]:
    """Return every problem, by place.

    Args:
        found: What was found in a tree.
        top: The top of the tree.
        files: All of its files, by their paths from there.
        redact: For words of the files.
    """
    problems = _ProblemFinder(found, Tree(top), files)
    own = (*problems.imports(), *problems.names(), *problems.descriptions(), *problems.globs())
    placed = sorted({*own, *problems.repeated()})
    return tuple(
        ContextFinding(file=redact(file), line=line, problem=redact(problem), fix=redact(fix))
        for file, line, problem, fix in placed
    )


class _ProblemFinder:
    def __init__(self, found: ToolsManifest, tree: Tree, files: Collection[str]) -> None:
        self._items, self._tree, self._files = found.items, tree, files
        self._text = cache(self._read)

    def imports(self) -> Iterator[_Problem]:
        for item in self._items:
            _, is_import, importer = (item.description or "").partition(IMPORTED_BY)
            if item.kind is ItemKind.MEMORY and item.problem and is_import:
                folder = dirname(self._tree.real(importer))
                lines = enumerate(self._text(importer).splitlines(), start=1)
                places = (at for at, line in lines if item.name in _targets(folder, line))
                problem = f"imports {item.name}, which is not loaded: {item.problem}"
                yield importer, next(places, 1), problem, "Correct the path, or take the import out."

    def names(self) -> Iterator[_Problem]:
        for item in self._items:
            first, same, _ = (item.problem or "").partition(SAME_NAME)
            if same and item.kind in CALLED:
                problem = f"the {KINDS[item.kind].word} {item.name} is never used: {first} has the same name"
                yield item.file, self._line(item.file, "name"), problem, "Rename one of them."

    def descriptions(self) -> Iterator[_Problem]:
        for item in self._items:
            is_listed = KINDS[item.kind].call == "Skill" and item.shown is Shown.DESCRIPTION and not item.problem
            # Of the scan's own copy the end is cut off already.
            if is_listed and len(item.description or "") >= MAX_DESCRIPTION_LENGTH:
                length = len(self._document(item.file).offer)
                if length > MAX_DESCRIPTION_LENGTH:
                    problem = (
                        f"the description has {whole(length)} characters, and the model is shown "
                        f"{whole(MAX_DESCRIPTION_LENGTH)} at most"
                    )
                    fix = f"Shorten description and when_to_use by {whole(length - MAX_DESCRIPTION_LENGTH)}."
                    yield item.file, self._line(item.file, "description"), problem, fix

    def globs(self) -> Iterator[_Problem]:
        for item in self._items:
            below = f"{item.base}/" if item.base else ""
            near = [file.removeprefix(below) for file in self._files if file.startswith(below)]
            for glob in self._document(item.file).listed("paths") if item.paths and not item.problem else ():
                if not any(globs.matches([glob.removesuffix("/**")], file) for file in near):
                    line = self._line(item.file, "paths", glob)
                    yield item.file, line, f"the pattern {glob} matches no file", "Correct it, or take it out."

    def repeated(self) -> Iterator[_Problem]:
        """Yield eight words or more that two files have in common; of what goes on, the beginning."""
        known = dict[str, tuple[str, int]]()
        for item in self._items:
            if not (item.is_followed and item.text) or item.problem or not item.file.endswith(".md"):
                continue
            own, is_inside = dict[str, tuple[str, int]](), False
            for words, line in word_runs(self._shown(item)):
                other, at = known.get(words, ("", 0))
                if other and not is_inside:
                    quote = words if len(words) <= MAX_QUOTE else f"{words[:MAX_QUOTE]}…"
                    problem = f'repeats {other}, line {at}, word for word ("{quote}")'
                    yield item.file, line, problem, "Say it in one of the two."
                is_inside = bool(other)
                own.setdefault(words, (item.file, line))
            known = own | known

    def _shown(self, item: ManifestItem) -> str:
        """Return what the model sees of a file, in the lines in which it stands."""
        text = self._text(item.file)
        above = text.removesuffix(parse(text).body).count("\n")
        return "\n" * above + COMMENT.sub(lambda found: "\n" * found[0].count("\n"), parse(text).body)

    def _line(self, file: str, key: str, words: str = "") -> int:
        """Return the line of a key in the head of a file, or of words behind it."""
        lines = self._text(file).splitlines()
        begin = next((at for at, line in enumerate(lines) if re.match(rf"{key}\s*:", line)), 0)
        return next((at for at, line in enumerate(lines[begin:], start=begin + 1) if words in line), begin + 1)

    def _document(self, file: str) -> MarkdownDocument:
        return parse(self._text(file))

    def _read(self, file: str) -> str:
        with suppress(Unfit):
            return self._tree.read(file)
        return ""


def _targets(folder: str, line: str) -> set[str]:
    """Return what a line imports, as the scan names it."""
    return {name for path in mentioned(line.strip()) for name in (path, normpath(join(folder, path)))}
