"""Fixed reports of CI, from the ordinary to the hostile, that the expected comments and summaries are made of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

from tests.builders import safe
from tests.golden.batches import CHANGES, command, correctness, efficiency, suite
from tests.golden.batches import START as MOMENT
from tests.golden.batches import broken as broken_fields
from tests.golden.batches import run as one_run
from tests.support.cited import citation
from tests.unit.compare.runs import JUDGE, evaluation
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import gate, recorded_settings
from zelda_ci.domain.comparison import Acceptance, AcceptedReason, BaselineOrigin, BaselineState, GateResult
from zelda_ci.domain.details import (
    CriterionJudgement,
    CriterionVerdict,
    FulfillmentDetails,
    RunnerCounts,
    TestSummary,
    ToolRemark,
    ToolUsageDetails,
    ToolUse,
)
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import BatchResult, Failure, JudgeUsage, RunResult
from zelda_ci.domain.session import ModelUsage, SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.report.ci_report import CiReport, Links, PullRequestChanges, RuleChange

HOSTILE = (
    "| a | <b>&amp;</b> `x` ```\n::error::[link](http://x.example) ##[error]x \x1b[31m@octocat #1 GH-2 \u202eevil"
    '\u200b <!-- zelda:default --> </details> ![i](http://x.example/i.png) www.x.example $a$ <img src="x" onerror="y">'
)

LINKS = Links(
    run="https://github.com/acme/shop/actions/runs/4711",
    artifact="https://github.com/acme/shop/actions/runs/4711/artifacts/98",
    transcripts="https://github.com/acme/shop/actions/runs/4711/artifacts/99",
    commit="https://github.com/acme/shop/commit/5e1f0a4d4e5f60718293a4b5c6d7e8f901234567",
    files="https://github.com/acme/shop/blob/5e1f0a4d4e5f60718293a4b5c6d7e8f901234567",
)
TESTED = "9f3b2c1d4e5f60718293a4b5c6d7e8f901234567"
HEAD = "5e1f0a4d4e5f60718293a4b5c6d7e8f901234567"
FOUND = BaselineOrigin(
    state=BaselineState.FOUND,
    sentence="The baseline is main at abc1234, 3 commits behind.",
    branch="main",
    wanted="77aa0bc1234567890abcdef1234567890abcdef1",
    commit="abc1234def567890abcdef1234567890abcdef12",
    behind=3,
    created_at=MOMENT - timedelta(days=2, hours=5),
    run_id=4700,
    artifact_id=98,
)
NONE_YET = BaselineOrigin(
    state=BaselineState.NONE_YET,
    sentence="The branch main has no stored results yet: they appear with the first run on it.",
    branch="main",
)

CRITERIA = {
    "rest-endpoint": (
        "GET /orders/{id} answers 404 with a problem document when the order is unknown",
        "The new route is registered in `src/app.py`, next to the other routes",
        "The handler has type annotations",
    ),
    "receipt-tax": ("Tax is rounded once, at the end", "A test covers a receipt with two tax rates"),
    "discount-codes": ("An expired code is refused with a message that names the date",),
    "add-logging": ("Every handler logs the request id",),
}
REASONS = {
    "P": ("It does what is asked.", "src/routes/orders.py:14-22", "raise NotFound(order_id)"),
    "F": (
        "The handler answers 500 with the text of the exception; the rule asks for a problem document.",
        "src/routes/orders.py:18-21",
        "except KeyError as error: return Response(str(error), status=500)",
    ),
    "?": ("The judge did not answer in time.", "", ""),
    "U": ("No run of the handler is shown.", "", ""),
}
LETTERS = {
    "P": CriterionVerdict.PASS,
    "F": CriterionVerdict.FAIL,
    "?": CriterionVerdict.NOT_JUDGED,
    "U": CriterionVerdict.UNDECIDED,
}


def judgement(name: str, letter: str) -> CriterionJudgement:
    reasoning, where, quote = REASONS[letter]
    evidence = (citation(where, quote),) if where else ()
    return CriterionJudgement(
        criterion=safe(name), verdict=LETTERS[letter], reasoning=safe(reasoning), evidence=evidence
    )


def fulfilled(name: str, letters: str, criteria: Sequence[str] = ()) -> EvalResult:
    names = criteria or CRITERIA[name]
    incomplete = "?" in letters
    score = None if incomplete else 100 * letters.count("P") / len(letters)
    details = FulfillmentDetails(judge=JUDGE, criteria=tuple(map(judgement, names, letters)))
    verb = "was" if letters.count("?") == 1 else "were"
    missing = f"{letters.count('?')} of {len(letters)} criteria {verb} not judged. {REASONS['?'][0]}"
    told = missing if incomplete else f"{letters.count('P')} of {len(letters)} criteria are met."
    return evaluation(Metric.REQUIREMENT_FULFILLMENT, details, score, reasoning=told, failed=incomplete)


def used_tools(score: float, missed: Sequence[str] = ()) -> EvalResult:
    why = safe("It describes how routes are written here, and the session wrote one without it.")
    details = ToolUsageDetails(
        judge=JUDGE,
        used={"Read": 5, "Skill(rest-conventions)": 0 if missed else 1},
        uses=(ToolUse(tool=safe("Read"), calls=5),),
        missed=tuple(ToolRemark(tool=safe(tool), reasoning=why) for tool in missed),
    )
    return evaluation(Metric.TOOL_USAGE, details, score, reasoning="The skill was used where it fits.")


def checked(failed: int) -> EvalResult:
    counts = RunnerCounts(
        format="pytest",
        source="summary",
        passed=14 - failed,
        failed=failed,
        failures=(safe("test_tax_rates"),) * failed,
    )
    shortfalls = (f"{failed} of 14 tests failed.",) * bool(failed)
    return correctness(
        100.0 * (14 - failed) / 14,
        *shortfalls,
        build=command("pip install -e .", seconds=4.2),
        test=command("pytest -q", code=1 if failed else 0, output="14 tests\n1 failed" if failed else "14 passed"),
        tests=TestSummary(runners=(counts,)),
        parts={"build": 100.0, "tests": 100.0},
    )


def trial(
    name: str,
    letters: str,
    number: int = 1,
    *,
    cost: float = 0.18,
    turns: int = 9,
    seconds: float = 83.0,
    missed: Sequence[str] = (),
    failed: int = 0,
    criteria: Sequence[str] = (),
    minute: int = 0,
    label: str = "",
    model: str = "claude-sonnet-5-5",
    **fields: Any,
) -> RunResult:
    """A run of a suite with a letter per criterion."""
    tokens = ModelUsage(input_tokens=1_200, output_tokens=int(cost * 30_000), cache_read_tokens=150_000, cost_usd=cost)
    spent = {"models": {model: tokens}, "turns": turns, "wall_seconds": seconds, "api_seconds": seconds * 0.8}
    score = min(100.0, 900 / turns)
    evaluations = (
        efficiency(score, f"maxTurns {turns} of 30.", **spent),
        checked(failed),
        fulfilled(name, letters, criteria),
        used_tools(62.0 if missed else 90.0, missed),
    )
    begun = MOMENT + timedelta(minutes=minute)
    given: dict[str, Any] = {
        "trial": number,
        "run_id": f"{name}-{begun:%Y-%m-%dT%H-%M-%S}{label}" + (f"-{number}" if number > 1 else ""),
        "started_at": begun,
        "finished_at": begun + timedelta(seconds=seconds + 6),
        "evaluations": {found.metric: found for found in evaluations},
        "judge": JudgeUsage(requests=2, models={"judge-1": ModelUsage(input_tokens=9_000, cost_usd=0.021)}),
        "changes": CHANGES,
        "models": (model,),
        "config": suite(
            name,
            acceptance_criteria=tuple(criteria or CRITERIA.get(name, ())),
            execution={"model": model},
            test_command="pytest -q",
        ),
    }
    return one_run(name, **(given | fields))


def batch(runs: Sequence[RunResult], **fields: Any) -> BatchResult:
    given: dict[str, Any] = {
        "batch_id": "batch",
        "started_at": MOMENT,
        "finished_at": MOMENT + timedelta(minutes=7),
        "runs": runs,
    }
    return BatchResult(**(given | fields))


def report(baseline: Sequence[RunResult], candidate: Sequence[RunResult], /, **fields: Any) -> CiReport:
    """What the pipeline makes of two sides; without a baseline there is no comparison."""
    settings = recorded_settings(candidate)
    made = batch(candidate, interrupted=fields.pop("interrupted", False))
    compared = compare(baseline, candidate) if baseline else None
    given: dict[str, Any] = {
        "batch": made,
        "gate": gate(made, settings, compared, baseline),
        "baseline": FOUND if compared else NONE_YET,
        "baseline_batch": batch(baseline) if baseline else None,
        "comparison": compared,
        "links": LINKS,
        "tested": TESTED,
        "head": HEAD,
    }
    return CiReport(**(given | fields))


def before(number: int = 1, **fields: Any) -> list[RunResult]:
    """One trial of each of four suites on the base branch."""
    return [
        trial("rest-endpoint", "PPP", number, **fields),
        trial("receipt-tax", "PF", number, cost=0.31, turns=14, **fields),
        trial("discount-codes", "P", number, cost=0.12, turns=6, **fields),
        trial("add-logging", "P", number, cost=0.094, turns=5, **fields),
    ]


def regression() -> CiReport:
    """A rule was removed: one suite lost a criterion and a skill, in each of five trials."""
    old, new = [], []
    for n in range(1, 6):
        spent: dict[str, Any] = {"cost": 0.18 + n / 100, "turns": 8 + n % 2, "number": n}
        old += [trial("rest-endpoint", "PPP", minute=n, **spent), trial("receipt-tax", "PF", minute=n, **spent)]
        lost = trial("rest-endpoint", "FPP", missed=["Skill(rest-conventions)"], minute=90 + n, **spent)
        new += [lost, trial("receipt-tax", "PP", minute=90 + n, **spent)]
    return report(old, new, changes=PullRequestChanges(steering=STEERING))


STEERING = (
    SteeringChange(path="CLAUDE.md", line=12),
    SteeringChange(path=".claude/skills/rest-conventions/SKILL.md", line=3, suites=("rest-endpoint",)),
    SteeringChange(path=".claude/rules/money.md", line=1, suites=("receipt-tax",)),
)


def changed() -> CiReport:
    """The same seen once on each side, which proves nothing."""
    after = [
        trial("rest-endpoint", "FPP", cost=0.24, turns=12, seconds=127, missed=["Skill(rest-conventions)"], minute=90),
        trial("receipt-tax", "PP", cost=0.29, turns=13, minute=92),
        trial("discount-codes", "P", cost=0.121, turns=6, minute=94),
        trial("add-logging", "P", cost=0.09, turns=5, seconds=84, minute=96),
    ]
    return report(before(), after, changes=PullRequestChanges(steering=STEERING))


def improvement() -> CiReport:
    """Five trials a side, everything better."""
    old = [trial("receipt-tax", "PF", n, cost=0.31 + n / 100, turns=14 + n % 2, minute=n) for n in range(1, 6)]
    new = [trial("receipt-tax", "PP", n, cost=0.12 + n / 100, turns=8 + n % 2, minute=90 + n) for n in range(1, 6)]
    level = FOUND.model_copy(update={"behind": 0, "created_at": MOMENT - timedelta(hours=3)})
    return report(old, new, baseline=level)


def no_baseline() -> CiReport:
    """The first run: two suites, one of which fails its tests."""
    return report((), [trial("rest-endpoint", "PPP"), trial("receipt-tax", "PF", failed=2)])


def first_run() -> CiReport:
    """The first run of all, and everything passes."""
    return report((), [*(trial(name, "P" * len(CRITERIA[name]), minute=n) for n, name in enumerate(CRITERIA))])


def disarmed() -> CiReport:
    """Worse, and green: the gate asks for nothing. What failed is removed, and what could fail is loosened."""
    silent: dict[str, Any] = {"gate": {"failOn": []}}
    old = [*before(), trial("search", "F", criteria=("It finds by name",))]
    gone = CRITERIA["receipt-tax"][:1]
    after = [
        trial("rest-endpoint", "PPP", minute=90, failed=2, config=configured("rest-endpoint", **silent)),
        trial("receipt-tax", "P", minute=91, criteria=gone, config=configured("receipt-tax", gone, **silent)),
        trial("discount-codes", "P", minute=92, config=configured("discount-codes", **silent)),
        trial("add-logging", "P", minute=93, config=configured("add-logging", **silent)),
    ]
    rules = (
        RuleChange("gate.failOn", "zelda.config.yaml:4", loosens=True),
        RuleChange("gate.paths", "zelda/test-add-logging.yaml:9"),
    )
    changes = PullRequestChanges(rules=rules, removed_suites=("zelda/test-search.yaml",))
    return report(old, after, changes=changes)


def configured(name: str, criteria: Sequence[str] = (), /, **settings: Any) -> ResolvedSuite:
    """As `trial` configures a suite, with further settings."""
    asked = tuple(criteria or CRITERIA[name])
    model = {"model": "claude-sonnet-5-5"}
    return suite(name, acceptance_criteria=asked, execution=model, test_command="pytest -q", **settings)


def accepted() -> CiReport:
    """What would be red, somebody has accepted."""
    told = regression()
    said: dict[str, Any] = {
        "by": "octocat",
        "because": safe("the new API answers 500 on purpose, see #12"),
        "at": MOMENT,
    }
    link = "https://github.com/acme/shop/pull/7#issuecomment-1"
    taken = tuple(
        AcceptedReason(
            reason=reason,
            acceptance=Acceptance(suite="rest-endpoint", criterion=CRITERIA["rest-endpoint"][0], url=link, **said),
        )
        for reason in told.gate.reasons
    )
    return replace(told, gate=GateResult(accepted=taken))


def forty() -> CiReport:
    """Many suites, of which few matter."""
    names = [f"suite-{number:02}" for number in range(1, 41)]
    criteria = ("It works", "It is tested", "It is documented")
    old = [trial(name, "PPP" if number != 21 else "PPF", criteria=criteria) for number, name in enumerate(names)]
    new = [trial(name, "PPP", criteria=criteria, minute=90) for name in names]
    new[6] = trial(names[6], "PFP", criteria=criteria, minute=90, missed=["Skill(rest-conventions)"])
    new[17] = trial(names[17], "PPP", criteria=criteria, minute=90, failed=3)
    away = broken_fields("API_OVERLOADED", "The API answered 529 to ten attempts.") | {"judge": None}
    new[30] = trial(names[30], "PPP", criteria=criteria, minute=90, **away)
    steering = (SteeringChange(path="CLAUDE.md", line=12),)
    return report(old, new, changes=PullRequestChanges(steering=steering))


def mixed() -> CiReport:
    """Another model in one suite, one suite new and one removed, several trials with and without a verdict."""
    old = [*(trial("rest-endpoint", "PPP", n, minute=n) for n in range(1, 4)), trial("discount-codes", "P")]
    old += [trial("add-logging", "P", n, minute=n) for n in (1, 2)]
    new = [trial("rest-endpoint", "PFP", n, minute=90 + n) for n in range(1, 4)]
    new += [trial("discount-codes", "F", minute=95, model="claude-opus-5"), trial("receipt-tax", "PP", minute=96)]
    return report(old, new, notes=("Two suites of the baseline were run with another version of the judge.",))


def incomplete() -> CiReport:
    """A criterion that nobody judged, beside one that the evidence cannot decide."""
    old = [trial("rest-endpoint", "PPP"), trial("add-logging", "P", minute=1)]
    return report(old, [trial("rest-endpoint", "PP?", minute=90), trial("add-logging", "U", minute=91)])


def failed() -> CiReport:
    """Sessions that broke or ended at a limit, a setup that failed, tests that fail."""
    away = broken_fields("API_OVERLOADED", "The API answered 529 to ten attempts.") | {"judge": None}
    setup = broken_fields("SETUP_FAILED", "The setup command ended with exit code 1.") | {"judge": None}
    late = Failure(code="SESSION_TIMED_OUT", message=safe("The session did not end within 1800 s (timeoutSeconds)."))
    after = [
        trial("rest-endpoint", "PPP", minute=90, **away),
        trial("receipt-tax", "PF", minute=91, failed=1),
        trial(
            "discount-codes", "P", minute=92, setup=command("npm ci", 1, "npm error code E404\nnpm error x"), **setup
        ),
        trial("add-logging", "F", minute=93, status=SessionStatus.TIMED_OUT, failure=late),
    ]
    return report(before(), after)


def written_by(attacker: str) -> CiReport:
    """Every text that comes from outside is the attacker's; suite names and models too, as in a fork's artifact."""
    names = (attacker, "ok")
    plain = suite("x", acceptance_criteria=names)
    old = trial(attacker, "PP", criteria=names, run_id="old", config=plain)
    new = trial(
        attacker,
        "FP",
        criteria=names,
        missed=[attacker],
        minute=90,
        run_id=attacker,
        setup=command(attacker, 1, attacker),
        config=plain,
        models=(attacker,),
        judge=JudgeUsage(requests=1, models={attacker: ModelUsage()}, notices=(safe(attacker),)),
    )
    # On the same platform what became worse in five trials is proven, on another it is not.
    same: dict[str, Any] = {"criteria": names, "config": plain, "models": (attacker,)}
    better, worse = (
        [trial(f"same {attacker}", letters, n, minute=minute + n, **same) for n in range(1, 6)]
        for minute, letters in ((1, "PP"), (92, "FP"))
    )
    gone = trial("gone", "P", criteria=("x",), minute=91, **broken_fields(attacker, attacker), judge=None)
    origin = FOUND.model_copy(update={"branch": attacker, "commit": attacker, "wanted": attacker, "sentence": attacker})
    steering = (SteeringChange(path=attacker, line=1), SteeringChange(path=f"{attacker}.md", is_gone=True))
    changes = PullRequestChanges(steering, (RuleChange(attacker, attacker, loosens=True),), (attacker,))
    evil = Links(
        files=LINKS.files,
        run="javascript:alert(1)",
        artifact="https://x.example/) [y](http://z",
        transcripts="https://x.example/) [y](http://z",
        commit="http://a b",
    )
    before, after = [old, *better], [new, gone, *worse]
    return report(
        before, after, baseline=origin, title=attacker, notes=(attacker,), links=evil, tested=attacker, changes=changes
    )


def hostile() -> CiReport:
    """A sample of what an attacker would write."""
    return written_by(HOSTILE)


@cache
def crowd() -> CiReport:
    """More suites than a comment has room for."""
    names = [f"suite-{number:03}" for number in range(60)]
    criteria = ("It works", "It is tested", "It is documented")
    old = [trial(name, "PPP", criteria=criteria) for name in names]
    new = [
        trial(name, "FFP", criteria=criteria, minute=90, missed=["x"] * (number % 2))
        for number, name in enumerate(names)
    ]
    return report(old, new)


def cancelled() -> CiReport:
    """The job was cancelled in the second of four suites."""
    end = Failure(code="INTERRUPTED", message=safe("Zelda was asked to stop."))
    after = [
        trial("rest-endpoint", "PPP", minute=90),
        trial(
            "receipt-tax", "PF", minute=92, status=SessionStatus.INTERRUPTED, failure=end, evaluations={}, judge=None
        ),
    ]
    return report(before(), after, interrupted=True)


REPORTS: dict[str, Callable[[], CiReport]] = {
    made.__name__.replace("_", "-"): made
    for made in (
        first_run,
        regression,
        changed,
        improvement,
        no_baseline,
        disarmed,
        accepted,
        mixed,
        incomplete,
        failed,
        hostile,
        crowd,
        forty,
        cancelled,
    )
}
