"""What a suite asks for, after the project's configuration and the defaults were merged in."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from zelda_ci.domain.base import Record

PermissionMode = Literal["default", "acceptEdits", "bypassPermissions", "dontAsk", "plan"]
Command = str | tuple[str, ...]
"""A shell line, or the arguments of one program."""

Percent = Annotated[float, Field(ge=0, le=100)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(ge=1)]

DEFAULT_MODEL = "claude-sonnet-5-5"


class Setting(Record):
    """A group of settings: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class ExecutionSettings(Setting):
    """How the Claude Code session is run."""

    model: str = Field(DEFAULT_MODEL, min_length=1, description="Full model id of the session, never an alias.")
    max_turns: PositiveInt = Field(30, description="Most model responses of the main conversation.")
    timeout_seconds: Positive = Field(1800, description="Wall time after which the session is ended.")
    max_cost_usd: Positive | None = Field(None, description="Cost in US dollars at which the session is stopped.")
    permission_mode: PermissionMode = Field("bypassPermissions", description="Claude Code's permission mode.")
    allowed_tools: tuple[str, ...] = Field((), description="Tools approved without asking, as in Claude Code.")
    disallowed_tools: tuple[str, ...] = Field((), description="Tools the session does not get at all.")
    env: tuple[str, ...] = Field((), description="Names of environment variables passed on to session and commands.")


class MetricSwitches(Setting):
    """Which metrics are computed."""

    efficiency: bool = Field(default=True, description="Tokens, cost, turns and time.")
    requirement_fulfillment: bool = Field(default=True, description="A judge rates each acceptance criterion.")
    tool_usage: bool = Field(default=True, description="Which skills, rules, agents and MCP tools were used or missed.")
    functional_correctness: bool = Field(default=True, description="The suite's own build, test and coverage commands.")


class EfficiencyTargets(Setting):
    """What an efficient session may use; reaching a target gives full marks for that part."""

    cost_usd: Positive | None = Field(None, description="Cost in US dollars.")
    tokens: PositiveInt | None = Field(None, description="Tokens of all kinds together.")
    turns: PositiveInt | None = Field(None, description="Model responses of the main conversation.")
    duration_seconds: Positive | None = Field(None, description="Wall time of the session.")


class JudgeSettings(Setting):
    """How the judge is asked."""

    model: str | None = Field(None, min_length=1, description="Overrides judgeModel.")
    votes: Literal[1, 3, 5] = Field(1, description="Judgements per criterion; the majority counts.")
    max_tokens: PositiveInt = Field(8192, description="Longest answer of the judge in tokens.")
    timeout_seconds: Positive = Field(300, description="Deadline of one judgement, retries included.")
    context_tokens: PositiveInt = Field(200_000, description="Context window of the judge model in tokens.")


class NetworkSettings(Setting):
    """Whether each phase may reach the network."""

    setup: Literal["open", "none"] = Field("open", description="The setup command.")
    session: Literal["open", "none"] = Field("open", description="The session's own tools.")
    build: Literal["open", "none"] = Field("open", description="The build command.")
    test: Literal["open", "none"] = Field("open", description="The test command.")


IsolationLevel = Literal["full", "namespaces", "uid", "landlock", "degraded", "none"]


class IsolationSettings(Setting):
    """How strictly session and commands are confined."""

    level: IsolationLevel | Literal["auto"] = Field("auto", description="The best available, or a named one.")
    require: IsolationLevel | None = Field(None, description="Refuse to run below this level.")
    read_paths: tuple[str, ...] = Field((), description="More folders that session and commands may read.")
    network: NetworkSettings = Field(default_factory=NetworkSettings, description="Network access per phase.")


class ScoreLimits(Setting):
    """A number per metric, in points of the 0-100 score."""

    efficiency: Percent | None = Field(None, description="Efficiency.")
    requirement_fulfillment: Percent | None = Field(None, description="Requirement fulfillment.")
    tool_usage: Percent | None = Field(None, description="Tool usage.")
    functional_correctness: Percent | None = Field(None, description="Functional correctness.")


class GateSettings(Setting):
    """What turns the check red."""

    fail_on: tuple[Literal["regression", "evaluation"], ...] = Field(
        ("regression", "evaluation"), description="Kinds of finding that give exit code 1."
    )
    min_score: ScoreLimits = Field(default_factory=ScoreLimits, description="Lowest acceptable score per metric.")
    tolerance: ScoreLimits = Field(default_factory=ScoreLimits, description="Drop per metric that is not a regression.")


class ResolvedSuite(Record):
    """One suite with every value settled; made by `config`, read by everybody, stored with each result."""

    name: str
    file: str
    """Path of the suite's file, relative to the project, with forward slashes."""
    description: str | None = None
    prompt: str
    acceptance_criteria: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    trials: PositiveInt = 1
    execution: ExecutionSettings = ExecutionSettings()
    metrics: MetricSwitches = MetricSwitches()
    efficiency_targets: EfficiencyTargets = EfficiencyTargets()
    setup_command: Command | None = None
    build_command: Command | None = None
    test_command: Command | None = None
    command_timeout_seconds: Positive = 300
    coverage_threshold: Percent | None = None
    test_report: tuple[str, ...] = ()
    coverage_report: tuple[str, ...] = ()
    protected_paths: tuple[str, ...] = ()
    history_depth: PositiveInt = 1
    judge_model: str = DEFAULT_MODEL
    gateway_url: str | None = None
    judge: JudgeSettings = JudgeSettings()
    isolation: IsolationSettings = IsolationSettings()
    gate: GateSettings = GateSettings()
