"""XML from a tested project: parsed only when nothing in it could make parsing dear or reach outside."""

from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser
from xml.parsers import expat

DEEPEST = 100
"""Elements inside of each other; reports need about ten, a parser's stack bears thousands."""


MOST_ELEMENTS = 1_000_000
"""Of a document; each costs a hundred times its bytes."""


class RefusedXmlError(ValueError):
    """A document that is not read: not well-formed, with entities, nested too deep, or endless."""


def check(raw: bytes) -> None:
    """Refuse entities, absurd depth and what is not XML, before any tree is built.

    Raises:
        RefusedXmlError: The document should not be parsed.
    """
    parser = expat.ParserCreate()
    _watch(parser)
    try:
        parser.Parse(raw, True)  # noqa: FBT003 - expat's own signature
    except RefusedXmlError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as problem:
        raise RefusedXmlError(f"it is not well-formed XML ({problem})") from problem


def _watch(parser: expat.XMLParserType) -> None:
    depth = count = 0

    def declare(_name: str, _system: str | None, _public: str | None, internal: int) -> None:
        # A reference to a DTD elsewhere is harmless, for nothing is ever fetched: JaCoCo and Cobertura write one.
        if internal:
            raise RefusedXmlError("it declares a document type of its own")

    def refuse(*_: object) -> None:
        raise RefusedXmlError("it declares entities")

    def enter(*_: object) -> None:
        nonlocal depth, count
        depth += 1
        count += 1
        if depth > DEEPEST:
            raise RefusedXmlError("it is nested too deep")
        if count > MOST_ELEMENTS:
            raise RefusedXmlError("it has too many elements")

    def leave(*_: object) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = declare
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = enter
    parser.EndElementHandler = leave


def parse(raw: bytes) -> Element:
    """The root of a checked document, with namespaces cut off the names.

    Raises:
        RefusedXmlError: The document should not be parsed, or cannot be.
    """
    check(raw)
    parser = XMLParser(target=TreeBuilder())  # noqa: S314 - check() refused what makes it unsafe
    try:
        parser.feed(raw)
        root: Element = parser.close()
    except (ParseError, LookupError, ValueError) as problem:
        raise RefusedXmlError(f"it is not well-formed XML ({problem})") from problem
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root
