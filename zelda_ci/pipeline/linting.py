"""What is weak in suites: criteria that nothing can fail, that say too much, or that nobody has ever decided."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

from zelda_ci.config.document import read_text
from zelda_ci.config.init import scalar, seen_from
from zelda_ci.config.source import TOP, Position, Rejected, Steps, is_alike, nearest, read
from zelda_ci.config.suites import usual_name
from zelda_ci.domain.check import LintFinding, LintReport
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, EfficiencyDetails, FulfillmentDetails
from zelda_ci.domain.kinds import KINDS, ItemKind
from zelda_ci.domain.run import EvalContext, RunResult
from zelda_ci.domain.session import ApiUsage, SessionTranscript
from zelda_ci.domain.suite import ResolvedSuite, SuiteCheck
from zelda_ci.domain.workspace import Changes
from zelda_ci.files.globs import upwards
from zelda_ci.metrics import ask_judge
from zelda_ci.metrics.calls import is_named
from zelda_ci.metrics.checks import FAIL, NOT_JUDGED, PASS, Checks
from zelda_ci.selection.felt import coverage
from zelda_ci.survey.folder import Survey

# What Claude Code has of its own: what it calls by these tools, and its tools.
_BUILT_IN = {
    "Skill": "batch claude-api code-review dataviz debug deep-research doctor fewer-permission-prompts init loop "
    "plugin-authoring run run-skill-generator security-review simplify update-config verify workflow-authoring",
    "Agent": "Explore Plan claude general-purpose statusline-setup",
}
_TOOLS = "Agent Bash Edit Glob Grep MultiEdit NotebookEdit Read Skill Task TodoWrite WebFetch WebSearch Write"
# A word of docs/lint.md, why it applies, and lines that would be better; placed with a file, a line and a subject.
Remark = tuple[str, str, tuple[str, ...]]
Judged = Mapping[str, Sequence[CriterionJudgement]]


class Linter:
    """Looks at suites, at what steers Claude Code in their project, and at stored trials. Nothing is run."""

    def __init__(self, found: Survey, runs: Sequence[RunResult], idle: Judged | None = None) -> None:
        """`idle` is how judges decide the criteria of suites, by name, on a session that does nothing."""
        self._found, self._runs, self._idle, self._rules = found, runs, idle or {}, dict[str, str]()
        self._items = [item for item in found.items if not (item.problem or item.shadowed)]
        own = [(KINDS[it.kind].call, name) for it in self._items for name in (it.name, it.label or it.name)]
        self._known = {by: [*(it for call, it in own if call == by), *_BUILT_IN[by].split()] for by in _BUILT_IN}
        paths = (at for file in found.files for at in upwards(seen_from(found.folder, file)))
        self._names = {*paths, *chain(*self._known.values())}

    def report(self, suites: Sequence[ResolvedSuite], *, whole: bool) -> LintReport:
        """All findings on suites; if these are the `whole` project's, also on what none of them touches."""
        wanted = {words for suite in suites for text in suite.criteria for words, _ in word_runs(text)}
        for item in (item for item in self._items if wanted and item.file.endswith(".md")):
            with suppress(Rejected):
                for words, line in word_runs(read_text(self._found.top / item.file, item.file)):
                    if words in wanted:
                        self._rules.setdefault(words, f"{seen_from(self._found.folder, item.file)}:{line}")
        found = chain(*map(self._suite, suites), self._untouched(suites) if whole else ())
        # Of the suites that a matrix makes of a file, one is enough.
        placed = {(*it[:2], *it[3][:2]): it for it in found}
        findings = (
            LintFinding(file=file, line=at.line, rule=rule, subject=subject, reason=reason, instead=instead)
            for file, at, subject, (rule, reason, instead) in sorted(placed.values())
        )
        asked = (it for it in suites if ask_judge(idle(it).suite))
        left = (text for suite in asked for text in suite.criteria if text not in self._tried(suite))
        return LintReport(findings=tuple(findings), not_tried=tuple(left))

    def _tried(self, suite: ResolvedSuite) -> dict[str, str]:
        """By the criteria that were judged on such a session, why it meets them; empty where it does not."""
        judged = zip(suite.criteria, self._idle.get(suite.name, ()), strict=False)
        return {text: it.reasoning if it.verdict is PASS else "" for text, it in judged if it.verdict is not NOT_JUDGED}

    def _suite(self, suite: ResolvedSuite) -> Iterator[tuple[str, Position, str, Remark]]:
        source = read(read_text(self._found.root / suite.file, suite.file), suite.file)
        criteria = {"mustPass": suite.must_pass, "acceptanceCriteria": suite.acceptance_criteria}
        runs, judged = [run for run in self._runs if run.suite == suite.name], self._tried(suite)
        remarks: dict[tuple[Steps, str], Iterator[Remark]] = {((), suite.name): _of_whole(suite, judged)}
        for key, texts in {**criteria, "answerCriteria": suite.answer_criteria}.items():
            for number, text in enumerate(texts):
                found = _verdicts(text, runs, key, judged.get(text))
                # As the file says it: each suite of a matrix has other words.
                said = " ".join(source.texts.get((key, number), text).split())
                remarks[(key, number), text] = chain(self._wording(said, key), found)
        for number, check in enumerate(suite.checks):
            is_prompt = suite.kind == "routing" and number == len(suite.checks) - 1
            place: Steps = ("prompts", int(suite.name.rpartition(".")[2]) - 1) if is_prompt else ("checks", number)
            call = json.dumps(source.texts.get((*place, *(("before", "then") if check.before else ("called",)))))
            remarks[place, check.text] = self._check(check, suite, call)
        for (path, subject), found in remarks.items():
            yield from ((suite.file, source.at.get(path, TOP), subject, each) for each in found)

    def _wording(self, text: str, key: str) -> Iterator[Remark]:
        if words := next((words for words, _ in word_runs(text) if words in self._rules), None):
            reason = f'It repeats {self._rules[words]} ("{words}"): a session that repeats it, too, seems to keep it.'
            yield "quotesRule", f"{reason} Say what can be seen in the result.", ()
        if check := check_line(text, self._names):
            lines = (check, *(["  mustPass: true"] if key == "mustPass" else []))
            yield "couldBeCheck", "A check decides it without a judge: free, and always the same.", lines
        elif both := halves(text):
            reason = "Two in one: where it fails, nobody sees which half. Judges differ where one of them is met."
            yield "twoInOne", reason, tuple(f"- {scalar(half)}" for half in both)

    def _check(self, check: SuiteCheck, suite: ResolvedSuite, call: str) -> Iterator[Remark]:
        first, then = (check.before.first, check.before.then) if check.before else (None, None)
        asked: tuple[str | None, ...] = (check.called, *(check.order or ()), first, then)
        closed = {it.tool for it in self._items if not it.is_open}.intersection(asked)
        for rule in filter(None, (*asked, check.not_called, check.hook_blocked, *check.routes)):
            if lacking := ("the model may not make one",) if rule in closed else self._lacking(rule):
                yield "cannotMatch", f"No call can match {rule}: {lacking[0]}.", () if check.routed else lacking[1:]
        event = "PreToolUse" if check.hook_blocked else (check.hook_ran or "").partition("(")[0]
        if event and not any(str(it.name).partition(":")[0] == event for it in self._items if it.kind == "hook"):
            yield "cannotMatch", f"It can never pass: the project has no hook {event}.", ()
        why, high = "A session that does nothing passes it:", str(check.times).rpartition("..")[2]
        if then and not any(then in (it.called, *(it.order or ())) for it in suite.checks):
            yield "passesIdle", f"{why} the second call need not be made.", (f"- called: {call}",)
        if check.called and high != "0" and Checks(idle(suite)).decide(check)[0]:
            yield "passesIdle", f"{why} no call is enough.", (f"- {{called: {call}, times: 1..{high}}}",)

    def _lacking(self, rule: str) -> tuple[str, ...]:
        """What is lacking for calls of a rule, and the rule that was probably meant; nothing if it is there."""
        tool, _, wanted = rule.removesuffix(")").replace("Task(", "Agent(").partition("(")
        if tool.startswith("mcp__") and "*" not in tool:
            is_there = any(f"{tool}__".startswith(f"{it.tool}__") for it in self._items if it.kind == "mcpServer")
            return () if is_there else (f"the project has no MCP server of {tool}",)
        if wanted and (known := self._known.get(tool)):
            near, word = nearest(wanted, known), {"Skill": "skill", "Agent": "sub-agent"}[tool]
            lacking = f"the project has no {word} {wanted} that is loaded", *([f"{tool}({near})"] if near else [])
            return () if any(is_named(name, wanted) for name in known) else lacking
        alike = [name for name in _TOOLS.split() if tool.isalpha() and is_alike(tool, name)]
        meant = f"Claude Code has no tool {tool}", *(rule.replace(tool, name, 1) for name in alike[:1])
        return meant if alike and tool not in alike else ()

    def _untouched(self, suites: Sequence[ResolvedSuite]) -> Iterator[tuple[str, Position, str, Remark]]:
        there, tried = {item.file for item in self._items}, {run.suite for run in self._runs}
        taken = {word for it in suites for word in (it.name, usual_name(it.file))}
        for row in coverage(self._runs).units:
            # Hooks are in force in every session, and yet untried where none ran.
            unit, is_hook = row.unit, row.unit.kind is ItemKind.HOOK
            if unit.path not in there or (any(it.used for it in row.suites) if is_hook else row.touched):
                continue
            name = str(unit.name).rpartition("/")[2].removesuffix(".md")
            option = {"skill": "skill", "agent": "skill", "rule": "rule"}.get(unit.kind)
            why = f"No stored trial touched this {KINDS[unit.kind].word} (`zelda coverage`): nobody sees it change."
            # A suite that has no trial yet may be about it.
            new = next((it.name for it in suites if it.name not in tried and name in f"{it.prompt} {it.checks}"), "")
            free = next(it for n in count(1) if (it := f"{name}-{n}".replace(":", "-").removesuffix("-1")) not in taken)
            instead = f"zelda run {new}" if new else f"zelda new {free} --{option} {name}"
            remark = "untouched", why, (instead,) if option else ()
            yield seen_from(self._found.folder, unit.path), TOP, str(unit.name), remark


