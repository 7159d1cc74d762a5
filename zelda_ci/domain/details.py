"""The details of each metric, as results store them."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from zelda_ci.domain.base import Record
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.session import ModelUsage, Usage
from zelda_ci.redact import EMPTY, Redactor, SafeText

# A report file; a machine-readable stream in the output; the closing summary that a runner prints.
Source = Literal["report", "stream", "summary"]
# What was counted: `go test` without `-v` tells packages only.
Unit = Literal["tests", "packages"]
LAST_LINES = 20


class CommandResult(Record):
    """One command of the suite: exit code is absent when it was ended by its timeout, or with Zelda."""

    command: SafeText
    exit_code: int | None = None
    timed_out: bool = False
    seconds: float
    output: SafeText
    """Head and tail of what it printed, standard error included; in a stored result the last lines."""
    output_bytes: int
    truncated: bool = False

    def in_brief(self, redact: Redactor) -> "CommandResult":
        """The result with the last lines of its output only, as it is stored."""
        return self.replace(output=redact("\n".join(self.output[-4_000:].splitlines()[-LAST_LINES:])))


class RunnerCounts(Record):
    """One runner's numbers. A test counts once: `errored` are those that broke outside of an assertion."""

    format: str
    """Name of the recognised format, like `pytest` or `JUnit XML`."""
    source: Source
    unit: Unit = "tests"
    label: SafeText | None = None
    """Prefix of its lines in the output, or folder of its reports, where there are several runners."""
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    """Skipped, pending, ignored, to do, or failing as expected."""
    flaky: int = 0
    """Tests among the passed that passed on a retry, as far as the format tells."""
    failures: tuple[SafeText, ...] = ()
    """Names of the first failed or errored tests."""

    @property
    def total(self) -> int:
        """Tests that are known, run or not."""
        return self.passed + self.failed + self.errored + self.skipped


def _summed(name: str) -> property:
    return property(lambda summary: sum(getattr(runner, name) for runner in summary.runners))


class TestSummary(Record):
    """Numbers of one test command; no runner means that no format was recognised."""

    __test__ = False  # not a pytest class

    runners: tuple[RunnerCounts, ...] = ()
    note: SafeText | None = None
    """Sentence on why nothing was recognised and how to get counts, or on the numbers."""
    unclear: tuple[SafeText, ...] = ()
    """Signs of a failure, or of a run without an end, that could not be counted: then there are no numbers, and
    whatever the exit code says, it is no pass."""

    @property
    def recognised(self) -> bool:
        return bool(self.runners)

    passed, failed, errored, skipped, flaky, total = map(
        _summed, ("passed", "failed", "errored", "skipped", "flaky", "total")
    )

    @property
    def ran(self) -> int:
        """Tests that were not skipped. Zero is no success."""
        return int(self.total - self.skipped)

    @property
    def failures(self) -> tuple[SafeText, ...]:
        """Names of failed tests, runner by runner."""
        return tuple(name for runner in self.runners for name in runner.failures)


class CoverageSummary(Record):
    """Share of the code that the tests reached, in percent; without `lines` nothing was recognised."""

    format: str | None = None
    lines: float | None = None
    branches: float | None = None
    note: str | None = None
    """Sentence on why nothing was recognised, and how to get a number."""


class CorrectnessDetails(Record):
    """Raw numbers behind the functional correctness score. What is not configured, or was not reached, is absent."""

    passed: bool
    """True where the code was built, its tests ran and passed, and the coverage threshold was reached."""
    shortfalls: tuple[str, ...] = ()
    """Reasons why it did not pass, one sentence each."""
    build: CommandResult | None = None
    test: CommandResult | None = None
    """Not run where the build failed."""
    tests: TestSummary | None = None
    coverage: CoverageSummary | None = None
    coverage_threshold: float | None = None
    """Threshold in percent of lines."""
    parts: dict[str, float] = {}
    """Score 0 to 100 of each part that is configured: `build`, `tests`, `coverage`."""
    weights: dict[str, float] = {}
    """Share of each part in the score; together 100."""
    notes: tuple[str, ...] = ()
    """Remarks on the numbers."""


class EfficiencyDetails(Record):
    """Raw numbers behind the efficiency score."""

    counted_by: Literal["claudeCode", "proxy", "transcript"] = "claudeCode"
    """Source of tokens and cost: Claude Code's last result message, the model proxy, or the transcript's responses."""
    usage: Usage
    models: dict[str, ModelUsage]
    cost_usd: float
    cost_known: bool
    turns: int
    """Model responses in the main thread."""
    subagent_turns: int
    wall_seconds: float
    api_seconds: float
    tool_calls: dict[str, int]
    """Calls by tool; skills as `Skill(name)`, sub-agents as `Agent(type)`, MCP tools by their full name."""
    tool_errors: int
    denied_calls: int
    api_retries: int
    parts: dict[str, float]
    """Score 0 to 100 of each part that had a target, by the target's name; `maxTurns` where there was none."""


