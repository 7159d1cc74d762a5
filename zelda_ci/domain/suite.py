"""What a suite asks for, after the project's configuration and the defaults were merged in.

Descriptions, limits and examples of the fields are the one source of the JSON Schemas, of the comments that
`zelda init` writes, of the tables in docs/configuration.md and of the sentences in error messages.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from operator import le
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from zelda_ci.domain.base import HEAD, KeySources, Record, Setting, base, checked, judging, lower
from zelda_ci.domain.measures import METRICS, SCORES, Measure, Metric
from zelda_ci.domain.trials import PoolSettings, TrialSetting
from zelda_ci.files.globs import expression

NOT_BLANK = r"\S"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$"
MODEL_ID = r"^[A-Za-z0-9@][A-Za-z0-9@._:/\[\]-]*-[A-Za-z0-9@._:/\[\]-]*$"
REQUEST_KEY = r"^[a-z][a-z0-9_]{0,99}$"
NO_BLANKS = r"^\S+$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
VALUE = r"^[^\x00]*$"
SHELL = r"^(\S*/)?(ba)?sh$|^\S+ +\S"
CALL = r"^([A-Z]|mcp__)[\w*-]*(\([^\x00]*\S[^\x00]*\))?$"
HOOK = r"^((PreTool|PreSkill|PostTool|Permission|UserPrompt|Subagent|Task)\w+|SessionStart|Setup|Stop)(\(.*\S.*\))?$"
TARGET = r"^(none|(skill|agent|command) [^\s()*/]+)$"
TIMES = r"^([0-9]{1,6}\.\.([0-9]{1,6})?|\.\.[0-9]{1,6})$"
WEB_ADDRESS = r"^https?://[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[^\s?#@]*)?$"
# What error messages and tables of keys call a text that matches.
PATTERNS = {
    NOT_BLANK: "text",
    NAME: "at most 60 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
    REQUEST_KEY: "the name of a key: small letters, digits and underscores",
    MODEL_ID: "the full id of a model, such as claude-sonnet-5-5, not an alias",
    NO_BLANKS: "the id of a model, without spaces",
    VARIABLE: "the name of an environment variable, without a value",
    SHELL: "bash, sh, or a program with options to which the line is added, such as bash -c,",
    VALUE: "text",
    CALL: "a tool, alone or with what it is called with in brackets as in permission rules, such as Bash(git push*),",
    HOOK: "an event whose hooks Claude Code reports, alone or with a part of a command, such as PreToolUse(guard),",
    TARGET: "none, or skill, agent or command and its name without a slash, such as skill changelog,",
    TIMES: "a range such as 1.., ..3 or 2..4",
    WEB_ADDRESS: "an http:// or https:// address without user name, query and fragment",
}
# Variables that never reach a session: the model proxy holds the key in its stead.
MODEL_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "PORTKEY_API_KEY")
JUDGE_CHOICE = base("would have chosen who judges, and through a gateway at which provider")
DEFAULT_MODEL = "claude-sonnet-5-5"
A_WEEK = 604_800
MAX_SHOWN_PROMPT = 120


def has_port(address: str) -> bool:
    """True where the port of an address can exist, or none is given."""
    try:
        return urlsplit(address).port != 0
    except ValueError:
        return False


Effort = Literal["low", "medium", "high", "xhigh", "max"]
PermissionMode = Literal["default", "acceptEdits", "bypassPermissions", "dontAsk", "plan"]
Percent = Annotated[float, Field(ge=0, le=100)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, le=A_WEEK)]
Text = Annotated[str, Field(pattern=NOT_BLANK)]
Name = Annotated[str, Field(pattern=NAME)]
RequestKey = Annotated[str, Field(pattern=REQUEST_KEY)]
ModelId = Annotated[str, Field(pattern=MODEL_ID)]
JudgeModelId = Annotated[str, Field(pattern=NO_BLANKS)]
WebAddress = Annotated[str, Field(pattern=WEB_ADDRESS), checked("must have a port from 1 to 65535, or none", has_port)]
Variable = Annotated[
    str,
    Field(pattern=VARIABLE),
    checked("must not be passed on: sessions never hold the key", lambda it: it.upper() not in MODEL_CREDENTIALS),
]
VariableValue = Annotated[
    str,
    Field(pattern=VALUE),
    checked(
        "holds a credential, which does not belong in a file: leave the value out, to pass on yours",
        lambda it: not re.search(r"://[^\s/@:]*:[^\s/@$]+@", it),
    ),
]
ProjectPath = Annotated[
    Text,
    checked(
        "must be a path inside the project, with forward slashes, not absolute and without '..'",
        lambda it: not it.startswith(("/", "~")) and ".." not in it.split("/") and "\\" not in it and it.isprintable(),
    ),
]
ProgramFolder = Annotated[
    Text,
    checked(
        "must be a folder of the project, such as .venv/bin, or an absolute one of the machine; without '..', '~' "
        "and ':'",
        lambda it: not (it.startswith("~") or ".." in it.split("/") or {":", "\\"} & {*it}) and it.isprintable(),
    ),
]
AbsolutePath = Annotated[Text, checked("must be absolute: begin it with a slash", lambda it: it.startswith("/"))]
# Some file systems do not tell upper from lower case.
SourcePath = Annotated[
    ProjectPath,
    checked("must not lead into .git, where git keeps what is its own", lambda it: ".git" not in it.lower().split("/")),
]


def _or_one(kind: Any) -> BeforeValidator:
    """One text stands for a list of one."""
    either = kind | tuple[kind, ...]
    return BeforeValidator(lambda it: (it,) if isinstance(it, str) else it, json_schema_input_type=either)


Globs = Annotated[tuple[SourcePath, ...], _or_one(SourcePath)]
Target = Annotated[str, Field(pattern=TARGET)]
Targets = Annotated[tuple[Target, ...], checked("must not be an empty list", bool), _or_one(Target)]
# A shell line, or the arguments of one program.
Command = Annotated[
    Text | tuple[str, ...],
    checked("must begin with the program to start", lambda it: isinstance(it, str) or not it or it[0].strip()),
]
Shell = Annotated[str, Field(pattern=SHELL)] | Annotated[tuple[Text, ...], Field(min_length=2)]
# To Python, True equals 1, so that a choice among numbers would take it.
Votes = Annotated[
    Literal[1, 3, 5],
    BeforeValidator(lambda value: None if isinstance(value, bool) else value, json_schema_input_type=Literal[1, 3, 5]),
]


class ExecutionSettings(Setting):
    """How the Claude Code session is run."""

    model: Annotated[ModelId, HEAD, KeySources("--model", help="Model of the sessions: its full id.")] = DEFAULT_MODEL
    """Model of the session: its full id, never an alias such as sonnet, because an alias moves on."""
    extra_models: Annotated[tuple[ModelId, ...], HEAD] = Field((), examples=[["claude-opus-5-5"]])
    """More models that sub-agents may use. The session's own model and known ones that cost no more are always
    allowed."""
    request_keys: Annotated[
        tuple[RequestKey, ...],
        base("would have passed other keys of model requests to the API"),
        KeySources(variable="ZELDA_REQUEST_KEYS"),
    ] = Field((), examples=[["new_option"]])
    """More keys that model requests may have, where Claude Code sends one that this version of Zelda does not know."""
    max_turns: Annotated[PositiveInt, HEAD] = Field(30, le=10_000)
    """Maximum number of model responses in the main conversation."""
    timeout_seconds: Annotated[Seconds, HEAD] = 1800
    """Maximum wall time of the session in seconds."""
    mcp_startup_seconds: Annotated[float, HEAD] = Field(30, ge=0, le=600)
    """Maximum wait in seconds for MCP servers to connect before the prompt is sent; 0 means no wait."""
    max_cost_usd: Annotated[
        Positive | None, lower("would have raised what a session may cost"), KeySources(input="max-cost-usd")
    ] = Field(None, examples=[2.5])
    """Cost in US dollars at which the session is stopped."""
    effort: Annotated[Effort | None, HEAD, KeySources("--effort", "effort")] = Field(None, examples=["medium"])
    """How much work the model puts into each response, where it has levels of effort; it wins over the project's
    `effortLevel`."""
    max_thinking_tokens: Annotated[int | None, HEAD, KeySources("--max-thinking-tokens")] = Field(
        None, ge=1024, le=128_000, examples=[8000]
    )
    """Thinking budget of each response in tokens. Only models with a fixed budget heed it, such as claude-haiku-4-5;
    newer ones choose their own."""
    permission_mode: Annotated[PermissionMode, base("would have changed what the session may do without asking")] = (
        "bypassPermissions"
    )
    """Claude Code's permission mode. A tool that would ask for permission is denied."""
    allowed_tools: Annotated[
        tuple[Text, ...], base("would have approved other tools, with WebFetch also addresses for the API to read")
    ] = Field((), examples=[["Bash(npm test:*)"]])
    """Tools approved without asking, written as in Claude Code."""
    disallowed_tools: Annotated[tuple[Text, ...], base("would have given the session other tools")] = Field(
        (), examples=[["WebFetch", "WebSearch"]]
    )
    """Tools the session does not get at all."""
    path: Annotated[
        tuple[ProgramFolder, ...], base("would have put other programs first, and made folders of the machine readable")
    ] = Field((), examples=[[".venv/bin"]])
    """Folders that come first in PATH, for session and commands: of the tested files, or absolute ones of the
    machine."""
    env: Annotated[
        tuple[Variable, ...] | dict[Variable, VariableValue | None],
        base("would have passed other variables to session and commands"),
        KeySources(
            "--pass-env", "pass-env", "ZELDA_PASS_ENV", help="The variables that are passed on, by name.", none="none"
        ),
    ] = Field((), examples=[["JAVA_HOME"], {"NODE_ENV": "test"}])
    """Environment variables for session and commands: names of yours that are passed on, or names with values; a name
    without a value passes on yours. All others are withheld."""

    @property
    def passed_on(self) -> tuple[str, ...]:
        """Names of the user's variables that session and commands get."""
        return tuple(name for name in self.env if not isinstance(self.env, dict) or self.env[name] is None)

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables with the suite's own values."""
        pairs = self.env.items() if isinstance(self.env, dict) else ()
        return {name: value for name, value in pairs if value is not None}


