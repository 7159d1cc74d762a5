"""Record the demo's cassettes: real CLI, real pipeline, the demo project; the model's words are written below.

There are two recordings: of the project as it is, and of a change that removes its rule of money, after which one suite
is worse.

    .venv/bin/python scripts/record_demo.py

Run it after raising the Agent SDK, or after changing the demo project.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.judges import use, uses
from tests.support.scripted_api import ApiRequest, Message, Reply, ScriptedApi, Tokens, text, tool_call, tool_calls

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "zelda_ci" / "cli" / "demo_project"
CASSETTES = ROOT / "zelda_ci" / "cli" / "demo_cassettes"
CHANGE_CASSETTES = ROOT / "zelda_ci" / "cli" / "demo_change_cassettes"

DISCOUNTS = '''"""Discount codes and the percentage that each takes off."""

PERCENT_OFF = {"SPRING10": 10}


def percent_off(code: str) -> int:
    try:
        return PERCENT_OFF[code]
    except KeyError:
        raise ValueError(f"unknown discount code: {code}") from None
'''

APPLY_CODE = """    def apply_code(self, code: str) -> None:
        self.percent_off = percent_off(code)

    def total_cents(self) -> int:
        full = sum(line.cents for line in self.lines)
        # Half a cent rounds up: add half of the divisor before dividing.
        return (full * (100 - self.percent_off) + 50) // 100
"""

DISCOUNT_TESTS = """
    def test_a_code_takes_its_percentage_off_the_total(self) -> None:
        cart = Cart()
        cart.add("apple", 35, 3)
        cart.apply_code("SPRING10")
        self.assertEqual(cart.total_cents(), 95)  # 94.5 rounds half up

    def test_an_unknown_code_is_refused_by_name(self) -> None:
        with self.assertRaisesRegex(ValueError, "WINTER99"):
            Cart().apply_code("WINTER99")
"""

TAX = '''    """Tax contained in the total, in cents, rounded half up once."""
    divisor = 100 + TAX_PERCENT
    return (2 * cart.total_cents() * TAX_PERCENT + divisor) // (2 * divisor)
'''

TAX_TEST = """
    def test_tax_is_rounded_once_on_the_total(self) -> None:
        cart = Cart()
        for name in ("bolt", "nut", "washer"):
            cart.add(name, 10)
        self.assertEqual(tax_cents(cart), 5)
"""

UNITTEST = {"command": "python3 -m unittest 2>&1 | tail -n 1", "description": "Run the tests"}


def edit(path: str, old: str, new: str) -> tuple[str, dict[str, object]]:
    return "Edit", {"file_path": f"CWD/{path}", "old_string": old, "new_string": new}


def read(path: str) -> tuple[str, dict[str, object]]:
    return "Read", {"file_path": f"CWD/{path}"}


# What every session on discount codes writes, whatever it makes of the total.
CODES = (
    ("Write", {"file_path": "CWD/shop/discounts.py", "content": DISCOUNTS}),
    edit(
        "shop/cart.py",
        "from dataclasses import dataclass\n",
        "from dataclasses import dataclass\n\nfrom shop.discounts import percent_off\n",
    ),
    edit(
        "shop/cart.py",
        "        self.lines: list[Line] = []\n",
        "        self.lines: list[Line] = []\n        self.percent_off = 0\n",
    ),
)

DISCOUNT_CODE = [
    tool_calls(
        [read("shop/cart.py"), read("tests/test_cart.py"), ("Skill", {"skill": "changelog"})],
        text="I'll look at the cart and its tests, and at how this project writes its changelog.",
    ),
    tool_calls(
        [
            *CODES,
            edit(
                "shop/cart.py",
                "    def total_cents(self) -> int:\n        return sum(line.cents for line in self.lines)\n",
                APPLY_CODE,
            ),
        ],
        text="Amounts are whole cents here, so the discount has to be computed without float and rounded half up once.",
    ),
    tool_calls(
        [
            edit(
                "tests/test_cart.py",
                '            Cart().add("apple", 35, 0)\n',
                '            Cart().add("apple", 35, 0)\n' + DISCOUNT_TESTS,
            ),
            read("CHANGELOG.md"),
        ],
        text="Now the tests, and the changelog.",
    ),
    tool_calls(
        [
            edit(
                "CHANGELOG.md",
                "## Unreleased\n",
                '## Unreleased\n\n### Added\n\n- Discount codes could be used: `apply_code("SPRING10")` took 10 percent off the total.\n',
            ),
            ("Bash", UNITTEST),
        ],
    ),
    text(
        'Discount codes work: `cart.apply_code("SPRING10")` takes 10 percent off, computed in whole cents and rounded half up, and an unknown '
        "code is refused with a ValueError that names it. The codes live in `shop/discounts.py`; two tests cover them, all six pass, and the "
        "changelog tells the customers."
    ),
]

FLOATING_CODE = """    def apply_code(self, code: str) -> None:
        self.percent_off = percent_off(code)

    def total_cents(self) -> int:
        full = sum(line.cents for line in self.lines)
        return round(full * (1 - self.percent_off / 100))
