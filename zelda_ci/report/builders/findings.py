"""What a pass hides: rules that were broken and tools that were missed, in runs that are green all the same."""

from collections import Counter
from collections.abc import Iterator, Sequence

from zelda_ci.domain.details import RuleVerdict, ToolUsageDetails
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.builders.phrases import tool_words
from zelda_ci.report.text import visible

MAX_FINDINGS = 3
MAX_NAME_LENGTH = 80


def hidden_findings(runs: Sequence[RunResult]) -> str:
    """Like `broke CLAUDE.md, line 4, and missed the skill changelog`, of those that pass; empty where there is none."""
    green = [run for run in runs if run_outcome(run) <= Outcome.PASSED]
    counted = Counter(finding for run in green for finding in dict.fromkeys(_findings(run)))
    several = len(green) > 1
    parts = [f"{words} in {count} of {len(green)}" if several else words for words, count in counted.most_common()]
    if len(parts) > MAX_FINDINGS:
        parts[MAX_FINDINGS:] = [f"{len(parts) - MAX_FINDINGS} more"]
    *first, last = parts or [""]
    comma = "," if len(first) > 1 or any("," in part for part in first) else ""
    return f"{', '.join(first)}{comma} and {last}" if first else last


def _findings(run: RunResult) -> Iterator[str]:
    details = run.details(ToolUsageDetails)
    if details is None or details.judge is None:
        return
    for rule in details.rules:
        if rule.verdict is RuleVerdict.BROKEN:
            # The line that the judge cites of its file.
            lines = (it.first_line for it in rule.evidence if it.kind == "file" and it.path == rule.rule)
            line = next(filter(None, lines), None)
            yield f"broke {visible(rule.rule, MAX_NAME_LENGTH)}{f', line {line}' if line else ''}"
    for verb, remarks in (
        ("missed", details.missed),
        ("misused", details.misused),
        ("did not do as it is told by", details.instructions_ignored),
    ):
        named = (tool_words(remark.tool) for remark in remarks)
        yield from (f"{verb} {kind} {visible(name, MAX_NAME_LENGTH)}" for kind, name in named)