_Group = TypeVar("_Group", bound=Setting)


def _group(kind: type[Setting]) -> Any:
    """A group of keys, described as its class is."""
    return Field(default_factory=kind, description=kind.__doc__)


class _ByMetric(Setting):
    if TYPE_CHECKING:

        def __init__(self, **values: float | None) -> None: ...

    def of(self, key: Metric | Measure) -> float | None:
        """The value of a metric; what is none has none."""
        return dict(self).get(key.name.lower())


def _with_fields(fields: Mapping[Metric, Any]) -> Callable[[type[_Group]], type[_Group]]:
    """Give a group of settings a key per metric."""

    def fill(group: type[_Group]) -> type[_Group]:
        named: dict[str, Any] = {metric.name.lower(): field for metric, field in fields.items()}
        return create_model(group.__name__, __base__=group, __doc__=group.__doc__, __module__=__name__, **named)

    return fill


@_with_fields({metric: (bool, Field(default=True, description=spec.switch)) for metric, spec in METRICS.items()})
class MetricSwitches(_ByMetric):
    """Which metrics are computed."""

    def is_on(self, metric: Metric) -> bool:
        return bool(self.of(metric))


class EfficiencyTargets(Setting):
    """What an efficient session may use; reaching a target gives full marks for that part."""

    cost_usd: Positive | None = Field(None, examples=[0.5])
    """Cost in US dollars."""
    tokens: PositiveInt | None = Field(None, examples=[200_000])
    """Tokens of all kinds together."""
    turns: PositiveInt | None = Field(None, examples=[12])
    """Model responses of the main conversation."""
    duration_seconds: Seconds | None = Field(None, examples=[300])
    """Wall time of the session in seconds."""


