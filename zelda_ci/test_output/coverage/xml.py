"""Cobertura, JaCoCo and Clover."""

from xml.etree.ElementTree import Element

from zelda_ci.test_output.coverage.measure import Coverage, Share, percent


def cobertura(root: Element) -> Coverage | None:
    """By the numbers of lines where they are given, else by the rate."""
    if root.tag != "coverage" or root.get("line-rate") is None:
        return None
    lines = _counted(root, "lines") or _rate(root, "line-rate")
    branches = _counted(root, "branches") if root.get("branches-valid") else _rate(root, "branch-rate")
    return Coverage("Cobertura XML", lines, branches) if lines else None


def _counted(root: Element, what: str) -> Share | None:
    covered, valid = _number(root, f"{what}-covered"), _number(root, f"{what}-valid")
    return None if covered is None or valid is None else Share.of(covered, valid)


def _rate(root: Element, name: str) -> Share | None:
    try:
        return percent(str(100 * float(root.get(name) or "nan")))
    except ValueError:
        return None


def jacoco(root: Element) -> Coverage | None:
    """By the counters of the whole report."""
    if root.tag != "report":
        return None
    found = {counter.get("type"): counter for counter in root.findall("counter")}
    lines, branches = (_jacoco_share(found.get(kind)) for kind in ("LINE", "BRANCH"))
    return Coverage("JaCoCo XML", lines, branches) if lines else None


def _jacoco_share(counter: Element | None) -> Share | None:
    if counter is None:
        return None
    missed, covered = _number(counter, "missed"), _number(counter, "covered")
    return None if missed is None or covered is None else Share.of(covered, missed + covered)


def clover(root: Element) -> Coverage | None:
    """Statements, which is what Clover counts for lines."""
    metrics = root.find("project/metrics")
    if root.tag != "coverage" or metrics is None:
        return None
    lines = _clover_share(metrics, "coveredstatements", "statements")
    branches = _clover_share(metrics, "coveredconditionals", "conditionals")
    return Coverage("Clover XML", lines, branches) if lines else None


def _clover_share(metrics: Element, covered: str, valid: str) -> Share | None:
    numbers = _number(metrics, covered), _number(metrics, valid)
    return None if numbers[0] is None or numbers[1] is None else Share.of(numbers[0], numbers[1])


def _number(element: Element, name: str) -> int | None:
    text = element.get(name) or ""
    return int(text) if text.isdecimal() and len(text) < 12 else None
