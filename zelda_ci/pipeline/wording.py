"""What is said of a criterion's words alone: two in one, a check in disguise, a rule's own words. Pure."""

import re
from collections.abc import Collection, Iterator

# Forms of verbs. The first are no nouns as well: "has docs and tests for errors" is one criterion.
_FINITE = re.compile(
    "is|are|was|were|has|does|can|must|should|will|returns|contains|says|adds|exists|passes|fails|keeps|removes|creates|"
    "deletes|raises|rejects|accepts|throws|mentions|explains|describes|includes|renders|sends|stores|covers|stays|"
    "becomes|gets|gives|takes|follows|writes"
)
_ALSO_NOUN = re.compile("have|do|pass|fail|exist|stay|answers|calls|runs|uses|names|lists|shows|prints|changes|updates")
# Words that begin a clause within a clause, or a pair: what "and" joins behind them is one thing.
_INNER = re.compile(
    r"(?i)\b(?:if|when|where|while|unless|after|before|once|since|because|that|which|whose|both|between|either|says|"
    r"notes|warns|identifies|explains|mentions|states|recommends|reports|tells|describes|shows|confirms)\b|[.?!:] "
)
_MASKED = re.compile(r"`[^`]*`|\"[^\"]*\"|\([^()]*\)")
_JOINT = re.compile(r"; +|,? and (?!then\b)")
_NEGATIVE = re.compile(
    r"(?i)(?:nothing|no|none|neither|never)\b|(?:\S+ ){0,6}?(?:(?:is|are|was|were|does|do|did|has|have|must|should) not"
    r"|\w+n't|never)\b"
)


def only_forbids(text: str) -> bool:
    """True for a criterion that says what must not be, and nothing else."""
    asks = _INNER.search(text) or re.search(r"[;,]| (?:but|and|except) ", text)
    return bool(_NEGATIVE.match(text)) and not asks


def halves(text: str) -> tuple[str, str] | None:
    """The two criteria that one is, each with its verb; None for one that is one, or may be."""
    masked = _MASKED.sub(lambda span: "x" * len(span[0]), text)
    for joint in _JOINT.finditer(masked):
        left, right = masked[: joint.start()].split(), masked[joint.end() :].strip(" .").split()
        first, second = _verb(left, _FINITE) or _verb(left, _ALSO_NOUN), _verb(right, _FINITE)
        is_list, subject = joint[0].startswith(";"), " ".join(right[:second])
        if second is None or second > 4 or len(right) < second + 2 or _INNER.search(subject):
            continue
        # "It adds and removes items" has one object.
        is_whole = first and (first < len(left) - 1 or left[first].startswith(("exist", "pass", "fail")))
        if not is_list and (not is_whole or _INNER.search(masked[: joint.start()])):
            continue
        one, other = text[: joint.start()].strip(), text[joint.end() :].strip(" .")
        if not (second or is_list) and first:
            other = f"{text[: [*re.finditer(r'[^ ]+', masked)][first].start()]}{other}"
        return f"{one}.", f"{other[0].upper()}{other[1:]}."
    return None


def _verb(words: list[str], forms: re.Pattern[str]) -> int | None:
    return next((number for number, word in enumerate(words) if forms.fullmatch(word)), None)


def word_runs(text: str) -> Iterator[tuple[str, int]]:
    """Every run of eight words in a text, with the line in which it begins."""
    lines = enumerate(text.lower().splitlines(), start=1)
    words = [(word, number) for number, line in lines for word in re.findall(r"\w+(?:'\w+)?", line)]
    for at in range(len(words) - 7):
        yield " ".join(word for word, _ in words[at : at + 8]), words[at][1]


_WHO = r"(?:(?:the session|the agent|the assistant|claude(?: code)?|it) )?"
_NOT = r"(?:does not|doesn't|did not|must not|never) "
_COMMAND, _QUOTE = r"`([\w./:@=+ -]+)`", r"(?:`([^`/][^`]*)`|\"([^\"/][^\"]*)\")"
_PATH = r"(?:the file )?(?:`([^`\s]+)`|((?=\S*[./])[\w./-]*\w))"
_FOLDER = r"(?:`([\w./-]+?)/?`|([\w.-][\w./-]*?)/)"
_LAST, _SAY = r"(?:the )?(?:last|final) (?:message|answer) ", "(?:say|contain|mention|include)"
# By the check that says the same, patterns of whole criteria. A group holds what is called, changed or said.
_CHECKS = {
    "called: Skill({})": rf"{_WHO}(?:use|call|invoke)[sd] the (?:`?([\w:-]+)`? skill|skill `?([\w:-]+)`?)",
    "called: Agent({})": rf"{_WHO}(?:use|call|invoke)[sd] the (?:`?([\w:-]+)`? sub-?agent|sub-?agent `?([\w:-]+)`?)",
    "notCalled: Skill({})": rf"{_WHO}{_NOT}(?:use|call|invoke)s? the (?:`?([\w:-]+)`? skill|skill `?([\w:-]+)`?)",
    'called: "Bash({}*)"': rf"{_WHO}(?:runs|ran) {_COMMAND}|{_COMMAND} (?:is|was) run",
    'notCalled: "Bash({}*)"': rf"{_WHO}{_NOT}runs? {_COMMAND}|{_COMMAND} (?:is|was) not run",
    'notCalled: "Bash(git {}*)"': rf"{_WHO}{_NOT}(push|commit)(?:e?s)?(?: anything)?|nothing was (push|commit)t?ed",
    'notRead: ["{}"]': rf"{_WHO}{_NOT}(?:read|open)s? {_PATH}|{_PATH} (?:is|was) not (?:read|opened)",
    'changedOnly: ["{}/**"]': rf"{_WHO}(?:only changes|changes only) files in {_FOLDER}"
    rf"|only files in {_FOLDER} (?:are|were) changed",
    'changed: ["{}"]': rf"{_WHO}(?:updates|changes|edits) {_PATH}|{_PATH} (?:is|was) (?:updated|changed|edited)",
    'says: "{}"': rf"{_LAST}{_SAY}s {_QUOTE}",
    'notSays: "{}"': rf"{_LAST}{_NOT}{_SAY} {_QUOTE}",
}


def check_line(text: str, names: Collection[str]) -> str | None:
    """The check that surely says the same as a criterion, as a line of a suite; `names` of skills and agents exist."""
    for check, pattern in _CHECKS.items():
        if match := re.fullmatch(pattern, text.strip().removesuffix("."), re.IGNORECASE):
            found = next(filter(None, match.groups()), "")
            is_known = found in names or ("Skill" not in check and "Agent" not in check)
            return f"- {check.format(found)}" if is_known and '"' not in found and "\\" not in found else None
    return None
