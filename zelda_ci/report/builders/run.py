"""One run in words: how it ended and what to do where it has a problem, and in rows all that is known of it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from zelda_ci.domain import numbers
from zelda_ci.domain.details import (
    Citation,
    CommandResult,
    CorrectnessDetails,
    CriterionJudgement,
    CriterionVerdict,
    EfficiencyDetails,
    FulfillmentDetails,
    RuleJudgement,
    RuleVerdict,
    TestSummary,
    ToolRemark,
    ToolUsageDetails,
)
from zelda_ci.domain.kinds import KINDS
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.measures import METRICS, Metric, own_measure
from zelda_ci.domain.outcome import Outcome, correctness_outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import ApiUsage, SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import IsolationReport
from zelda_ci.errors import explanations
from zelda_ci.report.builders.phrases import measured_words, tool_words
from zelda_ci.report.model import ENDINGS, OUTCOMES, Cell, Problem, Row, RunFiles, Section, Tone, first
from zelda_ci.report.text import sentence, visible, written

MAX_REASON_LENGTH = 400
MAX_TEXT_LENGTH = 300
MAX_NAME_LENGTH = 80
MAX_FINDINGS = 3
MAX_LISTED = 10
MAX_LINES = 12
STEERING = ("Skill(", "Agent(", "mcp__")
VERDICTS = {
    CriterionVerdict.PASS: Cell("PASS", Tone.GOOD),
    CriterionVerdict.FAIL: Cell("FAIL", Tone.BAD),
    CriterionVerdict.UNDECIDED: Cell("undecided", Tone.BAD),
    CriterionVerdict.NOT_JUDGED: Cell("not judged", Tone.BAD),
}

Used = EfficiencyDetails | ApiUsage

# Where a judge's answer would be the same again: a stored session is judged by the settings that it had.
ALIKE_AGAIN = {"JUDGE_ANSWER_CUT", "JUDGE_CONTEXT_TOO_SMALL", "JUDGE_PROMPT_TOO_LONG", "JUDGE_REFUSED"}


def used(run: RunResult) -> Used | None:
    """What the session used, as its metric or else the model proxy counted it; absent where it reached no model."""
    return run.details(EfficiencyDetails) or (run.api if run.api.requests else None)


def spent(runs: Iterable[RunResult]) -> list[Used]:
    """What sessions and judges used."""
    return [use for run in runs for use in (used(run), run.judge) if use]


def cost(uses: Sequence[Used]) -> str:
    """Cost of several together; empty where there are none."""
    total, is_known = sum(use.cost_usd for use in uses), all(use.cost_known for use in uses)
    return numbers.money(total, exact=is_known) if uses else ""


def wall_seconds(run: RunResult | BatchResult) -> float:
    """From the start of a run or of several to the result."""
    return (run.finished_at - run.started_at).total_seconds()


def run_facts(run: RunResult) -> tuple[Cell, ...]:
    """How it ended, and the three numbers that everybody asks for."""
    outcome, words = run_outcome(run), ENDINGS[run.status]
    if outcome is Outcome.MEASURED:
        words = f"completed, {measured_words([run])}"
    elif run.status is SessionStatus.COMPLETED and outcome is Outcome.INCOMPLETE:
        words = "completed, but not evaluated completely"
    elif run.status is SessionStatus.COMPLETED and outcome is Outcome.FAILED:
        details = run.details(CorrectnessDetails)
        of_criteria = failed_criteria(run) and (details is None or details.passed)
        words = f"completed, but {'criteria failed' if of_criteria else command_ending(details)}"
    ending = Cell(words, Tone.NEUTRAL if outcome <= Outcome.PASSED else OUTCOMES[outcome].tone)
    if found := hidden_findings([run]):
        ending = Cell(f"passes, but {found}" if outcome is Outcome.PASSED else f"{words}; {found}", Tone.WARN)
    counted = run.details(EfficiencyDetails)
    turns = numbers.format_count(counted.turns, "turn") if counted else ""
    facts = (turns, cost(spent([run])), numbers.duration(wall_seconds(run)), "replayed" * run.replayed)
    return (ending, *(Cell(fact, Tone.DIM) for fact in facts if fact))


def run_sections(run: RunResult) -> tuple[Section, ...]:
    """Everything that is known of a run, but for its files."""
    sections = {
        "Scores": _score_rows(run),
        criteria_title(run.config): _criterion_rows(run),
        "Correctness": correctness_rows(run),
        "Tool usage": _tool_usage_rows(run),
        "Session": _session_rows(run),
    }
    return tuple(Section(title, tuple(rows)) for title, of_it in sections.items() if (rows := [*of_it]))


def file_rows(run: RunResult, files: RunFiles) -> Iterator[Row]:
    """The paths to copy; of the commands' output only that of the steps that failed."""
    details = run.details(CorrectnessDetails)
    paths = {"Result": files.result, "Transcript": files.transcript, "Patch": files.patch}
    steps = {
        "Setup log": (files.setup_log, run.setup),
        "Build log": (files.build_log, details and details.build),
        "Test log": (files.test_log, details and details.test),
    }
    paths |= {name: log for name, (log, command) in steps.items() if command and command.exit_code != 0}
    return (Row(name, (Cell(path, Tone.DIM, whole=True),)) for name, path in paths.items() if path)


