"""Which states of the steering files are the same to a suite: exactly where selection would leave it out."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.builders import START, result, safe, suite
from zelda_ci.compare.drift import night_of, with_night
from zelda_ci.compare.effects import ChangeSet, FileText, ProjectFiles, part_of
from zelda_ci.compare.pool import pool_of, same_as, stored_trials
from zelda_ci.domain.fingerprint import Fingerprint, Host, SteeringFile, TreeFile, digest_tree, fingerprint
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.steering import Unit, UnitUse
from zelda_ci.domain.trials import PoolSettings

NOW = START + timedelta(days=1)
HOST = Host("0.2", "debian", "full", "2.1")
DEPLOY, REVIEW, CRITIC = ".claude/skills/deploy/SKILL.md", ".claude/skills/review/SKILL.md", ".claude/agents/critic.md"
NEAR, RULE = "lib/CLAUDE.md", ".claude/rules/web.md"
KINDS = {DEPLOY: ItemKind.SKILL, REVIEW: ItemKind.SKILL, CRITIC: ItemKind.AGENT}

Side = dict[str, tuple[str, FileText]]
"""By file, its content, and what it says of when it is loaded."""
PLAIN: Side = {
    "CLAUDE.md": ("a", FileText()),
    DEPLOY: ("a", FileText("head")),
    ".claude/skills/deploy/notes.md": ("a", FileText()),
    ".claude/skills/deploy/run.py": ("a", FileText()),
    REVIEW: ("a", FileText("head")),
    CRITIC: ("a", FileText("head")),
    NEAR: ("a", FileText()),
    RULE: ("a", FileText(globs=("web/**",))),
    ".mcp.json": ("a", FileText()),
    "tools/server.py": ("a", FileText()),
    "src/main.py": ("a", FileText()),
}
DRAWN = ChangeSet(felt={"tools/server.py": "run by .mcp.json"})
PROJECT = ProjectFiles("", "zelda.config.yaml", "zelda")


def state(side: Side = PLAIN, **fields: Any) -> Fingerprint:
    parts = {path: part_of(path, text, DRAWN, PROJECT) for path, (_, text) in side.items()}
    steers: dict[str, SteeringFile] = {path: part for path, part in parts.items() if part}
    files = [TreeFile(path, "100644", f"{content} {text.head}{text.globs}") for path, (content, text) in side.items()]
    given = {"evaluators": {}, "models": ("m",), **fields}
    return fingerprint(given.pop("suite", suite()), digest_tree(files, steers, redact=safe), HOST, **given)


def edited(path: str, side: Side = PLAIN, text: FileText | None = None, content: str = "b") -> Side:
    return {**side, path: (content, text or side.get(path, ("", FileText()))[1])}


def trial(number: int, own: Fingerprint, *, felt: Sequence[str] = (), how: str = "used", **fields: Any) -> RunResult:
    uses = tuple(
        UnitUse(
            unit=Unit(kind=kind, path=safe(path), name=safe("x")), loaded=True, **dict[str, Any]({how: path in felt})
        )
        for path, kind in KINDS.items()
    )
    at = START + timedelta(minutes=number)
    given = {"steering": uses, "touched": (safe("lib/a.py"),), "models": ("m",), **fields}
    return result(
        f"example-{number:04}", batch_id=f"b{number}", started_at=at, finished_at=at, fingerprint=own, **given
    )


def three(own: Fingerprint | None = None, **fields: Any) -> list[RunResult]:
    return [trial(number, own or state(), **fields) for number in range(3)]


def test_the_pool_and_the_night_go_by_it() -> None:
    trials, wanted = three(), state(edited(DEPLOY))
    expected = wanted.replace(parts={**wanted.parts, "models": "", "cli": ""})
    pool = pool_of([trials], lambda _: PoolSettings(), NOW)
    assert stored_trials(pool, "example", expected) == 3
    assert same_as(trials, expected) == trials[::-1]
    first = night_of(trials)
    assert first
    second = night_of([trial(5, wanted)], with_night(NightlyHistory(), first).nights, pool)
    assert second
    assert second.suites["example"].outcome == first.suites["example"].outcome
