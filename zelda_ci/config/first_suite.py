"""A project's first suite: about one real skill, rule, sub-agent or CLAUDE.md file, saying no more than is known.

Names, descriptions and texts are whatever somebody wrote into the project's files. They are cut to printable words
before anything is made of them, and quoted wherever they stand.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import relpath
from textwrap import wrap

from zelda_ci.config import document, schema, templates
from zelda_ci.config.schema import SuiteConfig
from zelda_ci.config.templates import DIRECTIONS, printed, scalar
from zelda_ci.domain import globs
from zelda_ci.domain.kinds import FOLLOWED, ItemKind
from zelda_ci.domain.manifest import ManifestItem

EXAMPLE = "example"
MAX_QUOTE = 240
MAX_TEXT = 20_000
MAX_SLUG = 40
WIDTH = 100

WORDS = {
    ItemKind.SKILL: "the skill",
    ItemKind.RULE: "the rule",
    ItemKind.MEMORY: "the file",
    ItemKind.AGENT: "the sub-agent",
}
_ORDER = tuple(WORDS)
_SENTENCE = re.compile(r"[^.!?]*(?:[.!?](?!\s|$)[^.!?]*)*[.!?]?")
_OCCASION = re.compile(
    r"(use|invoke|call|trigger)( this)?( skill| agent| sub-?agent)?( proactively| immediately)? (when|whenever|if|for)"
    r"( (the )?(user|you|users|someone|somebody))?( (asks?|wants?|needs?|is asking)( (you|claude))? (to|for))? ?",
    re.IGNORECASE,
)
_FENCED = re.compile(r"^(```|~~~).*?(^\1|\Z)|<!--.*?(-->|\Z)", re.DOTALL | re.MULTILINE)
_PASSED_OVER = re.compile(r"^\s*([#|>@]|---|\*\*\*|===|!?\[[^\]]*\]\()")
_BULLET = re.compile(r"^\s*([-*+]|\d{1,3}[.)])\s+(\[[ xX]\]\s+)?")
# What leaves no doubt that it is an order, and what is probably one.
_ORDERS = (
    re.compile(
        r"(always|never|do not|don't|must|avoid)(?![\w-])|.*(?<![\w-])(must|never|always)(?![\w-])", re.IGNORECASE
    ),
    re.compile(
        r"(use|prefer|run|write|add|keep|ensure|make sure|put|follow|include|update|create|validate)\s"
        r"|.*(?<![\w-])(should|shall)(?![\w-])",
        re.IGNORECASE,
    ),
)
_LABEL = re.compile(r"^[^:.!?]{1,40}:\s+")
_PLAIN_FILE = re.compile(r"[\w@+-][\w./@+-]*")


@dataclass(frozen=True)
class FirstSuite:
    """A suite that is to be written."""

    name: str
    about: str | None
    """What it is about, for people; absent for the example, which is about no file of the project."""
    text: str


def subjects(items: Iterable[ManifestItem]) -> list[ManifestItem]:
    """What a first suite can be about, the most telling first: what is called, then what says what to do."""
    usable = [item for item in items if not item.problem and not item.shadowed and item.kind in _ORDER]
    told = [item for item in usable if _told(item)]
    return sorted(told, key=lambda item: (_ORDER.index(item.kind), bool(item.below), not item.is_visible))


def _told(item: ManifestItem) -> str | None:
    """What a suite can be drawn from: a description, or the first sentence that says what to do."""
    if item.kind in {ItemKind.SKILL, ItemKind.AGENT}:
        return task(item.description or "")
    return first_order(item.text or "")


def task(description: str) -> str | None:
    """The first sentence that says what something does, rather than when to use it; printable, and not too long."""
    words = printed(description[:MAX_TEXT])
    sentences = [found for match in _SENTENCE.finditer(words) if any(map(str.isalnum, found := match[0].strip()))]
    does = next((sentence for sentence in sentences if not _OCCASION.match(sentence)), None)
    said = does or (_OCCASION.sub("", sentences[0]) if sentences else "")
    return _cut(said or sentences[0]) if sentences else None


def first_order(text: str) -> str | None:
    """The first sentence of a Markdown text that tells somebody to do, or not to do, something."""
    sentences = list(_sentences(text))
    found = (said for orders in _ORDERS for said in sentences if orders.match(_LABEL.sub("", said, count=1)))
    return next(map(_cut, found), None)


def _sentences(text: str) -> Iterator[str]:
    for line in _FENCED.sub("", text[:MAX_TEXT]).splitlines():
        if not _PASSED_OVER.match(line):
            words = printed(_BULLET.sub("", line).replace("**", "").replace("__", ""))
            said = (match[0].strip() for match in _SENTENCE.finditer(words))
            # What ends with a colon goes on in a list or in code.
            yield from (each for each in said if len(each.split()) > 1 and not each.endswith(":"))


def _cut(words: str) -> str:
    return words if len(words) <= MAX_QUOTE else f"{words[: MAX_QUOTE - 4].rpartition(' ')[0] or words[:MAX_QUOTE]} ..."


def about(item: ManifestItem, folder: str = "") -> str:
    """The thing that a suite is about, in a few printable words, seen from the project's folder."""
    file = printed(seen_from(folder, item.file))
    return f"{WORDS[item.kind]} {file if item.kind in FOLLOWED else f'{printed(item.name)} ({file})'}"


def seen_from(folder: str, path: str) -> str:
    """A path from the top of the tree, as it is called in one of its folders."""
    return relpath(path, folder) if folder and path else path


