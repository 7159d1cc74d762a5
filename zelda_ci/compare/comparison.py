"""A comparison of two sides: suite by suite, then over all suites.

There is one way to a verdict. Two sets of results, and a fixed number of trials, are a plan with one look; where trials
were added as they were needed, there are several.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import comb
from typing import Any

from zelda_ci.compare import schedule
from zelda_ci.compare.inference import ALPHA, Interval, of_means, of_pairs, of_pass_rates, significant
from zelda_ci.compare.questions import NOTEWORTHY, OVERALL_ALPHA, REPLAYED, Pair, Question, QuestionKey, differences
from zelda_ci.compare.schedule import AdjustedAnswer, Answers, SuiteTrials
from zelda_ci.compare.sides import RunMetrics, SuiteSide, mean, sides, summarize
from zelda_ci.domain import comparison as findings
from zelda_ci.domain.comparison import Comparison, CriterionDelta, Delta, MeasureDelta, SuiteComparison, Verdict
from zelda_ci.domain.details import CorrectnessDetails, CriterionJudgement, EfficiencyDetails, ToolUsageDetails
from zelda_ci.domain.measures import MAX_PLAUSIBLE, MEASURES, PASS_RATE, Measure
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import Usage
from zelda_ci.domain.trials import DoneReason

GRAVITY = (Verdict.REGRESSED, Verdict.CHANGED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)
TOO_NOISY = "the change may be noise: it is not significant with these trials"
TOO_FEW = "the change may be noise: no change could be significant with so few trials"
EXPECTED = "as expected: no worse than the base but for one trial, so no more were made"
NOT_SHOWN = "not shown to be worse: chance often makes such a difference, so no more trials were made"
PASSES = "as expected: it passes in all first trials, so the base was not run"
NOT_STORED = "nothing is stored to compare it with, and the base was not run"
NOT_PROVEN = "changed, not proven"
UNFINISHED = "changed, not proven: more trials were wanted than were made"
NOT_RUN = "not run"
MORE_WANTED = "more trials were wanted than were made"

Finding = tuple[Verdict, tuple[str, ...]]
TOOL_CALLS = "toolCalls."


def compare(
    baseline: Iterable[RunResult],
    candidate: Iterable[RunResult],
    *,
    allow_mixed: bool = False,
    pair_suites: bool = False,
) -> Comparison:
    """Compare the runs of any number of suites, several trials each; their order does not matter.

    Sides that differ in prompt, models or versions have verdicts only with `allow_mixed`, the only suite of one side
    and another one of the other only with `pair_suites`; such verdicts never gate.
    """
    old, new = sides(baseline), sides(candidate)
    none = SuiteSide()
    both = {suite: (old.get(suite, none), new.get(suite, none)) for suite in sorted({*old, *new})}
    is_one = pair_suites and len(old) == len(new) == 1 and len(both) == 2
    if is_one:
        (before, base), (after, head) = *old.items(), *new.items()
        both = {f"{before} -> {after}": (base, head)}
    pairs = [Pair(suite, base, head, head.tolerance, allow_mixed or is_one) for suite, (base, head) in both.items()]
    return _comparison(pairs, schedule.overall_questions(pairs))


def compare_trials(suites: Iterable[SuiteTrials]) -> Comparison:
    """Compare what the schedule asked for, whether or not it came to its end: all suites that it was asked about."""
    shared = schedule.sharing(suites)
    pairs = [suite.whole for suite in sorted(shared, key=lambda suite: suite.suite) if suite.whole.sides]
    adding = {suite.suite: suite for suite in shared if suite.adds}
    return _comparison(pairs, schedule.first_trials(shared) if adding else schedule.overall_questions(pairs), adding)


def _comparison(
    pairs: Sequence[Pair], overall: Mapping[QuestionKey, Question], adding: Mapping[str, SuiteTrials] = {}
) -> Comparison:
    """All suites that have trials, and the numbers over all of them; `adding` are those whose plan adds trials."""
    questions = {key: question for pair in pairs if not pair.adds for key, question in pair.questions.items()}
    share = 1 - sum(suite.share for suite in adding.values() if suite.has_base)
    answers = schedule.answered(questions, share, weights=schedule.AT_ONCE)
    answers |= schedule.answered(overall, alpha=OVERALL_ALPHA)
    for suite in adding.values():
        answers |= suite.answers
    compared = tuple(_compared(pair, answers, adding.get(pair.suite)) for pair in pairs)
    over_all = (_row(key, question, answers) for key, question in overall.items())
    rows = [row for row in over_all if isinstance(row, MeasureDelta)]
    if not adding:
        # Of a measure that one suite alone has on both sides, its row; the gate already counts it there.
        known = {row.measure for row in rows}
        alone = (row for each in compared for row in each.measures if row.change is not None)
        rows += {row.measure: row.replace(gates=False) for row in alone if row.measure not in known}.values()
    counts = Counter(row.verdict for suite in compared for row in (*suite.measures, *suite.criteria))
    asked = (*questions.values(), *overall.values())
    return Comparison(
        verdict=gravest([*(each.verdict for each in compared), *(row.verdict for row in rows if row.is_tested)]),
        counts={verdict: counts[verdict] for verdict in Verdict},
        # Not over all suites: where trials are added, that is asked of first ones, which others follow.
        single_trial=any(question.method == "threshold" for question in questions.values()),
        mixed=any(question.mixed and bool(question.obstacles or question.doubts) for question in asked),
        family=findings.FamilySize(hypotheses=len(answers), alpha=ALPHA),
        overall=tuple(sorted(rows, key=lambda row: list(Measure).index(row.measure))),
        suites=compared,
    )


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many: a regression outweighs all, and doubt outweighs calm."""
    occurring = set(verdicts)
    return next((verdict for verdict in GRAVITY if verdict in occurring), Verdict.UNCHANGED)


