"""Rights by version of Landlock."""

from pathlib import Path

import pytest

from zelda_ci.sandbox import kernel

HANDLED = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF, 6: 0xFFFF, 7: 0xFFFF, 9: 0xFFFF}


@pytest.mark.parametrize("abi", HANDLED)
def test_every_right_that_a_version_knows_is_taken_away(abi: int) -> None:
    policy = kernel.policy(abi, [Path("/usr")], [Path("/run/ws")], internet=False)
    assert policy["files"] == HANDLED[abi]
    assert policy["tcp"] == (0b11 if abi >= 4 else 0)
    assert policy["scoped"] == (0b11 if abi >= 6 else 0)
    assert policy["size"] == {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}.get(abi, 24)


def test_what_is_given_back_is_reading_outside_and_no_device_inside() -> None:
    policy = kernel.policy(7, [Path("/usr")], [Path("/run/ws")], internet=True)
    (reading, outside), (writing, inside), (_, devices) = policy["rules"]
    assert (reading, outside) == (0b1101, ["/usr", "/proc"])
    assert inside == ["/run/ws"]
    assert writing == 0xFFFF & ~(1 << 6 | 1 << 11 | 1 << 15)
    assert all(device.startswith("/dev/") for device in devices)
    assert policy["tcp"] == 0


def test_no_rule_grants_what_is_not_handled() -> None:
    for abi, handled in HANDLED.items():
        for policy in (kernel.policy(abi, [], [], internet=True), kernel.nested(abi)):
            assert all(rights & ~handled == 0 for rights, _ in policy["rules"])


def test_a_border_within_takes_nothing_away() -> None:
    policy = kernel.nested(7)
    assert policy["rules"] == [[policy["files"], ["/"]]]
    assert (policy["tcp"], policy["scoped"]) == (0, 0)
