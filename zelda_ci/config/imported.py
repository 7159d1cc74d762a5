"""Suites made of what teams have for other tools: `claude plugin eval`, `evals.json` of skills, and promptfoo.

What has an equivalent becomes a suite; the rest becomes a list of things to do, with file and line.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, islice, product
from math import prod
from operator import attrgetter
from pathlib import Path
from typing import Any

from zelda_ci.config.document import is_sound, read_text
from zelda_ci.config.files import SKIPPED, lies_in, walk
from zelda_ci.config.init import printed, scalar
from zelda_ci.config.schema import SuiteConfig
from zelda_ci.config.source import Position, Rejected, Source, Steps, config_problem, read
from zelda_ci.domain.suite import expression_of
from zelda_ci.errors import ConfigError

MAX_NAME = 50
MAX_COMBINATIONS, MAX_TOLD = 50, 400
# In an input of a call as JSON, `"skill": "changelog"`, as graders look for it; plugins may stand before the name.
_ARGUMENT = re.compile(r'"(\w+)"(?:\\s\*)?:(?:\\s\*|\s*)"(?:\(\?:\[\\w-\]\+:\)\?)?([^"\\()\[\]|?*+^$]+)("?)')
_PLAIN = re.compile(r"(?:[\w @/:,=-]|\\[.\-/]|\\s[+*])+")
# What a rule in brackets is about; of other tools, any argument.
_KEYS = {"Bash": "command", "Skill": "skill", "Agent": "subagent_type", "Task": "subagent_type"}
_KEYS |= {**dict.fromkeys(("Read", "Edit", "Write", "MultiEdit"), "file_path"), "Grep": "path", "Glob": "path"}
_CASES = re.compile(r"case\.yaml|prompt\.md|evals\.json|promptfooconfig.*\.(ya?ml|json|[cm]?[jt]s)")
_FILE = re.compile(r"file://.*|\S+\.(?:txt|md|j2|ya?ml|jsonl?|csv|xlsx|py|[cm]?[jt]s)(?::\w+)?")
_SLOT = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}")
_TEMPLATE = re.compile(r"\{[{%][^{}\n]{0,200}[%}]\}")
# Two escapes of JSON that stand for one character; YAML has no such pairs.
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_READABLE = {".yaml", ".yml", ".json"}
# Options of cases of `claude plugin eval`, as suites call them; the keys of their graders; and what evals.json states.
_OPTIONS = {"tags": "tags", "runs": "trials", "max_turns": "maxTurns", "timeout_seconds": "timeoutSeconds"}
_OPTIONS |= {"allowed_tools": "allowedTools"}
_GRADER = (
    "type name description tool input input_match min max before after pattern flags match target path glob exists"
)
_GRADER += " focus rubric criteria prompt arm"
_STATED = dict.fromkeys(("expectations", "assertions", "expected_behavior"), "{}")
_STATED["expected_output"] = "The result is as described: {}"
# Assertions of promptfoo by what becomes of them: how their text is searched for, or that a judge decides.
_SEARCHES = {"contains": "{}", "icontains": "(?i){}", "starts-with": r"\A{}", "equals": r"\A\s*{}\s*\z", "regex": "{}"}
_SEARCH = re.compile(rf"(?:not-)?({'|'.join(_SEARCHES)})(?:-(any|all))?")
_RUBRICS = re.compile(
    r"llm-rubric|agent-rubric|g-eval|model-graded-closedqa|(model-graded-)?factuality|trajectory:goal-success"
)
_PROGRAMS = {"javascript": "node", "python": "python3"}
_ABSENT = {"says": "notSays", "called": "notCalled"}


@dataclass
class ImportedSuite:
    name: str
    origin: str
    keys: dict[str, Any]

    @property
    def text(self) -> str:
        lines = [f"# Imported from {printed(self.origin)} by zelda import."]
        for key, value in self.keys.items():
            items = dict.fromkeys(_yaml(it, is_item=True) for it in value) if isinstance(value, list) else ()
            lines += [f"{key}:", *(f"  - {it}" for it in items)] if items else [f"{key}: {_yaml(value)}"] * bool(value)
        return "\n".join([*lines, ""])


def _yaml(value: Any, *, is_item: bool = False) -> str:
    """A plain word as YAML, otherwise JSON, which YAML contains; a group in a list has a line for each of its keys."""
    if is_item and isinstance(value, dict):
        return "\n    ".join(f"{key}: {_yaml(inner)}" for key, inner in value.items())
    is_word = isinstance(value, str) and value.isprintable() and len(value) < MAX_NAME
    return scalar(value) if is_word else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Node:
    """A value in a file of another tool, with its place; where a key is absent, no value, at the place of its group."""

    source: Source
    path: Steps = ()

    @property
    def value(self) -> Any:
        return self.source.value(self.path) if self.path in self.source.at else None

    @property
    def place(self) -> Position:
        """Where it stands in the file; of the value of a key, the key's."""
        paths = (self.path[:length] for length in range(len(self.path), -1, -1))
        return next(at for path in paths if (at := self.source.keys.get(path) or self.source.at.get(path)))

    def __iter__(self) -> Iterator["Node"]:
        """The items of a list, or the value alone where it is none."""
        if isinstance(self.value, tuple):
            return (Node(self.source, (*self.path, at)) for at in range(len(self.value)))
        return iter(() if self.value is None else (self,))

    def get(self, *keys: str) -> "Node":
        """The first of some keys that has a value; otherwise a node without one."""
        nodes = [Node(self.source, (*self.path, key)) for key in keys]
        return next((it for it in nodes if it.value is not None), nodes[0])

    @property
    def dumped(self) -> str:
        """Its value as JSON."""
        return json.dumps(self.value, ensure_ascii=False, default=attrgetter("text"))

    @property
    def text(self) -> str:
        """A single value as it is written; empty where there is none."""
        value = None if isinstance(self.value, dict | tuple) else self.value
        return "" if value is None else str(self.source.texts.get(self.path, value)).strip()


