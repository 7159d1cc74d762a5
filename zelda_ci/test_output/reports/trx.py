"""TRX, the report of Visual Studio's test platform and `dotnet test --logger trx`."""

from xml.etree.ElementTree import Element

from zelda_ci.test_output.reports.junit import Outcome

_KINDS = {
    "passed": "passed",
    "passedbutrunaborted": "passed",
    "warning": "passed",
    "completed": "passed",
    "failed": "failed",
    "error": "errored",
    "timeout": "errored",
    "aborted": "errored",
    "disconnected": "errored",
}


def read(root: Element) -> list[Outcome]:
    """Every result; those inside of a data-driven or ordered test count instead of it."""
    found: list[Outcome] = []
    for results in root.iter("Results"):
        for result in results:
            inner = [item for group in result.iter("InnerResults") for item in group]
            found.extend(_outcome(item) for item in (inner or [result]))
    return found


def _outcome(result: Element) -> Outcome:
    kind = _KINDS.get(str(result.get("outcome") or "").lower(), "skipped")
    return Outcome(str(result.get("testName") or ""), kind)