def _compared(pair: Pair, answers: Answers, trials: SuiteTrials | None) -> SuiteComparison:
    """One suite; with what is known of its trials where they were added as they were needed."""
    old, new = pair.baseline, pair.candidate
    rows = [_row(key, question, answers, pair, trials) for key, question in pair.questions.items()]
    wants_more = trials and trials.done in {None, DoneReason.FAILED}
    shortage = (NOT_RUN,) if trials and not new.readings else (MORE_WANTED,) if wants_more else ()
    is_replayed = bool(pair.readings) and all(reading.run.replayed for reading in pair.readings)
    head, base, stored = trials.valid if trials else (0, 0, 0)
    sources = findings.TrialSources(head=head, base=base, stored=stored, ended=trials.done) if trials else None
    are_both, comparable = old.readings and new.readings, pair.mixed or not pair.obstacles
    return SuiteComparison(
        suite=pair.suite,
        file=[*pair.sides.values()][-1].newest.config.file,
        verdict=_verdict_on_all(pair, rows, shortage),
        baseline=old.trials if old.given else None,
        candidate=new.trials if new.given else None,
        reasons=(*pair.obstacles, *shortage),
        notes=differences(NOTEWORTHY, pair.readings) + (REPLAYED,) * is_replayed,
        measures=tuple(row for row in rows if isinstance(row, MeasureDelta)),
        criteria=tuple(row for row in rows if isinstance(row, CriterionDelta)),
        figures=figure_deltas(old.readings, new.readings, comparable=comparable) if are_both else (),
        tools=_tools(old, new) if are_both else findings.ToolDelta(),
        sources=sources,
    )


def _verdict_on_all(pair: Pair, rows: Iterable[Delta], shortage: Sequence[str]) -> Verdict:
    """The verdict on a suite: of what is tested, and of what it has too little of."""
    varying = {measure for measure in Measure if pair.adds and MEASURES[measure].scale.varies}
    verdicts = {row.verdict for row in rows if row.is_tested and getattr(row, "measure", None) not in varying}
    if Verdict.REGRESSED in verdicts:
        return Verdict.REGRESSED
    if shortage:
        return Verdict.INCONCLUSIVE
    if not pair.baseline.given and Verdict.UNCHANGED not in verdicts:
        return Verdict.NEW  # which outweighs nothing in the verdict on all suites
    if not pair.candidate.given:
        return Verdict.REMOVED
    return Verdict.INCONCLUSIVE if pair.obstacles and not pair.mixed else gravest(verdicts)