def _score_rows(run: RunResult) -> Iterator[Row]:
    """The metrics that were evaluated, in the order of `Metric`."""
    for result in (run.evaluations[metric] for metric in Metric if metric in run.evaluations):
        spec, points = own_measure(result.metric), result.score
        score = Cell("unscored", Tone.BAD if result.failed else Tone.DIM)
        if (number := spec.number(result)) is not None:
            tone = Tone.NEUTRAL
            if points is not None:
                tone = Tone.GOOD if points >= 80 else Tone.WARN if points >= 50 else Tone.BAD
            score = Cell(written(spec.unit.write, number), tone)
        note = Cell(sentence(result.reasoning, 200), Tone.DIM)
        yield Row(spec.heading, (score, note) if note.text else (score,))


# --- the session ------------------------------------------------------------------------------------------------


def _session_rows(run: RunResult) -> Iterator[Row]:
    """What is known of the session and of what Zelda did around it."""
    use, judge, changes = used(run), run.judge, run.changes
    if run.setup:
        yield Row("Setup", (*[Cell("done", Tone.GOOD)] * (run.setup.exit_code == 0), *command_cells(run.setup)))
    if use:
        yield from _use_rows(run, use)
    if judge:
        calls, tokens = numbers.format_count(judge.requests, "call"), f"{numbers.whole(judge.usage.total)} tokens"
        facts = (Cell(fact, Tone.DIM) for fact in (calls, tokens, ", ".join(judge.models) or "no answer"))
        notices = tuple(Cell(sentence(notice), Tone.WARN) for notice in judge.notices)
        yield Row("Judge cost", (Cell(cost([judge])), *facts), notices)
    if changes and changes.files:
        count = Cell(numbers.format_count(len(changes.files), "file"))
        added = Cell(f"+{numbers.whole(changes.insertions)}", Tone.GOOD)
        removed = Cell(f"-{numbers.whole(changes.deletions)}", Tone.BAD)
        cut = [Cell("the patch was too large and is cut", Tone.WARN)] * changes.truncated
        names = first([*map(Cell, sorted(changes.files))], MAX_LISTED)
        yield Row("Changes", (count, added, removed, *cut), names)
    elif changes and use:
        yield Row("Changes", (Cell("none: the session changed no file", Tone.WARN),))
    if run.isolation:
        yield from _isolation(run.isolation)