class JudgeSettings(Setting):
    """How the judge is asked."""

    models: Annotated[tuple[JudgeModelId, ...], Field(max_length=5), JUDGE_CHOICE] = Field(
        (), examples=[[DEFAULT_MODEL, "claude-opus-5-5"]]
    )
    """Different models that judge in place of judgeModel, a vote each in turn; the majority decides."""
    votes: Annotated[Votes, HEAD] = 1
    """Number of judgements per criterion; the majority decides."""
    max_tokens: Annotated[PositiveInt, HEAD] = 8192
    """Maximum length of the judge's answer in tokens."""
    timeout_seconds: Annotated[Seconds, HEAD] = 300
    """Maximum time for one judgement in seconds, retries included."""
    context_tokens: Annotated[PositiveInt, HEAD] = 200_000
    """Context window of the judge model in tokens."""
    images: Annotated[
        bool, base("would have kept pictures and shown them to the judge, and no secret is masked in them")
    ] = True
    """Keep images that tools return, and show them to the judge."""
    max_lookups: Annotated[int, Field(ge=0), HEAD] = 20
    """Look-ups for one question; 0 for none."""
    max_lookup_characters: Annotated[PositiveInt, HEAD] = 200_000
    """Characters that it may look up for one question."""
    max_lookup_cost_usd: Annotated[Positive, lower("would have raised what a judge may look up")] = 1.0
    """Cost in US dollars after which a judge that looks things up must answer; for one question."""