def _row(
    key: QuestionKey, question: Question, answers: Answers, pair: Pair | None = None, trials: SuiteTrials | None = None
) -> MeasureDelta | CriterionDelta:
    """The row of one number, of a suite or over all of them: its verdict, and how sure that is."""
    answer = answers.get(key, AdjustedAnswer())
    verdict, reasons = _verdict(key, question, answer, trials)
    fields: dict[str, Any] = {
        "verdict": verdict,
        "reasons": reasons,
        "better": question.scale.better,
        "baseline": summarize(question.baseline),
        "candidate": summarize(question.candidate),
        # What was compared in spite of differences never does.
        "gates": verdict is Verdict.REGRESSED and not (question.obstacles or question.doubts),
    }
    if question.answerable:
        old = mean(question.baseline)
        fields |= {name: getattr(question, name) for name in ("change", "effect", "threshold", "method")}
        fields["change_percent"] = 100 * question.change / old if old else None
        fields["interval"] = _interval(question)
    if question.is_tested:
        is_worse = question.effect != "better"
        fields["p_value"] = question.tail(worse=is_worse).p
        fields["adjusted_p_value"] = answer.worse if is_worse else answer.better
    if not key.criterion:
        return MeasureDelta(measure=Measure(key.name), **fields)
    if pair and not (question.answerable and verdict is Verdict.UNCHANGED and not question.matters):
        fields["baseline_judgement"] = _typical(pair.baseline, key.name)
        fields["candidate_judgement"] = _typical(pair.candidate, key.name)
    return CriterionDelta(criterion=key.name, **fields)


def _verdict(key: QuestionKey, question: Question, answer: AdjustedAnswer, trials: SuiteTrials | None) -> Finding:
    """The verdict on one number, and the reasons why it is no firmer."""
    done = trials.done if trials else None
    if trials and not trials.head:
        return Verdict.INCONCLUSIVE, (NOT_RUN,)
    if question.obstacles and not question.answerable:
        return Verdict.INCONCLUSIVE, question.obstacles
    if not question.baseline:
        if not (trials and trials.has_base and done is DoneReason.AS_EXPECTED):
            return Verdict.NEW, ()
        # No base is better where 100 is the most that can be reached.
        has_a_best = key.criterion or not (question.scale.varies or MEASURES[Measure(key.name)].limit is None)
        passes = has_a_best and min(question.candidate, default=0.0) >= 100
        return (Verdict.UNCHANGED, (PASSES,)) if passes else (Verdict.NEW, (NOT_STORED,))
    if not question.candidate:
        return Verdict.REMOVED, ()
    verdict, reasons = _significance(question, answer)
    if question.doubts and verdict in {Verdict.REGRESSED, Verdict.CHANGED, Verdict.IMPROVED}:
        verdict, reasons = verdict if question.mixed else Verdict.INCONCLUSIVE, (*reasons, *question.doubts)
    if trials and question.method and verdict in {Verdict.CHANGED, Verdict.INCONCLUSIVE}:
        if done is DoneReason.AS_EXPECTED:
            # It would be no worse if the worst trial of the head were as good as the best of the base.
            old, new = question.baseline, question.candidate
            rests_on_one = mean(new) + (max(old) - min(new)) / len(new) >= mean(old) * (1 - 1e-9)
            is_expected = question.effect == "better" or rests_on_one
            return (Verdict.UNCHANGED, (EXPECTED,)) if is_expected else (Verdict.INCONCLUSIVE, (NOT_SHOWN,))
        if done is None:
            return verdict, (UNFINISHED,)
        # Of one trial the verdict itself says that it proves nothing.
        return verdict, reasons if verdict is Verdict.CHANGED else (NOT_PROVEN,)
    return verdict, (*question.obstacles, *reasons)


def _significance(question: Question, answer: AdjustedAnswer) -> Finding:
    """The verdict on a number that both sides have, whatever else differs."""
    if question.method == "threshold":
        # Whatever may come out otherwise in the next trial is seen, and not proven.
        if not question.matters:
            return Verdict.UNCHANGED, (findings.SINGLE_TRIAL,)
        if question.scale.varies:
            return Verdict.INCONCLUSIVE, (findings.SINGLE_TRIAL,)
        if not question.is_fact:
            return Verdict.CHANGED, (findings.ONE_TRIAL_PROVES_NOTHING,)
        return Verdict.REGRESSED if question.is_worse else Verdict.IMPROVED, ()
    if answer.regressed:
        return Verdict.REGRESSED, ()
    if not question.matters:
        return Verdict.UNCHANGED, ()
    if question.method is None:
        return Verdict.INCONCLUSIVE, (question.not_tested,)
    if significant(answer.better) and not question.is_worse:
        return Verdict.IMPROVED, ()
    # The p-value if the sides were as different as can be.
    a, b = len(question.baseline), len(question.candidate)
    least = max(test.floor for test in question.tails) if question.strata else 1 / comb(a + b, a)
    return Verdict.INCONCLUSIVE, (TOO_NOISY if significant(least) else TOO_FEW,)


def _interval(question: Question) -> Interval | None:
    """Of the change; nothing where a side has one trial."""
    a, b = question.baseline, question.candidate
    if question.method == "threshold" or question.trials < 2:
        return None
    if question.strata:
        return of_pairs([new - old for old, new in zip(a, b, strict=True)])
    return of_pass_rates(a, b) if question.scale is PASS_RATE else of_means(a, b)