def _use_rows(run: RunResult, use: Used) -> Iterator[Row]:
    """Tokens, cost, turns, time, models, tools and errors, as far as they are known."""
    targets, tokens = run.config.efficiency_targets, use.usage
    details = use if isinstance(use, EfficiencyDetails) else None
    counts = (tokens.input_tokens, tokens.output_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens)
    kinds = zip(counts, ("in", "out", "cache read", "cache write"), strict=True)
    split = (Cell(f"{numbers.whole(count)} {kind}", Tone.DIM) for count, kind in kinds if count)
    total = Cell(numbers.whole(tokens.total))
    yield Row("Tokens", (total, *split, *_target(tokens.total, targets.tokens, numbers.whole)))
    guessed = [Cell("no list price known", Tone.WARN)] * (not use.cost_known)
    yield Row("Session cost", (Cell(cost([use])), *guessed, *_target(use.cost_usd, targets.cost_usd, numbers.money)))
    time = [Cell(f"{numbers.duration(use.api_seconds)} in the API", Tone.DIM)]
    if waited := run.api.wait_seconds:
        time.append(Cell(f"waited for the API's rate limit: {numbers.duration(waited)}", Tone.WARN))
    if details:
        turns = [Cell(f"{numbers.whole(details.turns)} of {numbers.whole(run.config.execution.max_turns)}")]
        if details.subagent_turns:
            turns.append(Cell(f"{numbers.whole(details.subagent_turns)} more in sub-agents", Tone.DIM))
        yield Row("Turns", (*turns, *_target(details.turns, targets.turns, numbers.whole)))
        seconds = details.wall_seconds
        time = [Cell(numbers.duration(seconds)), *time, *_target(seconds, targets.duration_seconds, numbers.duration)]
    yield Row("Session time", tuple(time))
    if len(use.models) > 1:
        models = (f"{name} {numbers.money(model.cost_usd)}" for name, model in use.models.items())
        yield Row("Models", tuple(map(Cell, models)))
    else:
        yield Row("Model", tuple(map(Cell, use.models)))
    if details:
        ranked = sorted(details.tool_calls.items(), key=lambda item: (-item[1], item[0]))
        tools = [Cell(f"{name} {numbers.whole(times)}", Tone.DIM) for name, times in ranked]
        calls = numbers.format_count(sum(details.tool_calls.values()), "call")
        yield Row("Tools", (Cell(calls), *first(tools, 20)))
    troubles = (
        (details.tool_errors if details else 0, "failed tool call", None),
        (details.denied_calls if details else 0, "denied call", None),
        (details.api_retries if details else run.api.retries, "API retry", "API retries"),
        (sum(run.api.errors.values()), "API error", None),
        (run.api.lost_agents, "sub-agent that the API failed", "sub-agents that the API failed"),
    )
    errors = tuple(Cell(numbers.format_count(*counted), Tone.WARN) for counted in troubles if counted[0])
    yield Row("Errors", errors or (Cell("none", Tone.DIM),))


def _target(value: float, target: float | None, write: Callable[[float], str]) -> Iterator[Cell]:
    if target is not None:
        met = value <= target
        yield Cell(f"target {write(target)} {'met' if met else 'missed'}", Tone.GOOD if met else Tone.WARN)


def _isolation(report: IsolationReport) -> Iterator[Row]:
    """Level and network with the reasons; then only what there is to tell."""
    phases = ("setup", "session", "build", "test")
    closed = [phase for phase in phases if getattr(report.network, phase) == "none"]
    network = f"no network for {', '.join(closed)}" if closed and report.level != "none" else "network open"
    reasons = tuple(Cell(sentence(reason), Tone.DIM) for reason in report.reasons)
    level = Cell(report.level, {"full": Tone.GOOD, "none": Tone.BAD}.get(report.level, Tone.WARN))
    yield Row("Isolation", (level, Cell(network, Tone.DIM)), reasons)
    # What a key of Zelda's own lets in is in force.
    let_in = [it for it in report.findings if it.setting.startswith("isolation.")]
    overruled = [f"{it.setting} ({it.file})" for it in report.findings if it not in let_in]
    settings = numbers.format_count(len(overruled), "setting")
    protected = numbers.format_count(len(report.protected), "protected file")
    ignored, more = [f"{change.kind}: {change.path}" for change in report.ignored.changes], report.ignored.more
    changed = f"the session changed {numbers.format_count(len(ignored) + more, 'file')} that git ignores"
    for label, tone, summary, names, unlisted in (
        ("Let in", Tone.WARN, sentence(let_in[0].effect) if let_in else "", [it.file for it in let_in], 0),
        ("Overruled", Tone.WARN, f"{settings} of the project did not take effect", overruled, 0),
        ("Protected", Tone.WARN, f"{protected} changed by the session, and restored", report.protected, 0),
        ("Ignored", Tone.DIM, f"{changed}; build and tests ran without these changes", ignored, more),
        ("Kept", Tone.DIM, "files that git ignores, as the session left them", report.ignored.kept, 0),
    ):
        if names:
            lines = first([Cell(name, Tone.DIM) for name in names], MAX_LISTED, unlisted=unlisted)
            yield Row(label, (Cell(summary, tone),), lines)


