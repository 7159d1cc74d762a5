"""Secrets that a text itself names as such: `DB_PASSWORD=…`, `"clientSecret": "…"`, `postgres://user:…@host`.

Most of what is called a token is a word, a variable or a placeholder. So the value decides as well: masked is what
nobody would write down but a generator, or a person who was asked for a password.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any
from urllib.parse import unquote

import re2

MIN_LENGTH, MAX_LENGTH = 8, 2_000
# Of a value without quotes, and of one in an address.
MAX_RUN_LENGTH, MIN_IN_ADDRESS_LENGTH = 500, 6
# That are looked at in one text: a hostile one can be nothing but names.
MAX_NAMES = 100_000
# Per character of what is random; hexadecimal digits have up to 4.
MIN_BITS = 2.4

_PASS = r"[_.-]pass(?:w(?:or)?d|phrase|code)?|pass(?:w(?:or)?d|wort|phrase|code)|pwd"  # noqa: S105 - a pattern
_KEYS = (
    r"(?:api|access|secret|private|auth|signing|encryption|encrypt|decryption|master|app|account|license|storage|"
    r"shared|service|session|client|deploy|crypt|hmac|jwt|webhook|consumer|admin|bot)[ _.-]?key"
)
_WORD = rf"(?:{_PASS}|secret|token|credentials?|{_KEYS}|_auth|(?-i:[A-Z0-9]_KEY))"
_TAIL = (
    r"(?:[_.-]?(?:key|base|base64|b64|hex|raw|plain|plaintext|value|string|old|new|prod|production|dev|development|"
    r"staging|live|main|root|admin|primary|secondary|v?[0-9]{1,3})){0,2}"
)
_QUOTE = r"(?:\\{0,4}[\"'`]|&quot;|&#3[49];)"
_BLANK = r"[ \t]{0,40}"
_BREAK = r"(?:\r?\n|\\r\\n|\\n)"
_TYPES = r"(?:str(?:ing\??)?|bytes|text|&(?:'static )?str|secretstr|optional\[str\]|str ?\| ?none|final(?:\[str\])?)"
# What comes between a name and its value: that of a type, a block, `name:`/`value:` pairs, arguments, elements.
_SEPARATOR = (
    rf"{_QUOTE}?[\])]?{_BLANK}:{_BLANK}{_TYPES}{_BLANK}={_BLANK}"
    rf"|{_QUOTE}?[\])]?{_BLANK}:{_BLANK}[|>][-+]?{_BLANK}{_BREAK}[ \t+]{{1,40}}"
    rf"|{_QUOTE}?,?{_BLANK}{_BREAK}?[-+ \t0-9→|]{{0,40}}{_QUOTE}?value{_QUOTE}?{_BLANK}[:=]{_BLANK}"
    rf"|{_QUOTE}?[\])]?{_BLANK}(?:=>|:=|:-|={{1,3}}|!={{1,2}}|:){_BLANK}"
    rf"|{_QUOTE}{_BLANK},{_BLANK}|\({_BLANK}|>"
)
# Before a name after which a blank is enough: an option, a variable of a Dockerfile, a login of `.netrc`.
_SPACED = r"(?:-[a-z-]{0,40}|\b(?:env|arg|setx?)[ \t]{1,20}\w{0,60}|\blogin[ \t]{1,20}\S{1,80}\s{1,20})"
_SCHEME = rf"{_QUOTE}?[\])]?{_BLANK}[:=,]{_BLANK}{_QUOTE}?(?:bearer|basic|token)[ ]"

# A run ends where the next parameter of an address begins. Not possessive: Python before 3.11.5 gets that wrong.
_PARAMETER = rb"&[A-Za-z][\w.-]{1,40}=(?!=)"
_RUN = rb"(?:[^\s\"'`\\<>&]|(?!%b)&){1,%d}" % (_PARAMETER, MAX_RUN_LENGTH)
_CODE_RUN = rb"(?:[^\s\"'`\\<>,;|(){}\[\]&]|(?!%b)&){1,%d}" % (_PARAMETER, MAX_RUN_LENGTH)
# What stands in quotes, within its line; or else, except in a call, what goes up to the end of the line, or in code and
# addresses up to what cannot go on as an expression.
_VALUE = re.compile(
    rb"[fbruFBRU@$]{0,2}(\\{0,4}(?:\"\"\"|'''|[\"'`])|&quot;|&#3[49];)(?:(?P<quoted>[^\n]{0,%d}?)\1)?"
    rb"|(?<!\()(?P<line>%b)[ \t]*(?:[ \t]#[^\n]*)?(?:\r?\n|\\[rn]|$)"
    rb"|(?<!\()(?P<token>%b)(?=[\s\"'`\\<>,;|)}\]]|%b|$)" % (MAX_LENGTH, _RUN, _CODE_RUN, _PARAMETER)
)
_ADDRESS = re.compile(rb"://(?:([^\s/?#\"'`<>@:]{0,100}):)?([^\s/?#\"'`<>@]{1,300})@")
# As in a shell and in `.env`, where nothing but a value can follow.
_PLAINLY_PASSWORD = re.compile(rb"[A-Z0-9_]*(?:PASS|PWD|SECRET)[A-Z0-9_]*=")
_CODE = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[(\[]|[\w.]*(?:Private|Public)Key\b")
_NOT_SECRET = re.compile(
    rb"(?i:public(?:[_.-]?key)?|page|next|previous|continuation|sync|csrf|xsrf|publishable)[_.-]?$"
)

_PLACEHOLDER = re.compile(
    r"(?i)\$\{|\{\{|\$\(|<%|%\(|#\{|\{[^{}]*\}|\[[^\]]*\]|^\$[A-Za-z_]|^%\w+%$|^<.*>$|\.\.\.|…|\*\*\*|[xX]{4}|&lt;.*&gt;|\\[dws]|"
    r"^(?:https?|ftp|file|s3|gs|op|ref\+\w+|vault|arn|urn|env|secret)s?:|process\.env|os\.environ|getenv|System\.|"
    r"^/(?:__w|app|builds|etc|github|home|mnt|opt|private|root|run|srv|tmp|usr|users|var|work|workspaces?)/"
)
_DUMMY = re.compile(
    r"(?i)p[a@4]ss?w[o0]rd|passwd|0?123456789?0?|12345|98765|abcdef(?:gh)?|abc123|deadbeef|qwerty|change_?me|example|"
    r"placeholder|dummy|sample|your|foobar"
)
_LETTERS = r"(?:(?:[A-Z]{0,3}[a-z]{2,}|[A-Z]{1,2}[a-z]|[A-Z]{3,})(?:[A-Z]{1,4}[a-z]{2,})*)?"
# Words with a few digits, as in `sha256` or `oauth2Callback`; and plain numbers. Not what nobody can pronounce.
_WORDS = re.compile(
    rf"(?!.*(?i:[bcdfghjklmnpqrstvwxz]{{6}}|[aeiou]{{4}}))(?:{_LETTERS}(?:[A-Z]|\d{{0,4}}){_LETTERS}|\d+)"
)


def compile_pattern(pattern: str) -> Any:
    """A pattern of RE2 for bytes, with room for hundreds of secrets in several spellings."""
    options = re2.Options()
    options.log_errors, options.max_mem = False, 256 << 20
    return re2.compile(pattern.encode(), options)


_TITLE = f"{_WORD}{_TAIL}"
_NAME = compile_pattern(f"(?i){_TITLE}")
_NAMED = compile_pattern(rf"(?i)({_TITLE})(?:{_SEPARATOR})|(authorization){_SCHEME}|{_SPACED}({_TITLE})[ \t]")


def spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the values of named secrets stand in a text, without their quotes."""
    for match in islice(_NAMED.finditer(data), MAX_NAMES):
        if span := _value(data, match.start(match.lastindex), match.end()):
            yield span
    yield from (match.span(2) for match in _ADDRESS.finditer(data) if _is_password(*match.groups()))