def _network(phase: str) -> KeySources:
    whose = {"session": "session's own tools"}.get(phase, f"{phase} command")
    return KeySources(
        f"--network-{phase}", f"network-{phase}", f"ZELDA_NETWORK_{phase.upper()}", help=f"Network of the {whose}."
    )


Access = Literal["open", "none"]


class NetworkSettings(Setting):
    """Network access by phase."""

    setup: Annotated[Access, _network("setup")] = "open"
    """The setup command."""
    session: Annotated[Access, _network("session")] = "open"
    """The session's own tools."""
    build: Annotated[Access, _network("build")] = "open"
    """The build command."""
    test: Annotated[Access, _network("test")] = "open"
    """The test command."""


IsolationLevel = Literal["full", "uid", "landlock", "none"]


class IsolationSettings(Setting):
    """How strictly session and commands are confined."""

    level: Annotated[
        Literal["auto", "full", "uid", "landlock", "none"],
        KeySources("--isolation", "isolation-level", "ZELDA_ISOLATION"),
    ] = "auto"
    """The best available level, or a named one."""
    require: Annotated[
        IsolationLevel | None, KeySources("--require-isolation", "isolation-require", "ZELDA_REQUIRE_ISOLATION")
    ] = Field(None, examples=["landlock"])
    """Refuse to run below this level, before anything is spent."""
    read_paths: Annotated[
        tuple[AbsolutePath, ...], KeySources("--read-paths", "read-paths", "ZELDA_READ_PATHS", none="none")
    ] = Field((), examples=[["/opt/toolchain"]])
    """More folders that the session and the commands may read."""
    network: NetworkSettings = _group(NetworkSettings)
    mods: bool = False
    """Whether plugins may run code inside Claude Code, which can forge what a session did."""


@_with_fields(
    {metric: (Percent | None, Field(None, description=f"Points of {score.label}.")) for metric, score in SCORES.items()}
)
class ScoreLimits(_ByMetric):
    """A number per metric, in points of the 0-100 score."""


class GateSettings(Setting):
    """What turns the check red."""

    fail_on: Annotated[tuple[Literal["regression", "evaluation"], ...], KeySources(input="fail-on", none="never")] = (
        "regression",
        "evaluation",
    )
    """Kinds of findings that give exit code 1."""
    min_score: ScoreLimits = Field(
        default_factory=ScoreLimits,
        examples=[{str(key): score.limit[0] for key, score in SCORES.items() if score.limit}],
    )
    """Lowest acceptable score by metric."""
    tolerance: ScoreLimits = Field(
        default_factory=ScoreLimits,
        examples=[{str(key): score.limit[1] for key, score in SCORES.items() if score.limit}],
    )
    """Drop of a score, by metric, that is not a regression yet."""
    paths: Globs = Field((), examples=[["src/api/**"]])
    """Other files that run the suite if they change."""
    max_always_on_tokens: Annotated[
        PositiveInt | None,
        KeySources(
            "--max-always-on",
            "max-always-on",
            commands=("context",),
            help="Most tokens of steering that may be in the context of every session.",
        ),
    ] = Field(None, examples=[12_000])
    """Most tokens of steering that may be in the context of every session: what is always there of CLAUDE.md files,
    rules, skills and so on, but of no output style. The project's own; that of a suite is not looked at."""