# --- what the judges said, with the places where it can be checked ----------------------------------------------


def criteria_title(suite: ResolvedSuite) -> str:
    if not suite.checks:
        return "Acceptance criteria"
    return "Criteria and checks" if suite.criteria else "Checks"


def criterion_verdict(run: RunResult, judgement: CriterionJudgement) -> Cell:
    """A judge's verdict on a criterion, as it counts in the run."""
    if run.config.undecided == "ignore" and judgement.verdict is CriterionVerdict.UNDECIDED:
        return Cell("undecided, ignored", Tone.WARN)
    return VERDICTS[judgement.verdict]


def _criterion_rows(run: RunResult) -> Iterator[Row]:
    details = run.details(FulfillmentDetails)
    if details and details.criteria:
        for number, judgement in enumerate(details.criteria, start=1):
            votes = [Cell(_votes(judgement.split), Tone.WARN)] if judgement.split else []
            yield _criterion(str(number), judgement, criterion_verdict(run, judgement), *votes)
        yield from (Row("", (Cell(sentence(note), Tone.WARN),)) for note in details.notes)


def unmet_rows(run: RunResult) -> list[Row]:
    words = {CriterionVerdict.UNDECIDED: "Undecided"}
    return [_criterion(words.get(judgement.verdict, "Not met"), judgement) for judgement in failed_criteria(run)]


def _criterion(label: str, judgement: CriterionJudgement, *cells: Cell) -> Row:
    """A criterion, below it the judge's reason and where it can be checked."""
    lines = (sentence(judgement.reasoning, MAX_REASON_LENGTH), *_places(judgement.evidence))
    criterion = Cell(sentence(judgement.criterion, 300))
    return Row(label, (*cells, criterion), tuple(Cell(line, Tone.DIM) for line in lines if line))


def _places(evidence: Sequence[Citation]) -> Iterator[str]:
    return (f"{cited.where}: {sentence(cited.quote, 100)}" if cited.quote else cited.where for cited in evidence[:3])


def _votes(split: Mapping[str, int]) -> str:
    return f"votes: {', '.join(f'{count} {name}' for name, count in split.items())}"


def _tool_usage_rows(run: RunResult) -> Iterator[Row]:
    """What of the project's skills, sub-agents, MCP tools and rules was used, missed or broken."""
    details = run.details(ToolUsageDetails)
    # No row where the project offers nothing, or nobody looked.
    if details is None or not details.manifest:
        return
    yield Row("Called", tuple(_called(details)))
    for label, remarks, more in (
        ("Missed", details.missed, ""),
        ("Misused", details.misused, ""),
        ("Used, but", details.instructions_ignored, ", instructions ignored"),
        ("Not judged", details.not_judged, ""),
    ):
        if remarks:
            count = Cell(f"{numbers.format_count(len(remarks), 'tool')}{more}", Tone.WARN)
            yield Row(label, (count,), first([_remark(one.tool, one, Tone.WARN) for one in remarks], MAX_LINES))
    if details.rules:
        yield _rules(details)
    if details.not_loaded:
        count = Cell(f"{len(details.not_loaded)} of {len(details.manifest)} that the project has", Tone.WARN)
        lines = [_entry(entry, entry.reason or "no reason is known") for entry in details.not_loaded]
        yield Row("Not loaded", (count,), first(lines, MAX_LINES))
    if noted := [_entry(entry, entry.note) for entry in details.manifest if entry.loaded and entry.note]:
        yield Row("Loaded, but", (), first(noted, MAX_LINES))
    if details.notes:
        yield Row("Notes", (), tuple(Cell(sentence(note, MAX_TEXT_LENGTH), Tone.DIM) for note in details.notes))