_SECRET_NAME = re.compile(
    r"(api|access|secret|private|auth|signing)_?keys?|key|(access_?|auth_?|oauth_?|bearer_?|github_?|gh_?)?token|bearer"
    r"|\w*_(token|key|secret|password|pat)|\w*(apikey|authtoken|secret|passwor[dt]|passwd|passphrase|credentials?)"
)


def is_secret_name(name: str) -> bool:
    """Whether a key or variable holds a secret, whatever its value is: `PWD` and `FIRST_PASS` hold none here."""
    return bool(_SECRET_NAME.fullmatch(re.sub(r"(?<=[a-z0-9])(?=[A-Z])|-", "_", name[:100]).lower()))


def values(text: str) -> Iterator[str]:
    """The values themselves, and what they mean where an address quotes them."""
    data = text.encode("utf-8", "replace")
    for start, end in spans(data):
        value = data[start:end].decode("utf-8", "replace")
        yield from {value, unquote(value)}


def is_named(key: str, value: str) -> bool:
    """Whether a key of an object names its value a secret, and the value may be one."""
    data = key[:200].encode("utf-8", "replace")
    named = (it.start() for it in _NAME.finditer(data) if it.end() == len(data))
    return any(not _is_harmless(data, start) for start in named) and looks_secret(value)


