"""Suites made of what teams have for other tools: `claude plugin eval`, `evals.json` of skills, and promptfoo.

What has an equivalent becomes a suite; the rest becomes a list of things to do, with file and line.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice, product
from math import prod
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from zelda_ci.config.document import is_sound, read_text
from zelda_ci.config.files import SKIPPED, lies_in, walk
from zelda_ci.config.init import printed, scalar
from zelda_ci.config.schema import SuiteConfig
from zelda_ci.config.source import Position, Rejected, Source, Steps, read
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
# Keys of cases of `claude plugin eval`, and of its graders.
_OPTIONS = "tags runs max_turns timeout_seconds allowed_tools"
_GRADER = (
    "type name description tool input input_match min max before after pattern flags match target path glob exists "
    "focus rubric criteria prompt arm"
)
# Assertions of promptfoo by what becomes of them: how their text is searched for, or that a judge decides.
_SEARCHES = {
    "contains": "{}", "icontains": "(?i){}", "starts-with": r"\A{}", "equals": r"\A\s*{}\s*\z", "regex": "{}",
}  # fmt: skip
_RUBRICS = {
    "llm-rubric": "{}", "agent-rubric": "{}", "g-eval": "{}", "model-graded-closedqa": "{}",
    "trajectory:goal-success": "{}", "factuality": "It agrees with this: {}",
    "model-graded-factuality": "It agrees with this: {}",
}  # fmt: skip
_CALLS = ("skill-used", *map("trajectory:".__add__, ("tool-used", "tool-args-match", "tool-sequence", "step-count")))
_PROGRAMS = {"javascript": "node", "python": "python3"}
_TEXTS = {".txt", ".md", ".j2", ""}


@dataclass
class ImportedSuite:
    name: str
    origin: str
    description: str = ""
    prompt: str = ""
    criteria: list[str] = field(default_factory=list)
    answer_criteria: list[str] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        own = {"acceptanceCriteria": self.criteria, "answerCriteria": self.answer_criteria, "checks": self.checks}
        keys = {"name": self.name, "description": self.description, "prompt": self.prompt, **own, **self.settings}
        lines = [f"# Imported from {printed(self.origin)} by zelda import."]
        for key, value in keys.items():
            items = dict.fromkeys(map(_item, value)) if isinstance(value, list) else ()
            lines += [f"{key}:", *(f"  - {it}" for it in items)] if items else [f"{key}: {_yaml(value)}"] * bool(value)
        return "\n".join([*lines, ""])


def _item(value: Any) -> str:
    """An item of a list: a group on a line for each of its keys, or a text."""
    pairs = value.items() if isinstance(value, dict) else ()
    return "\n    ".join(f"{key}: {_yaml(inner)}" for key, inner in pairs) or _yaml(value)


def _yaml(value: Any) -> str:
    """A value on one line: as YAML where it is a plain word, otherwise as JSON, which YAML contains."""
    is_word = isinstance(value, str) and value.isprintable() and len(value) < MAX_NAME
    return scalar(value) if is_word else json.dumps(value, ensure_ascii=False)


def _is_valid(**keys: Any) -> bool:
    return is_sound(json.dumps({"prompt": "x", **keys}, ensure_ascii=False), SuiteConfig)


@dataclass(frozen=True)
class Node:
    """A value in a file of another tool, with its place; where a key is absent, no value, at the place of its group."""

    source: Source = field(default_factory=Source)
    path: Steps = ()

    @property
    def value(self) -> Any:
        return self.source.value(self.path)

    @property
    def place(self) -> Position:
        """Where it stands in the file; of the value of a key, the key's."""
        return self.source.keys.get(self.path) or self.source.at[self.path]

    def __iter__(self) -> Iterator["Node"]:
        """The items of a list, or the value alone where it is none."""
        if isinstance(self.value, tuple):
            return (Node(self.source, (*self.path, at)) for at in range(len(self.value)))
        return iter(() if self.value is None else (self,))

    def get(self, *keys: str) -> "Node":
        """The first of some keys that is there; otherwise a node without a value."""
        known = self.value if isinstance(self.value, dict) else {}
        found = next((key for key in keys if known.get(key) is not None), None)
        return Node(self.source, (*self.path, found)) if found else Node(Source(self.source.file, at={(): self.place}))

    @property
    def dumped(self) -> str:
        """Its value as JSON."""
        return json.dumps(self.value, ensure_ascii=False, default=attrgetter("text"))

    @property
    def text(self) -> str:
        """A single value as it is written; empty where there is none."""
        value = self.value
        is_single = value is not None and not isinstance(value, dict | tuple)
        return str(self.source.texts.get(self.path, value)).strip() if is_single else ""


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
                self._file(file)
        except Rejected as problem:
            raise ConfigError("\n".join(map(str, problem.problems)), code="IMPORT_FAILED") from None
        if not self.suites:
            raise ConfigError("Nothing was imported.", hint="\n".join(self.to_do), code="IMPORT_FAILED")

    def _file(self, path: Path) -> None:
        if path.name in {"case.yaml", "prompt.md"}:
            self._plugin_case(path.parent)
            return
        if path.suffix not in {".yaml", ".yml", ".json"}:
            self._left(Node(Source(self._name(path))), "is no YAML or JSON: write what it yields to such a file")
            return
        whole = self._node(path)
        if path.name == "evals.json" or whole.get("evals").value is not None or isinstance(whole.value, tuple):
            self._skill_evals(whole, path)
        else:
            self._promptfoo(whole, path)

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.root)

    def _script(self, node: Node, path: Path) -> str:
        """A file as a word of a command of the project."""
        if not lies_in(path, self.root):
            self._left(node, f"{self._name(path)} lies outside the project: no command finds it")
        return shlex.quote(self._name(path))

    def _node(self, path: Path, text: str | None = None) -> Node:
        """What a file says, or a text in it; what is wrong with that and leaves it usable is left to do."""
        name = self._name(path)
        text = read_text(path, name) if text is None else text
        source = read(_PAIR.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), text), name, merges=True)
        for problem in source.problems:
            self._left(Node(Source(name, at={(): Position(problem.line or 1, 1)})), problem.message)
        return Node(source)

    def _left(self, node: Node, text: str) -> None:
        line = printed(f"{node.source.file}:{node.place.line}: {text[:MAX_TOLD]}")
        self.to_do += [line] if line not in self.to_do else []

    def _unknown(self, node: Node, known: str, name: str) -> None:
        for key in node.value if isinstance(node.value, dict) else ():
            if key not in known.split():
                self._left(node.get(key), f"{name}: {key} has no equivalent")

    def _suite(self, name: str, node: Node) -> ImportedSuite:
        """A suite of a new name, made of what stands at a place."""
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:MAX_NAME] or "imported"
        names = (slug if number == 1 else f"{slug}-{number}" for number in count(1))
        # Some file systems do not tell upper from lower case.
        free = next(each for each in names if each.lower() not in self._taken)
        self._taken.add(free.lower())
        # Without the line, which moves with all that is written above.
        return ImportedSuite(free, node.source.file)

    def _check(self, suite: ImportedSuite, node: Node, name: str, checks: Iterable[dict[str, Any]]) -> None:
        """Add what was found at a place as checks, where it is valid."""
        for check in checks:
            if _is_valid(checks=[check]):
                suite.checks.append(check)
            else:
                self._left(node, f"{name}: no check can say {json.dumps(check, ensure_ascii=False)}")

    def _add(self, suite: ImportedSuite, node: Node) -> None:
        """Keep a suite with what in it is valid."""
        if not suite.prompt.strip():
            self._left(node, f"{suite.name} has no prompt")
            return
        for key, value in list(suite.settings.items()):
            if value and not _is_valid(**{key: value}):
                self._left(node, f"{suite.name}: {key} cannot be {json.dumps(suite.settings.pop(key))}")
        if not (suite.checks or suite.criteria or suite.answer_criteria):
            self._left(node, f"{suite.name} has neither a criterion nor a check: say what must be true")
        if is_sound(suite.text, SuiteConfig):
            self.suites.append(suite)
        else:
            self._left(node, f"{suite.name} is left out: it holds a credential, or characters that no text file can")

    def _skill_evals(self, whole: Node, path: Path) -> None:
        own = next((it for it in path.parents if (it / "SKILL.md").is_file()), path.parent)
        skill = whole.get("skill_name", "skill").text or (own.parent if own.name == "evals" else own).name
        stated = ("expectations", "assertions", "expected_behavior")
        known = ("prompt query input name id should_trigger expected_output files skills description", *stated)
        for number, case in enumerate(whole if isinstance(whole.value, tuple) else whole.get("evals"), start=1):
            suite = self._suite(f"{skill}-{case.get('name', 'id').text or number}", case)
            suite.prompt = case.get("prompt", "query", "input").text
            suite.description = case.get("description").text
            word = "notCalled" if case.get("should_trigger").text.lower() == "false" else "called"
            suite.checks += [{word: f"Skill({it.text})"} for it in case.get("skills")] or [{word: f"Skill({skill})"}]
            for key in (*stated, "expected_output"):
                for each in case.get(key):
                    if text := each.text or each.get("text", "description", "assertion").text:
                        suite.criteria.append(text if key in stated else f"The result is as described: {text}")
                    else:
                        self._left(each, f"{suite.name}: no text says what {key} means here")
            for file in case.get("files"):
                self._left(
                    file,
                    f"{suite.name} works on {file.text or file.dumped}: have it in the repository, named in the prompt",
                )
            self._unknown(case, " ".join(known), suite.name)
            self._add(suite, case)
        self._unknown(whole, "skill_name skill evals version description", "evals.json")

    def _plugin_case(self, folder: Path) -> None:
        case = self._node(folder / "case.yaml") if (folder / "case.yaml").is_file() else Node()
        head, prompt = self._document(folder / "prompt.md") if (folder / "prompt.md").is_file() else (case, "")
        execution = case.get("execution")
        suite = self._suite(case.get("name").text or folder.name, head)
        suite.prompt = prompt.strip() or execution.get("prompt").text or case.get("prompt").text
        suite.description = case.get("description").text
        given = dict[str, Any]()
        for options in (case, execution, head):
            pairs = ((key, options.get(key)) for key in _OPTIONS.split())
            given |= {key: json.loads(it.dumped) for key, it in pairs if it.value is not None}
            self._unknown(options, f"schema_version name description graders execution prompt {_OPTIONS}", suite.name)
        suite.settings |= {ours: given.pop(key) for key, ours in (("tags", "tags"), ("runs", "trials")) if key in given}
        suite.settings["execution"] = {to_camel(key): value for key, value in given.items()}
        scripts = [it for it in (folder / "fixture.sh", folder / "scaffold.sh") if it.is_file()]
        suite.settings["setupCommand"] = " && ".join(f"bash {self._script(head, script)}" for script in scripts)
        for grader in case.get("graders"):
            text = grader.get("pattern", "rubric", "criteria", "prompt").text
            self._check(suite, grader, suite.name, self._grader(grader, text, suite))
        for file in sorted((folder / "graders").glob("*")):
            if file.suffix == ".md":
                grader, text = self._document(file)
                text = grader.get("pattern", "rubric", "criteria").text or text.strip()
                self._check(suite, grader, suite.name, self._grader(grader, text, suite))
            else:
                self._left(Node(Source(self._name(file))), f"{suite.name}: such a grader has no equivalent")
        self._add(suite, head)

    def _document(self, path: Path) -> tuple[Node, str]:
        """The head of a Markdown file, and its text."""
        text = read_text(path, self._name(path))
        head = re.match(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", text, re.DOTALL | re.MULTILINE)
        # Its lines are counted from the file's first.
        return self._node(path, f"\n{head[1]}" if head else ""), text[head.end() :] if head else text

    def _grader(self, grader: Node, text: str, suite: ImportedSuite) -> Iterator[dict[str, Any]]:
        """The checks that a grader is; where a judge decides, it becomes a criterion."""
        kind, path = grader.get("type").text, grader.get("path", "glob", "pattern").text
        if kind == "tool_used":
            yield _counted(_rule(grader), grader)
        elif kind == "tool_order":
            yield {"before": {"first": _rule(grader.get("before")), "then": _rule(grader.get("after"))}}
        elif kind == "file_exists" and grader.get("exists").value is False:
            # A pattern stays one in the shell line.
            quoted = re.sub(r"[^\w@%+=:,./*?\[\]-]", r"\\\g<0>", path)
            yield {"command": f"test ! -e {quoted}", "name": f"No {path}."}
        elif kind == "file_exists":
            yield {"changed": [path]}
        elif kind == "regex" and text:
            yield from self._pattern(grader, text, suite)
        elif kind == "llm" and text:
            target = suite.answer_criteria if grader.get("focus").text == "last_message" else suite.criteria
            target.append(" ".join(text.split()))
        else:
            self._left(grader, f"{suite.name}: a grader of the type {kind or '(none)'} has no equivalent")
            return
        if (arm := grader.get("arm").text) and arm not in {"both", "with"}:
            self._left(grader, f"{suite.name}: arm {arm}: Zelda compares the head with the base, not with no plugin")
        self._unknown(grader, _GRADER, suite.name)

    def _pattern(self, grader: Node, pattern: str, suite: ImportedSuite) -> Iterator[dict[str, Any]]:
        target, how, flags = grader.get("target"), grader.get("match").text, grader.get("flags").text
        is_absent, said = how == "not_contains", _expression(pattern, flags)
        if how not in {"", "contains", "not_contains"}:
            self._left(grader, f"{suite.name}: no check looks for {said} by {how}")
        elif path := target.get("path").text or target.get("file").text:
            line = ["grep", f"-Pzq{'i' if 'i' in flags else ''}", "--", pattern, path]
            command = ["sh", "-c", '! "$@"', "sh", *line] if is_absent else line
            yield {"command": command, "name": f"{path} {'has no' if is_absent else 'has'} {said}"}
        elif target.text in {"", "last_message"}:
            yield {"notSays" if is_absent else "says": said}
        else:
            self._left(grader, f"{suite.name}: no check searches the {target.text or 'place'} for {said}")

    def _promptfoo(self, whole: Node, path: Path) -> None:
        self._unknown(whole, "description prompts tests defaultTest $schema", "promptfoo")
        default = next(self._groups(whole.get("defaultTest"), path), whole.get("defaultTest"))
        self._unknown(default, "description vars assert", "defaultTest")
        prompts = [it.get("raw", "id", "label").text or it.text for it in self._listed(whole.get("prompts"), path)]
        # Without tests, each prompt is asked once; without prompts, that of each test.
        tests: Iterable[Node] = self._groups(whole.get("tests"), path)
        if whole.get("prompts").value is None:
            prompts = ["{{prompt}}"]
        elif whole.get("tests", "scenarios").value is None:
            tests = (default,)
        usual, folder = self._variables(default, path), path.parent.name if path.parent != self.root else "promptfoo"
        for number, test in enumerate(tests, start=1):
            name = test.get("description").text or f"{folder}-{number}"
            self._unknown(test, "description vars assert", name)
            sides = [("defaultTest", default), (name, test)] if test is not default else [(name, test)]
            asserts = [(of, each) for of, side in sides for each in side.get("assert")]
            variables = {**usual, **self._variables(test, path)}
            for at, prompt in enumerate(prompts, start=1):
                used = f"{prompt}{[each.value for _, each in asserts]}"
                axes = {key: it for key, it in variables.items() if len(it) == 1 or (it and key in used)}
                if prod(map(len, axes.values())) > MAX_COMBINATIONS:
                    self._left(test, f"{name}: of its combinations of variables the first {MAX_COMBINATIONS} are here")
                for values in islice(product(*axes.values()), MAX_COMBINATIONS):
                    fill = partial(self._filled, values=dict(zip(axes, values, strict=True)))
                    suite = self._suite(f"{name}-p{at}" if len(prompts) > 1 else name, test)
                    suite.description = test.get("description").text
                    suite.prompt = fill(prompt, node=test, name=name).strip()
                    for of, each in asserts:
                        self._assert(suite, each, of, partial(fill, node=each, name=of), path)
                    self._add(suite, test)

    def _files(self, node: Node, path: Path) -> list[Path]:
        """The files that a text names, seen from the folder of its own; those elsewhere are left to do."""
        found: list[Path] = []
        with suppress(ValueError, NotImplementedError):
            found = sorted(path.parent.glob(re.sub(r"^file://|:\w+$", "", node.text)))
        inside = [it for it in found if it.is_file() and any(lies_in(it, top) for top in (self.root, path.parent))]
        if len(inside) < max(1, len(found)):
            self._left(node, f"{node.text} is no file of the project")
        return inside

    def _listed(self, node: Node, path: Path) -> Iterator[Node]:
        """The items of a list, those of files that it names included."""
        for item in node:
            named = item if item.text else item.get("raw", "id", "path")
            is_file = _FILE.fullmatch(named.text)
            if named is not item and (is_file or item.get("raw").value is not None):
                self._unknown(item, "raw id path label", "prompts")
            if not is_file:
                yield item
                continue
            for file in self._files(named, path):
                if file.suffix in {".yaml", ".yml", ".json"}:
                    yield from self._node(file)
                elif file.suffix in _TEXTS:
                    text = read_text(file, self._name(file))
                    parts = re.split(r"^---\s*$", text, flags=re.MULTILINE) if file.suffix == ".txt" else [text]
                    yield from (Node(Source(self._name(file), part)) for part in parts)
                else:
                    self._left(item, f"{named.text} is a program or a table: write what it yields as a suite")

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
        value, limit, given = assertion.get("value"), assertion.get("threshold").value, assertion.get("type").text
        kind, is_absent = given.removeprefix("not-"), given.startswith("not-")
        base, _, how = (kind, "", "") if kind in _SEARCHES else kind.rpartition("-")
        is_program = kind in _PROGRAMS and value.text.startswith("file://")
        stated = (it if it.text else it.get("name", "pattern", "goal") for it in (() if is_program else value))
        texts = [fill(self._text(it, path)) for it in stated]
        texts = [it.strip() for it in texts[0].split(",")] if how in {"any", "all"} and value.text else texts
        checks, is_said = list[dict[str, Any]](), bool(texts) and all(texts)
        # Of the others, no criterion or check says the contrary.
        kind = kind if not is_absent or kind in _CALLS[:3] or (base in _SEARCHES and how != "all") else ""
        match kind:
            case "assert-set":
                for each in assertion.get("assert"):
                    self._assert(suite, each, name, fill, path)
            case _ if kind and base in _SEARCHES and how in {"", "any", "all"} and is_said:
                patterns = [_SEARCHES[base].format(it if base == "regex" else re.escape(it)) for it in texts]
                patterns = ["|".join(patterns)] if how == "any" and not is_absent else patterns
                is_plain = base == "contains" and len(texts) == len(patterns) and not any(map(expression_of, texts))
                checks = [{"says": each} for each in (texts if is_plain else map(_expression, patterns))]
            case _ if kind in _RUBRICS and is_said:
                suite.answer_criteria += [" ".join(_RUBRICS[kind].format(text).split()) for text in texts]
            case "javascript" | "python" if is_program:
                files = [self._script(value, file) for file in self._files(value, path)]
                checks = [{"command": f"{_PROGRAMS[kind]} {file}"} for file in files]
                self._left(assertion, f"{name}: {value.text} gets no `output`: let it read files, and end with 0 or 1")
            case "cost" | "latency" if isinstance(limit, int | float):
                key, most = ("costUsd", limit) if kind == "cost" else ("durationSeconds", limit / 1000)
                suite.settings.setdefault("efficiencyTargets", {})[key] = most
            case _ if kind in _CALLS and value.value is not None:
                checks = _calls(kind, value, texts, lambda call: fill(_rule(call)))
                self._unknown(value, "name pattern min max type args arguments steps", name)
            case _:
                self._left(assertion, f"{name}: {given or 'an assertion without type'} has no equivalent")
                return
        absent = {"says": "notSays", "called": "notCalled"}
        checks = [{absent[key]: it[key] for key in absent if key in it} for it in checks] if is_absent else checks
        self._check(suite, assertion, name, checks)
        self._unknown(assertion, f"type value assert metric{' threshold' * (kind in {'cost', 'latency'})}", name)


def _calls(kind: str, value: Node, texts: list[str], rule: Callable[[Node], str]) -> list[dict[str, Any]]:
    """The checks of an assertion about calls."""
    if kind in _CALLS[:2]:
        rules = [f"Skill({text})" if kind == _CALLS[0] else text for text in texts]
        return [_counted(each, limits) for each, limits in zip(rules, value, strict=True)]
    if kind == _CALLS[2]:
        return [{"called": rule(value)}]
    if kind == _CALLS[3]:
        return [{"order": [rule(step) for step in (value.get("steps") if isinstance(value.value, dict) else value)]}]
    text, of = next(iter(texts), ""), value.get("type").text
    return [_counted({"tool": text, "command": f"Bash({text})"}.get(of, f"step of {of}"), value, least=0)]


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
    if not path.exists():
        raise ConfigError(f"{path} does not exist.", code="IMPORT_FAILED")
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
        hint = "Name a folder of `claude plugin eval` cases, a skill's evals.json, or a promptfooconfig.yaml."
        raise ConfigError(f"{path} holds nothing that can be imported.", hint=hint, code="IMPORT_FAILED")
    return sorted(cases)


def _expression(pattern: str, flags: str = "") -> str:
    """A pattern of JavaScript as checks have it, where ^ and $ stand for the beginning and end of every line."""
    inner = "s" * ("s" in flags) + "-m" * ("m" not in flags and bool({"^", "$"} & {*pattern}))
    return f"/{f'(?{inner})' if inner else ''}{pattern}/{'i' if 'i' in flags else ''}"


def _counted(rule: str, limits: Node, least: int = 1) -> dict[str, Any]:
    low, high = limits.get("min").value, limits.get("max").value
    low = least if low is None else low
    if high == 0:
        return {"notCalled": rule}
    if low == 1 and high is None:
        return {"called": rule}
    return {"called": rule, "times": f"{low}.." if high is None else low if low == high else f"{low}..{high}"}