def idle(suite: ResolvedSuite) -> EvalContext:
    """A session that calls, says and changes nothing, before the suite's criteria alone."""
    ended = {"runId": "", "prompt": "", "startedAt": 0, "status": "completed", "wallSeconds": 0}
    alone = suite.replace(checks=(), metrics=suite.metrics.replace(tool_usage=False))
    transcript = SessionTranscript.model_validate(ended)
    return EvalContext(alone, None, transcript, ApiUsage(), Changes(patch=Path("/no/changes")))


def _of_whole(suite: ResolvedSuite, judged: Mapping[str, str]) -> Iterator[Remark]:
    met = [judged.get(text, only_forbids(text) and _DEEDS.fullmatch(text)) for text in suite.criteria]
    # A routing suite may have a prompt for nothing beside others.
    passed = (not (it.command or it.routed) and Checks(idle(suite)).decide(it)[0] for it in suite.checks)
    if suite.only_measures:
        yield "asksNothing", "Nothing of it can pass or fail: it has no criterion, check, build or test command.", ()
    elif not (suite.build_command or suite.test_command) and all(met) and all(passed):
        why = "judges find all of it met" if judged else "it says only what must not be"
        yield "passesIdle", f"A session that does nothing passes it: {why}. Say what must.", ()


def _verdicts(text: str, runs: Sequence[RunResult], key: str, tried: str | None) -> Iterator[Remark]:
    """What stored trials, and one that did nothing, say of a criterion of the suite's list of this name."""
    trials, idle = defaultdict[object, Counter[CriterionVerdict]](Counter), ""
    for run in runs:
        details, efficiency, mark = run.details(FulfillmentDetails), run.details(EfficiencyDetails), run.fingerprint
        known = details.by_name if details else {}
        # Where nothing was judged, it was the judge that failed.
        if (judged := known.get(text)) and {it.verdict for it in known.values() if it.by == "judge"} != {NOT_JUDGED}:
            trials[(mark.outcome, mark.platform, mark.tree) if mark else run.run_id][judged.verdict] += 1
            did_nothing = efficiency and run.changes and not (efficiency.tool_calls or run.changes.files)
            idle = run.run_id if did_nothing and judged.verdict is PASS else idle
    decided = [(verdicts[PASS], verdicts[FAIL]) for verdicts in trials.values() if verdicts[PASS] + verdicts[FAIL]]
    if trials and not decided:
        reason = f"No stored trial met or failed it ({sum(map(Counter.total, trials.values()))} left it open)."
        yield "neverJudged", f"{reason} Say what files, patch or transcript can show.", ()
    flips, count = sum(map(min, decided)), sum(sum(each) for each in decided if sum(each) > 1)
    # What fails more rarely may be the session's luck.
    if flips and flips >= 0.1 * count:
        reason = f"Of {count} trials on the same files, {flips} went another way. Say what counts."
        yield "wavers", f"{reason} `zelda rejudge` shows if judges waver.", ()
    # What must not be is right beside others that ask for something, and what a session says is an answer's evidence.
    if idle and key != "answerCriteria" and not only_forbids(text):
        yield "passesIdle", f"It passed in {idle}, where the session called and changed nothing.", ()
    elif tried and not only_forbids(text):
        yield "passesIdle", f"The judge finds it met by a session that does nothing: {tried}", ()


