"""What the redactor masks, in which spellings, and what it leaves alone."""

import base64
import html
import json
import re
import shlex
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import for_each
from zelda_ci.errors import ConfigError
from zelda_ci.redact import MASK, MIN_SECRET_LENGTH, Redactor, Secret, joined

PASSWORD = "p&ss/w\"örd\\ <1>'x"
KEY = "sk-ant-fake-" + "Ab3_" * 24


def masking(*secrets: str) -> Redactor:
    return Redactor(Secret(secret) for secret in secrets)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda s: s,
    "URL": lambda s: quote(s, safe=""),
    "URL path": quote,
    "URL, small hex digits": lambda s: re.sub("%..", lambda code: code[0].lower(), quote(s, safe="")),
    "form": quote_plus,
    "JSON": lambda s: json.dumps(s)[1:-1],
    "JSON in UTF-8": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "JSON with escaped slashes": lambda s: json.dumps(s)[1:-1].replace("/", r"\/"),
    "JSON in JSON": lambda s: json.dumps(json.dumps(s))[3:-3],
    "HTML": html.escape,
    "Python": lambda s: repr(s)[1:-1],
    "shell": lambda s: shlex.quote(s)[1:-1],
    "hex": lambda s: s.encode().hex(),
    "hex, large digits": lambda s: s.encode().hex().upper(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_masked_in_every_spelling_a_log_may_show(spelling: str) -> None:
    shown = SPELLINGS[spelling](PASSWORD)
    assert masking(PASSWORD)(f"password={shown};") == f"password={MASK};"


@pytest.mark.parametrize("before", ["", "u", "us", "x" * 50])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_is_masked_in_base64_wherever_it_stands(before: str, encode) -> None:
    text = encode(f"{before}{PASSWORD}:after".encode()).decode()
    safe = masking(PASSWORD)(f"Authorization: Basic {text}")
    assert MASK in safe
    kept = safe.removeprefix("Authorization: Basic ").split(MASK)
    # What is left around the mask shares at most one character with the secret's first and last bytes.
    assert sum(map(len, kept)) <= len(text) - len(base64.b64encode(PASSWORD.encode()).rstrip(b"=")) + 4


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\\n", "\n+"])
@pytest.mark.parametrize("width", [64, 76])
def test_base64_that_is_broken_into_lines_leaves_less_than_a_third_of_a_key(width: int, line_break: str) -> None:
    encoded = base64.b64encode(KEY.encode()).decode()
    lines = [encoded[at : at + width] for at in range(0, len(encoded), width)]
    safe = masking(KEY)(line_break.join(lines))
    assert len(safe.replace(MASK, "")) < len(encoded) / 3


@pytest.mark.parametrize(
    ("secret", "text", "expected"),
    [
        ("hunter22\n", "it is hunter22.", f"it is {MASK}."),
        ("first-line\nsecond-line\n", "1: first-line\n2: second-line\n", f"1: {MASK}\n2: {MASK}\n"),
        # A variable that is not UTF-8 is known by the pieces that are.
        ("before\udcffafter!", "before? and after!", f"{MASK}? and {MASK}"),
        ("12345", "12345", "12345"),
        ("\n", "\n", "\n"),
    ],
)
def test_a_secret_is_known_by_its_lines_unless_they_are_too_short(secret: str, text: str, expected: str) -> None:
    assert masking(secret)(text) == expected


def test_a_long_secret_is_masked_whole_and_in_json() -> None:
    secret = "\n".join(f'"key {n}": "value {n * n}"' for n in range(400))
    redact = masking(secret)
    assert redact(secret) == MASK
    assert redact(json.dumps(secret)) == f'"{MASK}"'


def test_secrets_too_large_to_look_for_are_refused_without_being_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        masking("".join(f"secret-{n}" for n in range(60_000)))
    assert caught.value.code == "SECRETS_TOO_LARGE"
    assert "secret-1" not in caught.value.user_message


@pytest.mark.parametrize(
    ("secrets", "text", "expected"),
    [
        (["abcdefgh", "efghijkl"], "abcdefghijkl", MASK),
        (["efghijkl", "abcdefgh"], "abcdefghijkl", MASK),
        (["hunter22", "postgres://u:hunter22@host"], "postgres://u:hunter22@host", MASK),
        (["secret-1", "secret-1-longer"], "secret-1-longer", MASK),
        (["aaaaaa"], "aaaaaaaaaa", MASK),
        (["sk-ant-fake1234"], "sk-ant-fake1234-and-more", MASK),
        (["AKIAABCDEFGHIJKLMNOP/tail!"], "AKIAABCDEFGHIJKLMNOP/tail!", MASK),
        (["secret-1", "secret-2"], "secret-1secret-2", MASK),
        (["secret-1", "secret-2"], "secret-1 secret-2", f"{MASK} {MASK}"),
    ],
)
def test_overlapping_secrets_leave_nothing_of_each_other(secrets: list[str], text: str, expected: str) -> None:
    assert masking(*secrets)(text) == expected


SHAPES = [
    KEY,
    "sk-proj-" + "aB3_" * 12,
    "sk-" + "aB3d" * 12,
    "ghp_" + "aB3d" * 9,
    "ghs_" + "aB3d" * 9,
    "github_pat_" + "aB3d_" * 10,
    "glpat-" + "aB3-" * 5,
    "xoxb-123456789012-abcdefABCDEF",
    "AKIA" + "ABCD" * 4,
    "AIza" + "aB3_x" * 7,
    "GOCSPX-" + "aB3-" * 7,
    "ya29." + "aB3-" * 9,
    "sk_live_" + "aB3d" * 6,
    "hf_" + "aBcd" * 9,
    "npm_" + "aB3d" * 9,
    "pypi-AgEIcHlwaS5vcmc" + "aB3-" * 12,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.aB3d-_xyz",
]


AROUND = [("", ""), ("KEY=", "\n"), ('{"k": "', '"}'), ("(", ")"), (r"a:\n", "\n")]


@for_each([(key, before, after) for key in SHAPES for before, after in AROUND])
def test_a_well_known_key_is_masked_without_being_known(key: str, before: str, after: str) -> None:
    safe = Redactor()(before + key + after)
    assert MASK in safe
    assert key[8:] not in safe
    assert safe.endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        "docs/task-management-system-overview-and-more.md",
        "risk-assessment-methodology-for-the-team",
        "task-ant-colony-optimization",
        "task-service-implementation-notes-v2",
        "task-0123456789abcdef0123456789abcdef01234567",
        "pypi-server-configuration-and-mirroring-guide",
        "npm_config_user_agent npm_lifecycle_event",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "0123456789abcdef" * 4,
        "eyJ is how base64 of JSON starts. eyJ",
        "",
        "ordinary text, émile \U0001f600 \0 \x1b[31m",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Redactor()(text) == text


BODY = "MIIEpAIBAAKCAQEA7bq9example+/lines0of0base64\nXyZ0123456789abcdefghijklmnopqrstuvwxyz==\n"


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_a_private_key_is_masked_from_armour_to_armour(kind: str) -> None:
    head = "Version: 1\n\n" if "PGP" in kind else ""
    key = f"-----BEGIN {kind}-----\n{head}{BODY}-----END {kind}-----"
    assert Redactor()(f"before {key}\nafter") == f"before {MASK}\nafter"


@pytest.mark.parametrize(
    "shown",
    [
        "".join(f"+{line}\n" for line in BODY.splitlines()),
        "".join(f"-{line}\n" for line in BODY.splitlines()),
        "".join(f"   {n}\u2192{line}\n" for n, line in enumerate(BODY.splitlines())),
        "".join(f"   {n}\t{line}\n" for n, line in enumerate(BODY.splitlines())),
        BODY.replace("\n", r"\n"),
        BODY.replace("\n", r"\\n"),
        "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123ABCD\n\n" + BODY,
        "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123ABCD\n\n".replace("\n", r"\n") + BODY.replace("\n", r"\n"),
    ],
)
@pytest.mark.parametrize("end", ["-----END RSA PRIVATE KEY-----", ""])
def test_a_private_key_is_masked_however_it_is_shown(shown: str, end: str) -> None:
    safe = Redactor()(f"-----BEGIN RSA PRIVATE KEY-----\n{shown}{end}")
    assert not any(line[:20] in safe for line in BODY.split())


def test_a_huge_text_with_many_false_starts_is_read_once() -> None:
    """Each of these would be searched to the end of the text if a shape were open-ended before it is decided."""
    for unit in ("eyJ-AKIAABCDEFGHIJKLMNOP-", "-----BEGIN PRIVATE KEY-", "sk-ant-fake1234 eyJa.eyJa "):
        safe = Redactor()(unit * 15_000)
        assert "AKIAABCDEFGHIJKLMNOP" not in safe
        assert "fake1234" not in safe


def test_text_that_cannot_be_written_as_utf8_is_made_writable() -> None:
    assert Redactor()("a\ud800b").encode() == b"a?b"


maskable = st.text(st.characters(exclude_characters="*", exclude_categories=["Cs"])).filter(
    lambda text: len(text.strip()) >= MIN_SECRET_LENGTH
)


@settings(deadline=None)
@given(st.text(), st.lists(maskable, max_size=4))
def test_no_known_secret_survives(text: str, secrets: list[str]) -> None:
    safe = masking(*secrets)("-".join([text, *secrets, text]))
    assert [secret for secret in secrets if secret in safe] == []


@settings(deadline=None)
@given(st.text(), st.lists(maskable, max_size=3))
def test_masking_twice_changes_nothing_more(text: str, secrets: list[str]) -> None:
    redact = masking(*secrets)
    once = redact(text + "".join(secrets))
    assert redact(once) == once


def test_safe_parts_with_our_own_text_between_them_are_safe() -> None:
    redact = masking("hunter22")
    assert joined(" and ", [redact("hunter22"), redact("x")]) == f"{MASK} and x"


def test_a_secret_never_prints_itself() -> None:
    secret = Secret("hunter22")
    shown = f"{secret} {secret!r} {[secret]} {({1: secret},)}"
    assert "hunter22" not in shown
    assert secret.reveal() == "hunter22"
