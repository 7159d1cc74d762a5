"""Suites made of what teams have for other tools: `claude plugin eval`, `evals.json` of skills, and promptfoo.

What has an equivalent becomes a suite; the rest becomes a list of things to do, with file and line.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from zelda_ci.config.document import is_sound, read_text
from zelda_ci.config.files import walk
from zelda_ci.config.init import scalar
from zelda_ci.config.schema import SuiteConfig
from zelda_ci.config.source import Ambiguous, Rejected, Source, Steps, read
from zelda_ci.errors import ConfigError

MAX_NAME = 50
MAX_COMBINATIONS = 50
# In an input of a call as JSON, `"skill": "changelog"`, as graders look for it; plugins may stand before the name.
_ARGUMENT = re.compile(r'"(\w+)"(?:\\s\*)?:(?:\\s\*|\s*)"(?:\(\?:\[\\w-\]\+:\)\?)?([^"\\()\[\]|?*+^$]+)("?)')
_PLAIN = re.compile(r"(?:[\w @/:,=-]|\\[.\-/]|\\s[+*])+")
_CASES = re.compile(r"case\.yaml|prompt\.md|evals\.json|promptfooconfig.*\.(ya?ml|json)")
_SLOT = re.compile(r"\{\{\s*(\w+)\s*\}\}")
# Assertions of promptfoo by what becomes of them: how their text is searched for, or that a judge decides.
_SEARCHES = {
    "contains": "{}", "icontains": "(?i){}", "starts-with": r"\A{}", "equals": r"\A\s*{}\s*\z", "regex": "{}",
}  # fmt: skip
_RUBRICS = {
    "llm-rubric": "{}", "agent-rubric": "{}", "g-eval": "{}", "model-graded-closedqa": "{}",
    "trajectory:goal-success": "{}", "factuality": "It agrees with this: {}",
    "model-graded-factuality": "It agrees with this: {}",
}  # fmt: skip


@dataclass
class ImportedSuite:
    name: str
    origin: str
    prompt: str = ""
    description: str = ""
    criteria: list[str] = field(default_factory=list)
    answer_criteria: list[str] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, list[str]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        lines = [f"# Imported from {self.origin} by zelda import.", f"name: {scalar(self.name)}"]
        lines += [f"description: {_yaml(self.description)}"] if self.description else []
        lines += [f"prompt: {_yaml(self.prompt)}"]
        for key, texts in (("acceptanceCriteria", self.criteria), ("answerCriteria", self.answer_criteria)):
            lines += [f"{key}:", *(f"  - {_yaml(text)}" for text in dict.fromkeys(texts))] if texts else []
        checks = list({json.dumps(check): check for check in self.checks}.values())
        lines += ["checks:"] if checks else []
        for check in checks:
            pairs = [f"{key}: {_yaml(value)}" for key, value in check.items()]
            lines += [f"  - {pairs[0]}", *(f"    {pair}" for pair in pairs[1:])]
        if self.variables:
            lines += ["matrix:", "  variables:", *(f"    {name}: {_yaml(it)}" for name, it in self.variables.items())]
        return "\n".join([*lines, *(f"{key}: {_yaml(value)}" for key, value in self.settings.items()), ""])


def _yaml(value: Any) -> str:
    """A value on one line: as YAML where it is a plain word, otherwise as JSON, which YAML contains."""
    if isinstance(value, str) and value.isprintable() and len(value) < MAX_NAME:
        return scalar(value)
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Node:
    """A value in a file of another tool, with its place; without a source, one that is nowhere."""

    source: Source = field(default_factory=Source)
    path: Steps = ()
    above: int = 0
    """Lines before the part of the file that was read."""

    @property
    def value(self) -> Any:
        value = self.source.value(self.path)
        return value.text if isinstance(value, Ambiguous) else value

    @property
    def line(self) -> int:
        """Its line in the file; of the value of a key, the key's."""
        place = self.source.keys.get(self.path) or self.source.at.get(self.path)
        return self.above + (place.line if place else 1)

    def __iter__(self) -> Iterator["Node"]:
        """The items of a list, or the value alone where it is none."""
        if isinstance(self.value, tuple):
            return (Node(self.source, (*self.path, at), self.above) for at in range(len(self.value)))
        return iter(() if self.value is None else (self,))

    def get(self, *keys: str) -> "Node":
        """The first of some keys that is there; otherwise a node without a value."""
        known = self.value if isinstance(self.value, dict) else {}
        found = next((key for key in keys if known.get(key) is not None), None)
        return Node(self.source, (*self.path, found), self.above) if found else Node()

    @property
    def text(self) -> str:
        """A single value as text; empty where there is none."""
        value = self.value
        return "" if value is None or isinstance(value, dict | tuple) else str(value).strip()