# Forms of verbs. The first are no nouns as well: "has docs and tests for errors" is one criterion.
_VERB = (
    "is|are|was|were|has|does|can|must|should|will|passes|(?:return|contain|say|add|exist|fail|keep|remove|create|delete|"
    "raise|reject|accept|throw|mention|explain|describe|include|render|send|store|cover|stay|get|give|take|follow|write)s"
)
_ALSO_NOUN = "have|do|pass|fail|exist|stay|answers|calls|runs|uses|names|lists|shows|prints|changes|updates"
_PREDICATES = [re.compile(rf"(?<!\S)(?:{verbs})(?!\S)") for verbs in (_VERB, _ALSO_NOUN)]
_CLAUSE = re.compile(rf"((?:\S+ ){{0,4}}?)(?:(?:{_VERB}) \S|(?:pass|fail|exist|work|compile|succeed)(?:e?s)?$)")
# Words that begin a clause within a clause, or a pair: what "and" joins behind them is one thing.
_INNER = re.compile(
    r"(?i)\b(?:if|in case|when(?:ever)?|where(?:ver)?|while|unless|until|after|before|once|since|because|given|"
    r"provided|assuming|(?:al)?though|as (?:it|long|soon)|that|which|who(?:se)?|what|why|whether|how|both|between|"
    r"either|identifies|(?:say|note|warn|explain|mention|state|recommend|report|tell|describe|show|confirm)s)\b|[.?!:] "
)
_JOINT = re.compile(r"(?:; +|,? and )(?!(?:then|so|n?either|nor|otherwise)\b)(?:(?<=d )(?:(?:it|they|also|still) )*)?")
_NO = "(?:(?:is|are|was|were|do|does|did|has|have|must|should)(?: not|n't)(?: be(?:en)?)?|(?:is |was )?never)"
_NEGATIVE = re.compile(rf"(?i)(?:nothing|no|none|neither)\b|(?:\S+ ){{0,6}}?(?:{_NO}|\w+n't|ma[dk]es? no)\b")
_WHO = "(?:the (?:session|agent|assistant)|claude(?: code)?)"
_IS = "(?:is|are|was|were|(?:has|have|must|should) be(?:en)?)"
_DEED = r"(?:push|commit|chang|edit|delet|remov|add|creat|touch|install|renam|modif)\w*|made"
# What a session surely did not do that did nothing; what files hold as they are, nobody knows here.
_DEEDS = re.compile(
    rf"(?i){_WHO} (?:{_NO} (?:{_DEED}|(?:run|read|open|call|use|write|make)s?\b).*|ma[dk]es? no changes?\.?)|"
    rf"(?:nothing|no \S+)(?: \S+){{0,5}} {_IS} (?:{_DEED})\.?"
)


