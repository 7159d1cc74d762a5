"""Which level a run gets."""

import pytest

from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.errors import ConfigError
from zelda_ci.sandbox.levels import STRENGTH, Offered, choose_level, remark, remedy

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


def test_a_weak_level_is_explained_with_what_raises_it() -> None:
    found = [remark("landlock", offered) for offered in (Offered(WEAK.levels, remedy="sudo do"), WEAK, ALL)]
    for sentence, start in zip(found, ("To isolate runs: sudo do - ", "Allow user namespaces. ", MORE), strict=True):
        assert (sentence or "").startswith(f"{start}At isolation level landlock session and commands run as your user")
    assert (remark("none", NOTHING) or "").startswith("The kernel has no Landlock. At isolation level none nothing is")
    assert remark("uid", ALL) is None


MORE = "This machine offers more: --isolation full. "
APPARMOR, USERNS = "kernel.apparmor_restrict_unprivileged_userns", "user.max_user_namespaces"
NAMESPACES, MOUNTS, PROC = "namespaces: Operation not permitted", "mounts at /: Permission denied", "proc at ./proc: x"
FULL = "namespaces: No space left on device"


BOTH = f"sysctl -w {USERNS}=15000 and start the container with {{seccomp}}"


@pytest.mark.parametrize(
    ("refused", "settings", "options", "is_root", "command"),
    [
        (FULL, {USERNS: "0"}, ["seccomp"], True, f"sysctl -w {USERNS}=15000"),
        (FULL, {USERNS: "0", APPARMOR: "1"}, [], False, f"sudo sysctl -w {USERNS}=15000"),
        (MOUNTS, {APPARMOR: "1"}, [], False, f"sudo sysctl -w {APPARMOR}=0"),
        (MOUNTS, {APPARMOR: "1"}, [], True, None),  # which does not bind root
        (MOUNTS, {APPARMOR: "1", USERNS: "0"}, [], False, f"sudo sysctl -w {APPARMOR}=0 {USERNS}=15000"),
        (NAMESPACES, {USERNS: "15000"}, ["seccomp"], True, "start the container with {seccomp}"),
        (NAMESPACES, {USERNS: "0"}, ["seccomp"], True, BOTH),
        (NAMESPACES, {}, ["seccomp", "apparmor"], True, "start the container with {seccomp} {apparmor}"),
        (PROC, {APPARMOR: "1"}, [], True, "start the container with {systempaths}"),
        (NAMESPACES, {}, [], False, None),
    ],
)  # fmt: skip
def test_what_forbids_namespaces_is_named_in_one_command(
    refused: str, settings: dict[str, str], options: list[str], *, is_root: bool, command: str | None
) -> None:
    names = {name: f"--security-opt {name}=unconfined" for name in ("seccomp", "apparmor", "systempaths")}
    expected = command.format(**names) if command else None
    assert remedy(refused, settings, options, is_root=is_root) == expected
