"""Criteria that need no judge: decided from the calls, hooks, words and changes of a session."""

import re
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
from zelda_ci.domain.suite import ResolvedSuite, Sequel, SuiteCheck, bounds_of, expression_of
from zelda_ci.files.globs import expression
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
# Of one check: places that are shown.
MAX_PLACES, MAX_QUOTE_LENGTH = 5, 300
# With which a hook blocks; every other code but 0 is a failure, and so is this one where there is nothing to block.
BLOCKS = 2
BLOCK_NOTHING = re.compile("SessionStart|SubagentStart|Setup|PostModelSwitch|PermissionDenied|MessageDisplay")
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
        self._manifest, self._sections = context.manifest or ToolsManifest(), sections(patch)
        renamed = ((_RENAMED.search(section), path) for path, section in self._sections.items())
        self._moved = {unquoted(match[1]): path for match, path in renamed if match}
        # The changed files, by their old names too: by their path from the top, that from the project.
        files = (*(context.changes.files if context.changes else ()), *self._moved)
        self._files = {path: self._manifest.in_folder(path) for path in files}
        # Hooks with the turn during which each ran, the first also for those before it.
        self._turns, self._calls = context.transcript.turns, list[SessionCall]()
        self._hooks, turn = list[tuple[HookRan, int]](), 1
        for entry in context.transcript.entries:
            if isinstance(entry, Turn):
                turn, is_main = entry.index, entry.parent_tool_call_id is None
                self._calls += (SessionCall(turn, n, it, is_main) for n, it in enumerate(entry.tool_calls, start=1))
            elif isinstance(entry, HookRan):
                self._hooks.append((entry, turn))

    def decide(self, check: SuiteCheck) -> Finding:
        """Decide a check, by the method that has the name of its word, on what it says behind that."""
        found: Finding = getattr(self, f"_{check.word}")(check, getattr(check, check.word))
        return found

    def _made(self, check: SuiteCheck, rule: str) -> Iterator[tuple[Place, SessionCall]]:
        """The calls that a rule names and that were made; of shell lines each of the commands, by its number."""
        for call in self._counted(check):
            for position in positions(rule, call, self._manifest):
                yield (call.turn, call.number, position), call

    def _counted(self, check: SuiteCheck) -> Iterator[SessionCall]:
        return (call for call in self._calls if call.is_made and (call.is_main or check.agent == "any"))

    def _called(self, check: SuiteCheck, rule: str) -> Finding:
        made = [call for _, call in self._made(check, rule)]
        least, most = bounds_of(0 if check.not_called else check.times)
        called = f"{rule} was called {_times(len(made))} ({_turns(call.turn for call in made)})"
        why = called if made else f"No call of {rule} was made"
        if least <= len(made) <= most:
            return True, f"{why}.", cited(made)
        wanted = f"; asked for: {check.times} times" if check.times is not None else ""
        tried = [call for call in self._calls if not call.is_made and positions(rule, call, self._manifest)]
        refused = f" {format_count(len(tried), 'call')} of it did not come to pass." if tried else ""
        return False, f"{why}{wanted}.{refused}", cited(made or tried)

    _not_called = _called

    def _routed(self, check: SuiteCheck, targets: Sequence[str]) -> Finding:
        first = next((it for it in self._calls if it.is_made and it.is_main and it.tool.name in TURNS_TO), None)
        if first is None:
            return "none" in targets, "No skill, sub-agent or command was called.", ()
        is_met = any(positions(rule, first, self._manifest) for rule in check.routes)
        return is_met, f"The first call was {first.shown} (turn {first.turn}).", cited([first])

    def _order(self, check: SuiteCheck, rules: Sequence[str]) -> Finding:
        found = list[tuple[Place, SessionCall]]()
        for rule in rules:
            nearest = next((it for it in self._made(check, rule) if not found or it[0] > found[-1][0]), None)
            if nearest is None:
                behind = f" after {found[-1][1].shown!r} (turn {found[-1][1].turn})" if found else ""
                return False, f"No call of {rule}{behind}.", cited(call for _, call in found)
            found.append(nearest)
        return True, f"Made in this order: {_turns(it.turn for _, it in found)}.", cited(call for _, call in found)

    def _before(self, check: SuiteCheck, both: Sequel) -> Finding:
        firsts, thens = ([*self._made(check, rule)] for rule in (both.first, both.then))
        if not thens:
            return True, f"No call of {both.then}.", ()
        early = [call for place, call in thens if not firsts or place <= firsts[0][0]]
        if early:
            return False, f"{early[0].shown!r} (turn {early[0].turn}) came before any {both.first}.", cited(early)
        first = firsts[0][1]
        why = f"{first.shown!r} (turn {first.turn}) came before {format_count(len(thens), 'call')} of {both.then}."
        return True, why, cited([first, thens[0][1]])

    def _not_read(self, check: SuiteCheck, patterns: Sequence[str]) -> Finding:
        manifest, folder, found = self._manifest, "", list[tuple[SessionCall, str]]()

        @cache
        def is_meant(path: str) -> bool:
            # A word of the shell may be a pattern itself.
            short = (manifest.in_folder(manifest.in_tree(path)) if {*"*?["} & {*path} else None) or ""
            alike = (it for it in patterns if short and it[0] != "!" and it.count("/") == short.count("/"))
            whole = f"{path}*" if path.endswith("/") else path
            return covers_path(patterns, whole, manifest) or any(fnmatchcase(it, short) for it in alike)

        for call in self._counted(check):
            paths, left_in = shown_files(call, folder if call.is_main else "")
            folder = left_in if call.is_main else folder
            found += ((call, path) for path in paths if is_meant(path))
        if not found:
            return True, "No such file is named by a call that reads, by a shell command or by its output.", ()
        names = some_of(list(dict.fromkeys(path.rstrip("/") for _, path in found)))
        calls = list(dict.fromkeys(call for call, _ in found))
        by_shell = " As far as the words of shell commands show." if all(c.tool.name == "Bash" for c in calls) else ""
        return False, f"Read: {names} ({_turns(it.turn for it in calls)}).{by_shell}", cited(calls)

    def _changed(self, _: SuiteCheck, patterns: Sequence[str]) -> Finding:
        not_meant = [it for it in patterns if it.startswith("!")]
        wanted = (it for it in patterns if it not in not_meant)
        found = {it: [path for path, short in self._files.items() if covers([it, *not_meant], short)] for it in wanted}
        if lacking := [pattern for pattern, paths in found.items() if not paths]:
            return False, f"No changed file matches {some_of(lacking)}.", ()
        paths = list(dict.fromkeys(paths[0] for paths in found.values()))
        return True, f"Changed: {some_of(paths)}.", [*self._hunks(paths)]

    def _changed_only(self, _: SuiteCheck, patterns: Sequence[str]) -> Finding:
        others = [path for path, short in self._files.items() if not covers(patterns, short)]
        if others:
            return False, f"Also changed: {some_of(others)}.", [*self._hunks(others)]
        count = format_count(len(self._files), "file")
        return True, f"{count} changed, none of them another." if self._files else "No file was changed.", ()

    def _hunks(self, paths: Sequence[Any]) -> Iterator[Citation]:
        """The first line that the patch adds to, or removes from, each file; else what it says of the whole file."""
        for path in paths[:MAX_PLACES]:
            section = self._sections.get(self._moved.get(path, path), "")
            line = _CHANGED_LINE.search(section) or _HEADING.search(section)
            sign, quote = line.groups() if line else ("+", "")
            yield Citation(kind="removed" if sign == "-" else "patch", path=path, quote=_quoted(quote))

    def _says(self, check: SuiteCheck, phrase: str) -> Finding:
        main = (it for it in reversed(self._turns) if it.parent_tool_call_id is None and not it.synthetic)
        turn, last = next(((it.index, it.text) for it in main if it.text), (0, ""))
        text, phrase = (normalize("NFC", it).replace("\r\n", "\n") for it in (last, phrase))
        match = re2.search(expression_of(phrase) or re2.escape(phrase), text)
        is_met = bool(match) is (check.says is not None)
        if not turn:
            return is_met, "The session ended without a message.", ()
        # Cited is the line in which it is said, else the last one.
        begin = text.rfind("\n", 0, match.start() if match else len(text.rstrip())) + 1
        why = f"says {match[0][:80]!r}" if match else "does not say it"
        place = Citation(kind="said", turn=turn, quote=_quoted(text[begin:]))
        return is_met, f"The last message (turn {turn}) {why}.", [place]

    _not_says = _says

    def _hook_ran(self, _: SuiteCheck, hook: str) -> Finding:
        event, part = hook.removesuffix(")").partition("(")[::2]
        of_event = [(ran, turn) for ran, turn in self._hooks if ran.event == event]
        found = [(ran, turn) for ran, turn in of_event if not part or self._is_of(ran, part)]
        others = f" Others of {event} did." if of_event else ""
        why = f"It ran in {_turns(turn for _, turn in found)}." if found else f"It did not run.{others}"
        return bool(found), why, _cited_hooks(found or of_event)

    def _is_of(self, ran: HookRan, part: str) -> bool:
        """Whether a hook that has a part in its command waits for what this one ran for, or it is that itself."""
        # Claude Code says for what a hook ran, not which: all that wait for a call run for it.
        hooks = (it for it in self._manifest.items if it.kind is ItemKind.HOOK and part in (it.description or ""))
        named, tool = (it.name.partition(":") for it in hooks), ran.name.partition(":")[2]
        waiting = (matcher for event, _, matcher in named if event == ran.event)
        # A matcher is a list of names, or an expression for a part of one.
        wanted = (f"^({re.sub(' *[|,] *', '|', it)})$" if re.fullmatch(r"[\w|, -]+", it) else it for it in waiting)
        return tool == part or any(it == "*" or ((found := expression(it)) and found.search(tool)) for it in wanted)

    def _hook_blocked(self, _: SuiteCheck, rule: str) -> Finding:
        tried = [call for call in self._calls if positions(rule, call, self._manifest)]
        # So Claude Code answers where a hook refuses a call, with the hook's own reason behind it.
        passed = [it for it in tried if not (it.tool.denied and re.match(r"PreToolUse:\S+ hook", it.tool.output or ""))]
        if not tried:
            return False, f"No call of {rule} was tried, so no hook could block one.", ()
        if passed:
            return False, f"{passed[0].shown!r} (turn {passed[0].turn}) was not blocked.", cited(passed)
        after = self._calls[self._calls.index(tried[-1]) + 1 :]
        then = f"the session called {after[0].shown!r} (turn {after[0].turn})" if after else "it called nothing"
        blocked = f"A hook blocked it {_times(len(tried))} ({_turns(it.turn for it in tried)})."
        return True, f"{blocked} Then {then}.", cited(tried)

    def _hook_failed(self, *_: object) -> Finding:
        unwell = [(ran, turn) for ran, turn in self._hooks if ran.outcome != "success"]
        failed = [it for it in unwell if it[0].exit_code != BLOCKS or BLOCK_NOTHING.fullmatch(it[0].event)]
        names = some_of(list(dict.fromkeys(str(ran.name) for ran, _ in failed)))
        well = f"{format_count(len(self._hooks), 'hook')} ran, none failed." if self._hooks else "No hook ran."
        return not failed, f"Failed: {names}." if failed else well, _cited_hooks(failed)


def cited(calls: Iterable[SessionCall]) -> list[Citation]:
    places = ((it.turn, it.number, _quoted(it.shown)) for it in [*calls][:MAX_PLACES])
    return [Citation(kind="transcript", turn=turn, call=number, quote=quote) for turn, number, quote in places]


def _cited_hooks(hooks: Sequence[tuple[HookRan, int]]) -> list[Citation]:
    return [Citation(kind="transcript", turn=turn, quote=_quoted(it.output) or it.name) for it, turn in hooks]


def _quoted(text: str) -> Any:
    # Masked where the decision is stored.
    return text.strip().partition("\n")[0][:MAX_QUOTE_LENGTH]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _turns(numbers: Iterable[int]) -> str:
    distinct = list(dict.fromkeys(map(str, numbers)))
    return f"turn{'s' if len(distinct) > 1 else ''} {some_of(distinct)}"