def only_forbids(text: str) -> bool:
    """True for a criterion that says what must not be, and nothing else."""
    match, asks = _NEGATIVE.match(text), re.search(r"[;,]| (?:but|and|except) ", text)
    return match is not None and not (asks or _INNER.search(match[0]))


def halves(text: str) -> tuple[str, str] | None:
    """The two criteria that one is, each with its verb; None for one that is one, or may be."""
    masked = re.sub(r"`[^`]*`|\"[^\"]*\"|\([^()]*\)", lambda span: "x" * len(span[0]), text)
    for joint in _JOINT.finditer(masked):
        left, is_list = masked[: joint.start()], joint[0].startswith(";")
        second = _CLAUSE.match(masked[joint.end() :].rstrip(" .!"))
        first = second and next(filter(None, (verb.search(left) for verb in _PREDICATES)), None)
        # "It adds and removes items" has one object.
        is_whole = first and first.start() and (first.end() < len(left) or re.match("exist|pass|fail", first[0]))
        if second and not _INNER.search(second[1]) and (is_list or (is_whole and not _INNER.search(left))):
            subject = text[: first.start()] if first and not is_list and second[1] in {"", "never ", "always "} else ""
            # Names of files and programs stay as they are.
            other = re.sub("^[a-z]+ ", lambda it: it[0].capitalize(), f"{subject}{text[joint.end() :].strip(' .!')}")
            return f"{text[: joint.start()].strip()}.", f"{other}."
    return None