def first_suite(item: ManifestItem | None, files: Sequence[str], folder: str = "") -> FirstSuite:
    """The suite about an item; the example where there is none, or where nothing that loads comes of it.

    Args:
        item: One of `subjects`.
        files: The project's tracked files, among which one to which a rule applies may be named.
        folder: The project's, from the top of the tree, from which all paths count; a session works there.
    """
    if item is not None:
        text = "".join(f"{line}\n" for line in _SuiteDraft(item, files, folder).lines())
        # The loader refuses, for example, what looks like a credential.
        if document.is_sound(text, SuiteConfig):
            return FirstSuite(slug(item), about(item, folder), text)
    return FirstSuite(EXAMPLE, None, templates.example_suite())


def slug(item: ManifestItem) -> str:
    """A name for the suite that is a good name of a file, too."""
    name = item.name.removesuffix(".md").rpartition("/")[2] if item.kind in FOLLOWED else item.name
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_SLUG].strip("-")
    return plain or {ItemKind.SKILL: "skill", ItemKind.AGENT: "agent", ItemKind.RULE: "rule"}.get(item.kind, "memory")


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in wrap(text, WIDTH - 2, break_on_hyphens=False))


_ALONE = "Choose yourself, and do not ask back."


class _SuiteDraft:
    """The text of a suite about an item."""

    def __init__(self, item: ManifestItem, files: Sequence[str], folder: str) -> None:
        self._item, self._files, self._folder = item, files, folder
        self._file = printed(seen_from(folder, item.file))
        self._name = printed(item.name)
        self._told = _told(item) or ""

    def lines(self) -> Iterator[str]:
        yield f"# yaml-language-server: $schema={schema.address('zelda.suite.schema.json')}"
        yield "#"
        yield from _comment(
            f"A first suite, drawn from {self._file}. Zelda knows of your project what stands there, and no more: "
            "make the prompt a task of yours, and the criteria what you would look at."
        )
        yield ""
        yield f"description: {scalar(self._description())}"
        yield ""
        yield from _comment(self._about_the_prompt())
        yield "prompt: |"
        yield from (f"  {line}" for text in self._prompt() for line in wrap(text, WIDTH - 2))
        yield ""
        yield from _comment("A judge answers PASS or FAIL to each, from the changes and the transcript: one fact each.")
        yield "acceptanceCriteria:"
        yield from (f"  - {scalar(criterion)}" for criterion in self._criteria())
        yield ""
        yield from _comment("This overrides zelda.config.yaml for this suite: a session that goes astray ends early.")
        yield "execution:"
        yield "  maxTurns: 25"
        yield "  maxCostUsd: 2"

    def _description(self) -> str:
        if self._item.kind in FOLLOWED:
            return f"Claude Code keeps to {self._file}."
        return f"{WORDS[self._item.kind].capitalize()} {self._name} is used, and does what its description says."

    def _about_the_prompt(self) -> str:
        what = "What you would type into Claude Code."
        if self._item.kind in FOLLOWED:
            return (
                f"{what} It does not repeat what the file says: whether Claude Code keeps to that unasked is what is "
                "tested."
            )
        if self._is_called_by_people():
            return f"{what} Only a person can call this skill, so the prompt calls it."
        return (
            f"{what} It does not name what it should use: whether Claude Code finds that out from the description is "
            "part of what is tested."
        )

    def _is_called_by_people(self) -> bool:
        return not self._item.is_visible and bool(re.fullmatch(r"[\w:-]+", self._item.name))

    def _prompt(self) -> Iterator[str]:
        if self._item.kind in FOLLOWED:
            where = self._place() or "in this project, where it fits"
            yield f"Add one small and useful function {where}, with all that belongs to it in this project. {_ALONE}"
        elif self._is_called_by_people():
            yield f"/{self._item.name} Do it once, in the smallest place of this project where it makes sense."
        else:
            below = seen_from(self._folder, self._item.below)
            where = f"the folder {below}" if _PLAIN_FILE.fullmatch(below) else "this project"
            yield f"Do what follows once, in the smallest place of {where} where it makes sense. {_ALONE}"
            yield f'What is wanted: "{self._told}"'
        yield DIRECTIONS

    def _place(self) -> str | None:
        """A file to which the rule applies, or the folder of a CLAUDE.md file."""
        item = self._item
        base = f"{item.below or item.base}/" if item.below or item.base else ""
        if not item.paths:
            below = seen_from(self._folder, item.below)
            return f"in the folder {below}" if item.below and _PLAIN_FILE.fullmatch(below) else None
        inside = (file for file in self._files if file.startswith(base))
        wanted = (file for file in inside if globs.matches(item.paths, file.removeprefix(base)))
        named = (seen_from(self._folder, file) for file in wanted)
        return next((f"in {name}" for name in named if _PLAIN_FILE.fullmatch(name)), None)

    def _criteria(self) -> Iterator[str]:
        match self._item.kind:
            case ItemKind.SKILL:
                yield f"The skill {self._name} was called before the first file was changed."
                yield f'What was done is what the description of the skill says: "{self._told}"'
            case ItemKind.AGENT:
                yield f"The sub-agent {self._name} was called."
                yield f'What was done is what the description of the sub-agent says: "{self._told}"'
            case _:
                yield f'All changes keep to this sentence of {self._file}: "{self._told}"'
        yield "Every changed file has to do with the task."