def _typical(side: SuiteSide, criterion: str) -> CriterionJudgement | None:
    """The newest judgement with the more frequent verdict; of a tie, a failure, which tells more."""
    judged = [reading for reading in reversed(side.readings) if criterion in reading.judgements]
    outcomes = side.outcomes(criterion)
    usual = 100.0 if 2 * sum(outcomes) > 100 * len(outcomes) else 0.0
    typical = [reading for reading in judged if reading.outcomes.get(criterion) == usual]
    return next((reading.judgements[criterion] for reading in (*typical, *judged)), None)


def _tools(old: SuiteSide, new: SuiteSide) -> findings.ToolDelta:
    """Tools that were called, or missed, in trials of one side only."""
    changes = {}
    for what in ("used", "missed"):
        before, now = (Counter(tool for it in side.readings for tool in _tools_of(it.run)[what]) for side in (old, new))
        tools = sorted(before.keys() ^ now.keys())
        only = [findings.ToolChange(tool=it, baseline_trials=before[it], candidate_trials=now[it]) for it in tools]
        changes[f"newly_{what}"] = tuple(each for each in only if each.candidate_trials)
        changes[f"no_longer_{what}"] = tuple(each for each in only if each.baseline_trials)
    return findings.ToolDelta(**changes)


def _tools_of(run: RunResult) -> dict[str, set[str]]:
    usage, efficiency = run.details(ToolUsageDetails), run.details(EfficiencyDetails)
    used = usage.used if usage and usage.used else efficiency.tool_calls if efficiency else {}
    missed = usage.missed if usage else ()
    return {"used": {tool for tool, calls in used.items() if calls}, "missed": {str(each.tool) for each in missed}}


def figure_deltas(
    baseline: Sequence[RunMetrics], candidate: Sequence[RunMetrics], *, comparable: bool
) -> tuple[findings.FigureDelta, ...]:
    """Numbers on which no verdict hangs: means of both sides, and differences where the sides are comparable."""
    both = [[_figures(trial) for trial in side] for side in (baseline, candidate)]
    names = dict.fromkeys(name for side in reversed(both) for trial in side for name in trial)
    # As they are computed, but all tools together.
    tools = sorted(name for name in names if name.startswith(TOOL_CALLS))
    listed = [name for name in names if name not in tools]
    place = listed.index("toolCalls") + 1 if "toolCalls" in listed else len(listed)
    found = []
    for name in (*listed[:place], *tools, *listed[place:]):
        # A tool that a session does not name was not called in it.
        known = "toolCalls" if name in tools else name
        values = [[trial.get(name, 0.0) for trial in side if known in trial] for side in both]
        before, after = (mean(each) if each else None for each in values)
        change = after - before if comparable and before is not None and after is not None else None
        found.append(findings.FigureDelta(name=name, baseline=before, candidate=after, change=change))
    return tuple(found)


def _figures(trial: RunMetrics) -> dict[str, float]:
    """The numbers of one trial by name; those that are missing or not plausible are left out."""
    commands, session = trial.run.details(CorrectnessDetails), trial.run.details(EfficiencyDetails)
    found: dict[str, float | None] = {}
    if commands:
        found["build"] = 100.0 * (commands.build.exit_code == 0) if commands.build else None
        if (tests := commands.tests) and tests.recognised:
            found |= {"tests": tests.total, "tests.passed": tests.passed}
            found |= {"tests.failed": tests.failed + tests.errored, "tests.skipped": tests.skipped}
        if coverage := commands.coverage:
            found |= {"coverage.lines": coverage.lines, "coverage.branches": coverage.branches}
    if session:
        found["toolCalls"] = sum(session.tool_calls.values())
        found |= {f"{TOOL_CALLS}{tool}": calls for tool, calls in session.tool_calls.items()}
        found |= {
            "toolErrors": session.tool_errors,
            "deniedCalls": session.denied_calls,
            "apiRetries": session.api_retries,
            "tokens.input": session.usage.input_tokens,
            "tokens.output": session.usage.output_tokens,
            "tokens.cacheRead": session.usage.cache_read_tokens,
            "tokens.cacheWrite": session.usage.cache_write_tokens,
        }
    if judge := trial.run.judge:
        found |= {"judge.costUsd": judge.cost_usd, "judge.tokens": sum(judge.models.values(), Usage()).total}
    return {name: float(value) for name, value in found.items() if value is not None and abs(value) < MAX_PLAUSIBLE}
