"""What the kernel is asked to refuse: the filter program, run step by step, and the rights by version of Landlock."""

import errno
import struct
from pathlib import Path

import pytest

from zelda_ci.sandbox import kernel
from zelda_ci.sandbox.kernel import ALLOW, ARCHITECTURES, ERRNO, KILL

READ = {"x86_64": 0, "aarch64": 63}
MOUNT = {"x86_64": 165, "aarch64": 40}
FORK, THREAD, NEW_USER, NEW_NET = 17, 0x3D0F00, 0x10000000, 0x40000000
REFUSED = ERRNO | errno.EPERM


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None, internet: bool = True) -> int:
    """What the kernel does with a call."""
    found = ARCHITECTURES[machine] if architecture is None else architecture
    data = struct.pack("=IIQ6Q", number, found, 0, *arguments, *[0] * (6 - len(arguments)))
    program = kernel.program(machine, "full", internet=internet)
    steps = [struct.unpack_from("=HBBI", program, place) for place in range(0, len(program), 8)]
    value, place = 0, 0
    for _ in range(len(steps)):
        code, then, otherwise, operand = steps[place]
        place += 1
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            place += then if holds else otherwise
    raise AssertionError("it never ends")


@pytest.fixture(params=ARCHITECTURES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_ordinary_calls_are_allowed(machine: str) -> None:
    assert verdict(machine, READ[machine], 0, 0, 100) == ALLOW
    assert verdict(machine, kernel.CLONE[machine], FORK) == ALLOW
    assert verdict(machine, kernel.CLONE[machine], THREAD) == ALLOW
    assert verdict(machine, kernel.UNSHARE[machine], 0x400) == ALLOW
    assert verdict(machine, kernel.IOCTL[machine], 0, 0x5413) == ALLOW


def test_what_would_leave_the_sandbox_is_refused(machine: str) -> None:
    assert verdict(machine, MOUNT[machine]) == REFUSED
    for number in kernel.FORBIDDEN[machine]:
        assert verdict(machine, number) == REFUSED
    for flag in (NEW_USER, NEW_NET, 0x20000, 0x20000000 | FORK):
        assert verdict(machine, kernel.CLONE[machine], flag) == REFUSED
        assert verdict(machine, kernel.UNSHARE[machine], flag) == REFUSED
    assert verdict(machine, kernel.UNSHARE[machine], 0x80) == REFUSED
    assert verdict(machine, kernel.IOCTL[machine], 0, 0x5412) == REFUSED
    assert verdict(machine, kernel.IOCTL[machine], 0, 0x5412 | 1 << 40) == REFUSED
    # Flags that cannot be seen, another architecture and other numbers are no way out.
    assert verdict(machine, kernel.CLONE3) == ERRNO | errno.ENOSYS
    assert verdict(machine, READ[machine], architecture=0x40000003) == KILL
    assert verdict(machine, 0x40000000 | MOUNT[machine]) == REFUSED


@pytest.mark.parametrize(
    ("family", "internet", "allowed"),
    [(1, False, True), (16, False, True), (2, True, True), (10, True, True), (2, False, False), (10, False, False),
     (40, True, False), (38, True, False), (17, True, False)],
)  # fmt: skip
def test_sockets_are_of_few_families(machine: str, family: int, internet: bool, allowed: bool) -> None:  # noqa: FBT001  # a table
    found = verdict(machine, kernel.SOCKET[machine], family, 1, 0, internet=internet)
    assert found == (ALLOW if allowed else ERRNO | errno.EAFNOSUPPORT)


def test_the_kernels_own_names_of_the_forbidden_calls() -> None:
    assert {165, 166, 155, 308, 321, 323, 425, 304, 175, 246} <= set(kernel.FORBIDDEN["x86_64"])
    assert {40, 39, 41, 268, 280, 282, 425, 265, 105, 104} <= set(kernel.FORBIDDEN["aarch64"])
    assert len(kernel.FORBIDDEN["x86_64"]) == len(kernel.FORBIDDEN["aarch64"]) + 2  # two for I/O ports


HANDLED = {3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF, 6: 0xFFFF, 7: 0xFFFF, 9: 0xFFFF}


@pytest.mark.parametrize("abi", HANDLED)
def test_every_right_that_a_version_knows_is_taken_away_and_no_rule_grants_another(abi: int) -> None:
    policy = kernel.policy(abi, [Path("/usr")], [Path("/run/ws")], internet=False)
    assert policy["files"] == HANDLED[abi]
    for given in (policy, kernel.policy(abi, [], [], internet=True)):
        assert all(rights & ~HANDLED[abi] == 0 for rights, _ in given["rules"])
    assert policy["tcp"] == (0b11 if abi >= 4 else 0)
    assert policy["scoped"] == (0b11 if abi >= 6 else 0)


def test_what_is_given_back_is_reading_outside_and_no_device_inside() -> None:
    policy = kernel.policy(7, [Path("/usr")], [Path("/run/ws")], internet=True)
    (reading, outside), (writing, inside), (_, devices) = policy["rules"]
    assert (reading, outside) == (0b1101, ["/usr", "/proc"])
    assert inside == ["/run/ws"]
    assert writing == 0xFFFF & ~(1 << 6 | 1 << 11 | 1 << 15)
    assert all(device.startswith("/dev/") for device in devices)
    assert policy["tcp"] == 0