class CriterionVerdict(StrEnum):
    """Verdict on a criterion."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    UNDECIDED = "undecided"
    """It was judged, and the evidence does not tell: not met, unless the suite ignores such criteria."""
    NOT_JUDGED = "notJudged"
    """Nobody gave a verdict that counts: the run is incomplete."""


# Places that are named like the blocks that show them to judges.
CHECKS = "build-and-tests"
TASK = "task"


class Citation(Record):
    """Place at which a verdict can be checked, and what is quoted from it."""

    kind: Literal["file", "patch", "removed", "transcript", "said", "image", "checks", "task", "absent"]
    """A final file, lines that the patch adds or removes, what happened or was said, an image, build and tests, the
    task, or text that is nowhere."""
    path: SafeText = EMPTY
    """Of a file, or of the part of the patch."""
    first_line: int = 0
    last_line: int = 0
    turn: int = 0
    """Of the transcript; 0 stands for all of it."""
    call: int = 0
    """Tool call of the turn, from 1."""
    image: int = 0
    pattern: SafeText = EMPTY
    """Text that is absent."""
    is_regex: bool = False
    paths: tuple[SafeText, ...] = ()
    """Files, as patterns, from which it is absent."""
    quote: SafeText = EMPTY

    @model_serializer(mode="wrap")
    def _brief(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in whole(self).items() if value}

    @property
    def where(self) -> str:
        turn = f"turn {self.turn}{f' call {self.call}' if self.call else ''}" if self.turn else "transcript"
        match self.kind:
            case "file":
                last = f"-{self.last_line}" if self.last_line and self.last_line != self.first_line else ""
                return f"{self.path}:{self.first_line}{last}" if self.first_line else self.path
            case "patch" | "removed":
                return f"{self.kind}:{self.path}" if self.path else self.kind
            case "said":
                return f"said:{turn}"
            case "image":
                return f"{turn} image {self.image or 1}"
            case "absent":
                pattern = f"/{self.pattern}/" if self.is_regex else self.pattern or "any file"
                return f"absent: {pattern} in {', '.join(self.paths)}"
            case _:
                return {"transcript": turn, "checks": CHECKS, "task": TASK}[self.kind]


class _Judgement(Record):
    reasoning: SafeText
    evidence: tuple[Citation, ...] = ()
    """Citations that were looked up and found."""
    split: dict[str, int] | None = None
    """Votes by verdict, where there were several and they differed; those that do not count as `notJudged`."""


class CriterionJudgement(_Judgement):
    """One acceptance criterion of one run."""

    criterion: SafeText
    verdict: CriterionVerdict
    by: Literal["judge", "check"] = Field("judge", exclude_if=lambda by: by == "judge")
    """Who decided: a judge, or Zelda itself where the suite has it under `checks`."""


class JudgeIdentity(Record):
    """The judge: verdicts of different judges are not comparable."""

    model: str
    prompt_version: str


class _JudgedDetails(Record):
    judge: JudgeIdentity | None = None
    votes: int = 1
    parts: int = 1
    """Pieces in which the transcript was read; more than one where it did not fit into the judge's context."""
    notes: tuple[SafeText, ...] = ()
    """Limits of the verdicts, in sentences, such as what the judge did not see in full."""


class FulfillmentDetails(_JudgedDetails):
    """Details of the metric `requirementFulfillment`, criteria in the suite's order."""

    criteria: tuple[CriterionJudgement, ...] = ()

    @property
    def by_name(self) -> dict[str, CriterionJudgement]:
        """Judgements by criterion; a text that occurs twice in a suite is numbered."""
        named: dict[str, CriterionJudgement] = {}
        for judged in self.criteria:
            name, copies = str(judged.criterion), 1
            while name in named:
                copies += 1
                name = f"{judged.criterion} ({copies})"
            named[name] = judged
        return named


class ToolUse(Record):
    """Calls of one tool in a session, and how many went wrong."""

    tool: SafeText
    """Named as in `EfficiencyDetails.tool_calls`."""
    calls: int
    errors: int = 0
    """Calls that came back with an error, denied ones not counted."""
    denied: int = 0


class ToolRemark(_Judgement):
    """Remark of the judge on one tool."""

    tool: SafeText


class RuleVerdict(StrEnum):
    """Verdict on a rule. Rules have no call that could be counted: without a judge nothing is known of them."""

    FOLLOWED = "followed"
    BROKEN = "broken"
    NOT_APPLICABLE = "notApplicable"
    NOT_JUDGED = "notJudged"
    """There is no finding that counts, or the judge was not asked."""


class RuleJudgement(_Judgement):
    """One rule or CLAUDE.md file that the session had."""

    rule: SafeText
    """File of the rule."""
    verdict: RuleVerdict


class ToolUsageDetails(_JudgedDetails):
    """Details of the metric `toolUsage`. Without a judge, only what needs none is filled."""

    used: dict[str, int] = {}
    """Calls by tool, named as in `EfficiencyDetails.tool_calls`."""
    uses: tuple[ToolUse, ...] = ()
    """Calls by tool with errors and denials, the most used first."""
    missed: tuple[ToolRemark, ...] = ()
    """Tools that were available, should have been used, and were not."""
    misused: tuple[ToolRemark, ...] = ()
    """Tools that were used in a way or for a purpose for which they are not meant."""
    instructions_ignored: tuple[ToolRemark, ...] = ()
    """Tools that were called, and then not done as they say."""
    used_well: tuple[ToolRemark, ...] = ()
    not_applicable: tuple[ToolRemark, ...] = ()
    """Tools that have nothing to do with the task."""
    not_judged: tuple[ToolRemark, ...] = ()
    """Tools on which there is no finding that counts. What was offered is in one of these six."""
    rules: tuple[RuleJudgement, ...] = ()
    not_loaded: tuple[ManifestEntry, ...] = ()
    """Items of the project that the session had not, with the reason; without those that only waited for a file."""
    manifest: tuple[ManifestEntry, ...] = ()
    """Everything that the project has, without its text."""