class Importer:
    """Reads files of other tools, and collects suites and what is left to do; `taken` are names of other suites."""

    def __init__(self, root: Path, taken: Iterable[str] = ()) -> None:
        self.root = root
        self.suites: list[ImportedSuite] = []
        self.to_do: list[str] = []
        """What a person has to decide about, with file and line."""
        self._taken = {name.lower() for name in taken}

    def read(self, *paths: Path) -> None:
        """Read files and folders; raises ConfigError where one has nothing of a known kind, or cannot be read."""
        try:
            for file in dict.fromkeys(file for path in paths for file in _cases(path)):
                if file.name in {"case.yaml", "prompt.md"}:
                    self._plugin_case(file.parent)
                elif file.suffix in _READABLE:
                    whole = self._node(file)
                    is_skill = file.name == "evals.json" or isinstance(whole.value, tuple) or any(whole.get("evals"))
                    (self._skill_evals if is_skill else self._promptfoo)(whole, file)
                else:
                    self._left(Node(Source(self._name(file))), "is no YAML or JSON: write what it yields to one")
        except Rejected as problem:
            raise ConfigError("\n".join(map(str, problem.problems)), code="IMPORT_FAILED") from None
        if not self.suites:
            raise ConfigError("Nothing was imported.", hint="\n".join(self.to_do), code="IMPORT_FAILED")

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.root)

    def _script(self, node: Node, path: Path) -> str:
        """A file as a word of a command of the project; empty, and left to do, where it is none of its files."""
        is_own = lies_in(path, self.root) and os.path.isfile(path)  # noqa: PTH113 - never raises
        if not is_own:
            self._left(node, f"{self._name(path)} is no file of the project")
        return shlex.quote(self._name(path)) if is_own else ""

    def _node(self, path: Path, text: str | None = None) -> Node:
        """What a file says, or a text in it; what is wrong with that and leaves it usable is left to do."""
        name = self._name(path)
        text = read_text(path, name) if text is None else text
        source = read(_PAIR.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), text), name, merges=True)
        for problem in source.problems:
            self._left(Node(Source(name, at={(): Position(problem.line or 1, 1)})), problem.message)
        return Node(source)

    def _left(self, node: Node, text: str) -> None:
        told = config_problem(node.source.file, node.place, printed(text))
        line = f"{told.file}:{told.line}: {told.message[:MAX_TOLD]}"
        self.to_do += [line] if line not in self.to_do else []

    def _unknown(self, node: Node, known: str, name: str) -> None:
        for key in node.value if isinstance(node.value, dict) else ():
            if key not in known.split():
                self._left(node.get(key), f"{name}: {key} has no equivalent")

    def _suite(self, name: str, node: Node, prompt: str, description: str) -> ImportedSuite:
        """A suite of a new name, made of what stands at a place."""
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:MAX_NAME] or "imported"
        names = (slug if number == 1 else f"{slug}-{number}" for number in count(1))
        # Some file systems do not tell upper from lower case.
        free = next(each for each in names if each.lower() not in self._taken)
        self._taken.add(free.lower())
        keys: dict[str, Any] = {"name": free, "description": description, "prompt": prompt.strip()}
        keys |= {"acceptanceCriteria": [], "answerCriteria": [], "checks": []}
        # Without the line, which moves with all that is written above.
        return ImportedSuite(free, node.source.file, keys)

    def _keep(self, suite: ImportedSuite, node: Node, name: str, key: str, value: Any) -> None:
        """Make what was found at a place a key of a suite, or an item of one, where it is valid."""
        items, dumped = suite.keys.get(key), json.dumps(value, ensure_ascii=False)
        kept = [value] if isinstance(items, list) else value
        if is_sound(json.dumps({"prompt": "x", key: kept}, ensure_ascii=False), SuiteConfig):
            suite.keys[key] = items + kept if isinstance(items, list) else kept
        else:
            self._left(node, f"{name}: {'no check can say' if key == 'checks' else f'{key} cannot be'} {dumped}")

    def _add(self, suite: ImportedSuite, node: Node) -> None:
        if not suite.keys["prompt"]:
            self._left(node, f"{suite.name} has no prompt")
        elif not is_sound(suite.text, SuiteConfig):
            self._left(node, f"{suite.name} is left out: it holds a credential, or characters that no text file can")
        else:
            self.suites.append(suite)
            if not any(value for value in suite.keys.values() if isinstance(value, list)):
                self._left(node, f"{suite.name} has neither a criterion nor a check: say what must be true")

    def _skill_evals(self, whole: Node, path: Path) -> None:
        own = next((it for it in path.parents if (it / "SKILL.md").is_file()), path.parent)
        skill = whole.get("skill_name", "skill").text or (own.parent if own.name == "evals" else own).name
        known = " ".join(("prompt query input name id should_trigger files skills description", *_STATED))
        for number, case in enumerate(whole if isinstance(whole.value, tuple) else whole.get("evals"), start=1):
            name, prompt = f"{skill}-{case.get('name', 'id').text or number}", case.get("prompt", "query", "input").text
            suite = self._suite(name, case, prompt, case.get("description").text)
            word = "notCalled" if case.get("should_trigger").text.lower() == "false" else "called"
            skills = [it.text for it in case.get("skills")] or [skill]
            suite.keys["checks"] += [{word: f"Skill({it})"} for it in skills]
            for key, form in _STATED.items():
                for each in case.get(key):
                    if text := each.text or each.get("text", "description", "assertion").text:
                        suite.keys["acceptanceCriteria"].append(form.format(text))
                    else:
                        self._left(each, f"{suite.name}: no text says what {key} means here")
            for item in case.get("files"):
                advice = "have it in the repository, named in the prompt"
                self._left(item, f"{suite.name} works on {item.text or item.dumped}: {advice}")
            self._unknown(case, known, suite.name)
            self._add(suite, case)
        self._unknown(whole, "skill_name skill evals version description", "evals.json")

    def _plugin_case(self, folder: Path) -> None:
        case = self._node(folder / "case.yaml") if (folder / "case.yaml").is_file() else Node(Source())
        head, prompt = self._document(folder / "prompt.md") if (folder / "prompt.md").is_file() else (case, "")
        execution, given = case.get("execution"), dict[str, Any]()
        prompt = prompt.strip() or execution.get("prompt").text or case.get("prompt").text
        suite = self._suite(case.get("name").text or folder.name, head, prompt, case.get("description").text)
        known = " ".join(("schema_version name description graders execution prompt", *_OPTIONS))
        for options in (case, execution, head):
            found = ((ours, options.get(key)) for key, ours in _OPTIONS.items())
            given |= {ours: json.loads(it.dumped) for ours, it in found if it.value is not None}
            self._unknown(options, known, suite.name)
        settings = {key: given.pop(key) for key in ("tags", "trials") if key in given} | {"execution": given}
        scripts = [self._script(head, it) for it in (folder / "fixture.sh", folder / "scaffold.sh") if it.is_file()]
        settings["setupCommand"] = " && ".join(f"bash {script}" for script in scripts if script)
        for key in filter(settings.get, settings):
            self._keep(suite, head, suite.name, key, settings[key])
        files = sorted((folder / "graders").glob("*"))
        for grader, text in (*((it, "") for it in case.get("graders")), *map(self._document, files)):
            self._grader(grader, text.strip(), suite)
        self._add(suite, head)

    def _document(self, path: Path) -> tuple[Node, str]:
        """The head of a Markdown file, and its text; nothing of other files."""
        text = read_text(path, self._name(path)) if path.suffix == ".md" else ""
        head = re.match(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", text, re.DOTALL | re.MULTILINE)
        # Its lines are counted from the file's first.
        return self._node(path, f"\n{head[1]}" if head else ""), text[head.end() :] if head else text

    def _grader(self, grader: Node, text: str, suite: ImportedSuite) -> None:
        """Add the check that a grader is or, where a judge decides, its criterion."""
        kind, path, key = grader.get("type").text, grader.get("path", "glob", "pattern").text, "checks"
        text = grader.get("pattern", "rubric", "criteria", "prompt").text or text
        match kind:
            case "tool_used":
                found: dict[str, Any] | str = _counted(_rule(grader), grader)
            case "tool_order":
                found = {"before": {"first": _rule(grader.get("before")), "then": _rule(grader.get("after"))}}
            case "file_exists" if grader.get("exists").value is False:
                # A pattern stays one in the shell line.
                quoted = re.sub(r"[^\w@%+=:,./*?\[\]-]", r"\\\g<0>", path)
                found = {"command": f"test ! -e {quoted}", "name": f"No {path}."}
            case "file_exists":
                found = {"changed": [path]}
            case "regex" if text:
                found = _search(grader, text)
            case "llm" if text:
                key = "answerCriteria" if grader.get("focus").text == "last_message" else "acceptanceCriteria"
                found = " ".join(text.split())
            case _:
                what = f"a grader of the type {kind}" if kind else "a grader without type"
                self._left(grader, f"{suite.name}: {what} has no equivalent")
                return
        self._keep(suite, grader, suite.name, key, found)
        if (arm := grader.get("arm").text) and arm not in {"both", "with"}:
            self._left(grader, f"{suite.name}: arm {arm}: Zelda compares the head with the base, not with no plugin")
        self._unknown(grader, _GRADER, suite.name)

    def _promptfoo(self, whole: Node, path: Path) -> None:
        self._unknown(whole, "description prompts tests defaultTest $schema", "promptfoo")
        default = next(self._groups(whole.get("defaultTest"), path), whole.get("defaultTest"))
        self._unknown(default, "description vars assert", "defaultTest")
        for each in whole.get("prompts"):
            self._unknown(each, "raw id path label", "prompts")
        named = (it if it.text else it.get("raw", "id", "path", "label") for it in whole.get("prompts"))
        prompts = [it.text or it.get("raw", "id", "label").text for it in self._listed(named, path)]
        # Without tests, each prompt is asked once; without prompts, that of each test.
        tests: Iterable[Node] = self._groups(whole.get("tests"), path)
        if whole.get("prompts").value is None:
            prompts = ["{{prompt}}"]
        elif whole.get("tests", "scenarios").value is None:
            tests = (whole.get("tests"),)
        usual, folder = self._variables(default, path), path.parent.name if path.parent != self.root else "promptfoo"
        for number, test in enumerate(tests, start=1):
            name = test.get("description").text or f"{folder}-{number}"
            self._unknown(test, "description vars assert", name)
            asserts = [(of, it) for of, side in (("defaultTest", default), (name, test)) for it in side.get("assert")]
            variables = usual | self._variables(test, path)
            for at, prompt in enumerate(prompts, start=1):
                used = f"{prompt}{[each.value for _, each in asserts]}"
                axes = {key: it for key, it in variables.items() if len(it) == 1 or (it and key in used)}
                if prod(map(len, axes.values())) > MAX_COMBINATIONS:
                    self._left(test, f"{name}: of its combinations of variables the first {MAX_COMBINATIONS} are here")
                for values in islice(product(*axes.values()), MAX_COMBINATIONS):
                    fill = partial(self._filled, values=dict(zip(axes, values, strict=True)))
                    text, title = fill(prompt, node=test, name=name), f"{name}-p{at}" if len(prompts) > 1 else name
                    suite = self._suite(title, test, text, test.get("description").text)
                    for of, each in asserts:
                        self._assert(suite, each, of, partial(fill, node=each, name=of), path)
                    self._add(suite, test)

    def _listed(self, nodes: Iterable[Node], path: Path) -> Iterator[Node]:
        """Some items; of those that name files, seen from the folder of another, what stands in these."""
        for item in nodes:
            if not _FILE.fullmatch(item.text):
                yield item
                continue
            files = list[Path]()
            with suppress(OSError, ValueError, NotImplementedError):
                files = sorted(path.parent.glob(re.sub(r"^file://|:\w+$", "", item.text)))
            for file in files or [path.parent]:
                if not (file.is_file() and any(lies_in(file, top) for top in (self.root, path.parent))):
                    self._left(item, f"{item.text} is no file of the project")
                elif file.suffix in _READABLE:
                    yield from self._node(file)
                elif file.suffix in {".txt", ".md", ".j2", ""}:
                    text = read_text(file, self._name(file))
                    parts = re.split(r"^---\s*$", text, flags=re.MULTILINE) if file.suffix == ".txt" else [text]
                    yield from (Node(Source(self._name(file), part)) for part in parts)
                else:
                    self._left(item, f"{item.text} is a program or a table: write what it yields as a suite")

    def _groups(self, node: Node, path: Path) -> Iterator[Node]:
        """Of a list, the groups of keys; what else stands there is left to do."""
        for each in self._listed(node, path):
            if isinstance(each.value, dict):
                yield each
            else:
                self._left(each, f"{each.text or 'this'} cannot be read: it must be a group of keys")

    def _text(self, node: Node, path: Path) -> str:
        """A text, or what stands in the file that it names; groups and lists as JSON."""
        parts = self._listed(node, path) if node.text.startswith("file://") else (node,)
        return "\n".join(it.dumped if isinstance(it.value, dict | tuple) else it.text for it in parts)

    def _variables(self, test: Node, path: Path) -> dict[str, list[str]]:
        """The variables of a test, each with its values."""
        groups = self._groups(test.get("vars"), path)
        return {name: [self._text(it, path) for it in each.get(name)] for each in groups for name in each.value}

    def _filled(self, text: str, values: Mapping[str, str], node: Node, name: str) -> str:
        """A template with its variables put in; what is no variable, or one without a value, is left to do."""
        text = _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), text)
        for each in _TEMPLATE.findall(text):
            self._left(node, f"{name}: {each} has no value here")
        return text

    def _assert(self, suite: ImportedSuite, assertion: Node, name: str, fill: Callable[[str], str], path: Path) -> None:
        """Add what an assertion of promptfoo says to a suite; what has no equivalent is left to do."""
        value, limit, kind = assertion.get("value"), assertion.get("threshold").value, assertion.get("type").text
        is_program, is_absent = kind in _PROGRAMS and value.text.startswith("file://"), kind.startswith("not-")
        base, how = found.groups() if (found := _SEARCH.fullmatch(kind)) else ("", None)
        stated = (it if it.text else it.get("name", "pattern", "goal") for it in (() if is_program else value))
        texts = [fill(self._text(it, path)) for it in stated]
        texts = [it.strip() for it in texts[0].split(",")] if how and value.text else texts
        checks, is_said = list[dict[str, Any]](), bool(texts) and all(texts)
        match kind:
            case "assert-set":
                for each in assertion.get("assert"):
                    self._assert(suite, each, name, fill, path)
            # That not all is said, no check can say.
            case _ if base and is_said and not (is_absent and how == "all"):
                patterns = [_SEARCHES[base].format(it if base == "regex" else re.escape(it)) for it in texts]
                patterns = ["|".join(patterns)] if how == "any" and not is_absent else patterns
                is_plain = base == "contains" and len(texts) == len(patterns) and not any(map(expression_of, texts))
                checks = [{"says": each} for each in (texts if is_plain else map(_expression, patterns))]
            case _ if _RUBRICS.fullmatch(kind) and is_said:
                start = "It agrees with this: " if "factuality" in kind else ""
                suite.keys["answerCriteria"] += [start + " ".join(text.split()) for text in texts]
            case "javascript" | "python" if is_program:
                script = self._script(value, path.parent / re.sub(r"^file://|:\w+$", "", value.text))
                checks = [{"command": f"{_PROGRAMS[kind]} {script}"}] if script else []
                self._left(assertion, f"{name}: {value.text} gets no `output`: let it read files, and end with 0 or 1")
            case "cost" | "latency" if isinstance(limit, int | float):
                most = {"costUsd": limit} if kind == "cost" else {"durationSeconds": limit / 1000}
                self._keep(suite, assertion, name, "efficiencyTargets", suite.keys.get("efficiencyTargets", {}) | most)
            case "skill-used" | "not-skill-used" | "trajectory:tool-used" | "not-trajectory:tool-used" if is_said:
                rules = [f"Skill({text})" if "skill" in kind else text for text in texts]
                checks = [_counted(rule, limits) for rule, limits in zip(rules, value, strict=True)]
            case "trajectory:tool-args-match" | "not-trajectory:tool-args-match":
                checks = [{"called": fill(_rule(value))}]
            case "trajectory:tool-sequence":
                steps = value.get("steps") if isinstance(value.value, dict) else value
                checks = [{"order": [fill(_rule(step)) for step in steps]}]
            case "trajectory:step-count" if is_said:
                of = value.get("type").text
                rule = {"tool": texts[0], "command": f"Bash({texts[0]})"}.get(of, f"step of {of}")
                checks = [_counted(rule, value, least=0)]
            case _:
                self._left(assertion, f"{name}: {kind or 'an assertion without type'} has no equivalent")
                return
        for check in checks:
            # What cannot be turned around becomes a key that no check has.
            turned = {_ABSENT.get(key, f"not {key}"): it for key, it in check.items()} if is_absent else check
            self._keep(suite, assertion, name, "checks", turned)
        self._unknown(value, "name pattern goal min max type args arguments steps", name)
        self._unknown(assertion, f"type value assert metric{' threshold' * (kind in {'cost', 'latency'})}", name)


