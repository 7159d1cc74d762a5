"""A coding session: what was said and done, as it happened (`SessionRecord`) and as a whole (`SessionTranscript`)."""

from enum import StrEnum
from operator import not_
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt

from zelda_ci.domain.base import Document, Moment, Record
from zelda_ci.domain.kinds import MAX_TOOL_NAME_LENGTH, agent, skill
from zelda_ci.redact import SafeJson, SafeText

# What models can see, and so what a session has seen.
MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
_BEGINNINGS: dict[bytes, MediaType] = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif", b"GIF89a": "image/gif",
}  # fmt: skip
# The name under which Claude Code speaks itself, mostly to tell of an error.
SYNTHETIC_MODEL = "<synthetic>"
TokenCount = Annotated[int, Field(ge=0, le=10**18)]
# Of one image: the API takes 5 MB of base64.
MAX_IMAGE_BYTES = 3_700_000


class SessionImage(Record):
    """An image that a tool returned. It lies beside the transcript, in a file that its digest names."""

    media_type: MediaType
    """Type by its first bytes, whatever the tool called it."""
    size_bytes: NonNegativeInt
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @property
    def file_name(self) -> str:
        return f"{self.sha256}.{self.media_type.removeprefix('image/').replace('jpeg', 'jpg')}"


def media_type_of(data: bytes) -> MediaType | None:
    """Type of an image by its first bytes; None for an unknown one."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), None)


class SessionStatus(StrEnum):
    """End of a session. Only `completed` means that Claude Code itself called the work finished."""

    COMPLETED = "completed"
    MAX_TURNS = "maxTurns"
    BUDGET_EXCEEDED = "budgetExceeded"
    TIMED_OUT = "timedOut"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def is_valid(self) -> bool:
        """Whether a session says something of the tested files: running into a limit of its suite is how it went."""
        return self not in {SessionStatus.FAILED, SessionStatus.INTERRUPTED}


class Usage(Record):
    """Tokens, as the Messages API counts them: the four kinds do not overlap."""

    input_tokens: TokenCount = 0
    output_tokens: TokenCount = 0
    cache_read_tokens: TokenCount = 0
    cache_write_tokens: TokenCount = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{kind: getattr(self, kind) + getattr(other, kind) for kind in Usage.model_fields})

    @property
    def total(self) -> int:
        return sum(getattr(self, kind) for kind in Usage.model_fields)


class ModelUsage(Usage):
    """Tokens and cost of one model in one session, sub-agents and retries included."""

    cost_usd: float = Field(0.0, ge=0, le=1e300)
    cost_known: bool = True
    """False where no list price of the model is known and the cost is a guess."""

    def with_more(self, other: "ModelUsage") -> "ModelUsage":
        known = self.cost_known and other.cost_known
        return ModelUsage(**dict(self + other), cost_usd=self.cost_usd + other.cost_usd, cost_known=known)


class _Happened(Record):
    at: float
    """Seconds since the session was started."""


class McpServer(Record):
    """An MCP server as the session found it."""

    name: SafeText
    status: SafeText


class McpServerState(McpServer):
    """An MCP server at one time; in a transcript with when it connected: late if the session had begun before."""

    error: SafeText | None = None
    tools: tuple[SafeText, ...] = ()
    connected_at: float | None = None
    late: bool = False


class ServersReported(_Happened):
    """The states of all MCP servers, recorded when one of them has changed."""

    type: Literal["serversReported"] = "serversReported"
    servers: tuple[McpServerState, ...]


class PluginError(Record):
    """Reason why Claude Code did not load a plugin, or a part of it."""

    plugin: SafeText
    message: SafeText


class Started(_Happened):
    """Claude Code's init message: what was really loaded."""

    type: Literal["started"] = "started"
    session_id: SafeText
    cli_version: SafeText
    model: SafeText
    permission_mode: SafeText
    tools: tuple[SafeText, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    skills: tuple[SafeText, ...] = ()
    agents: tuple[SafeText, ...] = ()
    slash_commands: tuple[SafeText, ...] = ()
    plugins: tuple[SafeText, ...] = Field(default=(), exclude_if=not_)
    """Plugins as settings name them: `name@marketplace`."""
    plugin_errors: tuple[PluginError, ...] = Field(default=(), exclude_if=not_)


class _InThread(_Happened):
    parent_tool_call_id: SafeText | None = None
    """The call of the sub-agent tool to whose thread this belongs; absent in the main thread."""


class AssistantSaid(_InThread):
    """A text or thinking block of a model response."""

    type: Literal["said"] = "said"
    message_id: SafeText
    model: SafeText
    text: SafeText
    thinking: bool = False


class ToolCalled(_InThread):
    type: Literal["toolCalled"] = "toolCalled"
    message_id: SafeText
    model: SafeText
    id: SafeText
    name: SafeText
    input: SafeJson


class ToolReturned(_InThread):
    type: Literal["toolReturned"] = "toolReturned"
    id: SafeText
    output: SafeText
    is_error: bool = False
    images: tuple[SessionImage, ...] = Field(default=(), exclude_if=not_)


class UserSaid(_InThread):
    """Text on the user's side that is not the prompt: skill bodies, compaction summaries, nudges of the CLI."""

    type: Literal["userSaid"] = "userSaid"
    text: SafeText


class ResponseEnded(_InThread):
    """Final token counts of one model response."""

    type: Literal["responseEnded"] = "responseEnded"
    message_id: SafeText
    usage: Usage


class Retried(_Happened):
    type: Literal["retried"] = "retried"
    attempt: int
    status: int | None = None
    error: SafeText
    delay_seconds: float = 0.0


class Denied(_Happened):
    type: Literal["denied"] = "denied"
    tool: SafeText
    tool_call_id: SafeText | None = None
    reason: SafeText


class HookRan(_Happened):
    type: Literal["hookRan"] = "hookRan"
    name: SafeText
    event: SafeText
    outcome: SafeText
    output: SafeText
    exit_code: int | None = None
    """Of its command: 2 blocks what it ran for; absent for hooks of other kinds."""


class Noticed(_InThread):
    """Any other system message worth keeping: compaction, a line on standard error, the end of a background task."""

    type: Literal["noticed"] = "noticed"
    kind: SafeText
    text: SafeText


class Ended(_Happened):
    """Claude Code's result message. Several may come; cost, API time and model usage are of the whole session."""

    type: Literal["ended"] = "ended"
    subtype: SafeText
    is_error: bool
    terminal_reason: SafeText | None = None
    stop_reason: SafeText | None = None
    """Stop reason of the last model response; `refusal` explains an error."""
    api_error_status: int | None = None
    turns: int = 0
    api_seconds: float = 0.0
    cost_usd: float | None = None
    model_usage: dict[str, ModelUsage] = {}
    text: SafeText | None = None
    errors: tuple[SafeText, ...] = ()


_Told = ToolReturned | UserSaid | Retried | Denied | HookRan | Noticed
SessionRecord = Annotated[
    Started | ServersReported | AssistantSaid | ToolCalled | ResponseEnded | _Told | Ended, Field(discriminator="type")
]


class ToolCall(Record):
    """One tool call with what came back; `output` is absent when the session ended before it returned."""

    id: SafeText
    name: SafeText
    input: SafeJson
    output: SafeText | None = None
    is_error: bool = False
    images: tuple[SessionImage, ...] = Field(default=(), exclude_if=not_)
    """Returned images that were kept, in order."""
    denied: bool = False
    started_at: float
    """Seconds since the session was started."""
    ended_at: float | None = None

    @property
    def label(self) -> str:
        """A tool by its name, a skill or sub-agent with its own; `Task` is what Claude Code called `Agent` before."""
        match self.name:
            case "Skill":
                return skill(self.input.get("skill"))
            case "Agent" | "Task":
                # Which Claude Code starts where none is named.
                return agent(self.input.get("subagent_type") or "general-purpose")
            case "Workflow" if self.input.get("name"):
                return skill(self.input.get("name"))
            case _:
                return self.name[:MAX_TOOL_NAME_LENGTH]


class Turn(Record):
    """One model response, in the main thread or in a sub-agent's, with the tool calls it made."""

    type: Literal["turn"] = "turn"
    index: int
    """Position among all turns of the session, from 1."""
    message_id: SafeText
    model: SafeText
    parent_tool_call_id: SafeText | None = None
    at: float
    text: SafeText | None = None
    thinking: SafeText | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    synthetic: bool = False
    """True for texts that the CLI invented (errors): never counted as model output."""


# A tool's answer stands alone where its call is not known; otherwise it is part of the call.
Entry = Annotated[Turn | _Told, Field(discriminator="type")]


class SessionTranscript(Document):
    """The whole session in order: redacted, complete up to the last message that arrived."""

    run_id: str
    prompt: SafeText
    started_at: Moment
    status: SessionStatus
    reason: SafeText | None = None
    """Reason why the session did not complete, in a sentence; absent when it did."""
    wall_seconds: float
    started: Started | None = None
    mcp_servers: tuple[McpServerState, ...] = ()
    """Last known state of each server."""
    entries: tuple[Entry, ...] = ()
    ended: Ended | None = None

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The model responses, those invented by the CLI included."""
        return tuple(entry for entry in self.entries if isinstance(entry, Turn))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Every tool call of every thread, in order."""
        return tuple(call for turn in self.turns for call in turn.tool_calls)


class ApiUsage(Record):
    """Usage as the model proxy counted it on the wire, independent of what Claude Code reports."""

    requests: int = 0
    retries: int = 0
    """Requests that repeat an earlier one whose answer was an error or broke off."""
    errors: dict[str, int] = {}
    """Number of errors by HTTP status, or `connection`."""
    models: dict[str, ModelUsage] = {}
    api_seconds: float = 0.0
    wait_seconds: float = 0.0
    """Seconds that requests waited for the API's limits; part neither of `apiSeconds` nor of the session's time."""
    first_tokens: int | None = None
    """Size of the first request that was answered and gives the model tools: all that a fresh session is given, and
    the prompt."""
    throttled: int = 0
    """Refusals (429, 529) after which the proxy sent a request again; part neither of `retries` nor of `errors`."""
    lost_agents: int = 0
    """Sub-agents whose last request the API failed, whatever the session made of that."""

    @property
    def cost_usd(self) -> float:
        return sum(usage.cost_usd for usage in self.models.values())

    @property
    def cost_known(self) -> bool:
        return all(usage.cost_known for usage in self.models.values())

    @property
    def usage(self) -> Usage:
        return sum(self.models.values(), Usage())