def _is_harmless(data: bytes, start: int) -> bool:
    return bool(_NOT_SECRET.search(data[max(0, start - 20) : start]))


def _value(data: bytes, start: int, position: int) -> tuple[int, int] | None:
    """Return where the value stands of a name at `start`, if it may be a secret; it, or its quote, is at `position`."""
    match = _VALUE.match(data, position)
    kind = match and match.lastgroup
    if not match or not kind or _is_harmless(data, start):
        return None
    found = match[kind] if kind != "line" else match[kind].rstrip(b",;)}]")
    value = found.decode("utf-8", "replace")
    is_plain = _PLAINLY_PASSWORD.fullmatch(data, start, position)
    is_random = looks_secret(value) and (is_plain or kind == "quoted" or not _CODE.match(data, position))
    is_secret = is_random or (is_plain and _is_chosen(value))
    return (match.start(kind), match.start(kind) + len(found)) if is_secret else None


def _is_password(user: bytes | None, found: bytes) -> bool:
    """Whether an address holds a password: any but words, and those of examples; without a user only a long one."""
    password = found.decode("utf-8", "replace")
    if user is None:
        return len(password) >= 2 * MIN_LENGTH and looks_secret(password)
    is_example = password.isalpha() or user.lower() == found.lower() or bool(_PLACEHOLDER.search(password))
    return not is_example and len(password) >= MIN_IN_ADDRESS_LENGTH <= 2 * len(_DUMMY.sub("", password))


def looks_secret(value: str) -> bool:
    """Whether a value is more than words, numbers and placeholders."""
    if not MIN_LENGTH <= len(value) <= MAX_LENGTH or _PLACEHOLDER.search(value) or any(map(str.isspace, value)):
        return False
    # Taken out first, so that `password123456789` is not random for its digits.
    rest = _DUMMY.sub("-", value)
    random = "".join(part for part in re.findall(r"[A-Za-z0-9]+", rest) if len(part) > 2 and not _WORDS.fullmatch(part))
    if len(random) >= MIN_LENGTH:
        return _bits(random) >= MIN_BITS
    is_mixed = all(re.search(kind, rest) for kind in ("[a-z]", "[A-Z]", "[0-9]", r"[!#$%^&*+=?~@]"))
    return rest == value and is_mixed and "://" not in value and "=" not in value[:-2]


def _is_chosen(value: str) -> bool:
    """Whether a person may have chosen this as a password: three words, or a word with digits."""
    if not MIN_LENGTH <= len(value) <= MAX_LENGTH or _PLACEHOLDER.search(value):
        return False
    words = re.findall("[a-z]+", _DUMMY.sub("-", value).lower())
    return bool(words) and (len(words) >= 3 or any(map(str.isdigit, value))) and not re.search(r"[\s/]", value)


def _bits(text: str) -> float:
    """Of entropy per character; a run of neighbours in the alphabet has none."""
    if sum(abs(ord(previous) - ord(current)) <= 1 for previous, current in pairwise(text)) > len(text) / 2:
        return 0.0
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())
