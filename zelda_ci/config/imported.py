"""Suites made of what teams have for other tools: `claude plugin eval`, `evals.json` of skills, and promptfoo.

What has an equivalent becomes a suite; the rest becomes a list of things to do, with file and line.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from glob import glob
from itertools import count, islice, product
from math import prod
from pathlib import Path
from typing import Any

from zelda_ci.config.document import is_sound, read_text
from zelda_ci.config.files import SKIPPED, lies_in
from zelda_ci.config.init import printed, scalar
from zelda_ci.config.schema import SuiteConfig
from zelda_ci.config.source import Position, Rejected, Source, Steps, config_problem, read
from zelda_ci.domain.suite import expression_of
from zelda_ci.errors import ConfigError

MAX_NAME, MAX_COMBINATIONS, MAX_TOLD = 50, 50, 400
# In an input of a call as JSON, `"skill": "changelog"`, as graders look for it; plugins may stand before the name.
_ARGUMENT = re.compile(r'"(\w+)"(?:\\s\*)?:(?:\\s\*|\s*)"(?:\(\?:\[\\w-\]\+:\)\?)?([^"\\()\[\]|?*+^$]+)("?)')
_PLAIN = re.compile(r"(?:[\w @/:,=-]|\\[.\-/]|\\s[+*])+")
# What a rule in brackets is about; of other tools, any argument.
_KEYS = {"Bash": "command", "Skill": "skill", "Agent": "subagent_type", "Task": "subagent_type"}
_KEYS |= {**dict.fromkeys(("Read", "Edit", "Write", "MultiEdit"), "file_path"), "Grep": "path", "Glob": "path"}
_CASES = re.compile(r"case\.yaml|prompt\.md|evals\.json|promptfooconfig.*\.(ya?ml|json|[cm]?[jt]s)")
_FILE = re.compile(r"file://.*|(?:\w+://|exec:)\S+|\S+\.(?:txt|md|j2|ya?ml|jsonl?|csv|xlsx|py|[cm]?[jt]s)(?::\w+)?")
# Around the path of a file: `file://check.py:function`.
_AROUND = re.compile(r"^file://|:\w+$")
# Markdown with settings between two lines of dashes.
_HEAD = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DASHES = re.compile(r"^---\s*$", re.MULTILINE)
_SLOT = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}")
_TEMPLATE = re.compile(r"\{[{%#][^{}\n]{0,200}[%#}]\}")
# Two escapes of JSON that stand for one character; YAML has no such pairs.
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_READABLE = {".yaml", ".yml", ".json"}
# Options of cases of `claude plugin eval`, as suites call them, and what evals.json states.
_OPTIONS = {"tags": "tags", "runs": "trials", "max_turns": "execution.maxTurns"}
_OPTIONS |= {"timeout_seconds": "execution.timeoutSeconds", "allowed_tools": "execution.allowedTools"}
_SAID = dict.fromkeys(("expectations", "assertions", "expected_behavior"), "")
_SAID["expected_output"] = "The result is as described: "
# Graders and assertions: what becomes of them, that their text is searched for or a judge decides; and their keys.
_SEARCHES = {"contains": "{}", "icontains": "(?i){}", "starts-with": r"\A{}", "equals": r"\A\s*{}\s*\z", "regex": "{}"}
_SEARCH = re.compile(rf"({'|'.join(_SEARCHES)})(?:-(any|all))?")
_RUBRICS = "llm|(llm|agent)-rubric|g-eval|model-graded-closedqa|(model-graded-)?factuality|trajectory:goal-success"
_KNOWN = {"tool_order": "before after", _RUBRICS: "rubric criteria prompt pattern goal focus"}
_KNOWN |= {"(tool|skill|traj).*": "tool pattern input input_match args arguments min max steps"}
_KNOWN |= {"file_exists": "path glob pattern exists", ".*": "pattern flags match target"}
_MEANT = {"factuality": "It agrees with this: ", "goal-success": "The goal is reached: "}
_PROGRAMS = {"javascript": "node", "python": "python3"}
_LIMITS = {"cost": ("costUsd", 1), "latency": ("durationSeconds", 1000)}
_CRITERIA = ("acceptanceCriteria", "answerCriteria", "checks")
Keys = dict[str, Any]


def _yaml(value: Any, level: int = 0) -> str:
    """Lists and the groups in them in lines, plain words as they are, and the rest as JSON, which YAML contains."""
    match value:
        case list() if not level:
            return "".join(dict.fromkeys(f"\n  - {_yaml(it, 1)}" for it in value))
        case dict() if level == 1:
            return "\n    ".join(f"{key}: {_yaml(it, 2)}" for key, it in value.items())
        case str() if value.isprintable() and len(value) < MAX_NAME:
            return scalar(value)
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Node:
    """A value in a file of another tool, with its place; where a key is absent, no value, at the place of its group."""

    source: Source
    path: Steps = ()
    of: str = ""
    """The suite or the part of a file that it belongs to, as the list of things to do says it."""

    @property
    def value(self) -> Any:
        return self.source.value(self.path) if self.path in self.source.at else None

    @property
    def place(self) -> Position:
        """Where it stands in the file; of the value of a key, the key's."""
        paths = (self.path[:length] for length in range(len(self.path), -1, -1))
        return next(at for path in paths if (at := self.source.keys.get(path) or self.source.at.get(path)))

    def __iter__(self) -> Iterator["Node"]:
        """The items of a list, or the value alone where it is none; of a reference, the template that it names."""
        file, value, path = self.source, self.value, self.path
        paths = [(*path, at) for at in range(len(value))] if isinstance(value, tuple) else [path] * (value is not None)
        for own in paths:
            named: Steps = tuple(file.texts.get((*own, "$ref"), "").removeprefix("#/").split("/"))
            yield replace(self, path=named if named in file.at and named[0] == "assertionTemplates" not in own else own)

    def get(self, *keys: str) -> "Node":
        """The first of some keys that has a value; otherwise a node without one."""
        nodes = [replace(self, path=(*self.path, key)) for key in keys]
        return next((it for it in nodes if it.value is not None), nodes[0])

    @property
    def dumped(self) -> str:
        """Its value as JSON."""
        return json.dumps(self.value, ensure_ascii=False, default=lambda word: word.text)

    @property
    def text(self) -> str:
        """A single value as it is written; empty where there is none."""
        return "" if self.value is None else self.source.texts.get(self.path, "").strip()


