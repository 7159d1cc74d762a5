"""What the verdict rests on: what was compared with what, on which platform, and what it cost."""

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import BaselineOrigin
from zelda_ci.domain.comparison import Comparison, SuiteComparison
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.session import Usage
from zelda_ci.domain.workspace import IsolationReport
from zelda_ci.report.builders.arms import spent
from zelda_ci.report.builders.comparison import certainty
from zelda_ci.report.builders.phrases import age_words, joined, line, pool_words
from zelda_ci.report.builders.usage import cost, used
from zelda_ci.report.model import Cell, Details, Line, Phrase, Row, Section, Tone
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.told import CiReport

HASH = 7
DAY = 86_400


def basis(report: CiReport) -> Iterator[Line]:
    """One paragraph below the table."""
    sentences: list[Line] = []
    if report.comparison and not report.is_cut_short:
        if any(map(_trials_of_base, report.comparison.suites)):
            sentences.append(_against(report.baseline, report.batch.started_at))
        sentences.append(line("{}.", _sessions(report, report.comparison)))
    if report.batch.runs or report.batch.base_runs:
        sentences.append(line(f"{_money(report.batch)}."))
    if sentences:
        yield joined(sentences, " ")


def footer(report: CiReport) -> Line:
    """The commit that a reviewer knows, and where everything is."""
    links = report.links
    head = report.head or report.tested or next((run.source.commit for run in report.batch.runs if run.source), None)
    commit = Phrase(visible(head, 80)[:HASH], whole=True, url=links.commit) if head else None
    places = (
        ("report", links.report),
        ("transcripts and patches", links.transcripts),
        ("results", links.artifact),
        ("workflow run", links.run),
    )
    found = [line("Tested {}", commit)] if commit else []
    return joined([*found, *(Phrase(words, url=url) for words, url in places if url)], " \u00b7 ")


def commit_name(branch: str | None, commit: str | None) -> str:
    """`main@abc1234`."""
    short = visible(commit, 80)[:HASH] if commit else ""
    return "@".join(part for part in (visible(branch, 100) if branch else "", short) if part)


def _against(origin: BaselineOrigin, now: datetime) -> Line:
    name = commit_name(origin.branch, origin.commit)
    facts = ", ".join(_age(origin, now))
    with_what = Phrase(name, whole=True) if name else "the results that the workflow names"
    return line("Compared with {}{}.", with_what, f" ({facts})" if facts else "")


def _age(origin: BaselineOrigin, now: datetime) -> Iterator[str]:
    if origin.stands_for:
        yield f"{visible(origin.stands_for, 100)} has stored no results"
    if origin.workflow:
        yield f"stored by {visible(origin.workflow, 200).rpartition('/')[2]}"
    if origin.behind:
        yield f"{numbers.format_count(origin.behind, 'commit')} behind"
    if origin.created_at and (now - origin.created_at).total_seconds() > DAY:
        yield age_words(now - origin.created_at)


def _sessions(report: CiReport, comparison: Comparison) -> str:
    """How many on each side, and what so few can say; of a base without any, why there are none."""
    here = [suite.candidate.valid for suite in comparison.suites if suite.candidate and suite.candidate.valid]
    if not here:
        return "No session could be counted"
    beside = any(suite.sources and suite.sources.base for suite in comparison.suites)
    base = [trials for suite in comparison.suites if (trials := _trials_of_base(suite))]
    whose = visible(report.baseline.branch or "the base", 80)
    if base:
        there = f", {_range(base)} {'of the base side by side' if beside else 'there'}"
    elif report.gate.uncounted or report.is_red:
        there = f"; no session of {whose} stands beside them"
    else:
        stored = [suite.sources.stored for suite in comparison.suites if suite.sources and suite.sources.stored]
        by = f" by {_range(stored)} stored {'one' if max(stored) == 1 else 'ones'}" if stored else ""
        there = f", all as expected{by}; {whose} was not needed"
    single = ": cost, turns and time differ between any two" * comparison.single_trial
    return f"{_span(here)} per suite here{there}{single}"


def _trials_of_base(suite: SuiteComparison) -> int:
    """Those that the verdict on a suite rests on; stored ones only said what to expect of the head's first."""
    if suite.sources:
        return suite.sources.base
    return suite.baseline.valid if suite.baseline else 0


def _money(batch: BatchResult) -> str:
    """Of all sessions and judges, those of the base too."""
    runs = (*batch.runs, *batch.base_runs)
    if all(run.replayed for run in runs):
        return "The sessions were replayed, and nothing was spent"
    return f"This run cost {spent(batch)}{' with the judge' * any(run.judge for run in runs)}"


MAX_NAMES = 5


def about_details(report: CiReport) -> Details:
    """Everything that a sceptic asks."""
    rows = [*_tested(report), *_about_baseline(report), *_trials(report)]
    if report.comparison:
        rows += certainty(report.comparison)
    rows += [*_cost(report.batch), *_isolation(report.batch), *_made_with(report.batch)]
    title = "About this run and its baseline" if report.comparison else "About this run"
    return Details(title, (Section("", tuple(rows)),))


