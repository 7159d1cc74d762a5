"""Markdown as GitHub would show it, taken apart: what is a tag, a link, a mention, a cell."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from markdown_it import MarkdownIt

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

ACTS = re.compile(
    r"@\w|(?<!\w)#\d|\bGH-\d|\b[a-z]+://|\bwww\.|\bmailto:|(?<![\w-])[0-9a-f]{7,40}(?![\w-])|:[a-z0-9_+-]+:",
    re.IGNORECASE,
)
"""What GitHub turns into links, notifications and pictures after Markdown has been rendered."""

VOID = {"br", "hr", "img"}


@dataclass
class Page(HTMLParser):
    """What a reader's browser gets."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """Outside of code and links."""
    shown: list[str] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        self.shown.append(data)
        if not {"code", "pre", "a"} & {*self.open}:
            self.texts.append(data)

    def handle_comment(self, data):
        self.tags.append(("!--", {}))

    def handle_decl(self, decl):
        self.tags.append(("!", {}))

    def handle_pi(self, data):
        self.tags.append(("?", {}))


def page(markdown: str) -> Page:
    """The parsed page."""
    made = Page()
    made.feed(MARKDOWN.render(markdown))
    made.close()
    made.unbalanced += made.open
    return made


def widths(markdown: str) -> list[set[int]]:
    """Of each table, the numbers of cells that its lines have: one number where the table is whole."""
    found: list[set[int]] = []
    inside = False
    for line in markdown.splitlines():
        if line.startswith("|"):
            if not inside:
                found.append(set())
            found[-1].add(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) - 1)
        inside = line.startswith("|")
    return found