def _called(details: ToolUsageDetails) -> Iterator[Cell]:
    """The project's own tools each, the built-in ones in one number: the session's section has them all."""
    own, cells = [use for use in details.uses if use.tool.startswith(STEERING)], []
    for use in own:
        trouble = [f"{count} {outcome}" for count, outcome in ((use.errors, "failed"), (use.denied, "denied")) if count]
        calls = f"{use.tool} {numbers.whole(use.calls)}"
        cells.append(Cell(f"{calls} ({', '.join(trouble)})", Tone.WARN) if trouble else Cell(calls))
    yield from first(cells, MAX_LINES) or (Cell("no skill, sub-agent or MCP tool"),)
    if built_in := sum(use.calls for use in details.uses) - sum(use.calls for use in own):
        yield Cell(numbers.format_count(built_in, "call of built-in tools", "calls of built-in tools"), Tone.DIM)


def _rules(details: ToolUsageDetails) -> Row:
    if details.judge is None:
        return Row("Rules", (Cell(f"{numbers.whole(len(details.rules))} loaded, not judged", Tone.DIM),))
    words = {
        RuleVerdict.FOLLOWED: ("followed", Tone.GOOD),
        RuleVerdict.BROKEN: ("broken", Tone.BAD),
        RuleVerdict.NOT_APPLICABLE: ("not applicable", Tone.DIM),
        RuleVerdict.NOT_JUDGED: ("not judged", Tone.WARN),
    }
    counts, lines = [], []
    for verdict, (word, tone) in words.items():
        if rules := [rule for rule in details.rules if rule.verdict is verdict]:
            counts.append(Cell(f"{numbers.whole(len(rules))} {word}", tone))
        if verdict in {RuleVerdict.BROKEN, RuleVerdict.NOT_JUDGED}:
            lines += [_remark(rule.rule, rule, tone) for rule in rules]
    return Row("Rules", tuple(counts), first(lines, MAX_LINES))


def _remark(subject: str, remark: ToolRemark | RuleJudgement, tone: Tone) -> Cell:
    """Why it is remarkable, where that can be checked, and how the judges voted."""
    places, votes = "; ".join(_places(remark.evidence)), _votes(remark.split) if remark.split else ""
    around = "".join(f" ({words})" for words in (places, votes) if words)
    return Cell(f"{subject}: {sentence(remark.reasoning, MAX_REASON_LENGTH)}{around}", tone)


def _entry(entry: ManifestEntry, why: str) -> Cell:
    file = "" if entry.name == entry.file else f" ({entry.file})"
    return Cell(f"{KINDS[entry.kind].word} {entry.name}{file}: {sentence(why, MAX_TEXT_LENGTH)}", Tone.WARN)


def hidden_findings(runs: Sequence[RunResult]) -> str:
    """What passes hide, like `broke CLAUDE.md, line 4, and missed the skill changelog`; empty where there is none."""
    green = [run for run in runs if run_outcome(run) <= Outcome.PASSED]
    counted = Counter(finding for run in green for finding in dict.fromkeys(_findings(run)))
    several = len(green) > 1
    parts = [f"{words}{f' in {count} of {len(green)}' * several}" for words, count in counted.most_common()]
    if len(parts) > MAX_FINDINGS:
        parts[MAX_FINDINGS:] = [f"{len(parts) - MAX_FINDINGS} more"]
    *others, last = parts or [""]
    comma = "," * (len(others) > 1 or any("," in part for part in others))
    return f"{', '.join(others)}{comma} and {last}" if others else last


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


# --- build and tests, and what to do where a run has a problem -----------------------------------------------------

PASS, FAIL = Cell("PASS", Tone.GOOD), Cell("FAIL", Tone.BAD)
ADVICE = {
    "build": "Read what the build printed, then the patch: see whether the tested commit builds with buildCommand.",
    "tests": "Read what the tests printed, then the patch: see whether they pass on the tested commit.",
    "coverage": "See in the patch what is not tested, or whether the command still writes its coverage report.",
}
TIMED_OUT = "See at the end of its output what it waited for (a watch mode never ends), or raise commandTimeoutSeconds."