class Importer:
    """Reads files of other tools, and collects suites and what is left to do."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.suites: list[ImportedSuite] = []
        self.to_do: list[str] = []
        """What a person has to decide about, with file and line."""

    def read(self, path: Path) -> None:
        """Read a file or a folder; raises ConfigError where nothing in it is of a known kind, or it cannot be read."""
        if not path.exists():
            raise ConfigError(f"{path} does not exist.", code="IMPORT_FAILED")
        before = len(self.suites) + len(self.to_do)
        found = ((place, name, names) for place, _, names in walk(path) for name in names if _CASES.fullmatch(name))
        cases = (place / name for place, name, names in found if name != "prompt.md" or "case.yaml" not in names)
        try:
            for file in [path] if path.is_file() else sorted(cases):
                self._file(file)
        except Rejected as problem:
            raise ConfigError("\n".join(map(str, problem.problems)), code="IMPORT_FAILED") from None
        if len(self.suites) + len(self.to_do) == before:
            hint = "Name a folder of `claude plugin eval` cases, a skill's evals.json, or a promptfooconfig.yaml."
            raise ConfigError(f"{path} holds nothing that can be imported.", hint=hint, code="IMPORT_FAILED")

    def _file(self, path: Path) -> None:
        if path.name in {"case.yaml", "prompt.md"}:
            self._plugin_case(path.parent)
            return
        whole = self._node(path)
        if path.name == "evals.json" or whole.get("evals").value is not None or isinstance(whole.value, tuple):
            self._skill_evals(whole, path)
        else:
            self._promptfoo(whole, path)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def _node(self, path: Path) -> Node:
        name = self._name(path)
        return Node(read(read_text(path, name), name))

    def _left(self, node: Node, text: str) -> None:
        self.to_do.append(f"{node.source.file}:{node.line}: {text}")

    def _unknown(self, node: Node, known: str, name: str) -> None:
        for key in node.value if isinstance(node.value, dict) else ():
            if key not in known.split():
                self._left(node.get(key), f"{name}: {key} has no equivalent")

    def _suite(self, name: str, node: Node) -> ImportedSuite:
        """A suite of a new name, made of what stands at a place."""
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:MAX_NAME] or "imported"
        taken = {each.name for each in self.suites}
        names = (slug, *(f"{slug}-{number}" for number in range(2, len(taken) + 3)))
        return ImportedSuite(next(each for each in names if each not in taken), f"{node.source.file}:{node.line}")

    def _add(self, suite: ImportedSuite, node: Node) -> None:
        """Keep a suite, and of its checks those that are valid."""
        if not suite.prompt.strip():
            self._left(node, f"{suite.name} has no prompt")
            return
        for check in list(suite.checks):
            if not is_sound(f"prompt: x\nchecks: [{json.dumps(check)}]", SuiteConfig):
                suite.checks.remove(check)
                self._left(node, f"{suite.name}: no check can say {json.dumps(check, ensure_ascii=False)}")
        if not (suite.checks or suite.criteria or suite.answer_criteria):
            self._left(node, f"{suite.name} has neither a criterion nor a check: say what must be true")
        self.suites.append(suite)

    def _skill_evals(self, whole: Node, path: Path) -> None:
        skill = whole.get("skill_name", "skill").text or path.parent.parent.name
        known = (
            "prompt query input name id should_trigger expectations assertions expected_behavior expected_output files "
            "skills description"
        )
        for number, case in enumerate(whole if isinstance(whole.value, tuple) else whole.get("evals"), start=1):
            suite = self._suite(f"{skill}-{case.get('name', 'id').text or number}", case)
            suite.prompt = case.get("prompt", "query", "input").text
            triggers = case.get("should_trigger").value
            suite.checks.append({"notCalled" if triggers is False else "called": f"Skill({skill})"})
            stated = case.get("expectations", "assertions", "expected_behavior")
            texts = [each.text or each.get("text", "description").text for each in stated]
            expected = case.get("expected_output").text
            suite.criteria = [*filter(None, texts), *([f"The result is as described: {expected}"] if expected else [])]
            for file in case.get("files"):
                self._left(file, f"{suite.name} works on {file.text}: have it in the repository, named in the prompt")
            self._unknown(case, known, suite.name)
            self._add(suite, case)
        self._unknown(whole, "skill_name skill evals version description", "evals.json")

    def _plugin_case(self, folder: Path) -> None:
        case = self._node(folder / "case.yaml") if (folder / "case.yaml").is_file() else Node()
        head, prompt = self._document(folder / "prompt.md") if (folder / "prompt.md").is_file() else (None, "")
        where, execution = head or case, case.get("execution")
        suite = self._suite(case.get("name").text or folder.name, where)
        suite.prompt = prompt.strip() or execution.get("prompt").text or case.get("prompt").text
        suite.description = case.get("description").text
        known = (
            "schema_version name description graders execution prompt tags runs weight plugins max_turns "
            "timeout_seconds allowed_tools"
        )
        for options in filter(None, (head, execution, case)):
            for key, ours in (("max_turns", "maxTurns"), ("timeout_seconds", "timeoutSeconds")):
                if isinstance(number := options.get(key).value, int):
                    suite.settings.setdefault("execution", {})[ours] = number
            self._unknown(options, known, suite.name)
        for script in sorted({*folder.glob("scaffold.sh"), *folder.glob("fixture.sh")}):
            suite.settings["setupCommand"] = f"bash {self._name(script)}"
        for grader in case.get("graders"):
            self._grader(grader, grader.get("pattern", "rubric", "criteria", "prompt").text, suite)
        for file in sorted((folder / "graders").glob("*.md")):
            options, text = self._document(file)
            self._grader(options, options.get("pattern", "rubric", "criteria").text or text.strip(), suite)
        self._add(suite, where)

    def _document(self, path: Path) -> tuple[Node, str]:
        """The head of a Markdown file, and its text."""
        name, text = self._name(path), read_text(path, self._name(path))
        head = re.match(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", text, re.DOTALL | re.MULTILINE)
        return Node(read(head[1] if head else "", name), above=1 if head else 0), text[head.end() :] if head else text

    def _grader(self, grader: Node, text: str, suite: ImportedSuite) -> None:
        match grader.get("type").text:
            case "regex":
                self._pattern(grader, grader.get("pattern").text or text, suite)
            case "tool_used":
                if rule := self._rule(grader, suite):
                    suite.checks.append(_counted(rule, grader))
            case "tool_order":
                first, then = (self._rule(grader.get(key), suite, grader) for key in ("before", "after"))
                if first and then:
                    suite.checks.append({"before": {"first": first, "then": then}})
            case "file_exists":
                path = grader.get("path", "glob", "pattern").text
                gone = {"command": f"test ! -e {path}", "name": f"No {path}."}
                suite.checks.append(gone if grader.get("exists").value is False else {"changed": [path]})
            case "llm":
                target = suite.answer_criteria if grader.get("focus").text == "last_message" else suite.criteria
                target.append(" ".join(text.split()))
            case kind:
                self._left(grader, f"{suite.name}: a grader of the type {kind or '(none)'} has no equivalent")
        if (arm := grader.get("arm").text) and arm not in {"both", "with"}:
            self._left(grader, f"{suite.name}: arm {arm}: Zelda compares the head with the base, not with no plugin")

    def _pattern(self, grader: Node, pattern: str, suite: ImportedSuite) -> None:
        target, is_absent = grader.get("target"), grader.get("match").text == "not_contains"
        flags = "i" if "i" in grader.get("flags").text else ""
        if path := target.get("path").text or target.get("file").text:
            line = ["grep", f"-Pzq{flags}", "--", pattern, path]
            said = f"{path} {'has no' if is_absent else 'has'} /{pattern}/{flags}"
            command = ["sh", "-c", '! "$@"', "sh", *line] if is_absent else line
            suite.checks.append({"command": command, "name": said})
        elif target.text in {"", "last_message"}:
            suite.checks.append({"notSays" if is_absent else "says": f"/{pattern}/{flags}"})
        else:
            self._left(grader, f"{suite.name}: no check searches the {target.text or 'place'} for /{pattern}/")

    def _rule(self, call: Node, suite: ImportedSuite, grader: Node | None = None) -> str | None:
        """The call that a grader means, as a rule; None, and something to do, where no rule can say it."""
        tool, wanted = call.get("tool").text or call.text, call.get("input_match").text
        if not wanted:
            return tool
        if found := _ARGUMENT.fullmatch(wanted):
            return f"{tool}({found[2]}{'' if found[3] else '*'})"
        if _PLAIN.fullmatch(wanted):
            words = re.sub(r"\\s[+*]", "*", wanted).replace("\\", "")
            return f"{tool}(*{words}*)"
        self._left(grader or call, f"{suite.name}: no rule can say a call of {tool} with /{wanted}/")
        return None

    def _promptfoo(self, whole: Node, path: Path) -> None:
        self._unknown(whole, "description prompts tests defaultTest $schema", "promptfoo")
        default = next(iter(self._listed(whole.get("defaultTest"), path)), Node())
        prompts = [it.get("raw", "label").text or it.text for it in self._listed(whole.get("prompts"), path)]
        for number, test in enumerate(self._listed(whole.get("tests"), path) or [default], start=1):
            variables = {**_variables(default), **_variables(test)}
            name = test.get("description").text or f"{path.parent.name or 'promptfoo'}-{number}"
            for at, prompt in enumerate(prompts or ["{{prompt}}"], start=1):
                suite = self._suite(f"{name}-p{at}" if len(prompts) > 1 else name, test)
                suite.description = test.get("description").text
                self._fill(suite, prompt, variables, test)
                for each in (default, test) if test is not default else (test,):
                    for assertion in each.get("assert"):
                        if problem := _assert(suite, assertion, variables):
                            self._left(assertion, f"{suite.name}: {problem}")
                    self._unknown(each, "description vars assert", suite.name)
                self._add(suite, test)

    def _listed(self, node: Node, path: Path) -> list[Node]:
        """The items of a list, those of files that it names included."""
        found: list[Node] = []
        for item in node:
            if not item.text.startswith("file://"):
                found.append(item)
                continue
            for file in sorted(path.parent.glob(item.text.removeprefix("file://").removeprefix("./"))):
                if file.suffix in {".yaml", ".yml", ".json"}:
                    found += self._node(file)
                elif file.suffix in {".txt", ".md", ""}:
                    found.append(Node(Source(item.source.file, read_text(file, self._name(file)))))
                else:
                    self._left(item, f"{item.text} is a program or a table: write what it yields as a suite")
        return found

    def _fill(self, suite: ImportedSuite, prompt: str, variables: Mapping[str, Sequence[str]], test: Node) -> None:
        """Put the variables into a prompt; those with several values become the suite's matrix."""
        single = {name: values[0] for name, values in variables.items() if len(values) == 1}
        suite.prompt = _SLOT.sub(lambda slot: single.get(slot[1], f"{{{{{slot[1]}}}}}"), prompt).strip()
        several = {name: list(values) for name, values in variables.items() if len(values) > 1}
        used = {name: values for name, values in several.items() if f"{{{{{name}}}}}" in suite.prompt}
        if prod(map(len, used.values())) > MAX_COMBINATIONS:
            self._left(test, f"{suite.name}: more than {MAX_COMBINATIONS} combinations of variables")
        else:
            suite.variables = used
        for name in (slot for slot in _SLOT.findall(suite.prompt) if slot not in suite.variables):
            self._left(test, f"{suite.name}: {{{{{name}}}}} in the prompt has no value")


