"""Which level a run gets."""

import pytest

from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.errors import ConfigError
from zelda_ci.sandbox.levels import (
    CONTAINER_OPTIONS,
    STRENGTH,
    Offered,
    choose_level,
    obstacles,
    remedy,
    unaccepted,
    weakness,
)

WEAK = Offered(frozenset({"none", "landlock"}), ("Allow user namespaces.",))
ALL = Offered(frozenset(STRENGTH))
NOTHING = Offered(frozenset({"none"}), ("The kernel has no Landlock.",))


@pytest.mark.parametrize(
    ("offered", "wanted", "require", "level"),
    [
        (ALL, "auto", None, "full"),
        (WEAK, "auto", None, "landlock"),
        (ALL, "uid", None, "uid"),
        (ALL, "uid", "landlock", "uid"),
    ],
)
def test_the_best_or_what_is_asked_for(
    offered: Offered, wanted: str, require: IsolationLevel | None, level: str
) -> None:
    assert choose_level(offered, wanted, require, unsafe=False) == level


@pytest.mark.parametrize(
    ("offered", "wanted", "require", "sentence"),
    [
        (WEAK, "full", None, "Isolation level full is not available on this machine."),
        (WEAK, "auto", "full", "Isolation level full is required, and the best that this machine offers is landlock."),
        (ALL, "landlock", "uid", "Isolation level uid is required, and what isolation.level asks for is landlock."),
        (NOTHING, "auto", "uid", "Isolation level uid is required, and the best that this machine offers is none."),
    ],
)  # fmt: skip
def test_less_than_asked_for_is_refused_even_where_unsafe_is_allowed(
    offered: Offered, wanted: str, require: IsolationLevel | None, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        choose_level(offered, wanted, require, unsafe=True)
    assert (caught.value.message, caught.value.code) == (sentence, "ISOLATION_UNAVAILABLE")
    assert caught.value.hint
    assert all(reason in caught.value.hint for reason in offered.reasons)


@pytest.mark.parametrize(("offered", "wanted"), [(NOTHING, "auto"), (ALL, "none")])
def test_no_isolation_must_be_said_out_loud(offered: Offered, wanted: str) -> None:
    with pytest.raises(ConfigError, match="would run as you"):
        choose_level(offered, wanted, None, unsafe=False)
    assert choose_level(offered, wanted, None, unsafe=True) == "none"


@pytest.mark.parametrize(
    ("level", "accepted", "needed"),
    [
        ("uid", None, False),
        ("none", None, False),  # which has a word of its own
        ("landlock", None, True),
        ("landlock", "landlock", False),
        ("landlock", "nonsense", True),
        ("landlock", "none", False),
    ],
)
def test_below_uid_somebody_must_say_that_it_is_enough(
    level: IsolationLevel, accepted: str | None, *, needed: bool
) -> None:
    assert unaccepted(level, accepted) == needed


def test_a_weak_level_is_explained_with_what_raises_it() -> None:
    assert weakness(Offered(WEAK.levels, remedy="sudo do")).startswith("To isolate runs: sudo do - At")
    assert weakness(WEAK).startswith("Allow user namespaces. At")
    assert weakness(ALL).startswith("This machine offers more: --isolation full. At")


APPARMOR, USERNS = "kernel.apparmor_restrict_unprivileged_userns", "user.max_user_namespaces"


@pytest.mark.parametrize(
    ("install", "forbidding", "options", "is_root", "command"),
    [
        ("apt-get install -y bubblewrap", [], [], False, "sudo apt-get install -y bubblewrap"),
        ("apk add bubblewrap", [], [], True, "apk add bubblewrap"),
        (None, [APPARMOR], [], False, f"sudo sysctl -w {APPARMOR}=0"),
        (None, [APPARMOR], [], True, None),
        (None, [USERNS], [], True, f"sysctl -w {USERNS}=15000"),
        ("dnf install -y b", [APPARMOR], [], False, f"sudo sh -c 'dnf install -y b && sysctl -w {APPARMOR}=0'"),
        ("apk add b", [APPARMOR], ["--a", "--b"], True, "apk add b and start the container with --a --b"),
        (None, [], [], False, None),
    ],
)
def test_one_command_raises_the_level(
    install: str | None, forbidding: list[str], options: list[str], *, is_root: bool, command: str | None
) -> None:
    assert remedy(install, forbidding, options, is_root=is_root) == command


@pytest.mark.parametrize(
    ("refused", "settings", "walls", "found"),
    [
        ("user 28", {USERNS: "0\n"}, (True, True, True), ([USERNS], [])),
        ("user 1", {}, (True, True, True), ([], ["seccomp", "apparmor", "systempaths"])),
        ("user 1", {USERNS: "15000\n"}, (True, False, False), ([], ["seccomp"])),
        ("mount 1", {APPARMOR: "1\n"}, (False, False, False), ([APPARMOR], [])),
        ("mount 13", {APPARMOR: "0\n"}, (False, True, False), ([], ["apparmor"])),
        ("proc 1", {APPARMOR: "1\n"}, (False, False, True), ([], ["systempaths"])),
    ],
)
def test_what_forbids_namespaces_is_named(
    refused: str, settings: dict[str, str], walls: tuple[bool, bool, bool], found: tuple[list[str], list[str]]
) -> None:
    filtered, profiled, masked = walls
    names, options = obstacles(refused, settings, is_filtered=filtered, is_profiled=profiled, is_masked=masked)
    assert (list(names), list(options)) == (found[0], [CONTAINER_OPTIONS[name] for name in found[1]])
