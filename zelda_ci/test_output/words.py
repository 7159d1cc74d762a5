"""What a summary counts, in the words of many runners: a line of counts in, kinds of outcomes out."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

import re2

# A count beyond this is no count of tests.
MAX_COUNT = 10_000_000

_PHRASES = {
    "skipped": "not run|notrun|did not run|not executed|expectedly failed|expected fail|expected failure"
    "|failed as expected|known failure|expected to fail|to do",
    "failed": "not ok|failed unexpectedly|unexpected pass|unexpected success|unexpected failure|unexpected"
    "|failed assertion|assertion failed|unexpectedly passed|unresolved|assertion failure|fatal failure",
    "errored": "timed out|exec failed|unexpected error|did not finish|infra failure|build failure|failed to build"
    "|unhandled rejection|uncaught exception|hook failed|never ran",
    "passed": "expected pass|result as expected|as expected",
}
_KINDS = {
    "passed": "passed pass passing ok succeeded succeed success successful completed fine",
    "failed": "failed fail failing failure xpass xpassed ko",
    "errored": "error errored broken crash crashed crashing exception timeout timedout aborted abort interrupted"
    " interrupt fatal invalid cancelled undefined ambiguous uncompleted lost killed broke",
    "skipped": "skipped skip skipping pending ignored ignore todo disabled xfail xfailed inconclusive deferred excluded"
    " inactive omitted omission omit incomplete unsupported cancel canceled untested void",
    "flaky": "flaky rerun flake",
    "ran": "executed tried ran run checked tested found started encountered discovered",
    "remark": "assertion assert expectation expect requirement warning warn measured filtered deselected step feature"
    " suite file notification retry retries snapshot duration time second blacklisted group risky deprecation"
    " deprecated notice module request container collection rule selected nonselected filteredout check leaked",
}
_WORDS: Mapping[str, str] = {
    **{word: kind for kind, words in _KINDS.items() for word in words.split()},
    **{phrase: kind for kind, phrases in _PHRASES.items() for phrase in phrases.split("|")},
}
# Words that say that tests are counted, and nothing about how they ended.
_TESTS = (
    "test tests case cases spec specs example examples scenario scenarios specification specifications result results"
    " total doctest doctests property properties testcase testcases method methods function functions unit count number"
    " interaction interactions of all the were have been with run finished"
)
_UNITS = frozenset(_TESTS.split())
_PHRASE_FIRST = tuple(sorted((phrase for phrase in _WORDS if " " in phrase), key=len, reverse=True))

_UNIT = r"(?:[\xb5\x{3bc}mn]?s|m|h|min(?:ute)?s?|(?:milli|micro|nano)?sec(?:ond)?s?)"
_TOOK = r"(?:(?:total |wall )?(?:time|duration)(?: elapsed)?|elapsed|took|finished in|in|after)"
_NOISE = (
    # Plurals in brackets, percentages, durations, words that join.
    (re2.compile(r"(?i)\((s|es)\)"), r"\1"),
    (re2.compile(r"# of "), "number of "),
    (re2.compile(r"\(\s*[\d.,]+\s?%\s*\)|\[\s*[\d.]+\s?%\s*\]|[\d.]+\s?%:?"), " "),
    (re2.compile(rf"(?i)[(\[]\s*[\d.:]+\s*{_UNIT}\b[^)\]]*[)\]]"), " "),
    (re2.compile(rf"(?i)\b{_TOOK}[:=]?\s*[(\[]?[\d.:]+\s*{_UNIT}?(?:\b|$)"), " "),
    (re2.compile(rf"(?i)\b\d+(?:[.:]\d+)*\s?{_UNIT}\b"), " "),
    (re2.compile(r"(?i)\bno (\w)"), r"0 \1"),
    (re2.compile(r"(?i) (?:and|with|of which) "), ", "),
)
_NEGATIVE = re2.compile(r"(?:^|[\s:=(])-\d")
_EDGE = re2.compile(r"^[^\w(]*(.*?)[^\w)]*$")
_COUNT_FIRST = re2.compile(r"(\d{1,9})\s+([a-zA-Z][a-zA-Z' \-_]*)")
_LABEL_FIRST = re2.compile(r"([a-zA-Z#][a-zA-Z' \-_]*?)\s*[:=\x{203a}#. \t]\s*(\d{1,9})\b")
_BETWEEN = re2.compile(r"[\s,;|/\xb7\x{2022}.!:\-\x{2013}\x{2014}=()\[\]<>*\x{2502}]*")
_PREFIX = re2.compile(
    r"(?i)^\W*\b(?:(?:overall|unit|final|all|the|end)\s+)?"
    r"(?:tests?|specs?|test[ -](?:results?|summary|run|cases?)|tests finished|results?|summary|totals?|scenarios"
    r"|examples|done|finished|success|failure|failed|passed|pass|fail|ok|errors?|failures|executed|ran|completed|complete|status"
    r"|outcome|info)\b\s*[\s:!.|>=(\x{203a}-]*(\S.*)$"
)


def kind_of(label: str) -> str | None:
    """What a label counts: an outcome, `total`, `ran`, `flaky`, a `remark`; None for what is not understood."""
    words = label.lower().replace("_", " ").replace("-", " ").replace("'", "").split()
    text = " ".join(words)
    for form in (text, _singular(text), text.replace(" ", "")):
        if form in _WORDS:
            return _WORDS[form]
    for phrase in _PHRASE_FIRST:
        if phrase in _singular(text) and not set(_singular(text).replace(phrase, " ").split()) - _UNITS:
            return _WORDS[phrase]
    left = [word for word in words if word not in _UNITS]
    if not left:
        return "total" if words else None
    kinds = {_WORDS.get(_singular(word)) for word in left}
    if len(kinds) > 1:
        kinds.discard("ran")
    if kinds == {"ran"}:
        return "total"
    return kinds.pop() if len(kinds) == 1 else None


def _singular(text: str) -> str:
    return " ".join(map(_one, text.split()))


def _one(word: str) -> str:
    if word.endswith(("sses", "shes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


# Words that may stand between counts, beside those of units and outcomes.
_JOINING = (
    "and which in after took elapsed wall secs sec s ms us ns m min mins minutes h milliseconds microseconds"
    " no overall final end summary done complete status outcome info es"
)
_VOCABULARY = frozenset(_JOINING.split()) | _UNITS | {word for phrase in _WORDS for word in phrase.split()}


def _understood(line: str) -> bool:
    words = (word.strip("()[]<>{}:;,.!|=/*#-_\"'`").lower() for word in line.split())
    return all(
        word in _VOCABULARY or _one(word) in _VOCABULARY or not word.isalpha() or not word.isascii() for word in words
    )


@lru_cache(maxsize=10_000)
def counts_in(line: str) -> Counter[str] | None:
    """Counts by kind of a line like `3 tests, 1 failed` or `Passed: 2 Failed: 1`; None when it says anything else."""
    # Most lines say something else, which one look at their words tells.
    if not _understood(line) or _NEGATIVE.search(line):
        return None
    for pattern, instead in _NOISE:
        line = pattern.sub(instead, line)
    text = _EDGE.match(line)[1]
    if not any(map(str.isdecimal, text)):
        return None
    counts = _either(text)
    for _ in range(3):
        prefixed = _PREFIX.match(text) if counts is None else None
        if not prefixed:
            break
        text = prefixed[1]
        counts = _either(text)
    return counts


def _either(text: str) -> Counter[str] | None:
    first = text[:1].isdecimal()
    return _entries(_COUNT_FIRST, text, label=2) if first else _entries(_LABEL_FIRST, text, label=1)


def _entries(pattern: "re2._Regexp[str]", text: str, label: int) -> Counter[str] | None:
    if not _BETWEEN.fullmatch(pattern.sub(" ", text)):
        return None
    counts: Counter[str] = Counter()
    for entry in pattern.finditer(text):
        kind = kind_of(entry[label])
        if kind is None:
            return None
        counts[kind] += int(entry[3 - label])
    return counts or None
