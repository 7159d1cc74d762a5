"""Fixed invocations, from the ordinary to the hostile, that the expected reports are made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests import builders
from tests.support.cited import citation
from tests.unit.compare.runs import evaluation
from zelda_ci.domain.base import Record
from zelda_ci.domain.details import (
    CommandResult,
    CorrectnessDetails,
    CoverageSummary,
    EfficiencyDetails,
    JudgeIdentity,
    RuleJudgement,
    RuleVerdict,
    RunnerCounts,
    TestSummary,
    ToolRemark,
    ToolUsageDetails,
    ToolUse,
)
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import BatchResult, Failure, RunResult, Versions
from zelda_ci.domain.session import ApiUsage, ModelUsage, SessionStatus, Usage
from zelda_ci.domain.suite import NetworkSettings, ResolvedSuite
from zelda_ci.domain.workspace import ChangeSummary, IsolationReport, SettingFinding, TestedSource
from zelda_ci.redact import Redactor
from zelda_ci.report.model import RunFiles

START = datetime(2026, 2, 13, 14, 30, tzinfo=UTC)
safe = Redactor()

SONNET = ModelUsage(
    input_tokens=1_234, output_tokens=5_678, cache_read_tokens=145_000, cache_write_tokens=12_345, cost_usd=0.1789
)
HAIKU = ModelUsage(input_tokens=900, output_tokens=80, cost_usd=0.0013)


def suite(name: str = "rest-endpoint", **settings: Any) -> ResolvedSuite:
    return builders.suite(name, prompt="Add the endpoint.", **settings)


def efficiency(score: float | None = 73.3, reasoning: str = "", **numbers: Any) -> EvalResult:
    """The efficiency of a session like many; `numbers` replace some of its own."""
    models = numbers.pop("models", {"claude-sonnet-5-5": SONNET})
    details = {
        "usage": sum(models.values(), Usage()),
        "models": models,
        "cost_usd": sum(model.cost_usd for model in models.values()),
        "cost_known": True,
        "turns": 9,
        "subagent_turns": 0,
        "wall_seconds": 83.2,
        "api_seconds": 64.9,
        "tool_calls": {"Read": 5, "Edit": 3, "Bash": 2},
        "tool_errors": 0,
        "denied_calls": 0,
        "api_retries": 0,
        "parts": {},
        **numbers,
    }
    told = reasoning or "turns 9 of 30 (73.3)."
    return evaluation(Metric.EFFICIENCY, EfficiencyDetails(**details), score, reasoning=told)


def unscored(metric: Metric, reasoning: str, *, failed: bool = False) -> EvalResult:
    return EvalResult(metric=metric, version="1", reasoning=safe(reasoning), details=Record(), failed=failed)


def command(line: str, code: int | None = 0, output: str = "", seconds: float = 12.3) -> CommandResult:
    return CommandResult(
        command=safe(line),
        exit_code=code,
        timed_out=code is None,
        seconds=seconds,
        output=safe(output),
        output_bytes=len(output),
    )


def correctness(score: float, *shortfalls: str, reasoning: str = "", **found: Any) -> EvalResult:
    """What build and tests showed; `shortfalls` are why they did not pass."""
    details = CorrectnessDetails(passed=not shortfalls, shortfalls=shortfalls, **found)
    told = reasoning or " ".join(shortfalls)
    return evaluation(Metric.FUNCTIONAL_CORRECTNESS, details, score, reasoning=told)


def checked(**numbers: Any) -> dict[Metric, EvalResult]:
    """What was measured, and a test that passed: without evidence nothing passes."""
    passed = correctness(100, reasoning="testCommand succeeded.")
    return {Metric.EFFICIENCY: efficiency(**numbers), Metric.FUNCTIONAL_CORRECTNESS: passed}


CHANGES = ChangeSummary(
    files=(safe("src/routes/orders.py"), safe("src/app.py"), safe("tests/test_orders.py")),
    insertions=45,
    deletions=3,
    patch_bytes=2_400,
)


def run(name: str = "rest-endpoint", *, seconds: float = 84.6, trial: int = 1, **fields: Any) -> RunResult:
    """A run that went well; `fields` change it."""
    config = fields.pop("config", None) or suite(name)
    suffix = f"-{trial}" if trial > 1 else ""
    given = {
        "run_id": f"{name}-2026-02-13T14-30-00{suffix}",
        "batch_id": "2026-02-13T14-30-00-ab12",
        "suite": name,
        "trial": trial,
        "status": SessionStatus.COMPLETED,
        "started_at": START,
        "finished_at": START + timedelta(seconds=seconds),
        "phase_seconds": {"workspace": 0.31, "session": 83.2, "evaluation": 0.12},
        "versions": Versions(zelda="0.1.0", agent_sdk="0.2.186", cli="2.1.186", python="3.11.7"),
        "source": TestedSource(kind="worktree", commit="0ff834a1b2c3d4e5f60718293a4b5c6d7e8f9012", branch="main"),
        "config": config,
        "models": ("claude-sonnet-5-5",),
        "api": ApiUsage(requests=9, models={"claude-sonnet-5-5": SONNET}, api_seconds=64.9),
        "changes": CHANGES,
        "evaluations": checked(),
        **fields,
    }
    return RunResult(**given)


def batch(*runs: RunResult, seconds: float = 85.0) -> BatchResult:
    return BatchResult(
        batch_id="2026-02-13T14-30-00-ab12",
        started_at=START,
        finished_at=START + timedelta(seconds=seconds),
        runs=runs,
    )


def files(result: BatchResult, folder: str = ".zelda/runs") -> Mapping[str, RunFiles]:
    def of(run_id: str) -> RunFiles:
        names = ("result.json", "transcript.json", "changes.patch", "setup.log", "build.log", "test.log")
        return RunFiles(*(f"{folder}/{run_id}/{name}" for name in names))

    return {run.run_id: of(run.run_id) for run in result.runs}


def broken(code: str, message: str) -> dict[str, Any]:
    """Fields of a run whose session failed before it did anything."""
    return {
        "status": SessionStatus.FAILED,
        "failure": Failure(code=code, message=safe(message)),
        "evaluations": {},
        "changes": ChangeSummary(),
        "api": ApiUsage(),
        "seconds": 1.9,
        "phase_seconds": {"workspace": 0.31, "session": 1.4, "evaluation": 0.02},
    }


def one_rich() -> BatchResult:
    """Everything a run of this issue can have: targets, two models, sub-agents, errors, setup, uncommitted changes."""
    details = efficiency(
        81.8,
        "session cost $0.1802 of $0.5000 (100.0), tokens 165,237 of 100,000 (60.5), turns 9 of 6 (66.7), "
        "session time 1m 23s of 2m 00s (100.0).",
        models={"claude-sonnet-5-5": SONNET, "claude-haiku-4-5": HAIKU},
        subagent_turns=4,
        tool_calls={"Read": 5, "Edit": 3, "Bash": 12, "Skill(rest-conventions)": 1, "mcp__catalog__lookup": 2},
        tool_errors=2,
        denied_calls=1,
        api_retries=3,
    )
    targets = {"costUsd": 0.5, "tokens": 100_000, "turns": 6, "durationSeconds": 120}
    config = suite(efficiency_targets=targets, setup_command="python -m pip install --no-deps -e .", trials=1)
    done = command(str(config.setup_command), seconds=4.2)
    unconfigured = unscored(Metric.FUNCTIONAL_CORRECTNESS, "neither buildCommand nor testCommand is set")
    return batch(
        run(
            config=config,
            setup=done,
            source=TestedSource(kind="worktree", commit="0ff834a1b2c3d4e5f607", branch="feature/orders", dirty=True),
            api=ApiUsage(requests=16, retries=3, errors={"529": 2, "connection": 1}, models={}, api_seconds=70),
            evaluations={Metric.EFFICIENCY: details, Metric.FUNCTIONAL_CORRECTNESS: unconfigured},
            phase_seconds={"workspace": 0.31, "setup": 4.2, "session": 83.2, "evaluation": 0.12},
            replayed=True,
        )
    )


def several() -> BatchResult:
    """Four suites: passed, out of turns, refused key, and one whose evaluator broke."""
    refused = broken("AUTHENTICATION_FAILED", "The API refused the key (401). Claude Code says: Invalid API key")
    spent = Failure(code="MAX_TURNS", message=safe("The session used all its turns (maxTurns)."))
    broke = unscored(Metric.EFFICIENCY, "ValueError: the session log has no end", failed=True)
    return batch(
        run("rest-endpoint"),
        run("fix-typo", status=SessionStatus.MAX_TURNS, failure=spent, seconds=190.0),
        run("migrate-schema", **refused),
        run("add-logging", evaluations={Metric.EFFICIENCY: broke}),
        seconds=372.0,
    )


def trials() -> BatchResult:
    """One suite, five trials, one of them timed out and one interrupted."""
    config = suite(trials=5)
    late = Failure(
        code="SESSION_TIMED_OUT", message=safe("The session did not end within its limit of 300 s (timeoutSeconds).")
    )
    cut: dict[str, Any] = {"status": SessionStatus.INTERRUPTED, "evaluations": {}, "api": ApiUsage()}
    cut["failure"] = Failure(code="INTERRUPTED", message=safe("The session was interrupted."))
    return batch(
        run(config=config, seconds=84.6),
        run(config=config, trial=2, seconds=70.2, evaluations=checked(score=93.1, turns=7)),
        run(config=config, trial=3, seconds=301, status=SessionStatus.TIMED_OUT, failure=late),
        run(config=config, trial=4, seconds=99.9, evaluations=checked(score=71.0, turns=14)),
        run(config=config, trial=5, seconds=12, **cut),
        seconds=570.0,
    )


def built_and_tested() -> BatchResult:
    """Build, tests of two runners and coverage, all well; and one that is told what is missing for counts."""
    runners = (
        RunnerCounts(format="Jest", source="stream", label=safe("packages/web"), passed=1_204, skipped=3, flaky=2),
        RunnerCounts(format="pytest", source="summary", label=safe("packages/api"), passed=88),
    )
    good = correctness(
        100,
        reasoning="buildCommand succeeded. 1292 of 1292 tests passed. "
        "Coverage is 85.2%, at or above the threshold of 80%.",
        build=command("npm run build"),
        test=command("npm test --workspaces", seconds=75.0),
        tests=TestSummary(runners=runners),
        coverage=CoverageSummary(format="Istanbul JSON summary", lines=85.2, branches=71.0),
        coverage_threshold=80,
        parts={"build": 100, "tests": 100, "coverage": 100},
    )
    note = "No test runner was recognised in the output; let the test command write a JUnit XML report."
    unknown = correctness(
        100,
        reasoning=f"testCommand succeeded. {note}",
        test=command("make check"),
        tests=TestSummary(note=safe(note)),
        parts={"tests": 100},
        notes=(note,),
    )
    evaluations = ({Metric.EFFICIENCY: efficiency(), Metric.FUNCTIONAL_CORRECTNESS: it} for it in (good, unknown))
    names = ("rest-endpoint", "fix-typo")
    return batch(*(run(name, evaluations=found) for name, found in zip(names, evaluations, strict=True)))


def not_correct() -> BatchResult:
    """Failing tests, a failing build, tests that do not end, and coverage that is missed."""
    names = tuple(safe(f"tests.test_orders.OrderTest.test_case_number_{number}") for number in range(10))
    counts = RunnerCounts(
        format="unittest", source="summary", passed=30, failed=11, errored=1, skipped=2, failures=names
    )
    output = "======\nFAIL: test_case_number_9\nAssertionError: 4 != 5\n\nFAILED (failures=11, errors=1, skipped=2)\n"
    failing = correctness(
        71.4,
        "12 of 42 tests failed.",
        test=command("python -m unittest", 1, output),
        tests=TestSummary(runners=(counts,)),
        parts={"tests": 71.43},
    )
    unbuilt = correctness(
        0,
        "buildCommand ended with exit code 2; testCommand was not run.",
        build=command("npm run build", 2, "src/app.ts(3,7): error TS2322: Type 'string' is not assignable.\n"),
        coverage_threshold=80,
        parts={"build": 0, "tests": 0, "coverage": 0},
    )
    endless = correctness(
        0,
        "testCommand ran into its limit of 300 s.",
        test=command("npm test -- --watch", None, "Watching for file changes...\n", 300.0),
        parts={"tests": 0},
    )
    uncovered = correctness(
        94.3,
        "Coverage is 64%, below the threshold of 80%.",
        test=command("pytest --cov", 0, "42 passed in 0.31s\n"),
        tests=TestSummary(runners=(RunnerCounts(format="pytest", source="summary", passed=42),)),
        coverage=CoverageSummary(format="coverage.py text", lines=64),
        coverage_threshold=80,
        parts={"tests": 100, "coverage": 80},
    )
    cases = {"failing": failing, "unbuilt": unbuilt, "endless": endless, "uncovered": uncovered}
    runs = (
        run(name, evaluations={Metric.EFFICIENCY: efficiency(), Metric.FUNCTIONAL_CORRECTNESS: found})
        for name, found in cases.items()
    )
    return batch(*runs, seconds=500.0)


def nothing() -> BatchResult:
    return batch(seconds=0.0)


HOSTILE = (
    "\x1b[2J\x1b[H\x1b]0;owned\x07[bold red]PASS[/] :smile:\r\n"
    " PASS  other-suite\u202e0.001\u2069 ##[error]x\n"
    "::stop-commands::y"
)


def hostile() -> BatchResult:
    """A session that wrote its own report, wherever it could."""
    names = tuple(safe(f"generated/file-{number:05}.txt") for number in range(9_998))
    calls = {f"mcp__server__tool_{number:02}": number for number in range(1, 60)}
    details = efficiency(12.3, HOSTILE, tool_calls=calls | {HOSTILE: 3}, models={HOSTILE: SONNET})
    changes = ChangeSummary(
        files=(safe(HOSTILE), safe("::error file=a::b" + " " * 60 + "PASS"), *names), insertions=1_234_567, deletions=0
    )
    setup = command(HOSTILE, 1, f"one\n{HOSTILE}\n", 1)
    config = suite(name="[red]markup[/red] :boom:")
    return batch(
        run(
            config.name,
            config=config,
            status=SessionStatus.FAILED,
            failure=Failure(code="SESSION_FAILED", message=safe(HOSTILE)),
            setup=setup,
            changes=changes,
            source=TestedSource(kind="worktree", commit="0ff834a1b2c3", branch=HOSTILE),
            evaluations={Metric.EFFICIENCY: details, Metric.FUNCTIONAL_CORRECTNESS: _hostile_tests()},
        )
    )


def _hostile_tests() -> EvalResult:
    counts = RunnerCounts(
        format=HOSTILE, source="report", label=safe(HOSTILE), failed=12, failures=tuple([safe(HOSTILE)] * 10)
    )
    return correctness(
        0,
        HOSTILE,
        test=command(HOSTILE, 1, HOSTILE),
        tests=TestSummary(runners=(counts, counts), note=safe(HOSTILE)),
        coverage=CoverageSummary(note=HOSTILE),
        coverage_threshold=80,
        parts={"tests": 0, "coverage": 0},
        notes=(HOSTILE,),
    )


def crowd() -> BatchResult:
    """20 suites, five trials each; half of the suites cannot reach the API."""
    runs = []
    for number in range(1, 21):
        config = suite(f"suite-{number:02}", trials=5)
        lost: dict[str, Any] = broken("API_OVERLOADED", "The API stayed overloaded (529).") if number % 2 else {}
        runs += [run(config.name, config=config, trial=trial, **lost) for trial in range(1, 6)]
    return batch(*runs, seconds=7265.0)


def entry(kind: ItemKind, name: str, file: str, reason: str | None = None) -> ManifestEntry:
    why = safe(reason) if reason else None
    return ManifestEntry(kind=kind, name=safe(name), file=safe(file), loaded=reason is None, reason=why)


def tool_usage_details() -> ToolUsageDetails:
    """What a judge says of a session that had much and used some of it."""
    rule, memory, conventions = safe(".claude/rules/rest.md"), safe("CLAUDE.md"), safe("Skill(rest-conventions)")

    missed = safe("The task asks for a review before the commit, and none was made.")
    misused = safe("It was called with the name of a file three times.")
    ignored = safe("It asks for a version in the path; the new route has none.")
    broken = safe("Routes are to be in the plural; the session wrote /order.")
    route = (citation("turn 4 call 1", "@app.get('/order')"),)
    commit = (citation("turn 9", "git commit"),)
    find, split = safe("mcp__shop__find"), {"instructionsIgnored": 2, "usedWell": 1}
    deep = "it lies one folder too deep: skills are read from .claude/skills/<name>/SKILL.md only"
    inner = entry(ItemKind.SKILL, "inner", ".claude/skills/group/inner/SKILL.md", deep)
    server = entry(ItemKind.MCP_SERVER, "catalog", ".mcp.json", "it could not be started or reached")
    skill = entry(ItemKind.SKILL, "rest-conventions", ".claude/skills/rest-conventions/SKILL.md")
    return ToolUsageDetails(
        judge=JudgeIdentity(model="claude-sonnet-5-5", prompt_version="1"),
        used={"Read": 5, "Bash": 12, "Skill(rest-conventions)": 1},
        uses=(
            ToolUse(tool=safe("Bash"), calls=12, errors=2),
            ToolUse(tool=safe("Read"), calls=5),
            ToolUse(tool=find, calls=3, errors=1, denied=1),
            ToolUse(tool=conventions, calls=1),
        ),
        missed=(ToolRemark(tool=safe("Agent(reviewer)"), reasoning=missed, evidence=commit),),
        misused=(ToolRemark(tool=find, reasoning=misused, evidence=(citation("turn 5 call 1", "name: shop.py"),)),),
        instructions_ignored=(ToolRemark(tool=conventions, reasoning=ignored, evidence=route, split=split),),
        rules=(
            RuleJudgement(rule=rule, verdict=RuleVerdict.BROKEN, reasoning=broken, evidence=route),
            RuleJudgement(rule=memory, verdict=RuleVerdict.FOLLOWED, reasoning=safe("Tests were added.")),
        ),
        not_loaded=(inner, server),
        manifest=(skill, inner, server),
        parts=3,
        notes=(safe("The transcript did not fit into the judge's context and was read in 3 parts."),),
    )


def tool_usage() -> BatchResult:
    """Two suites: one whose use of tools was judged, one whose judge was away."""
    reasoning = (
        "5 tools and rules apply: 1 followed, 1 used but its instructions ignored, 1 misused, 1 missed, 1 broken."
    )
    judged = evaluation(Metric.TOOL_USAGE, tool_usage_details(), 30.0, "3.2", reasoning)
    silent = RuleJudgement(
        rule=safe("CLAUDE.md"), verdict=RuleVerdict.NOT_APPLICABLE, reasoning=safe("It was not judged.")
    )
    unjudged = dict.fromkeys(("missed", "misused", "notes", "instructions_ignored"), ())
    counted = tool_usage_details().model_copy(update={**unjudged, "rules": (silent,), "judge": None, "parts": 1})
    told = "The judge did not answer within 300 s."
    away = evaluation(Metric.TOOL_USAGE, counted, None, "3.2", told, failed=True)
    return batch(
        run(evaluations={Metric.EFFICIENCY: efficiency(), Metric.TOOL_USAGE: judged}),
        run("add-logging", evaluations={Metric.EFFICIENCY: efficiency(), Metric.TOOL_USAGE: away}),
    )


@dataclass(frozen=True)
class Case:
    """A batch, and the widths at which its report is compared with an expected file."""

    name: str
    make: Callable[[], BatchResult]
    widths: tuple[int, ...] = (100,)


def confined() -> BatchResult:
    """Everything that can be told of isolation."""
    report = IsolationReport(
        level="landlock",
        reasons=("Namespaces cannot be made here (namespaces: Operation not permitted): this system forbids them.",),
        network=NetworkSettings(session="none", test="none"),
        findings=tuple(
            SettingFinding(file=safe(".claude/settings.json"), setting=safe(name), effect="It did not take effect.")
            for name in ("apiKeyHelper", "env.ANTHROPIC_BASE_URL", "env.CLAUDE_CODE_EXTRA_BODY")
        ),
        protected=tuple(safe(f"tests/test_{number}.py") for number in range(12)),
    )
    return batch(run(isolation=report))


CASES = (
    Case("one-rich", one_rich, (60, 100)),
    Case("several", several),
    Case("tool-usage", tool_usage, ()),
    Case("trials", trials, (60, 100)),
    Case("built-and-tested", built_and_tested),
    Case("not-correct", not_correct),
    Case("nothing", nothing),
    Case("hostile", hostile),
    Case("crowd", crowd, ()),
    Case("confined", confined),
)