def word_runs(text: str) -> Iterator[tuple[str, int]]:
    """Every run of eight words in a text, with the line in which it begins."""
    # Commands have to be repeated as they are. In some alphabets, letters have marks that are no letters.
    lines = enumerate(re.sub(r"`[^`\n]*`", " ", text).lower().splitlines(), start=1)
    words = [(word, number) for number, line in lines for word in re.findall(r"[^\s!-&(-/:-@\[-`{-~]+", line)]
    for at in range(len(words) - 7):
        yield " ".join(word for word, _ in words[at : at + 8]), words[at][1]


_BY, _USE = rf"(?:(?:{_WHO}|it) (?:(?:must|should) )?)?", "(?:use|call|invoke|trigger)"
_CALLED = {it: rf"the (?:`?([\w:-]+)`? (?:sub-?)?{it}|(?:sub-?)?{it} `?([\w:-]+)`?)" for it in ("Skill", "Agent")}
# A single word in code may be a function.
_COMMAND, _QUOTE = r"`([\w./:@=+-]+ [\w./:@=+ -]+)`", r"(?:`([^`/][^`]*)`|\"([^\"/][^\"]*)\")"
_PATH, _FOLDER = r"(?:the file )?(?:`([^`\s]+)`|(\S*[./]\S*))", r"files in (?:`([^`\s]+?)/?`|([^`\s]+?)/)"
_LAST, _SAY = r"(?:the )?(?:last|final) (?:message|answer|reply|response) ", "(?:say|contain|mention|include)"

# By the check that says the same, patterns of whole criteria. A group holds what is called, changed or said.
_CHECKS = {
    **{f"called: {it}({{}})": rf"{_BY}{_USE}(?:s|e?d)? {x}|{x} {_IS} {_USE}e?d" for it, x in _CALLED.items()},
    **{f"notCalled: {it}({{}})": rf"{_BY}{_NO} {_USE}s? {x}|{x} {_NO} {_USE}e?d" for it, x in _CALLED.items()},
    'called: "Bash({} *)"': rf"{_BY}(?:runs?|ran) {_COMMAND}|{_COMMAND} {_IS} (?:run|executed)",
    'notCalled: "Bash({} *)"': rf"{_BY}{_NO} runs? {_COMMAND}|{_COMMAND} {_NO} run",
    'notCalled: "Bash(git {} *)"': rf"{_BY}{_NO} (push|commit)(?:e?s)?(?: anything)?|nothing {_IS} (push|commit)t?ed",
    'notRead: ["{}"]': rf"{_BY}{_NO} (?:read|open)s? {_PATH}|{_PATH} {_NO} (?:read|opened)",
    'changedOnly: ["{}/**"]': rf"{_BY}(?:only changes|changes only) {_FOLDER}|only {_FOLDER} {_IS} changed",
    'changed: ["{}"]': rf"{_BY}(?:update|change|edit)s? {_PATH}|{_PATH} {_IS} (?:updated|changed|edited|modified)",
    'changedOnly: ["**", "!{}"]': rf"{_PATH} {_IS} unchanged|{_PATH} {_NO} (?:changed|edited|modified|touched)",
    'says: "{}"': rf"{_LAST}{_SAY}s {_QUOTE}",
    'notSays: "{}"': rf"{_LAST}{_NO} {_SAY} {_QUOTE}",
}


def check_line(text: str, names: Collection[str]) -> str | None:
    """The check that surely says the same as a criterion, as a line of a suite; names are of what the project has."""
    for check, pattern in _CHECKS.items():
        if match := re.fullmatch(pattern, text.strip().removesuffix("."), re.IGNORECASE):
            found = next(filter(None, match.groups()), "")
            is_named = re.match(r"says|notSays|.*Bash", check) or (check[:7] == "notRead" and re.match(r"\.\w", found))
            is_plain = {*found}.isdisjoint('"\\*?[]{}') and not found.startswith("..")
            # A name alone would mean every file of this name.
            is_one = not (check.endswith('{}"]') and any(name.endswith(f"/{found}") for name in names))
            return f"- {check.format(found)}" if is_plain and is_one and (is_named or found in names) else None
    return None
