"""What an HTML report is made of, read without a browser."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

SCRIPT = re.compile(r"<style>.*?</style>|<script type=\"module\">.*?</script>", re.DOTALL)


@dataclass
class PageStructure(HTMLParser):
    """Elements and their attributes."""

    tags: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    __hash__ = object.__hash__

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name == "src":
                self.images.append(value or "")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def content(file: Path) -> str:
    """The HTML without style and script."""
    return SCRIPT.sub("", file.read_text("utf-8"))


def structure(html: str) -> PageStructure:
    """Of HTML."""
    parser = PageStructure()
    parser.feed(html)
    parser.close()
    return parser
