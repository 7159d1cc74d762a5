"""Sessions of two sides for the HTML report: made one at a time, so that no more than one is in memory."""

import hashlib
import random
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from tests.builders import MODEL, START, safe, session
from tests.golden.batches import CHANGES, command, correctness, efficiency, suite
from tests.golden.batches import run as one_run
from tests.golden.ci_reports import HOSTILE
from tests.support.cited import citation
from tests.unit.compare.runs import JUDGE, evaluation
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import gate, recorded_settings
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState
from zelda_ci.domain.details import (
    CriterionJudgement,
    CriterionVerdict,
    FulfillmentDetails,
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
from zelda_ci.domain.run import RunResult, batch_of
from zelda_ci.domain.session import (
    Denied,
    Entry,
    HookRan,
    Retried,
    SessionImage,
    SessionStatus,
    SessionTranscript,
    Started,
    ToolCall,
    Turn,
    Usage,
    UserSaid,
)
from zelda_ci.domain.trials import Side
from zelda_ci.redact import SafeText
from zelda_ci.report.ci_report import CiReport

ROOT = "/work/runs/5eaab39b/ws"
NAMES: tuple[str, ...] = ("rest-endpoint", "discount-code", "receipt-tax", "add-logging", "openapi")
NAMES += ("migrate-orders", "csv-export", "retry-policy", "login-form", "search-index")
CRITERIA = (
    "GET /orders/{id} answers 404 with a problem document when the order is unknown",
    "The new route is registered in src/app.py, next to the other routes",
    "A test covers an unknown order, and fails without the change",
    "The handler has type annotations",
)
TAGS = {"rest-endpoint": ("api", "smoke"), "openapi": ("api",), "login-form": ("web",), "receipt-tax": ("smoke",)}
# Of the first suite: the rule says it, and the head has lost the rule.
PROBLEM = 'return Problem(404, title="Unknown order", detail=order_id)'
EXCEPTION = 'return Response({"error": str(error)}, status=500)'

_HANDLER = '''from src.http import Problem, Response, route


@route("GET", "/orders/{{order_id}}")
def show_order(order_id: str) -> Response:
    """One order, or a problem that says which is unknown."""
    try:
        order = ORDERS[order_id]
    except KeyError as error:
        {answer}
    return Response(order.as_json())
'''
TEXT = """the order of a customer is read from storage and handed on as it is so that a handler has no knowledge of
tables while tests replace the storage by one in memory and every answer that is no success carries a problem document
with a title a status and a detail that names what was asked for"""
WORDS = TEXT.split()
SENTENCES = (
    "I'll look at how the other routes are registered first.",
    "The storage already raises a KeyError for an unknown order, so the handler decides what a caller sees.",
    "Customers and invoices answer in the same way, and their handlers are short.",
    "The test client keeps the service in memory, which makes the new test easy to write.",
    "Type checking passes for this file.",
    "One import is missing in the list of routes.",
    "The path parameter is a string everywhere else, so it is one here, too.",
    "Before I go on, I run what is there.",
    "The tests of the neighbouring routes show what an error looks like.",
)


def png(width: int = 320, height: int = 120) -> bytes:
    """A picture of a page that a browser tool might return."""
    rows = b"".join(
        b"\x00"
        + bytes(
            value
            for x in range(width)
            for value in ((28, 84, 150) if y < 18 else (232, 236, 242) if (x // 40 + y // 24) % 2 else (250, 251, 252))
        )
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PICTURE = png()
IMAGE = SessionImage(media_type="image/png", size_bytes=len(PICTURE), sha256=hashlib.sha256(PICTURE).hexdigest())


def prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(words)).capitalize() + "."


def code(chance: random.Random, lines: int) -> str:
    names = [f"{chance.choice(WORDS)}_{chance.choice(WORDS)}" for _ in range(12)]
    return "\n".join(
        f"{number:>5}\t{'    ' * chance.randint(0, 2)}{chance.choice(names)} = {chance.choice(names)}"
        f"({chance.choice(names)}, {chance.randint(0, 99)})"
        for number in range(1, lines + 1)
    )


@dataclass
class SampleSession:
    """Makes the transcript of one session, the same for the same seed."""

    seed: int
    turns: int
    is_good: bool
    length: int = 40
    """Lines of what a tool returns."""
    chance: random.Random = field(init=False)
    clock: float = 0.8

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def entries(self) -> Iterator[Entry]:
        begun, ok = safe("SessionStart"), safe("success")
        yield HookRan(at=0.4, name=safe("SessionStart:startup"), event=begun, outcome=ok, output=safe("node 22"))
        calls = [self.call("Read", {"file_path": f"{ROOT}/src/app.py"}, code(self.chance, self.length))]
        if self.is_good:
            calls += [self.call("Skill", {"skill": "rest-conventions"}, "Launching skill: rest-conventions")]
        yield self.turn(1, self.say(), calls, thinking=True)
        if self.is_good:
            rule = "# Conventions of our API\n\nAn answer that is no success is a problem document."
            yield UserSaid(at=self.clock, text=safe(rule))
        found = "src/app.py:12\nsrc/customers.py:8\nsrc/invoices.py:31"
        yield self.turn(2, None, [self.call("Grep", {"pattern": "route\\(", "path": "src"}, found)])
        yield from self.work(_HANDLER.format(answer=PROBLEM if self.is_good else EXCEPTION))

    def work(self, handler: str) -> Iterator[Entry]:
        """What comes after a first look: files, tests that fail and pass, a sub-agent, a picture."""
        orders = f"{ROOT}/src/routes/orders.py"
        edit = {"file_path": f"{ROOT}/src/app.py", "old_string": "from src.routes import customers\n"}
        edit |= {"new_string": "from src.routes import customers, orders\n"}
        written = self.call("Write", {"file_path": orders, "content": handler}, "File created successfully")
        yield self.turn(3, self.say(), [written, self.call("Edit", edit, "The file has been updated")])
        yield Retried(at=self.clock, attempt=1, status=529, error=safe("overloaded"), delay_seconds=2.4)
        self.clock += 2.4
        test = {"command": "python -m pytest -q tests/test_orders.py", "description": "Run the tests"}
        yield self.turn(4, None, [self.call("Bash", test, self.tests(failed=1), is_error=True)])
        for number in range(5, self.turns - 3):
            yield self.turn(number, self.say() if number % 3 == 0 else None, [self.some_call(number)])
        asked = {"description": "Review the handler", "prompt": prose(self.chance, 40)}
        agent = self.call("Agent", {"subagent_type": "reviewer", **asked}, prose(self.chance, 30))
        yield self.turn(self.turns - 3, "A second pair of eyes before I finish.", [agent])
        read = self.call("Read", {"file_path": orders}, handler)
        yield self.turn(self.turns - 2, self.say(), [read], parent=agent.id)
        if not self.is_good:
            yield Denied(at=self.clock, tool=safe("WebFetch"), reason=safe("not allowed in this suite"))
        again = self.call("Bash", {"command": "python -m pytest -q"}, self.tests(failed=0))
        page = {"url": "http://localhost:8000/orders/9"}
        seen = self.call("mcp__browser__screenshot", page, "A screenshot of the page", images=True)
        yield self.turn(self.turns - 1, None, [again, seen])
        yield self.turn(self.turns, "Done: GET /orders/{id} answers, and a test covers an unknown order.", [])

    def say(self) -> str:
        return " ".join(self.chance.sample(SENTENCES, self.chance.randint(1, 3)))

    def some_call(self, number: int) -> ToolCall:
        path = f"{ROOT}/src/{self.chance.choice(WORDS)}/{self.chance.choice(WORDS)}.py"
        match self.chance.choice(("Read", "Grep", "Bash", "Edit")):
            case "Read":
                return self.call("Read", {"file_path": path}, code(self.chance, self.length))
            case "Grep":
                return self.call("Grep", {"pattern": self.chance.choice(WORDS), "path": "src"}, code(self.chance, 9))
            case "Edit":
                edit = {"old_string": "a = 1", "new_string": f"a = 1\n{code(self.chance, 2)}"}
                return self.call("Edit", {"file_path": path, **edit}, "Updated")
            case _:
                return self.call("Bash", {"command": "python -m mypy"}, self.tests(failed=number % 2))

    def tests(self, failed: int) -> str:
        lines = [f"tests/test_orders.py::test_{self.chance.choice(WORDS)}_{number} PASSED" for number in range(12)]
        told = f"{failed} failed, {12 - failed} passed in 0.48s" if failed else "12 passed in 0.41s"
        return "\n".join([*lines, told])

    def call(
        self, name: str, given: Mapping[str, object], output: str, *, is_error: bool = False, images: bool = False
    ) -> ToolCall:
        start = self.clock
        self.clock += self.chance.uniform(0.05, 2.0)
        return ToolCall(
            id=safe(f"toolu_{self.seed}_{start:.4f}_{name}"),
            name=safe(name),
            input=safe.json(dict(given)),
            output=safe(output),
            is_error=is_error,
            images=(IMAGE,) if images else (),
            started_at=start,
            ended_at=self.clock,
        )

    def turn(
        self,
        number: int,
        text: str | None,
        calls: list[ToolCall],
        *,
        parent: SafeText | None = None,
        thinking: bool = False,
    ) -> Turn:
        at = min([call.started_at for call in calls], default=self.clock)
        self.clock += self.chance.uniform(0.8, 4.0)
        usage = Usage(
            input_tokens=6,
            output_tokens=self.chance.randint(60, 900),
            cache_read_tokens=11_000 + 900 * number,
            cache_write_tokens=self.chance.randint(200, 3000),
        )
        return Turn(
            index=number,
            message_id=safe(f"msg_{number}"),
            model=MODEL,
            parent_tool_call_id=parent,
            at=at,
            text=safe(text) if text else None,
            thinking=safe(prose(self.chance, 60)) if thinking else None,
            tool_calls=tuple(calls),
            usage=usage,
        )

    def transcript(self, run_id: str) -> SessionTranscript:
        entries = tuple(self.entries())
        started = Started(
            at=0.7,
            session_id=safe("s"),
            cli_version=safe("2.1.329"),
            model=MODEL,
            permission_mode=safe("bypassPermissions"),
        )
        return SessionTranscript(
            run_id=run_id,
            prompt=safe("Add GET /orders/{id} to the service.\n\nUnknown orders are an error of the client."),
            started_at=START,
            status=SessionStatus.COMPLETED,
            wall_seconds=self.clock + 1,
            started=started,
            entries=entries,
        )


@dataclass(frozen=True)
class PageSample:
    """A report of two sides, and the files of its sessions."""

    suites: int = 10
    trials: int = 5
    """Of each side."""
    turns: int = 30
    length: int = 40
    names: tuple[str, ...] = NAMES
    is_compared: bool = True
    """Whether there are sessions of the base."""

    @property
    def base(self) -> tuple[RunResult, ...]:
        """Sessions of the base."""
        return self.report.baseline_batch.runs if self.report.baseline_batch else ()

    @cached_property
    def report(self) -> CiReport:
        runs = [(name, trial) for name in self.names[: self.suites] for trial in range(1, self.trials + 1)]
        head = [self._run(*each, Side.HEAD) for each in runs]
        if not self.is_compared:
            alone = batch_of(head)
            nothing = BaselineOrigin(state=BaselineState.NONE_YET, sentence="")
            return CiReport(alone, gate(alone, recorded_settings(head)), nothing, tested="9f3b2c1")
        base = [self._run(*each, Side.BASE) for each in runs]
        comparison = compare(base, head)
        settings = recorded_settings(head)
        origin = BaselineOrigin(
            state=BaselineState.FOUND,
            sentence="",
            branch="main",
            commit="abc1234def567890abcdef1234567890abcdef12",
            created_at=START - timedelta(days=1),
        )
        return CiReport(
            batch_of(head),
            gate(batch_of(head), settings, comparison, base),
            origin,
            comparison,
            batch_of(base),
            tested="9f3b2c1",
        )

    def _good(self, name: str, trial: int, side: Side) -> bool:
        """The first suite has become worse, the second varies, the third has become better."""
        place = self.names.index(name)
        if place == 0:
            return side is Side.BASE or trial == 4
        if place == 1:
            return trial % 3 != 0
        return not (place == 2 and side is Side.BASE and trial % 2)

    def _run(self, name: str, trial: int, side: Side) -> RunResult:
        good, chance = self._good(name, trial, side), random.Random(f"{name} {trial} {side}")
        counts = RunnerCounts(format="pytest", source="summary", passed=12 - (not good), failed=int(not good))
        failed = "FAILED tests/test_orders.py::test_unknown_order - assert 500 == 404\n1 failed, 11 passed in 0.48s"
        score = 100.0 if good else 91.7
        correct = correctness(
            score,
            *(() if good else ("1 of 12 tests failed.",)),
            test=command("python -m pytest -q", int(not good), "12 passed in 0.41s" if good else failed),
            tests=TestSummary(runners=(counts,)),
            parts={"tests": score},
            weights={"tests": 100},
        )
        evaluations = {
            Metric.EFFICIENCY: efficiency(
                70 + chance.uniform(-6, 6),
                turns=self.turns + chance.randint(-4, 6),
                wall_seconds=80 + chance.uniform(-20, 30),
                cost_usd=0.18 + chance.uniform(-0.03, 0.05),
            ),
            Metric.REQUIREMENT_FULFILLMENT: fulfilled(good=good),
            Metric.TOOL_USAGE: used_tools(good=good),
            Metric.FUNCTIONAL_CORRECTNESS: correct,
        }
        config = suite(
            name,
            acceptance_criteria=CRITERIA,
            tags=TAGS.get(name, ()),
            description="What a caller of the service sees of an order.",
        )
        run = one_run(name, config=config, trial=trial, evaluations=evaluations, touched=CHANGES.files)
        return run.replace(
            run_id=f"{run.suite}-{side.value}-2026-02-13T14-30-00-{trial + 1}",
            batch_id=f"2026-02-13T14-30-00-{side.value}",
            side=Side.HEAD,
        )

    def session(self, run_id: str) -> SampleSession:
        name, _, rest = run_id.partition("-head-") if "-head-" in run_id else run_id.partition("-base-")
        side = Side.HEAD if "-head-" in run_id else Side.BASE
        trial = int(rest.rpartition("-")[2]) - 1
        seed = self.names.index(name) * 1000 + trial * 2 + (side is Side.HEAD)
        return SampleSession(seed, self.turns, self._good(name, trial, side), self.length)

    # --- what `SessionFiles` asks for

    def size(self, run_id: str) -> int:
        return self._sizes.setdefault(run_id, len(self.transcript(run_id).model_dump_json()))

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {}

    def transcript(self, run_id: str) -> SessionTranscript:
        return self.session(run_id).transcript(run_id)

    def patch(self, run_id: str) -> bytes:
        answer = PROBLEM if self.session(run_id).is_good else EXCEPTION
        lines = _HANDLER.format(answer=answer).splitlines()
        added = "".join(f"+{line}\n" for line in lines)
        return (
            "diff --git a/src/routes/orders.py b/src/routes/orders.py\nnew file mode 100644\n--- /dev/null\n"
            f"+++ b/src/routes/orders.py\n@@ -0,0 +1,{len(lines)} @@\n{added}"
            "diff --git a/src/app.py b/src/app.py\n--- a/src/app.py\n+++ b/src/app.py\n@@ -1,3 +1,3 @@\n import os\n"
            "-from src.routes import customers\n+from src.routes import customers, orders\n \n"
        ).encode()

    def image(self, _run_id: str, _image: SessionImage) -> bytes | None:
        return PICTURE


def fulfilled(*, good: bool) -> EvalResult:
    """The first criterion hangs on the rule."""
    reasoning = "An unknown order is answered by a problem document with status 404."
    cited = [("patch:src/routes/orders.py", PROBLEM)]
    if not good:
        reasoning = "The handler answers 500 with the text of the exception; the rule asks for a problem document."
        cited = [("patch:src/routes/orders.py", EXCEPTION), ("turn 4 call 1", "1 failed, 11 passed")]
    judged = [judgement(CRITERIA[0], reasoning, cited, good=good)]
    here = [("turn 3 call 2", "from src.routes import customers, orders")]
    judged += [judgement(text, "It does what is asked.", here) for text in CRITERIA[1:]]
    details = FulfillmentDetails(judge=JUDGE, criteria=tuple(judged))
    return evaluation(Metric.REQUIREMENT_FULFILLMENT, details, 100.0 if good else 75.0, reasoning="4 criteria")


def judgement(text: str, reasoning: str, cited: list[tuple[str, str]], *, good: bool = True) -> CriterionJudgement:
    return CriterionJudgement(
        criterion=safe(text),
        verdict=CriterionVerdict.PASS if good else CriterionVerdict.FAIL,
        reasoning=safe(reasoning),
        evidence=tuple(citation(*each) for each in cited),
    )


def used_tools(*, good: bool) -> EvalResult:
    skill, rule = safe("Skill(rest-conventions)"), safe(".claude/rules/errors.md")
    file, name = safe(".claude/skills/rest-conventions/SKILL.md"), safe("rest-conventions")
    called = ToolRemark(tool=skill, reasoning=safe("It was called before the handler was written."))
    missed = ToolRemark(tool=skill, reasoning=safe("The task adds a route; the skill says how errors are answered."))
    judged = RuleJudgement(
        rule=rule,
        verdict=RuleVerdict.FOLLOWED if good else RuleVerdict.BROKEN,
        reasoning=safe("Errors are problem documents." if good else "The error is a text."),
    )
    details = ToolUsageDetails(
        judge=JUDGE,
        uses=(ToolUse(tool=safe("Bash"), calls=4, errors=1), *((ToolUse(tool=skill, calls=1),) * good)),
        used_well=(called,) * good,
        missed=(missed,) * (not good),
        rules=(judged,),
        manifest=(ManifestEntry(kind=ItemKind.SKILL, name=name, file=file, loaded=True),),
    )
    return evaluation(Metric.TOOL_USAGE, details, 100.0 if good else 40.0, reasoning="1 skill")


# --- what is hostile --------------------------------------------------------------------------------------------

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></details></section></main><script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "<a href=javascript:alert(1)>x</a><base href=//evil.example>",
    "<!-- {{ 7 * 7 }} {% raw %} -->]]>",
    "' onmouseover='alert(1)' x='\x00\ud800\u202e",
    HOSTILE,
)


def hostile_session(text: str) -> SessionTranscript:
    """The text wherever a session can put one."""
    talk = session(f"Bash {text} -> {text}", f"Read {text} -> error", f'"{text}"', "Agent x -> ok", f'> "{text}"')
    return talk.replace(prompt=safe(text), reason=safe(text))


def hostile_patch(text: str) -> bytes:
    """The text as the name of a file and in its lines."""
    patch = f"diff --git a/{text} b/{text}\n--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@\n-{text}\n+{text}\n"
    return patch.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class HostileSessions:
    """Every payload in every session of a sample, in which suites are called so, too."""

    sample: PageSample

    def size(self, run_id: str) -> int:
        return self.sample.size(run_id)

    def transcript(self, _run_id: str) -> SessionTranscript:
        talks = [hostile_session(text) for text in PAYLOADS]
        return talks[0].replace(entries=tuple(entry for talk in talks for entry in talk.entries))

    def patch(self, _run_id: str) -> bytes:
        return b"".join(map(hostile_patch, PAYLOADS))

    def image(self, _run_id: str, _image: SessionImage) -> bytes | None:
        return b"<svg onload='alert(1)'>"
