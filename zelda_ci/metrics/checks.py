"""Criteria that need no judge: decided from the calls, hooks, words and changes of a session."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any
from unicodedata import normalize

import re2

from zelda_ci.domain.details import Citation, CriterionJudgement, CriterionVerdict
from zelda_ci.domain.kinds import TURNS_TO, ItemKind
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.numbers import format_count, some_of
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import HookRan, Turn
from zelda_ci.domain.suite import ResolvedSuite, Sequel, SuiteCheck, expression_of
from zelda_ci.metrics.calls import SessionCall, covers, covers_path, positions, shown_files
from zelda_ci.metrics.citable import sections, unquoted
from zelda_ci.metrics.evidence import read_patch
from zelda_ci.redact import Redactor

PASS, FAIL, NOT_JUDGED = CriterionVerdict.PASS, CriterionVerdict.FAIL, CriterionVerdict.NOT_JUDGED
# In a patch: a line that is added or removed, and what is said of a file that has none.
_CHANGED_LINE = re.compile(r"^([-+])(?![-+]{2} )(.*\S.*)$", re.MULTILINE)
_HEADING = re.compile(r"^()((?:rename from|new|deleted|old|GIT binary) .*)$", re.MULTILINE)
_RENAMED = re.compile(r"^rename from (.+)$", re.MULTILINE)
NOT_RUN = "The command was not run, and it cannot be run on a stored session."
# Of one check: places and names that are shown.
MAX_PLACES = MAX_NAMED = 5
MAX_QUOTE_LENGTH = 300
# With which a hook blocks; every other code but 0 is a failure, and so is this one where there is nothing to block.
BLOCKS = 2
BLOCK_NOTHING = re.compile("Session(?:Start|End)|Notification|SubagentStart|PostCompact|InstructionsLoaded|Setup")
# Turn, number of the call in it, and of the command in its shell line.
Place = tuple[int, int, int]
# Whether a check is met, why, and where that can be seen.
Finding = tuple[bool, str, Sequence[Citation]]


def commands_of_checks(suite: ResolvedSuite) -> list[tuple[int, SuiteCheck]]:
    """The checks that are commands, with their numbers from 1; none where the metric is off."""
    is_on = suite.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT)
    return [(n, check) for n, check in enumerate(suite.checks, 1) if is_on and check.command is not None]


def judgement(
    check: SuiteCheck, redact: Redactor, verdict: CriterionVerdict, why: str, evidence: Sequence[Citation] = ()
) -> CriterionJudgement:
    places = tuple(place.redacted(redact) for place in evidence[:MAX_PLACES])
    text, reasoning = redact(check.text), redact(why)
    return CriterionJudgement(criterion=text, verdict=verdict, reasoning=reasoning, evidence=places, by="check")


def decide(context: EvalContext, redact: Redactor) -> list[CriterionJudgement]:
    """The judgements on a suite's checks, in its order."""
    checks, found = Checks(context, read_patch(context) if context.suite.checks else ""), []
    for number, check in enumerate(context.suite.checks, start=1):
        if check.command is not None:
            found.append(context.commands.get(number) or judgement(check, redact, NOT_JUDGED, NOT_RUN))
        elif context.changes is None and check.word in {"changed", "changed_only"}:
            found.append(judgement(check, redact, NOT_JUDGED, "What the session changed is not known."))
        else:
            is_met, why, evidence = checks.decide(check)
            found.append(judgement(check, redact, PASS if is_met else FAIL, why, evidence))
    return found