"""

EASY_TESTS = """
    def test_a_code_takes_its_percentage_off_the_total(self) -> None:
        cart = Cart()
        cart.add("apple", 35, 4)
        cart.apply_code("SPRING10")
        self.assertEqual(cart.total_cents(), 126)

    def test_an_unknown_code_is_refused_by_name(self) -> None:
        with self.assertRaisesRegex(ValueError, "WINTER99"):
            Cart().apply_code("WINTER99")
"""

# The same task where nothing says how amounts are computed.
DISCOUNT_WITHOUT_RULE = [
    DISCOUNT_CODE[0],
    tool_calls(
        [
            *CODES,
            edit(
                "shop/cart.py",
                "    def total_cents(self) -> int:\n        return sum(line.cents for line in self.lines)\n",
                FLOATING_CODE,
            ),
        ],
        text="The total is multiplied by what is left of it, and rounded.",
    ),
    tool_calls(
        [
            edit(
                "tests/test_cart.py",
                '            Cart().add("apple", 35, 0)\n',
                '            Cart().add("apple", 35, 0)\n' + EASY_TESTS,
            ),
            read("CHANGELOG.md"),
        ],
        text="Now the tests, and the changelog.",
    ),
    DISCOUNT_CODE[3],
    text(
        'Discount codes work: `cart.apply_code("SPRING10")` takes 10 percent off the total, and an unknown code is refused with a ValueError that '
        "names it. The codes live in `shop/discounts.py`; two tests cover them, all six pass, and the changelog tells the customers."
    ),
]

RECEIPT_TAX = [
    tool_calls([read("shop/receipt.py"), read("tests/test_receipt.py")], text="I'll reproduce the wrong tax first."),
    tool_calls(
        [
            edit(
                "tests/test_receipt.py",
                "from shop.receipt import receipt\n",
                "from shop.receipt import receipt, tax_cents\n",
            ),
            edit("tests/test_receipt.py", 'total: 2.49\\ntax: 0.40")\n', 'total: 2.49\\ntax: 0.40")\n' + TAX_TEST),
        ],
    ),
    tool_call(
        "Bash",
        {
            "command": "python3 -m unittest -q tests.test_receipt 2>&1 | grep AssertionError; exit 1",
            "description": "See the new test fail",
        },
    ),
    tool_calls(
        [
            edit(
                "shop/receipt.py",
                '    """Tax contained in the total, in cents."""\n    return sum(round(line.cents * TAX_PERCENT / (100 + TAX_PERCENT)) for line in cart.lines)\n',
                TAX,
            ),
        ],
        text="The tax is rounded per line, through float. It has to be rounded once, on the total, in whole cents.",
    ),
    tool_call("Bash", UNITTEST),
    text(
        "Fixed: `tax_cents` now takes the tax out of the total in whole cents and rounds half up once, so three lines of 0.10 contain 0.05. The new "
        "test failed before the change and passes now, with the others."
    ),
]

Place = tuple[str, str]


def verdict(number: int, what: str, reasoning: str, *places: Place) -> dict[str, object]:
    evidence = [{"where": where, "quote": quote} for where, quote in places]
    return {"number": number, "reasoning": reasoning, "verdict": what, "evidence": evidence}


DISCOUNT_VERDICTS = [
    verdict(
        1,
        "PASS",
        "The total is multiplied by 90 of 100 in whole cents, with half of the divisor added first, and a test of 94.5 cents expects 95.",
        ("patch:shop/cart.py", "return (full * (100 - self.percent_off) + 50) // 100"),
        ("patch:tests/test_cart.py", "self.assertEqual(cart.total_cents(), 95)"),
    ),
    verdict(
        2,
        "PASS",
        "The ValueError quotes the code, and a test looks for WINTER99 in it.",
        ("shop/discounts.py:10", 'raise ValueError(f"unknown discount code: {code}") from None'),
    ),
    verdict(
        3,
        "PASS",
        "Only whole numbers are multiplied and divided with //; no float appears in the change.",
        ("patch:shop/cart.py", "full = sum(line.cents for line in self.lines)"),
    ),
    verdict(
        4,
        "PASS",
        "The line stands under Unreleased, Added, and says what a customer can do with a code.",
        ("patch:CHANGELOG.md", "Discount codes could be used"),
        ("turn 1 call 3", "changelog"),
    ),
]

WITHOUT_RULE_VERDICTS = [
    verdict(
        1,
        "FAIL",
        "round() takes half a cent to the even neighbour: three apples of 35 cents cost 94.5 less the discount, and become 94. The tests avoid such a total.",
        ("patch:shop/cart.py", "return round(full * (1 - self.percent_off / 100))"),
        ("turn 3 call 1", 'cart.add("apple", 35, 4)'),
    ),
    DISCOUNT_VERDICTS[1],
    verdict(
        3,
        "FAIL",
        "The percentage is divided with /, so that the total is a float before it is rounded.",
        ("patch:shop/cart.py", "return round(full * (1 - self.percent_off / 100))"),
    ),
    DISCOUNT_VERDICTS[3],
]

TAX_VERDICTS = [
    verdict(
        1,
        "PASS",
        "Twice 30 cents times 19, plus 119, divided by 238 is 5; the new test asserts it and the suite ends with OK.",
        ("patch:shop/receipt.py", "return (2 * cart.total_cents() * TAX_PERCENT + divisor) // (2 * divisor)"),
        ("turn 5 call 1", "OK"),
    ),
    verdict(
        2,
        "PASS",
        "The test adds three lines of 10 cents and was seen to fail before the change.",
        ("patch:tests/test_receipt.py", "test_tax_is_rounded_once_on_the_total"),
        ("turn 3 call 1", "AssertionError"),
    ),
    verdict(
        3,
        "PASS",
        "One integer division on the total, with half of the divisor added, replaces the rounding per line.",
        ("patch:shop/receipt.py", "divisor = 100 + TAX_PERCENT"),
    ),
]


MONEY, GUIDE, CHANGELOG = ".claude/rules/money.md", "CLAUDE.md", "Skill(changelog)"

DISCOUNT_TOOLS = {
    CHANGELOG: use(
        "USED_WELL",
        ("turn 1 call 3", "changelog"),
        ("patch:CHANGELOG.md", "Discount codes could be used"),
        reasoning="It was called before anything was written, and the entry has its heading, its tense and the feature's name.",
    ),
    MONEY: use(
        "FOLLOWED",
        ("patch:shop/cart.py", "return (full * (100 - self.percent_off) + 50) // 100"),
        reasoning="The discount is computed in whole cents with one division, rounded half up once.",
    ),
    GUIDE: use("FOLLOWED", ("turn 4 call 2", "OK"), reasoning="The tests were run at the end and passed."),
}

TAX_TOOLS = {
    CHANGELOG: use(
        "MISSED",
        ("turn 6", "three lines of 0.10 contain 0.05"),
        reasoning="The fix changes what customers read on a receipt, and CLAUDE.md asks for a changelog line written with this skill.",
    ),
    MONEY: use(
        "FOLLOWED",
        ("patch:shop/receipt.py", "divisor = 100 + TAX_PERCENT"),
        reasoning="The tax is taken out of the total in whole cents, rounded half up once.",
    ),
    GUIDE: use(
        "BROKEN",
        ("turn 6", "takes the tax out of the total in whole cents"),
        reasoning="A change that a customer can notice got no line in CHANGELOG.md.",
    ),
}

ToolUsage = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Suite:
    """What is said in one suite's session, and of it."""

    replies: list[Message]
    verdicts: list[dict[str, object]]
    tools: ToolUsage


