"""What of the corpus succeeds at each level: exactly what docs/security.md says."""

import json
from collections.abc import Callable, Sequence

import pytest

from tests.hostile import developer, matrix, unprotected
from tests.hostile.action import Action, Channel
from tests.hostile.aftermath import Aftermath
from tests.hostile.campaign import Campaign
from tests.hostile.corpus import CONTROLS, CORPUS
from tests.hostile.developer import Developer
from tests.support import needs

EXPECTED: matrix.Found = json.loads(matrix.EXPECTED.read_text("utf-8"))

BRIEF = (
    "k01", "k02", "k04", "w03", "w09", "g13", "c01", "c06", "c07", "c10", "c15", "p07", "p08", "p12", "n02", "n13", "n26", "n28", "n30",
)  # fmt: skip
"""Those in which levels differ, and those that matter most."""

NEVER_SEEN = {"c08"}
"""The CLI's own Read tool refuses /proc/self/environ, wherever a link to it lies. Bash does not (c09)."""


BY_MACHINE = {"c10", "c11", "c18", "n13", "n25", "n33"}
"""Some kernels forbid these to everybody (Yama, AppArmor, no io_uring, a handler for core dumps)."""


def agree(found: set[str], written: set[str]) -> None:
    """Nothing more than is written down, and nothing less but what the machine itself forbids."""
    assert found <= written
    assert written - found <= BY_MACHINE


def user() -> Developer:
    try:
        return developer.unprivileged()
    except LookupError as problem:
        pytest.skip(f"needs a Python for another user: {problem}")


def bubblewrap() -> Developer:
    """Where only bubblewrap may make namespaces."""
    user()
    return developer.with_bubblewrap()


def of(ids: Sequence[str]) -> list[Action]:
    return [action for action in CORPUS if action.id in ids]


def expected(level: str, who: Developer, channel: Channel, tried: Sequence[Action]) -> set[str]:
    """By the data file; what controls are must succeed at any rate."""
    found = {*EXPECTED[f"{level} {who.kind}"][channel], *CONTROLS}
    return {action.id for action in tried if action.id in found and channel in action.channels}


def tried_by(which: Callable[[], Developer], channel: Channel) -> list[Action]:
    """The whole corpus; where a build has tried it in bubblewrap, a session tries what no build can, and the brief."""
    light = [action for action in CORPUS if not action.heavy]
    if which is user or channel == "build":
        return light
    return [action for action in light if action.id in BRIEF or "build" not in action.channels]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("channel", ["agent", "build"])
@pytest.mark.parametrize("which", [user, pytest.param(bubblewrap, marks=needs.BWRAP)])
def test_at_full_isolation_nothing_of_the_whole_corpus_succeeds_and_the_world_stays_as_it_was(
    channel: Channel, which: Callable[[], Developer]
) -> None:
    needs.level("full")
    who = which()
    everything = tried_by(which, channel)

    def judge(after: Aftermath, tried: Sequence[Action]) -> set[str]:
        assert after.exit_code == 0, after.printed.decode()
        assert after.before == after.world.fingerprint()
        assert not after.leftovers
        return {action.id for action in tried if action.succeeded(after, action.id)}

    found = Campaign(who, "full", channel).judged(everything, judge)
    assert found == expected("full", who, channel, everything)


@pytest.mark.parametrize("level", ["landlock", "none"])
def test_at_lower_levels_exactly_what_is_written_down_succeeds(level: str) -> None:
    needs.level(level)
    who = user()
    agree(Campaign(who, level, "build").succeed(of(BRIEF)), expected(level, who, "build", of(BRIEF)))


@needs.ROOT
@pytest.mark.parametrize("channel", ["agent", "build"])
def test_root_without_namespaces_gives_runs_to_another_user(channel: Channel) -> None:
    user()
    who = developer.root_in_a_container()
    agree(Campaign(who, "uid", channel).succeed(of(BRIEF)), expected("uid", who, channel, of(BRIEF)))


@needs.ROOT
def test_a_message_that_no_model_sent_breaks_the_run_where_nothing_keeps_it_out() -> None:
    tried = of(("k01", "z01", "z06"))

    def judge(after: Aftermath, tried: Sequence[Action]) -> set[str]:
        (result,) = after.results
        assert (result["status"], result["failure"]["code"]) == ("failed", "TRANSCRIPT_FORGED")
        assert after.exit_code == 2
        assert "the text of message msg_FORGED-IN-A-SHELL" in result["failure"]["message"]
        assert "the result of toolu_FORGED-WITH-A-CALL" in result["failure"]["message"]
        assert '"messageId":"msg_FORGED-WITH-A-CALL"' in after.stored
        return {action.id for action in tried if action.succeeded(after, action.id)}

    assert Campaign(developer.root(), "none", "agent").judged(tried, judge) == {"k01"}


def test_an_open_network_opens_the_network_and_nothing_else() -> None:
    needs.level("full")
    tried = of((*BRIEF, "c14", "p09", "n31"))
    found = Campaign(user(), "full", "build", network={}).succeed(tried)
    assert found == {"c15", "p09", "n31"} | (CONTROLS & {action.id for action in tried})


def test_where_nothing_stands_in_their_way_the_same_actions_succeed() -> None:
    who = user()
    tried = of(BRIEF)
    agree(unprotected.succeed(who, "build", tried), expected("unprotected", who, "build", tried))


def test_every_action_was_seen_to_succeed_somewhere() -> None:
    seen = {name for column in EXPECTED.values() for found in column.values() for name in found}
    light = {action.id for action in CORPUS if not action.heavy}
    assert light - seen - CONTROLS == NEVER_SEEN


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    ids = [action.id for action in CORPUS]
    assert len(ids) == len(set(ids))
    assert len(set(ids) - CONTROLS) >= 100


def test_the_page_shows_what_was_measured() -> None:
    assert matrix.table(EXPECTED) in matrix.PAGE.read_text("utf-8")