class Checks:
    """The checks of one run, all but those that are commands."""

    def __init__(self, context: EvalContext, patch: str = "") -> None:
        self._context, self._manifest, self._sections = context, context.manifest or ToolsManifest(), sections(patch)
        renamed = ((_RENAMED.search(section), path) for path, section in self._sections.items())
        self._moved = {unquoted(match[1]): path for match, path in renamed if match}
        self._calls = [
            SessionCall(turn.index, number, tool, turn.parent_tool_call_id is None)
            for turn in context.transcript.turns
            for number, tool in enumerate(turn.tool_calls, start=1)
        ]

    def decide(self, check: SuiteCheck) -> Finding:
        """Decide a check, by the method that has the name of its word."""
        found: Finding = getattr(self, f"_{check.word}")(check)
        return found

    def _made(self, check: SuiteCheck, rule: str) -> Iterator[tuple[Place, SessionCall]]:
        """The calls that a rule names and that were made; of shell lines each of the commands, by its number."""
        for call in self._calls:
            if call.is_made and (call.is_main or check.agent == "any"):
                for position in positions(rule, call, self._manifest):
                    yield (call.turn, call.number, position), call

    def _called(self, check: SuiteCheck) -> Finding:
        rule, times = check.called or check.not_called or "", 0 if check.not_called else check.times
        made = [call for _, call in self._made(check, rule)]
        low, dots, high = str("1.." if times is None else times).partition("..")
        if int(low or 0) <= len(made) <= int(high or (sys.maxsize if dots else low)):
            return True, _told(made, rule), cited(made)
        wanted = f"; asked for: {check.times} times" if check.times is not None else ""
        tried = [call for call in self._calls if not call.is_made and positions(rule, call, self._manifest)]
        refused = f" {format_count(len(tried), 'call')} of it did not come to pass." if tried else ""
        return False, f"{_told(made, rule)[:-1]}{wanted}.{refused}", cited(made or tried)

    _not_called = _called

    def _routed(self, check: SuiteCheck) -> Finding:
        calls = (call for call in self._calls if call.is_made and call.is_main)
        first = next((call for call in calls if call.tool.name in TURNS_TO), None)
        if first is None:
            return "none" in (check.routed or ()), "No skill, sub-agent or command was called.", ()
        is_met = any(positions(rule, first, self._manifest) for rule in check.routes)
        return is_met, f"The first call was {first.shown} (turn {first.turn}).", cited([first])

    def _order(self, check: SuiteCheck) -> Finding:
        last: Place = (-1, -1, -1)
        found: list[SessionCall] = []
        for rule in check.order or ():
            nearest = next((each for each in self._made(check, rule) if each[0] > last), None)
            if nearest is None:
                behind = f" after {found[-1].shown!r} (turn {found[-1].turn})" if found else ""
                return False, f"No call of {rule}{behind}.", cited(found)
            last, call = nearest
            found.append(call)
        return True, f"Made in this order: {_turns(it.turn for it in found)}.", cited(found)

    def _before(self, check: SuiteCheck) -> Finding:
        both = check.before or Sequel(first="", then="")
        firsts, thens = ([*self._made(check, rule)] for rule in (both.first, both.then))
        if not thens:
            return True, f"No call of {both.then}.", ()
        early = [call for place, call in thens if not firsts or place < firsts[0][0]]
        if early:
            return False, f"{early[0].shown!r} (turn {early[0].turn}) came before any {both.first}.", cited(early)
        first = firsts[0][1]
        why = f"{first.shown!r} (turn {first.turn}) came before {format_count(len(thens), 'call')} of {both.then}."
        return True, why, cited([first, thens[0][1]])

    def _not_read(self, check: SuiteCheck) -> Finding:
        patterns, manifest, folder = check.not_read or (), self._manifest, ""
        found = list[tuple[SessionCall, str]]()

        @cache
        def is_meant(path: str) -> bool:
            forms = (path, f"{path}*") if path.endswith("/") else (path,)
            # A word of the shell may be a pattern itself.
            short = (manifest.in_folder(manifest.in_tree(path)) if {*"*?["} & {*path} else None) or ""
            alike = (it for it in patterns if short and it[0] != "!" and it.count("/") == short.count("/"))
            return any(covers_path(patterns, it, manifest) for it in forms) or any(
                fnmatchcase(it, short) for it in alike
            )

        for call in self._calls:
            if call.is_made and (call.is_main or check.agent == "any"):
                paths, left_in = shown_files(call, folder if call.is_main else "")
                folder = left_in if call.is_main else folder
                found += ((call, path) for path in paths if is_meant(path))
        if not found:
            return True, "No such file is named by a call that reads, by a shell command or by its output.", ()
        names = some_of(list(dict.fromkeys(path.rstrip("/") for _, path in found)), MAX_NAMED)
        calls = list(dict.fromkeys(call for call, _ in found))
        by_shell = " As far as the words of shell commands show." if all(c.tool.name == "Bash" for c in calls) else ""
        return False, f"Read: {names} ({_turns(it.turn for it in calls)}).{by_shell}", cited(calls)

    @property
    def _files(self) -> dict[str, str | None]:
        """The changed files, by their old names too: by their path from the top, that from the project."""
        files = (*(self._context.changes.files if self._context.changes else ()), *self._moved)
        return {path: self._manifest.in_folder(path) for path in files}

    def _changed(self, check: SuiteCheck) -> Finding:
        inside = [(path, short) for path, short in self._files.items() if short is not None]
        patterns = check.changed or ()
        not_meant = [it for it in patterns if it.startswith("!")]
        wanted = (it for it in patterns if it not in not_meant)
        found = {it: [path for path, short in inside if covers([it, *not_meant], short)] for it in wanted}
        if lacking := [pattern for pattern, paths in found.items() if not paths]:
            return False, f"No changed file matches {some_of(lacking, MAX_NAMED)}.", ()
        paths = list(dict.fromkeys(paths[0] for paths in found.values()))
        return True, f"Changed: {some_of(paths, MAX_NAMED)}.", [*self._hunks(paths)]

    def _changed_only(self, check: SuiteCheck) -> Finding:
        patterns = check.changed_only or ()
        others = [path for path, short in self._files.items() if short is None or not covers(patterns, short)]
        if others:
            return False, f"Also changed: {some_of(others, MAX_NAMED)}.", [*self._hunks(others)]
        count = format_count(len(self._files), "file")
        return True, f"{count} changed, none of them another." if self._files else "No file was changed.", ()

    def _hunks(self, paths: Sequence[str]) -> Iterator[Citation]:
        """The first line that the patch adds to, or removes from, each file; else what it says of the whole file."""
        for path in paths[:MAX_PLACES]:
            section = self._sections.get(self._moved.get(path, path), "")
            line = _CHANGED_LINE.search(section) or _HEADING.search(section)
            sign, quote = line.groups() if line else ("+", "")
            yield Citation(kind="removed" if sign == "-" else "patch", path=_text(path), quote=_text(quote.strip()))

    def _says(self, check: SuiteCheck) -> Finding:
        phrase = check.says or check.not_says or ""
        turns = (turn for turn in reversed(self._context.transcript.turns) if turn.parent_tool_call_id is None)
        last = next((turn for turn in turns if turn.text and not turn.synthetic), None)
        text, phrase = (normalize("NFC", each).replace("\r\n", "\n") for each in ((last and last.text) or "", phrase))
        match = re2.search(expression_of(phrase) or re2.escape(phrase), text)
        is_met = bool(match) is (check.says is not None)
        if last is None:
            return is_met, "The session ended without a message.", ()
        found, quote = f"The last message (turn {last.index})", text[-MAX_QUOTE_LENGTH:].strip().rpartition("\n")[2]
        if match:
            first = str(match[0]).strip().partition("\n")[0]
            quote = next((line.strip() for line in text.splitlines() if first in line), first)
        why = f"{found} says {str(match[0])[:80]!r}." if match else f"{found} does not say it."
        return is_met, why, [Citation(kind="said", turn=last.index, quote=_text(quote))]

    _not_says = _says

    def _hooks(self) -> Iterator[tuple[HookRan, int]]:
        """The hooks that ran, each with the turn during which it did."""
        turn = 0
        for entry in self._context.transcript.entries:
            if isinstance(entry, Turn):
                turn = entry.index
            elif isinstance(entry, HookRan):
                yield entry, turn

    def _hook_ran(self, check: SuiteCheck) -> Finding:
        event, _, part = (check.hook_ran or "").removesuffix(")").partition("(")
        of_event = [(ran, turn) for ran, turn in self._hooks() if ran.event == event]
        found = [(ran, turn) for ran, turn in of_event if not part or self._is_of(ran, part)]
        if found:
            return True, f"It ran in {_turns(turn for _, turn in found)}.", [*map(_hook_place, found)]
        others = f" Others of {event} did." if of_event else ""
        return False, f"It did not run.{others}", [*map(_hook_place, of_event)]

    def _is_of(self, ran: HookRan, part: str) -> bool:
        """Whether a hook that has a part in its command waits for what this one ran for, or it is that itself."""
        # Claude Code says for what a hook ran, not which: all that wait for a call run for it.
        tool, hooks = ran.name.partition(":")[2], (it for it in self._manifest.items if it.kind is ItemKind.HOOK)
        waiting = (it.name.partition(":")[::2] for it in hooks if part in (it.description or ""))
        return tool == part or any(event == ran.event and waits_for(matcher, tool) for event, matcher in waiting)

    def _hook_blocked(self, check: SuiteCheck) -> Finding:
        rule = check.hook_blocked or ""
        tried = [call for call in self._calls if positions(rule, call, self._manifest)]
        # So Claude Code answers where a hook refuses a call, with the hook's own reason behind it.
        by_hook = re.compile(r"PreToolUse:\S+ hook ")
        passed = [call for call in tried if not (call.tool.denied and by_hook.match(call.tool.output or ""))]
        if not tried:
            return False, f"No call of {rule} was tried, so no hook could block one.", ()
        if passed:
            return False, f"{passed[0].shown!r} (turn {passed[0].turn}) was not blocked.", cited(passed)
        after = self._calls[self._calls.index(tried[-1]) + 1 :]
        then = f"the session called {after[0].shown!r} (turn {after[0].turn})" if after else "it called nothing"
        blocked = f"A hook blocked it {_times(len(tried))} ({_turns(it.turn for it in tried)})."
        return True, f"{blocked} Then {then}.", cited(tried)

    def _hook_failed(self, _: SuiteCheck) -> Finding:
        ran = [*self._hooks()]
        unwell = [(hook, turn) for hook, turn in ran if hook.outcome != "success"]
        failed = [it for it in unwell if it[0].exit_code != BLOCKS or BLOCK_NOTHING.fullmatch(it[0].event)]
        if failed:
            names = some_of(list(dict.fromkeys(str(hook.name) for hook, _ in failed)), MAX_NAMED)
            return False, f"Failed: {names}.", [*map(_hook_place, failed)]
        return True, f"{format_count(len(ran), 'hook')} ran, none failed." if ran else "No hook ran.", ()