def _variables(test: Node) -> dict[str, list[str]]:
    lists = {name: it if isinstance(it, tuple) else (it,) for name, it in (test.get("vars").value or {}).items()}
    return {name: [it if isinstance(it, str) else json.dumps(it) for it in values] for name, values in lists.items()}


def _assert(suite: ImportedSuite, assertion: Node, variables: Mapping[str, Sequence[str]]) -> str | None:
    """Add what an assertion of promptfoo says to a suite; what is left to do about it, if anything."""
    given, value = assertion.get("type").text, assertion.get("value")
    kind, is_absent = given.removeprefix("not-"), given.startswith("not-")
    filled = partial(_SLOT.sub, lambda slot: variables.get(slot[1], [slot[0]])[0])
    texts, problem = [filled(each.text) for each in value], None
    base, _, how = (kind, "", "") if kind in _SEARCHES else kind.rpartition("-")
    match kind:
        case _ if base in _SEARCHES and how == "all" and is_absent:
            problem = "no check says that one of several texts is missing"
        case _ if base in _SEARCHES and how in {"", "any", "all"}:
            sought = [_SEARCHES[base].format(text if base == "regex" else re.escape(text)) for text in texts]
            sought = ["|".join(sought)] if how == "any" and not is_absent else sought
            said = texts if kind == "contains" else [f"/{each}/" for each in sought]
            suite.checks += [{"notSays" if is_absent else "says": each} for each in said]
        case _ if kind in _RUBRICS and not is_absent:
            suite.answer_criteria += [" ".join(_RUBRICS[kind].format(text).split()) for text in texts if text]
        case "skill-used" | "trajectory:tool-used":
            for each in value:
                name = filled(each.text or each.get("name", "pattern").text)
                rule = f"Skill({name})" if kind == "skill-used" else name
                suite.checks.append({"notCalled": rule} if is_absent else _counted(rule, each))
        case "trajectory:tool-sequence" if not is_absent:
            steps = value if value.get("steps").value is None else value.get("steps")
            suite.checks.append({"order": [step.text or step.get("name").text for step in steps]})
            if value.get("mode").text == "exact":
                problem = "order lets other calls stand between, exact does not"
        case "trajectory:tool-args-match":
            match [*(value.get("args").value or {}).values()]:
                case [str(text)]:
                    rule = f"{value.get('name').text}({filled(text)})"
                    suite.checks.append({"notCalled" if is_absent else "called": rule})
                case _:
                    problem = "no rule can say a call with several arguments"
        case "trajectory:step-count" if value.get("type").text in {"tool", "command"}:
            pattern = value.get("pattern", "name").text
            rule = f"Bash({pattern})" if value.get("type").text == "command" else pattern
            suite.checks.append(_counted(rule, value, least=0))
        case "javascript" | "python" if texts and texts[0].startswith("file://"):
            program = "node" if kind == "javascript" else "python3"
            suite.checks.append({"command": f"{program} {texts[0].removeprefix('file://')}"})
            problem = f"{texts[0]} gets no `output`: let it read the files, and end with 0 or 1"
        case "cost" | "latency" if isinstance(limit := assertion.get("threshold").value, int | float):
            key, number = ("costUsd", limit) if kind == "cost" else ("durationSeconds", limit / 1000)
            suite.settings.setdefault("efficiencyTargets", {})[key] = number
        case _:
            problem = f"{'not-' * is_absent}{kind or 'an assertion without type'} has no equivalent"
    return problem


def _counted(rule: str, limits: Node, least: int = 1) -> dict[str, Any]:
    low, high = limits.get("min").value, limits.get("max").value
    low = least if low is None else low
    if high == 0:
        return {"notCalled": rule}
    if low == 1 and high is None:
        return {"called": rule}
    return {"called": rule, "times": f"{low}.." if high is None else low if low == high else f"{low}..{high}"}