def _search(grader: Node, pattern: str) -> dict[str, Any]:
    """The check that an answer or a file has a pattern; what no check can say is a key that none has."""
    target, how, flags = grader.get("target"), grader.get("match").text or "contains", grader.get("flags").text
    path, place = target.get("path", "file").text, target.text or target.get("source").text or "last_message"
    key, said = {"contains": "says", "not_contains": "notSays"}.get(how, ""), _expression(pattern, flags)
    if not key or not path:
        return {key if key and place == "last_message" else f"{how} in {place}": said}
    line = ["grep", f"-Pzq{'i' if 'i' in flags else ''}", "--", pattern, path]
    command, has = (line, "has") if key == "says" else (["sh", "-c", '! "$@"', "sh", *line], "has no")
    return {"command": command, "name": f"{path} {has} {said}"}


def _rule(call: Node) -> str:
    """The call that is meant, as a rule; where no rule can say it, what makes none."""
    tool, given = call.text or call.get("tool", "name", "pattern").text, call.get("input", "args", "arguments")
    wanted, keys = call.get("input_match").text or given.text, given.value if isinstance(given.value, dict) else {}
    found, (key, *more) = _ARGUMENT.fullmatch(wanted), keys or ("",)
    if found and _KEYS.get(tool, found[1]) == found[1]:
        return f"{tool}({found[2]}{'' if found[3] else '*'})"
    if _PLAIN.fullmatch(wanted):
        words = re.sub(r"\\s[+*]", "*", wanted).replace("\\", "")
        return f"{tool}(*{words}*)"
    if key and not more and _KEYS.get(tool, key) == key and (text := given.get(key).text):
        return f"{tool}({text})"
    return f"{tool} with {wanted or given.dumped}" if wanted or given.value is not None else tool


