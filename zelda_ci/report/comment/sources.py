"""What may have made a suite worse: tools that it no longer used, and files of the pull request that steer it."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from zelda_ci.domain.details import Citation
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.report.builders.anchors import cited_fragment
from zelda_ci.report.builders.phrases import TOOL, joined, line, listed, tool_words
from zelda_ci.report.builders.standings import SuiteStanding
from zelda_ci.report.model import Line, Phrase
from zelda_ci.report.text import visible
from zelda_ci.report.told import CiReport

MAX_FILES = 2
MAX_TOOLS = 2
MAX_PLACES = 2
MAX_PATH_LENGTH = 100


def tools(suite: SuiteStanding) -> Iterator[Line]:
    """Skills, sub-agents and MCP tools that were used before and are not now, or that the judge misses now."""
    if suite.compared is None:
        return
    delta = suite.compared.tools
    unused = [it.tool for it in delta.no_longer_used if TOOL.fullmatch(it.tool) or it.tool.startswith("mcp__")]
    missed = [it.tool for it in delta.newly_missed if it.tool not in unused]
    for words, names in (
        ("It no longer used {}.", unused),
        ("It did not use {}, although it should have.", missed),
    ):
        shown = [line(f"{kind} {{}}", Phrase(visible(name, 80), bold=True)) for kind, name in map(tool_words, names)]
        if shown:
            yield line(words, listed(shown, MAX_TOOLS, "tool"))


def steering(report: CiReport, suite: SuiteStanding) -> Iterator[Line]:
    """The files of the pull request that the suite may feel, those of a tool that it no longer used first."""
    files = []
    for change in steering_of(report, suite):
        path = visible(change.path, MAX_PATH_LENGTH)
        if change.is_gone:
            files.append(line("{} (removed)", Phrase(path, whole=True)))
        else:
            address = _address(report, change.path, f"#L{change.line}" if change.line else "")
            files.append((Phrase(f"{path}, line {change.line}" if change.line else path, url=address),))
    # On a laptop all that changed stands above.
    if files and report.tested:
        yield line("This pull request changes {}.", listed(files, MAX_FILES, "file"))


def steering_of(report: CiReport, suite: SuiteStanding) -> Sequence[SteeringChange]:
    """The same as data; the first is the likeliest."""
    delta = suite.compared.tools if suite.compared else None
    named = {tool_words(it.tool)[1] for it in (*delta.no_longer_used, *delta.newly_missed)} if delta else set()
    found = [change for change in report.changes.steering if change.concerns(suite.suite)]
    return sorted(found, key=lambda change: not named & {*change.path.removesuffix(".md").split("/")})


def citations(report: CiReport, suite: SuiteStanding, evidence: Sequence[Citation]) -> Line:
    """Where it can be looked up: a file that the session did not touch in the tested commit, all else in the report."""
    places = []
    for cited in evidence[:MAX_PLACES]:
        if cited.kind == "file" and cited.first_line and not _touched(suite, cited.path):
            last = f"-L{cited.last_line}" if cited.last_line > cited.first_line else ""
            url = _address(report, cited.path, f"#L{cited.first_line}{last}")
        else:
            fragment = cited_fragment(report, suite.suite, cited) if report.links.report else ""
            url = f"{report.links.report}{fragment}" if fragment else None
        places.append(Phrase(visible(cited.where, MAX_PATH_LENGTH), url=url))
    return line(" ({})", joined(places, ", ")) if places else ()


def _touched(suite: SuiteStanding, path: str) -> bool:
    """Whether a session may have written the file, so that the commit has another text of it, or none."""
    changes = [run.changes for run in suite.runs]
    return not changes or any(it is None or it.truncated or path in it.files for it in changes)


def _address(report: CiReport, path: str, lines: str) -> str | None:
    """Of a file as it was tested; what leads out of the commit's tree is no file of it."""
    files = report.links.files
    is_inside = not {"", ".", ".."} & set(path.split("/"))
    return f"{files}/{quote(path, errors='replace')}{lines}" if files and is_inside else None
