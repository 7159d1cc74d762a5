"""What may have made a suite worse: tools that it no longer used, and files of the pull request that steer it."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from zelda_ci.domain.comparison import ToolChange
from zelda_ci.domain.details import Citation
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.report.builders.anchors import cited_fragment
from zelda_ci.report.builders.phrases import joined, line, listed
from zelda_ci.report.builders.standings import SuiteStanding
from zelda_ci.report.model import Line, Phrase
from zelda_ci.report.text import visible
from zelda_ci.report.told import CiReport

MAX_FILES = 2
MAX_TOOLS = 2
MAX_PLACES = 2
MAX_PATH_LENGTH = 100
_TOOL = re.compile(r"(Skill|Agent)\((.+)\)", re.DOTALL)
_KINDS = {"Skill": "the skill ", "Agent": "the sub-agent "}


def tools(suite: SuiteStanding) -> Iterator[Line]:
    """Skills, sub-agents and MCP tools that were used before and are not now, or that the judge misses now."""
    if suite.compared is None:
        return
    delta = suite.compared.tools
    unused = [change for change in delta.no_longer_used if _steers(change)]
    known = {change.tool for change in unused}
    missed = [change for change in delta.newly_missed if change.tool not in known]
    if unused:
        yield line("It no longer used {}.", _tools(unused))
    if missed:
        yield line("It did not use {}, although it should have.", _tools(missed))


def steering(report: CiReport, suite: SuiteStanding) -> Iterator[Line]:
    """The files of the pull request that the suite may feel, those of a tool that it no longer used first."""
    changes = steering_of(report, suite) if report.tested else ()
    if not changes:  # or on a laptop, where all that changed stands above
        return
    yield line("This pull request changes {}.", listed([_file(report, it) for it in changes], MAX_FILES, "file"))


def steering_of(report: CiReport, suite: SuiteStanding) -> Sequence[SteeringChange]:
    """The same as data; the first is the likeliest."""
    delta = suite.compared.tools if suite.compared else None
    named = {_name(change) for change in (*delta.no_longer_used, *delta.newly_missed)} if delta else set()
    found = [change for change in report.changes.steering if change.concerns(suite.suite)]
    return sorted(found, key=lambda change: not named & {*change.path.removesuffix(".md").split("/")})


def citations(report: CiReport, suite: SuiteStanding, evidence: Sequence[Citation]) -> Line:
    """Where it can be looked up: a file that the session did not touch in the tested commit, all else in the report."""
    places = [_cited(report, suite, cited) for cited in evidence[:MAX_PLACES]]
    return line(" ({})", joined(places, ", ")) if places else ()


def _cited(report: CiReport, suite: SuiteStanding, cited: Citation) -> Phrase:
    where = visible(cited.where, MAX_PATH_LENGTH)
    if cited.kind != "file" or not cited.first_line or _touched(suite, cited.path):
        fragment = cited_fragment(report, suite.suite, cited) if report.links.report else ""
        return Phrase(where, url=f"{report.links.report}{fragment}" if fragment else None)
    lines = f"#L{cited.first_line}" + (f"-L{cited.last_line}" if cited.last_line else "")
    return Phrase(where, url=_address(report, cited.path, lines))


def _touched(suite: SuiteStanding, path: str) -> bool:
    """Whether a session may have written the file, so that the commit has another text of it, or none."""
    runs = suite.ran.runs if suite.ran else ()
    changes = [run.changes for run in runs]
    known = all(it is not None and not it.truncated for it in changes)
    return not runs or not known or any(path in it.files for it in changes if it is not None)


def _address(report: CiReport, path: str, lines: str = "") -> str | None:
    """Of a file as it was tested; what leads out of the commit's tree is no file of it."""
    files = report.links.files
    is_inside = not {"", ".", ".."} & set(path.split("/"))
    return f"{files}/{quote(path, errors='replace')}{lines}" if files and is_inside else None


def _file(report: CiReport, change: SteeringChange) -> Line:
    path = visible(change.path, MAX_PATH_LENGTH)
    if change.is_gone:
        return line("{} (removed)", Phrase(path, whole=True))
    place = f"{path}, line {change.line}" if change.line else path
    lines = f"#L{change.line}" if change.line else ""
    return (Phrase(place, url=_address(report, change.path, lines)),)


def _steers(change: ToolChange) -> bool:
    return bool(_TOOL.fullmatch(change.tool)) or change.tool.startswith("mcp__")


def _name(change: ToolChange) -> str:
    found = _TOOL.fullmatch(change.tool)
    return found[2] if found else change.tool


def _tools(changes: Sequence[ToolChange]) -> Line:
    return listed([_tool(change) for change in changes], MAX_TOOLS, "tool")


def _tool(change: ToolChange) -> Line:
    found = _TOOL.fullmatch(change.tool)
    kind = _KINDS[found[1]] if found else "the tool "
    return line(f"{kind}{{}}", Phrase(visible(_name(change), 80), bold=True))