def command_words(command: CommandResult) -> str:
    """`timed out` or `exit code 1`."""
    return "timed out" if command.exit_code is None else f"exit code {command.exit_code}"


def command_cells(command: CommandResult) -> tuple[Cell, ...]:
    """How a command ended where that was not well, how long it took, and the command."""
    how = [Cell(command_words(command), Tone.BAD)] * (command.exit_code != 0)
    return (*how, Cell(numbers.duration(command.seconds)), Cell(sentence(command.command, 200), Tone.DIM))


def correctness_rows(run: RunResult) -> Iterator[Row]:
    """Build, tests, coverage, as far as they are configured."""
    details = run.details(CorrectnessDetails)
    if details is None:
        return
    if details.build:
        yield Row("Build", (PASS if details.build.exit_code == 0 else FAIL, *command_cells(details.build)))
    if details.test:
        yield Row("Tests", (PASS if _tests_passed(details) else FAIL, *command_cells(details.test)))
        if details.tests and details.tests.recognised:
            yield _counts(details.tests)
    elif "tests" in details.parts:
        yield Row("Tests", (Cell("not run", Tone.WARN),))
    if details.coverage or "coverage" in details.parts:
        yield Row("Coverage", tuple(_coverage(details)))
    yield from (Row("Note", (Cell(sentence(note), Tone.WARN),)) for note in details.notes)


def _counts(tests: TestSummary) -> Row:
    bad = ((tests.failed, "failed", Tone.BAD), (tests.errored, "errored", Tone.BAD))
    doubtful = ((tests.skipped, "skipped", Tone.WARN), (tests.flaky, "flaky", Tone.WARN))
    cells = [Cell(f"{numbers.whole(tests.passed)} passed", Tone.GOOD if tests.passed else Tone.WARN)]
    cells += [Cell(f"{numbers.whole(number)} {word}", tone) for number, word, tone in (*bad, *doubtful) if number]
    if any(runner.unit == "packages" for runner in tests.runners):
        cells.append(Cell("packages are counted, not tests", Tone.WARN))
    names = [Cell(name, Tone.BAD) for name in tests.failures]
    unlisted = max(tests.failed + tests.errored - len(names), 0) if names else 0
    return Row("Counts", tuple(cells), first(names, 10, unlisted=unlisted))


def _coverage(details: CorrectnessDetails) -> Iterator[Cell]:
    covered, threshold = details.coverage, details.coverage_threshold
    if covered is None or covered.lines is None:
        yield Cell("not known" if details.test else "not measured", Tone.BAD)
        if covered and covered.note:
            yield Cell(sentence(covered.note), Tone.DIM)
        return
    yield Cell(f"{covered.lines:g}% of lines")
    if covered.branches is not None:
        yield Cell(f"{covered.branches:g}% of branches", Tone.DIM)
    if threshold is not None:
        met = covered.lines >= threshold
        yield Cell(f"threshold {threshold:g}% {'met' if met else 'missed'}", Tone.GOOD if met else Tone.BAD)
    if covered.format:
        yield Cell(covered.format, Tone.DIM)


def _tests_passed(details: CorrectnessDetails) -> bool:
    """Whether the test command succeeded and its numbers say so too."""
    tests = details.tests or TestSummary()
    succeeded = details.test is not None and details.test.exit_code == 0
    return succeeded and (not tests.recognised or (tests.ran > 0 and not tests.failed + tests.errored))


def _culprit(details: CorrectnessDetails) -> tuple[str, CommandResult | None]:
    """What did not pass, with its command."""
    if details.build and details.build.exit_code != 0:
        return "build", details.build
    return ("coverage", None) if details.test and _tests_passed(details) else ("tests", details.test)


def command_ending(details: CorrectnessDetails | None) -> str:
    """What did not pass, in a few words."""
    if details is None:
        return "did not pass"
    name, command = _culprit(details)
    if name == "coverage":
        has_lines = details.coverage is not None and details.coverage.lines is not None
        return "coverage is too low" if has_lines else "coverage is not known"
    return f"the {name} {'timed out' if command and command.timed_out else 'failed'}"


