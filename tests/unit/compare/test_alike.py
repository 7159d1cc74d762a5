"""Which states of the steering files are the same to a suite: exactly where selection would leave it out."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import START, result, safe, suite
from zelda_ci.compare.drift import night_of, with_night
from zelda_ci.compare.impact import ChangeSet, FileChange, FileText, ProjectFiles, SuiteEvidence, choose, part_of
from zelda_ci.compare.pool import Reference, grouped, pool_of, same_as, stored_trials
from zelda_ci.domain.fingerprint import Fingerprint, Host, SteeringFile, TreeFile, digest_tree, fingerprint
from zelda_ci.domain.manifest import ItemKind
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.steering import Unit, UnitUse
from zelda_ci.domain.trials import PoolSettings
from zelda_ci.storage import codec

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
DRAWN = {"tools/server.py": "run by .mcp.json"}
PROJECT = ProjectFiles("", "zelda.config.yaml", "zelda")


def state(side: Side = PLAIN, **fields: Any) -> Fingerprint:
    parts = {path: part_of(path, text, DRAWN, PROJECT) for path, (_, text) in side.items()}
    steers: dict[str, SteeringFile] = {path: part for path, part in parts.items() if part}
    files = [TreeFile(path, "100644", f"{content} {text.head}{text.globs}") for path, (content, text) in side.items()]
    given = {"evaluators": {}, "models": ("m",), **fields}
    return fingerprint(given.pop("suite", suite()), digest_tree(files, steers, redact=safe), HOST, **given)


def edited(path: str, side: Side = PLAIN, text: FileText | None = None, content: str = "b") -> Side:
    return {**side, path: (content, text or side.get(path, ("", FileText()))[1])}


def without(path: str) -> Side:
    return {name: each for name, each in PLAIN.items() if name != path}


def trial(number: int, own: Fingerprint, *, felt: Sequence[str] = (), how: str = "used", **fields: Any) -> RunResult:
    uses = tuple(
        UnitUse(unit=Unit(kind=kind, path=safe(path), name=safe("x")), loaded=True, **{how: path in felt})
        for path, kind in KINDS.items()
    )
    at = START + timedelta(minutes=number)
    given = {"steering": uses, "touched": (safe("lib/a.py"),), "models": ("m",), **fields}
    return result(
        f"example-{number:04}", batch_id=f"b{number}", started_at=at, finished_at=at, fingerprint=own, **given
    )


def three(own: Fingerprint | None = None, **fields: Any) -> list[RunResult]:
    return [trial(number, own or state(), **fields) for number in range(3)]


def counts(trials: Sequence[RunResult], wanted: Fingerprint) -> int:
    return len(grouped(trials).alike("example", wanted))


@pytest.mark.parametrize("path", [DEPLOY, ".claude/skills/deploy/notes.md", REVIEW, CRITIC, RULE])
def test_a_text_that_a_suite_never_felt_may_be_another_one(path: str) -> None:
    assert counts(three(), state(edited(path))) == 3
    # And so may be several.
    assert counts(three(), state(edited(path, edited(REVIEW)))) == 3


@pytest.mark.parametrize(
    "trials",
    [
        three(felt=[DEPLOY]),
        three(felt=[DEPLOY], how="missed"),
        three(felt=[DEPLOY], how="broken"),
        [*three(), trial(9, state(), felt=[DEPLOY])],
        # It was cut short, and yet it had called it.
        [*three(), trial(9, state(), felt=[DEPLOY], status=SessionStatus.TIMED_OUT)],
        three()[:2],
        [*three()[:2], trial(9, state(), status=SessionStatus.MAX_TURNS)],
        three(steering=None),
        three(steering=()),
        three(replayed=True),
        [*three()[:2], trial(9, state(), models=("n",))],
        # One of another state tells, too, that the suite feels it.
        [*three(), trial(9, state(edited(REVIEW)), felt=[DEPLOY])],
    ],
)
def test_what_a_suite_felt_or_may_have_felt_makes_another_state(trials: Sequence[RunResult]) -> None:
    wanted = state(edited(DEPLOY))
    assert counts(trials, wanted) == 0
    assert counts(trials, state()) >= 2


@pytest.mark.parametrize(
    "side",
    [
        edited("CLAUDE.md"),
        edited(DEPLOY, text=FileText("other")),
        edited(".claude/skills/deploy/run.py"),
        edited(".claude/skills/deploy/more.md"),
        edited(".claude/skills/new/SKILL.md"),
        edited(".claude/settings.json"),
        edited(".claude/rules/always.md"),
        edited(RULE, text=FileText()),
        edited(RULE, text=FileText(globs=("lib/**",))),
        edited(DEPLOY, text=FileText(kind="link")),
        edited(DEPLOY, text=FileText(kind="other")),
        edited("vendor", text=FileText(kind="submodule")),
        edited(".mcp.json"),
        edited("tools/server.py"),
        edited(NEAR),
        edited("lib/deep/CLAUDE.md", edited("src/main.py")) | edited("lib/AGENTS.md"),
        without(DEPLOY),
        without(NEAR),
        without(RULE),
    ],
)
def test_what_every_suite_feels_makes_another_state(side: Side) -> None:
    assert counts(three(), state(side)) == 0
    # A rule that is new waits for its files; all else is as it is the other way round.
    assert counts(three(state(side)), state()) == (3 if side == without(RULE) else 0)


def test_a_setting_an_evaluator_a_file_that_the_suite_names_or_an_older_result_makes_another_state() -> None:
    wanted = edited(DEPLOY)
    assert counts(three(), state(wanted)) == 3
    assert counts(three(), state(wanted, suite=suite(prompt="Other."))) == 0
    assert counts(three(), state(wanted, evaluators={"toolUsage": "9"})) == 0
    assert counts(three(), state(wanted).replace(steering=None)) == 0
    assert counts(three(state().replace(steering=None)), state(wanted)) == 0
    # It can be read, and is what it was.
    old = codec.decode_result(codec.encode_result(three(state().replace(steering=None))[0]), "result.json")
    assert counts([old], state()) == 1


def test_new_code_beside_an_unfelt_text_changes_nothing_about_it_unless_steering_files_run_it() -> None:
    both = edited(DEPLOY, edited("src/main.py"))
    assert counts(three(), state(both)) == 3
    assert counts(three(), state(edited("tools/server.py", both))) == 0
    # What is drawn in may differ in name only, as long as all code is the same.
    apart = state(edited(DEPLOY))
    assert apart.steering
    assert counts(three(), apart.replace(steering=apart.steering.replace(drawn="else"))) == 3
    assert counts(three(), state(both).replace(steering=apart.steering.replace(drawn="else"))) == 0


def test_trials_of_many_states_tell_together_what_none_of_them_felt() -> None:
    """A push after the other, each with another body of a skill, and one trial of each."""
    trials = [trial(number, state(edited(DEPLOY, content=f"{number}"))) for number in range(4)]
    assert counts(trials[:2], state()) == 0
    assert counts(trials, state()) == 4


def test_a_text_that_only_a_felt_one_leads_to_needs_trials_of_its_own() -> None:
    """The new text of a skill that is called may say that another one is to be called."""
    trials = three(felt=[DEPLOY])
    both = state(edited(REVIEW, edited(DEPLOY)))
    assert counts([*trials, trial(9, state(edited(DEPLOY)), felt=[DEPLOY])], both) == 0


def test_the_pool_the_push_the_repeated_job_and_the_night_go_by_it() -> None:
    trials, wanted = three(), state(edited(DEPLOY))
    expected = wanted.replace(parts={**wanted.parts, "models": "", "cli": ""})
    settings = PoolSettings(max_trials=2)
    pool = pool_of([trials], lambda _: PoolSettings(), NOW)
    assert stored_trials(pool, "example", expected) == 3
    assert len(pool.split("example", Reference(wanted), expected, settings).test) == 2
    assert same_as(trials, expected) == trials[::-1]
    # On a laptop head and base are the same state then.
    found = pool.of_laptop("example", state(), expected, PoolSettings())
    assert (found.head, len(found.pool)) == ((), 3)
    # Another platform tells nothing of today's.
    other = expected.replace(parts={**expected.parts, "agentSdk": "0.3"})
    assert stored_trials(pool, "example", other) == 0
    assert pool.split("example", Reference(wanted), other, settings).hints == ()

    first = night_of(trials)
    assert first
    history = with_night(NightlyHistory(), first)
    second = night_of([trial(5, wanted)], history.nights, pool)
    assert second
    assert second.suites["example"].outcome == first.suites["example"].outcome
    assert second.suites["example"].exact == wanted.outcome
    # The next one is compared with the second, of which the first is long gone.
    again = state(edited(DEPLOY, content="c"))
    later = pool_of([[trial(n, wanted) for n in range(5, 8)]], lambda _: PoolSettings(), NOW)
    third = night_of([trial(9, again)], with_night(history, second).nights, later)
    assert third
    assert third.suites["example"].outcome == first.suites["example"].outcome
    felt = night_of([trial(9, again, felt=[DEPLOY])], with_night(history, second).nights, later)
    assert felt
    assert felt.suites["example"].outcome == again.outcome


CHOICES: Sequence[str] = (*PLAIN, "lib/AGENTS.md", "web/CLAUDE.md", ".claude/rules/new.md", ".claude/commands/x.md")
TEXTS = (FileText(), FileText("head"), FileText("other"), FileText(globs=("web/**",)), FileText(globs=("*.py",)),
         FileText(kind="link"), FileText(kind="other"))  # fmt: skip


def mutated(dice: random.Random) -> Side:
    side = dict(PLAIN)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        path = dice.choice(CHOICES)
        if dice.random() < 0.15:
            side.pop(path, None)
        else:
            text = dice.choice(TEXTS) if dice.random() < 0.2 else side.get(path, ("", FileText()))[1]
            side[path] = (dice.choice("bcd"), text)
    return side


def random_trials(dice: random.Random, states: Sequence[Fingerprint]) -> list[RunResult]:
    found = []
    for number in range(dice.randint(2, 9)):
        touched = dice.choice([("lib/a.py",), ("web/a.ts",), ("src/main.py",), (), (), None])
        found.append(
            trial(
                number,
                dice.choice(states),
                felt=[path for path in KINDS if dice.random() < 0.06],
                how=dice.choice(["used", "missed", "broken"]),
                touched=None if touched is None else tuple(map(safe, touched)),
                status=dice.choice([*[SessionStatus.COMPLETED] * 9, SessionStatus.TIMED_OUT]),
            )
        )
    return found


def changes(before: Side, after: Side) -> ChangeSet:
    paths = [path for path in dict.fromkeys([*before, *after]) if before.get(path) != after.get(path)]
    sides = ((path, before.get(path), after.get(path)) for path in paths)
    return ChangeSet(tuple(FileChange(p, old and old[1], new and new[1]) for p, old, new in sides), DRAWN)


def test_whenever_two_states_count_as_one_selection_leaves_the_suite_out() -> None:
    dice, pooled, kept_apart, missed = random.Random(163), 0, 0, []
    for number in range(600):
        sides = [PLAIN, mutated(dice), mutated(dice)]
        states = [state(side) for side in sides]
        trials = random_trials(dice, states[:2])
        wanted, after = dice.choice([(states[2], sides[2]), (states[1], sides[1])])
        counted = grouped(trials).alike("example", wanted)
        for before, own in zip(sides, states, strict=True):
            if own.outcome == wanted.outcome or not any(run.fingerprint == own for run in trials):
                continue
            evidence = SuiteEvidence(suite("example"), frozenset(), tuple(trials))
            (choice,) = choose(changes(before, after), [evidence], PROJECT)
            is_pooled = any(run.fingerprint == own for run in counted)
            pooled, kept_apart = pooled + is_pooled, kept_apart + (not is_pooled)
            missed += [(number, choice.reason)] if is_pooled and choice.runs else []
    assert missed == []
    # It must not be right by pooling nothing.
    assert pooled > 30, (pooled, kept_apart)