def _tested(report: CiReport) -> Iterator[Row]:
    """Of a pull request, what was really checked out."""
    if report.head and report.tested:
        head, merge = (Cell(visible(commit, 80)[:HASH], whole=True) for commit in (report.head, report.tested))
        yield Row("Tested", (merge, Cell("merges"), head))


def _about_baseline(report: CiReport) -> Iterator[Row]:
    origin = report.baseline
    cells = []
    if name := commit_name(origin.branch, origin.commit):
        cells.append(Cell(name, whole=True))
    cells += _when(origin, report)
    cells += [Cell(pool_words(origin.pool, report.batch.started_at))] if origin.pool else []
    # Where a comparison is there, the facts say it all.
    explanation = () if report.comparison and cells else (Cell(sentence(origin.sentence)),)
    yield Row("Baseline", (*cells, *explanation))


def _when(origin: BaselineOrigin, report: CiReport) -> Iterator[Cell]:
    if origin.created_at:
        stamp = f"{origin.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        yield Cell(f"of {stamp}, {age_words(report.batch.started_at - origin.created_at)}")
    if origin.behind is not None and origin.wanted:
        base_commit = commit_name(None, origin.wanted)
        which = f"{numbers.format_count(origin.behind, 'commit')} behind"
        yield Cell(f"{which} {base_commit}, on which this is based" if origin.behind else "on which this is based")


def _trials(report: CiReport) -> Iterator[Row]:
    suites = Counter(run.suite for run in report.batch.runs)
    if suites:
        current = _span(suites.values())
        stored = (
            [suite.baseline.valid for suite in report.comparison.suites if suite.baseline] if report.comparison else []
        )
        cells = [Cell(f"{current} per suite")]
        if stored:
            cells.append(Cell(f"{_span(stored)} in the baseline"))
        yield Row("Sessions", tuple(cells))


def _span(sizes: Collection[int]) -> str:
    return numbers.format_count(max(sizes), "session") if len(set(sizes)) == 1 else f"{_range(sizes)} sessions"


def _range(sizes: Collection[int]) -> str:
    least, most = min(sizes), max(sizes)
    return numbers.whole(most) if least == most else f"{numbers.whole(least)} to {numbers.whole(most)}"


def _cost(batch: BatchResult) -> Iterator[Row]:
    runs = (*batch.runs, *batch.base_runs)
    uses = [use for run in runs if (use := used(run))]
    judges = [run.judge for run in runs if run.judge]
    cells = []
    if uses:
        counted, is_known = sum(run.api.cost_usd for run in runs), all(use.cost_known for use in uses)
        cells.append(Cell(f"sessions {numbers.money(counted, exact=is_known)}"))
    if judges:
        cells.append(Cell(f"judge {cost(judges)}"))
    if uses:
        cells.append(Cell(f"{numbers.whole(sum((use.usage for use in uses), Usage()).total)} tokens"))
    cells.append(Cell(numbers.duration((batch.finished_at - batch.started_at).total_seconds())))
    yield Row("Cost of this run", tuple(cells))


def _isolation(batch: BatchResult) -> Iterator[Row]:
    """How sessions and commands were confined, and what stood out; results of older versions do not say it."""
    reports = [report_of_run for run in batch.runs if (report_of_run := run.isolation) is not None]
    if reports:
        levels = Counter(str(report_of_run.level) for report_of_run in reports)
        cells = tuple(Cell(f"{visible(level)} ({numbers.format_count(runs, 'run')})") for level, runs in levels.items())
        remarks = dict.fromkeys(remark for report_of_run in reports for remark in _remarkable(report_of_run))
        yield Row("Isolation", cells, tuple(Cell(remark, Tone.WARN) for remark in list(remarks)[:MAX_NAMES]))


def _remarkable(report: IsolationReport) -> Iterator[str]:
    for setting in report.findings:
        yield f"{visible(setting.file)}: {sentence(setting.effect)}"
    if report.protected:
        names = ", ".join(visible(name) for name in report.protected[:MAX_NAMES])
        yield f"the session changed protected files, and build and tests saw them as committed: {names}"
    if report.ignored.kept:
        names = ", ".join(visible(name) for name in report.ignored.kept[:MAX_NAMES])
        yield f"build and tests saw files that git ignores as the session left them: {names}"


def _made_with(batch: BatchResult) -> Iterator[Row]:
    models = sorted({model for run in batch.runs for model in run.models})
    if models:
        yield Row("Models", tuple(Cell(visible(name)) for name in models[:MAX_NAMES]))
    if any(run.replayed for run in batch.runs):
        yield Row("Replayed", (Cell("the model's words came from a cassette", Tone.WARN),))
    versions = {f"Zelda {run.versions.zelda}, Claude Code {run.versions.cli or 'unknown'}" for run in batch.runs}
    if versions:
        yield Row("Versions", tuple(Cell(visible(version)) for version in sorted(versions)[:MAX_NAMES]))