@dataclass(frozen=True)
class Recording:
    """Suites by the beginning of their prompts, on a project without some of its files."""

    cassettes: Path
    suites: dict[str, Suite]
    removed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def of(self, conversation: str) -> Suite:
        """The suite whose prompt stands in a request."""
        return next(suite for prompt, suite in self.suites.items() if prompt in conversation)


RECORDINGS = (
    Recording(
        CASSETTES,
        {
            "Add discount codes": Suite(DISCOUNT_CODE, DISCOUNT_VERDICTS, DISCOUNT_TOOLS),
            "The tax on the receipt": Suite(RECEIPT_TAX, TAX_VERDICTS, TAX_TOOLS),
        },
    ),
    Recording(
        CHANGE_CASSETTES,
        {
            "Add discount codes": Suite(
                DISCOUNT_WITHOUT_RULE,
                WITHOUT_RULE_VERDICTS,
                {name: found for name, found in DISCOUNT_TOOLS.items() if name != MONEY},
            )
        },
        removed=(MONEY,),
        names=("discount-code",),
    ),
)


def judgement(recording: Recording, request: ApiRequest) -> Reply:
    """The judge's answer on the session whose prompt it was shown: on its tools, or on the acceptance criteria."""
    conversation = json.dumps(request.messages)
    suite = recording.of(conversation)
    if "how well a coding session used" in json.dumps(request.body):
        answer = uses(request.last_user_text, suite.tools)
    else:
        answer = {"criteria": suite.verdicts}
    shown, body, written = len(conversation) // 4, 600, len(json.dumps(answer)) // 4
    tokens = Tokens(input=body, output=written, cache_write_5m=shown - body)
    return tool_call(str(request.answer_tool), answer, tokens=tokens)