class SharedSettings(Record):
    """Settings that the project's configuration gives to all suites, and each suite may give itself."""

    judge_model: Annotated[
        JudgeModelId,
        JUDGE_CHOICE,
        KeySources(
            "--judge-model", commands=("run", "check", "why", "rejudge"), help="Model that judges: its full id."
        ),
    ] = DEFAULT_MODEL
    """Model that judges acceptance criteria and tool usage: its full id."""
    trials: Annotated[
        TrialSetting,
        base("would have chosen what is spent, and whether a regression can be proven at all"),
        KeySources(
            "--trials",
            "trials",
            commands=("run",),
            help="Trials of each suite: a number, adaptive, or a plan such as '{first: 3, looks: [6, 10, 16]}'. Where "
            "nothing runs side by side, adaptive and plans are one trial.",
        ),
    ] = Field("adaptive", examples=[{"first": 3, "looks": [6, 10, 16]}])
    """How often each suite runs: a number; or adaptive, which runs more trials, side by side with the base, only where
    a suite does not go as expected. Keys of its own: first trials of the head, looks (trials of the head after which
    the sides are compared), budgetUsd."""
    execution: ExecutionSettings = _group(ExecutionSettings)
    metrics: Annotated[MetricSwitches, judging("would have switched off what shows that it is worse")] = _group(
        MetricSwitches
    )
    efficiency_targets: Annotated[
        EfficiencyTargets, judging("would have moved the targets that its scores are measured by")
    ] = _group(EfficiencyTargets)
    setup_command: Annotated[Command | None, HEAD] = Field(None, examples=["npm ci"])
    """Run in the workspace before the session: a shell line, or a list."""
    build_command: Annotated[Command | None, HEAD] = Field(None, examples=["npm run build"])
    """Builds the code after the session; exit code 0 is a pass."""
    test_command: Annotated[Command | None, HEAD] = Field(None, examples=["npm test"])
    """Tests the code after the session; exit code 0 is a pass."""
    shell: Annotated[Shell | None, HEAD] = Field(None, examples=["bash -c"])
    """Runs commands that are a line: bash or sh, which stop at the first failure, or a program with its options, to
    which the line is added. Without it bash, or sh where there is no bash."""
    command_timeout_seconds: Annotated[Seconds, HEAD] = 300
    """Maximum time for each of the three commands in seconds."""
    coverage_threshold: Annotated[Percent | None, judging("would have lowered what its tests have to cover")] = Field(
        None, examples=[80]
    )
    """Minimum test coverage in percent of lines."""
    test_report: Annotated[Globs, HEAD] = Field((), examples=["reports/*.xml"])
    """Where the test command writes machine-readable reports: one pattern or a list."""
    coverage_report: Annotated[Globs, HEAD] = Field((), examples=["coverage/lcov.info"])
    """Where the test command writes coverage reports: one pattern or a list."""
    protected_paths: Annotated[Globs | None, HEAD] = Field(None, examples=[["tests/**", "package.json"]])
    """Files restored from the tested commit before build and test run, so that no session can pass by editing them: one
    pattern or a list. They come on top of the usual ones (scripts and tests that the commands name, configuration of
    test runners); `!` takes out, and an empty list protects nothing."""
    keep_ignored: Annotated[Globs, HEAD] = Field((), examples=[["node_modules/**"]])
    """Files that git ignores and that build and test find as the session left them, which no patch shows: one pattern
    or a list. Without it they find what setup makes."""
    commands_see_suites: Annotated[bool, HEAD] = False
    """Whether build and test commands find suites, configuration and what lies with them; the session never does."""
    history_depth: Annotated[PositiveInt, base("would have shown the session more of the history")] = 1
    """Commits of history that the session sees."""
    judge: JudgeSettings = _group(JudgeSettings)
    undecided: Annotated[
        Literal["fail", "ignore"], judging("would have said what becomes of criteria that the judge cannot decide")
    ] = "fail"
    """How a criterion counts that the evidence cannot decide: fail means not met, ignore leaves it out."""
    isolation: Annotated[IsolationSettings, base("would have changed how session and commands are confined")] = _group(
        IsolationSettings
    )
    gate: Annotated[
        GateSettings, judging("would have changed its own gate, limits included, and which changes concern no suite")
    ] = _group(GateSettings)
    pool: Annotated[PoolSettings, base("would have chosen the stored trials that it is compared with")] = _group(
        PoolSettings
    )