def cited(calls: Sequence[SessionCall]) -> list[Citation]:
    quoted = ((call, _text(call.shown.strip().partition("\n")[0])) for call in calls[:MAX_PLACES])
    return [Citation(kind="transcript", turn=it.turn, call=it.number, quote=quote) for it, quote in quoted]


def _text(text: str) -> Any:
    # Masked where the decision is stored.
    return text[:MAX_QUOTE_LENGTH]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _turns(numbers: Iterable[int]) -> str:
    # A hook may run before the first.
    distinct = list(dict.fromkeys(str(number or 1) for number in numbers))
    return f"turn{'s' if len(distinct) > 1 else ''} {some_of(distinct, MAX_NAMED)}"


def _told(made: Sequence[SessionCall], rule: str) -> str:
    turns = _turns(call.turn for call in made)
    return f"{rule} was called {_times(len(made))} ({turns})." if made else f"No call of {rule} was made."


def waits_for(matcher: str, tool: str) -> bool:
    if matcher in {"", "*"}:
        return True
    options = re2.Options()
    options.log_errors = False
    try:
        return bool(re2.compile(matcher, options).fullmatch(tool))
    except re2.error:
        return matcher == tool


def _hook_place(hook: tuple[HookRan, int]) -> Citation:
    ran, turn = hook
    quote = str(ran.output).strip().partition("\n")[0] or str(ran.name)
    return Citation(kind="transcript", turn=turn, quote=_text(quote))