def script(recording: Recording, request: ApiRequest) -> Reply:
    """The reply for this request: told apart by the prompt, counted by the assistant's messages so far."""
    if request.answer_tool:
        return judgement(recording, request)
    replies = recording.of(json.dumps(request.messages)).replies
    position = sum(message["role"] == "assistant" for message in request.messages)
    return _at_home(replies[position], _working_directory(request), position)


def _working_directory(request: ApiRequest) -> str:
    found = re.search(r"[Ww]orking directory: (\S+?)(?:\\n|\s|$)", json.dumps(request.body))
    if not found:
        raise LookupError("the request does not name the working directory")
    return found[1]


def _at_home(message: Message, cwd: str, position: int) -> Message:
    """The message with the paths of this workspace, and the tokens that such a conversation would use."""
    content = json.loads(json.dumps(message.content).replace("CWD/", json.dumps(cwd)[1:-1] + "/"))
    written = len(json.dumps(content)) // 4
    cached = 11_800 + 900 * position
    tokens = Tokens(
        input=4,
        output=written,
        cache_read=cached if position else 0,
        cache_write_5m=900 if position else cached,
    )
    return replace(message, content=tuple(content), tokens=tokens)


def record(recording: Recording, argv: Sequence[str]) -> int:
    """Write a folder of cassettes anew."""
    with tempfile.TemporaryDirectory(prefix="zelda-demo-") as folder, ScriptedApi(partial(script, recording)) as api:
        project = Path(folder) / "corner-shop"
        shutil.copytree(PROJECT, project)
        for name in recording.removed:
            (project / name).unlink()
        for command in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            ["-c", "user.name=Demo", "-c", "user.email=demo@example.com", "commit", "-qm", "Open the shop"],
        ):
            subprocess.run(["git", "-C", str(project), *command], check=True)
        shutil.rmtree(recording.cassettes, ignore_errors=True)
        environ = {
            **os.environ,
            "ANTHROPIC_API_KEY": "sk-ant-fake-demo",
            "ANTHROPIC_BASE_URL": api.url,
            "ZELDA_NO_CHECK": "1",
        }
        words = ["--project", str(project), "--record", str(recording.cassettes), *recording.names, *argv]
        return subprocess.run([sys.executable, "-m", "zelda_ci", "run", *words], env=environ, check=False).returncode


def main(argv: Sequence[str]) -> int:
    """Record all: the project passes, and the change does not."""
    return 0 if [record(recording, argv) for recording in RECORDINGS] == [0, 1] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