class Importer:
    """Reads files of other tools, and collects suites and what is left to do; `taken` are names of other suites."""

    def __init__(self, root: Path, taken: Iterable[str] = ()) -> None:
        self.root = self._folder = root  # and the folder of the file that is read
        self.suites: dict[str, str] = {}
        """Their texts by name."""
        self.to_do: dict[str, None] = {}
        """What a person has to decide about, with file and line, each once."""
        self._taken = {name.lower() for name in taken}

    def read(self, *paths: Path) -> None:
        """Read files and folders; raises ConfigError where one has nothing of a known kind, or nothing is imported."""
        for file in dict.fromkeys(file for path in paths for file in _cases(path)):
            self._folder, before = file.parent, (len(self.suites), len(self.to_do))
            whole, _ = self._document(file)
            if file.name in {"case.yaml", "prompt.md"}:
                self._plugin_case()
            elif file.name == "evals.json" or isinstance(whole.value, tuple) or any(whole.get("evals", "query")):
                self._skill_evals(whole)
            else:
                self._promptfoo(whole)
            if before == (len(self.suites), len(self.to_do)):
                self._left(whole, "holds no case, or is neither YAML nor JSON")
        if not self.suites:
            raise ConfigError("Nothing was imported.", hint="\n".join(self.to_do), code="IMPORT_FAILED")

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.root)

    def _is_own(self, node: Node, path: Path, *folders: Path) -> bool:
        """Whether a file lies in the project, or in another folder; left to do, at the place that names it, if not."""
        if not (is_own := os.path.isfile(path) and any(lies_in(path, it) for it in (self.root, *folders))):  # noqa: PTH113
            self._left(node, f"{node.text or self._name(path)} is no file of the project")
        return is_own

    def _document(self, path: Path, *, raw: bool = False) -> tuple[Node, str]:
        """What a file says, of Markdown its head, and the text below that, or all of a text; nothing of other kinds."""
        name, text = self._name(path), ""
        try:
            said = read_text(path, name) if raw or path.suffix in {".md", *_READABLE} else ""
            if raw or path.suffix == ".md":
                head = None if raw else _HEAD.match(said)
                # Its lines are counted from the file's first.
                said, text = (f"\n{head[1]}", said[head.end() :]) if head else ("", said)
            source = read(_PAIR.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), said), name, merges=True)
        except Rejected as problem:
            source = Source(name, problems=[*problem.problems])
        self.to_do |= dict.fromkeys(f"{it.file}:{it.line or 1}: {it.message}" for it in source.problems)
        return Node(source), text

    def _left(self, node: Node, text: str) -> None:
        told = config_problem(node.source.file, node.place, printed(f"{node.of}: {text}" if node.of else text))
        self.to_do[f"{told.file}:{told.line}: {told.message[:MAX_TOLD]}"] = None

    def _unknown(self, node: Node, known: str) -> None:
        for key in node.value if isinstance(node.value, dict) else ():
            if key not in known.split():
                self._left(node.get(key), f"{key} has no equivalent")

    def _suite(self, name: str, node: Node, prompt: str) -> Keys:
        """The keys of a suite of a new name, made of what stands at a place."""
        slug = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-._")[:MAX_NAME] or "imported"
        names = (slug if number == 1 else f"{slug}-{number}" for number in count(1))
        # Some file systems do not tell upper from lower case.
        free = next(each for each in names if each.lower() not in self._taken)
        self._taken.add(free.lower())
        keys = {"name": free, "description": node.get("description").text, "prompt": prompt.strip()}
        return {**keys, **{key: [] for key in _CRITERIA}}

    def _keep(self, suite: Keys, node: Node, key: str, value: Any) -> None:
        """Put what was found at a place into a suite, where it is valid: a key, `one.of` a group, or a criterion."""
        outer, _, inner = key.partition(".")
        new = {**suite.get(outer, {}), inner: value} if inner else [*suite[key], value] if key in _CRITERIA else value
        if is_sound(json.dumps({"prompt": "x", outer: new}, ensure_ascii=False), SuiteConfig):
            suite[outer] = new
        else:
            what = "no check can say" if key == "checks" else f"{inner or key} cannot be"
            self._left(node, f"{what} {json.dumps(value, ensure_ascii=False)}")

    def _add(self, suite: Keys, node: Node) -> None:
        # Without the line, which moves with all that is written above.
        name, text = suite["name"], f"# Imported from {printed(node.source.file)} by zelda import.\n"
        text += "".join(f"{key}:{' ' * (not isinstance(it, list))}{_yaml(it)}\n" for key, it in suite.items() if it)
        if not suite["prompt"]:
            self._left(node, f"{name} has no prompt")
        elif not is_sound(text, SuiteConfig):
            self._left(node, f"{name} is left out: it holds a credential, or characters that no text file can")
        else:
            self.suites[name] = text
            if not any(map(suite.get, _CRITERIA)):
                self._left(node, f"{name} has neither a criterion nor a check: say what must be true")

    def _skill_evals(self, whole: Node) -> None:
        own = next((it for it in (self._folder, *self._folder.parents) if (it / "SKILL.md").is_file()), self._folder)
        skill = whole.get("skill_name", "skill").text or (own.parent if own.name == "evals" else own).name
        for number, entry in enumerate(whole if (evals := whole.get("evals")).value is None else evals, start=1):
            name = f"{skill}-{entry.get('name', 'id').text or number}"
            suite = self._suite(name, entry, entry.get("prompt", "query", "input").text)
            case = replace(entry, of=suite["name"])
            word = "notCalled" if case.get("should_trigger").text.lower() == "false" else "called"
            for called in [it.text for it in case.get("skills")] or [skill]:
                self._keep(suite, case, "checks", {word: f"Skill({called})"})
            for key, start in _SAID.items():
                for each in case.get(key):
                    if text := each.text or each.get("text", "description", "assertion").text:
                        self._keep(suite, each, "acceptanceCriteria", start + text)
                        self._unknown(each, "text description assertion name id")
                    else:
                        self._left(each, f"no text says what {key} means here")
            for item in case.get("files"):
                self._left(item, f"have {item.text or item.dumped} in the repository, named in the prompt")
            self._unknown(case, f"prompt query input name id should_trigger files skills description {' '.join(_SAID)}")
            self._add(suite, entry)
        self._unknown(whole if any(evals) else evals, "skill_name skill evals version description")

    def _plugin_case(self) -> None:
        folder = self._folder
        documents = [self._document(it) for it in (folder / "case.yaml", folder / "prompt.md") if it.is_file()]
        (case, _), (head, text) = documents[0], documents[-1]
        prompt = text.strip() or case.get("execution").get("prompt").text or case.get("prompt").text
        known = "schema_version name description graders execution" + " prompt" * (not text.strip())
        suite = self._suite(case.get("name").text or folder.name, case, prompt)
        for options in (replace(it, of=suite["name"]) for it in (case, case.get("execution"), head)):
            for key, ours in _OPTIONS.items():
                if (given := options.get(key)).value is not None:
                    self._keep(suite, given, ours, json.loads(given.dumped))
            self._unknown(options, f"{known} {' '.join(_OPTIONS)}")
        scripts = [it for it in (folder / "fixture.sh", folder / "scaffold.sh") if it.is_file()]
        if own := [f"bash {shlex.quote(self._name(it))}" for it in scripts if self._is_own(head, it)]:
            self._keep(suite, head, "setupCommand", " && ".join(own))
        files = map(self._document, sorted((folder / "graders").glob("*")))
        for each, text in (*((it, "") for it in case.get("graders")), *files):
            grader = replace(each, of=suite["name"])
            said = grader.get("pattern", "rubric", "criteria", "prompt").text
            if said and text.strip():
                self._left(grader, "its head says what is wanted: the text below is left out")
            self._criterion(suite, grader, [said or text.strip()])
        self._add(suite, head)

    def _promptfoo(self, whole: Node) -> None:
        self._unknown(whole, "description prompts tests defaultTest assertionTemplates $schema")
        usual, given = replace(whole.get("defaultTest"), of="defaultTest"), replace(whole.get("prompts"), of="prompts")
        default = next(self._groups(usual), usual)
        self._unknown(default, "description vars assert")
        for each in given:
            self._unknown(each, "raw id path label")
        named = (it if it.text else it.get("raw", "id", "path", "label") for it in given)
        texts = ((it.source.file, it.text or it.get("raw", "id", "label").text) for it in self._listed(named))
        # A file may hold several, with lines of dashes between them.
        prompts = [part for file, text in texts for part in (_DASHES.split(text) if file.endswith(".txt") else [text])]
        # Without tests, each prompt is asked once; without prompts, that of each test.
        tests: Iterable[Node] = self._groups(whole.get("tests"))
        if given.value is None:
            prompts = ["{{prompt}}"]
        elif whole.get("tests", "scenarios").value is None:
            tests = (whole.get("tests"),)
        shared, folder = self._variables(default), self._folder.name if self._folder != self.root else "promptfoo"
        for number, each in enumerate(tests, start=1):
            test = replace(each, of=each.get("description").text or f"{folder}-{number}")
            self._unknown(test, "description vars assert")
            asserts, variables = [*default.get("assert"), *test.get("assert")], shared | self._variables(test)
            for at, prompt in enumerate(prompts, start=1):
                used = f"{prompt}{[it.value for it in asserts]}{[*variables.values()]}"
                axes = {key: it for key, it in variables.items() if len(it) == 1 or (it and key in used)}
                if prod(map(len, axes.values())) > MAX_COMBINATIONS:
                    self._left(test, f"of its combinations of variables the first {MAX_COMBINATIONS} are here")
                for combined in islice(product(*axes.values()), MAX_COMBINATIONS):
                    values = dict(zip(axes, combined, strict=True))
                    title = f"{test.of}-p{at}" if len(prompts) > 1 else test.of
                    suite = self._suite(title, test, self._filled(test, values, prompt))
                    for assertion in asserts:
                        self._assert(suite, assertion, values)
                    self._add(suite, each)

    def _listed(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """Some items; of those that name files, seen from the configuration's folder, what stands in these."""
        for item in nodes:
            if not _FILE.fullmatch(item.text):
                yield item
                continue
            # Other than that of a path, this one takes any text.
            names = glob(_AROUND.sub("", item.text), root_dir=self._folder, recursive=True)  # noqa: PTH207
            files = (self._folder / name for name in sorted(names) or [""])
            for file in (it for it in files if self._is_own(item, it, self._folder)):
                if file.suffix in _READABLE:
                    yield from replace(self._document(file)[0], of=item.of)
                elif file.suffix in {".txt", ".md", ".j2", ""}:
                    yield Node(Source(self._name(file), "", texts={(): self._document(file, raw=True)[1]}), of=item.of)
                else:
                    self._left(item, f"{item.text} is a program or a table: write what it yields as a suite")

    def _groups(self, node: Node) -> Iterator[Node]:
        """Of a list, the groups of keys; what else stands there is left to do."""
        for each in self._listed(node):
            if isinstance(each.value, dict):
                yield each
            else:
                self._left(each, f"{each.text or 'this'} cannot be read: it must be a group of keys")

    def _text(self, node: Node) -> str:
        """A text, or what stands in the file that it names; groups and lists as JSON."""
        parts = self._listed(node) if node.text.startswith("file://") else (node,)
        return "\n".join(it.dumped if isinstance(it.value, dict | tuple) else it.text for it in parts)

    def _variables(self, test: Node) -> dict[str, list[str]]:
        """The variables of a test, each with its values."""
        groups = self._groups(test.get("vars"))
        return {name: [self._text(it) for it in each.get(name)] for each in groups for name in each.value}

    def _filled(self, node: Node, values: Mapping[str, str], text: str) -> str:
        """A template with its variables put in; what is no variable, or one without a value, is left to do."""
        put_in = partial(_SLOT.sub, lambda slot: values.get(slot[1], slot[0]))
        text = put_in(put_in(text))  # since a variable may name others
        for each in _TEMPLATE.findall(text):
            self._left(node, f"{each} has no value here")
        return text

    def _assert(self, suite: Keys, assertion: Node, values: Mapping[str, str]) -> None:
        """Add what an assertion of promptfoo says, with its variables put in; of a set, all must be met."""
        value, kind, fill = assertion.get("value"), assertion.get("type").text, partial(self._filled, assertion, values)
        stated = (it if it.text else it.get("name", "pattern", "goal") for it in value)
        texts = [] if kind.removeprefix("not-") in _PROGRAMS else [fill(self._text(it)) for it in stated]
        is_one = value.text and kind.endswith(("-any", "-all"))
        for each in assertion.get("assert") if kind == "assert-set" else ():
            self._assert(suite, each, values)
        self._criterion(suite, assertion, [it.strip() for it in texts[0].split(",")] if is_one else texts, fill)

    def _criterion(self, suite: Keys, node: Node, texts: list[str], fill: Callable[[str], str] = str) -> None:
        """Add what a grader or an assertion says to a suite; what has no equivalent is left to do."""
        kind, path, limit = node.get("type").text, node.get("path", "glob", "pattern").text, node.get("threshold").value
        # What an assertion says of calls stands in its value, what a grader says beside its type.
        bare, value = kind.removeprefix("not-"), node if node.get("value").value is None else node.get("value")
        key, found, search, is_said = "checks", list[Any](), _SEARCH.fullmatch(bare), bool(texts) and all(texts)
        match bare:
            case "tool_used" | "skill-used" | "trajectory:tool-used" | "trajectory:tool-args-match" if any(value):
                rules = ((fill(_rule(each)), each) for each in value)
                found = [_counted(f"Skill({it})" if bare == "skill-used" else it, each) for it, each in rules]
            case "tool_order":
                found = [{"before": {"first": _rule(node.get("before")), "then": _rule(node.get("after"))}}]
            case "trajectory:tool-sequence":
                steps = value.get("steps") if isinstance(value.value, dict) else value
                found = [{"order": [fill(_rule(step)) for step in steps]}]
            case "trajectory:step-count" if form := {"tool": "{}", "command": "Bash({})"}.get(value.get("type").text):
                found = [_counted(form.format(fill(_rule(value))).replace("()", ""), value, least=0)]
            case "file_exists":
                # A pattern stays one in the shell line.
                quoted = re.sub(r"[^\w@%+=:,./*?\[\]-]", r"\\\g<0>", path)
                gone = {"command": f"test ! -e {quoted}", "name": f"No {path}."}
                found = [gone if node.get("exists").value is False else {"changed": [path]}]
            case "javascript" | "python" if value.text.startswith("file://"):
                if self._is_own(value, script := self._folder / _AROUND.sub("", value.text)):
                    found = [{"command": f"{_PROGRAMS[bare]} {shlex.quote(self._name(script))}"}]
                self._left(node, f"{value.text} gets no `output`: let it read files, and end with 0 or 1")
            case _ if kind in _LIMITS and isinstance(limit, int | float):
                (name, unit), given = _LIMITS[kind], suite.get("efficiencyTargets", {})
                key, found = f"efficiencyTargets.{name}", [min(limit / unit, given.get(name, limit / unit))]
            case _ if re.fullmatch(_RUBRICS, kind) and is_said:
                is_last = node.get("focus").text == "last_message" or not re.match("llm$|agent|trajectory", kind)
                key, start = _CRITERIA[is_last], next((it for word, it in _MEANT.items() if word in kind), "")
                found = [start + " ".join(text.split()) for text in texts]
            # That not all is said, no check can say.
            case _ if search and is_said and (bare == kind or search[2] != "all"):
                found = _searched(node, texts, *search.groups(""), is_absent=bare != kind)
            case _ if kind != "assert-set" or fill is str:
                self._left(node, f"{kind or 'a grader without type'} has no equivalent")
                return
        for each in found:
            # What cannot be turned around becomes a key that no check has.
            turned = {f"not{word.title()}": it for word, it in each.items()} if bare != kind else each
            self._keep(suite, node, key, turned)
        own = next(words for kinds, words in _KNOWN.items() if re.fullmatch(kinds, bare))
        for part in (*value, node):
            known = f"name description {own}" if part != node or value == node else ""
            self._unknown(part, f"type value assert metric {known}{' threshold' * (kind in _LIMITS)}")


def _searched(node: Node, texts: list[str], base: str, how: str, *, is_absent: bool) -> list[dict[str, Any]]:
    """The checks that texts are in an answer or a file; what no check can say is a key that none has."""
    match, flags, target = node.get("match").text or "contains", node.get("flags").text, node.get("target")
    path, place = target.get("path", "file").text, target.text or target.get("source").text or "last_message"
    patterns = [_SEARCHES[base].format(it if base == "regex" else re.escape(it)) for it in texts]
    patterns = ["|".join(patterns)] if how == "any" and not is_absent else patterns
    is_plain = base == "contains" and len(texts) == len(patterns) and not any(map(expression_of, texts))
    said = texts if is_plain else [_expression(it, flags) for it in patterns]
    word = {"contains": "says", "not_contains": "notSays"}.get(match, "")
    if not word or not path:
        return [{word if word and place == "last_message" else f"{match} in {place}": each} for each in said]
    no, line = word != "says", shlex.join(["grep", f"-Pzq{'i' if 'i' in flags else ''}", "--", *patterns, path])
    return [{"command": f"{'! ' * no}{line}", "name": f"{path} has {'no ' * no}{said[0]}"}]


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
    for place, below, names in os.walk(path):
        below[:] = [name for name in below if name == ".claude" or not (name in SKIPPED or name.startswith("."))]
        found += (Path(place, name) for name in names if _CASES.fullmatch(name))
    # A prompt that belongs to another file is no case of its own, but one with graders is.
    owners = {it.parent for it in found if it.name.startswith(("promptfoo", "case."))}
    graded = {it for it in found if (it.parent / "graders").is_dir() and it.with_name("case.yaml") not in found}
    cases = [it for it in found if it.name != "prompt.md" or it in graded or not owners & {*it.parents}]
    if not cases:
        problem = "holds nothing that can be imported" if path.exists() else "does not exist"
        raise ConfigError(f"{path} {problem}.", code="IMPORT_FAILED")
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