SuiteKind = Literal["task", "routing"]
CallRule = Annotated[str, Field(pattern=CALL)]
HookRule = Annotated[str, Field(pattern=HOOK)]
CheckCommand = Annotated[Command, checked("must not be an empty list", bool)]
Files = Annotated[Globs, checked("must name files, not only what ! takes out", lambda it: any(f[0] != "!" for f in it))]


def bounds_of(times: int | str | None) -> tuple[int, float]:
    """The least and the most of a number of times or a range; once or more where none is given."""
    low, dots, high = str("1.." if times is None else times).partition("..")
    return int(low or 0), float(high or ("inf" if dots else low))


Rising = Annotated[
    str, Field(pattern=TIMES), checked("must not end below where it begins", lambda it: le(*bounds_of(it)))
]
Times = Annotated[int, Field(ge=0, le=999_999)] | Rising


def _is_phrase(text: str) -> object:
    """True for text that is no expression between slashes, or for one that RE2 reads."""
    is_other = re.fullmatch("/.+/(?!i$)[gimsuy]+", text, re.DOTALL)
    return not is_other and expression(expression_of(text) or "")


Phrase = Annotated[
    Text, checked("is no expression of RE2: no look-around, no back-references, no flag but i", _is_phrase)
]


def expression_of(phrase: str) -> str | None:
    """The expression of a phrase that is written as `/expression/` or `/expression/i`; None for plain text."""
    match = re.fullmatch(r"/(.+)/(i?)", phrase, re.DOTALL)
    return None if match is None else f"(?{match[2]}m){match[1]}"


class Sequel(Setting):
    """Two calls, of which one must come before the other."""

    first: CallRule = Field(examples=["Bash(npm test*)"])
    """The call that comes first."""
    then: CallRule = Field(examples=["Bash(git commit*)"])
    """The call before each of which it must come."""


class SuiteCheck(Setting):
    """A criterion that needs no judge: one of the words below, decided from the session's calls, hooks and changes."""

    called: CallRule | None = Field(None, examples=["Skill(changelog)"])
    """A call that was made, as permission rules name it."""
    not_called: CallRule | None = Field(None, examples=["Bash(git push*)"])
    """A call that was not made."""
    order: tuple[CallRule, ...] | None = Field(
        None, min_length=2, examples=[["Read(CLAUDE.md)", "Edit(src/**)", "Bash(npm test*)"]]
    )
    """Calls that were made in this order, with others between them."""
    before: Sequel | None = Field(None, examples=[{"first": "Bash(npm test*)", "then": "Bash(git commit*)"}])
    """A call that came before each one of another kind."""
    not_read: Files | None = Field(None, examples=[["secrets/**"]])
    """Files that the session did not read, as far as its calls show."""
    changed: Files | None = Field(None, examples=[["CHANGELOG.md"]])
    """Files that the session changed: one at least for each pattern."""
    changed_only: Globs | None = Field(None, examples=[["src/**", "tests/**"]])
    """The only files that the session changed."""
    says: Phrase | None = Field(None, examples=["/rate limit/i"])
    """Text in the last message, or an expression such as /rate limit/i."""
    not_says: Phrase | None = Field(None, examples=["/as an AI/i"])
    """The same, not in the last message."""
    command: CheckCommand | None = Field(None, examples=["./check.sh"])
    """A command that ends with exit code 0, run where build and test commands are."""
    hook_ran: HookRule | None = Field(None, examples=["PreToolUse(guard)"])
    """A hook that ran."""
    hook_blocked: CallRule | None = Field(None, examples=["Bash(git push*)"])
    """A call that was tried, and that a hook blocked each time."""
    hook_failed: Literal["none"] | None = None
    """No hook failed, other than by blocking a call."""
    routed: Targets | None = Field(None, examples=["skill changelog"])
    """The skill, sub-agent or command that the main thread called first, or none; of a list, one."""
    times: Times | None = Field(None, examples=[2])
    """With called: how often, as a number or a range such as 1.. or ..3."""
    agent: Literal["any", "main"] = "any"
    """With words for calls: whether those of sub-agents count, or the main thread's alone."""
    name: Text | None = Field(None, examples=["Tests ran first."])
    """What reports call the criterion, in place of the check itself."""
    must_pass: bool = False
    """Whether the check is red where it fails, whatever the base does."""

    model_config = ConfigDict(
        json_schema_extra=lambda it: it.update(oneOf=[{"required": [key]} for key in map(to_camel, CHECK_WORDS)])
    )

    @model_validator(mode="after")
    def _has_one_word(self) -> Self:
        given = [word for word in CHECK_WORDS if getattr(self, word) is not None]
        if len(given) != 1:
            found = " and ".join(to_camel(word) for word in given) or "none of them"
            context = {"words": ", ".join(map(to_camel, CHECK_WORDS)), "found": found}
            raise PydanticCustomError("setting", "must have one of {words}; it has {found}", context)
        if self.times is not None and self.called is None:
            raise PydanticCustomError("setting", "has times, which goes with called only")
        if self.agent == "main" and given[0] not in {"called", "not_called", "order", "before", "not_read"}:
            raise PydanticCustomError("setting", "has agent, which goes with words for calls only")
        return self

    @property
    def word(self) -> str:
        """Its word, in Python's spelling."""
        return next(word for word in CHECK_WORDS if getattr(self, word) is not None)

    @property
    def routes(self) -> tuple[str, ...]:
        """Rules for the calls of which one is to be the first."""
        targets = (target.partition(" ") for target in self.routed or () if target != "none")
        return tuple(f"{'Agent' if kind == 'agent' else 'Skill'}({name})" for kind, _, name in targets)

    @property
    def text(self) -> str:
        """The criterion: its name, or what the suite's file says."""
        if self.name:
            return self.name
        value = getattr(self, self.word)
        if isinstance(value, Sequel):
            value = f"{value.first}, then {value.then}"
        elif isinstance(value, tuple):
            join = shlex.join if self.word == "command" else (" or " if self.word == "routed" else ", ").join
            value = join(value) or "nothing"
        times = "" if self.times is None else f", times: {self.times}"
        return f"{to_camel(self.word)}: {value}{times}{'' if self.agent == 'any' else f', agent: {self.agent}'}"