def _cases(path: Path) -> list[Path]:
    """The files of known kinds in a folder, or the file itself."""
    if path.is_file():
        return [path]
    found: list[Path] = []
    for place, below, names in walk(path):
        below[:] = [name for name in below if name not in SKIPPED]
        found += (place / name for name in names if _CASES.fullmatch(name))
    # A prompt that belongs to another file is no case of its own.
    others = {it.parent for it in found if it.name.startswith("promptfoo")}
    owned = {it for it in found if it.with_name("case.yaml") in found or others & {*it.parents}}
    cases = [it for it in found if it.name != "prompt.md" or it not in owned]
    if not cases:
        problem = "holds nothing that can be imported" if path.exists() else "does not exist"
        hint = "Name a folder of `claude plugin eval` cases, a skill's evals.json, or a promptfooconfig.yaml."
        raise ConfigError(f"{path} {problem}.", hint=hint, code="IMPORT_FAILED")
    return sorted(cases)


def _expression(pattern: str, flags: str = "") -> str:
    """A pattern of JavaScript as checks have it, where ^ and $ stand for the beginning and end of every line."""
    inner = "s" * ("s" in flags) + "-m" * ("m" not in flags and bool({"^", "$"} & {*pattern}))
    return f"/{f'(?{inner})' if inner else ''}{pattern}/{'i' if 'i' in flags else ''}"


def _counted(rule: str, limits: Node, least: int = 1) -> dict[str, Any]:
    low, high = limits.get("min").value, limits.get("max").value
    low = least if low is None else low
    if high == 0 or (low, high) == (1, None):
        return {"called" if high is None else "notCalled": rule}
    return {"called": rule, "times": f"{low}.." if high is None else low if low == high else f"{low}..{high}"}