def run_problem(run: RunResult, files: RunFiles) -> Problem | None:
    """What keeps a run from having passed; nothing where it has."""
    problem, failed = failure_problem(run, files), failed_criteria(run)
    if problem or not failed:
        return problem
    more = f", and {numbers.format_count(len(failed) - 1, 'more', 'more')}" if len(failed) > 1 else ""
    undecided = " (undecided)" * (failed[0].verdict is CriterionVerdict.UNDECIDED)
    criterion = sentence(failed[0].criterion, 200)
    why = f"Not met: {criterion.removesuffix('.') if undecided or more else criterion}{undecided}{more}"
    by_judge = "Check the judge's reasoning against what the session changed."
    advice = "Look at what the check cites." if failed[0].by == "check" else by_judge
    return Problem(why, advice, files.patch or files.transcript)


def failure_problem(run: RunResult, files: RunFiles) -> Problem | None:
    """The same, but for criteria that are not met."""
    broken = {result.metric: result for result in run.evaluations.values() if result.failed}
    if run.status is not SessionStatus.COMPLETED:
        return _of_session(run, files)
    if not broken:
        return correctness_problem(run, files)
    advice, how = "The session itself is complete and saved; run the suite again once the cause is fixed.", "evaluated"
    if any(METRICS[metric].judged for metric in broken):
        advice = f"The session is complete and saved: `zelda rejudge {run.run_id}` once the cause is gone."
        if (code := next(iter(broken.values())).code or "") in ALIKE_AGAIN:
            advice = explanations()[code].action.replace("latest", run.run_id)
        how, details = "judged completely", run.details(FulfillmentDetails) or FulfillmentDetails()
        if any(it.by == "check" and it.verdict is CriterionVerdict.NOT_JUDGED for it in details.criteria):
            mend = "Let setupCommand install what a check's command lacks, or mend what else its reason names"
            advice = f"{mend}, and run the suite again: on a stored session no command runs."
    names = ", ".join(own_measure(metric).heading for metric in broken)
    why = f"{names} could not be {how}: {sentence(next(iter(broken.values())).reasoning)}"
    log = (files.test_log or files.build_log) if Metric.FUNCTIONAL_CORRECTNESS in broken else None
    return Problem(why, advice, log or files.result)


def _of_session(run: RunResult, files: RunFiles) -> Problem:
    started = "session" in run.phase_seconds or run.evaluations
    look = (files.transcript if started else files.setup_log if run.setup else None) or files.result
    output = _last_lines(run.setup) if run.setup and run.setup.exit_code != 0 else ()
    code, why, hint = run.status.name, f"The session {ENDINGS[run.status]}; no reason was recorded.", ""
    if run.failure:
        code, why, hint = run.failure.code, sentence(run.failure.message), sentence(run.failure.hint or "")
    known = explanations().get(code, explanations()["SESSION_FAILED"])
    # Links are for the page.
    return Problem(why, hint or re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", known.action), look, output)


def correctness_problem(run: RunResult, files: RunFiles) -> Problem | None:
    """Why a run whose session completed did not pass build, tests or coverage; nothing where it did."""
    details = run.details(CorrectnessDetails)
    if correctness_outcome(run) is not Outcome.FAILED or (details and details.passed):
        return None
    if details is None:
        # Another Zelda wrote them.
        reasoning = run.evaluations[Metric.FUNCTIONAL_CORRECTNESS].reasoning
        return Problem(sentence(reasoning), "Read the result's details.", files.result)
    culprit, command = _culprit(details)
    why = sentence(" ".join(details.shortfalls) or "Build and tests did not pass.")
    look = {"build": files.build_log, "tests": files.test_log, "coverage": files.patch}[culprit]
    advice = TIMED_OUT if command and command.timed_out else ADVICE[culprit]
    return Problem(why, advice, look or files.result, _last_lines(command) if command else ())


def _last_lines(command: CommandResult) -> tuple[str, ...]:
    """The last ten lines that a command printed."""
    lines = [line.rstrip() for line in command.output[-20_000:].splitlines()]
    return tuple(line for line in lines if line)[-10:]