_OPTIONS = {"times", "agent", "name", "must_pass"}
CHECK_WORDS: tuple[str, ...] = tuple(name for name in SuiteCheck.model_fields if name not in _OPTIONS)


class RoutedPrompt(Setting):
    """A prompt of a routing suite, and what it is for."""

    prompt: Text = Field(examples=["What changed in 1.4?"])
    """The prompt, as somebody would type it."""
    expect: Targets = Field(examples=["skill changelog"])
    """What it is for: a skill, an agent, a command, or none; a list stands for one of them."""

    @property
    def check(self) -> SuiteCheck:
        words = " ".join(self.prompt.split())
        short = words if len(words) <= MAX_SHOWN_PROMPT else f"{words[: MAX_SHOWN_PROMPT - 3]}..."
        return SuiteCheck(routed=self.expect, name=f'"{short}" is for {" or ".join(self.expect)}')


class SuiteText(Record):
    name: str
    file: str
    """Path of the suite's file, relative to the project, with forward slashes."""
    kind: SuiteKind = Field("task", exclude_if=lambda kind: kind == "task")
    """Of `routing`, a session ends with its first call of a skill, sub-agent or command."""
    description: str | None = None
    prompt: str
    must_pass: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] = ()
    answer_criteria: tuple[str, ...] = ()
    checks: tuple[SuiteCheck, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def criteria(self) -> tuple[str, ...]:
        """All that a judge rates, as numbered from 1: those about the result first. Checks come behind them."""
        return self.must_pass + self.acceptance_criteria + self.answer_criteria

    @property
    def required(self) -> tuple[str, ...]:
        """The criteria that turn the check red where they fail, whatever the base does."""
        return self.must_pass + tuple(check.text for check in self.checks if check.must_pass)


class ResolvedSuite(SharedSettings, SuiteText):
    """One suite with every value settled; made by `config`, read by everybody, stored with each result."""

    gateway_url: str | None = None
    """Gateway of the project."""

    @property
    def deciding_commands(self) -> tuple[Command, ...]:
        """The commands after the session whose exit codes decide, in their order."""
        commands = (self.build_command, self.test_command, *(check.command for check in self.checks))
        return tuple(command for command in commands if command)

    @property
    def only_measures(self) -> bool:
        """True where nothing is asked of its runs that could pass or fail."""
        judged = self.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT) and (self.criteria or self.checks)
        is_tested = self.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS) and (self.build_command or self.test_command)
        return not (judged or is_tested)
