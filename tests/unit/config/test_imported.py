"""`zelda import`: shapes of cases that teams have for other tools."""

from pathlib import Path

import pytest

from zelda_ci.config.document import parse_document
from zelda_ci.config.imported import Importer
from zelda_ci.config.schema import SuiteConfig
from zelda_ci.errors import ConfigError

SKILL_EVALS = """{
\t"skill_name": "pdf",
\t"evals": [
\t\t{"id": 1, "prompt": "Rotate a.pdf.", "expected_output": "A rotated file.", "files": ["evals/files/a.pdf"],
\t\t "expectations": ["Every page is rotated.", "The skill used rotate.py"], "timeout": 5},
\t\t{"id": "two", "prompt": "Merge them: a, b.", "assertions": [{"text": "There is one file."}]}
\t]
}
"""
TRIGGERS = """[{"query": "Fill in this form", "should_trigger": true}, {"query": "2+2?", "should_trigger": false}]"""
PROMPTFOO = """
description: Reviews
providers: [{id: 'anthropic:claude-agent-sdk'}]
prompts: ['Review {{file}}: {{how}}', file://prompt.txt]
defaultTest:
  vars: {how: strictly}
  assert:
    - {type: cost, threshold: 0.5}
tests:
  - description: finds the bug
    vars: {file: [a.ts, b.ts]}
    assert:
      - {type: skill-used, value: review-standards}
      - {type: not-skill-used, value: release}
      - type: trajectory:tool-used
        value: {name: Read, min: 2}
      - {type: trajectory:tool-used, value: [Grep, Glob]}
      - {type: trajectory:tool-sequence, value: {steps: [Read, Edit], mode: exact}}
      - {type: trajectory:tool-args-match, value: {name: Bash, args: {command: '*pytest*'}}}
      - {type: trajectory:tool-args-match, value: {name: Bash, args: {command: x, timeout: 5}}}
      - {type: trajectory:step-count, value: {type: command, pattern: 'npm test*', max: 3}}
      - {type: icontains-any, value: [SQL, injection (blind)]}
      - {type: not-contains, value: LGTM}
      - {type: regex, value: 'line \\d+'}
      - {type: regex, value: '(?<!no )bug'}
      - {type: llm-rubric, value: 'It names {{file}} and the
          line.'}
      - {type: javascript, value: file://check.js}
      - {type: javascript, value: output.length < 5}
      - {type: latency, threshold: 120000}
      - {type: is-json}
      - {type: llm-rubric, value: Sure., weight: 2}
"""
CASE = """schema_version: "1.0"
name: releases
execution: {prompt: Release it., max_turns: 12}
graders:
  - {type: regex, pattern: 'v1\\.\\d', flags: i}
  - {type: regex, pattern: TODO, match: not_contains, target: {source: file, path: CHANGELOG.md}}
  - {type: regex, pattern: x, target: trace}
  - {type: tool_used, tool: Skill, input_match: '"skill"\\s*:\\s*"(?:[\\w-]+:)?release"'}
  - {type: tool_used, tool: Bash, input_match: 'git push', min: 0, max: 0}
  - {type: tool_used, tool: Bash, input_match: 'a(?!b)'}
  - {type: tool_order, before: {tool: Bash, input_match: 'npm test'}, after: {tool: Bash, input_match: git commit}}
  - {type: tool_order, before: Read, after: Write}
  - {type: file_exists, path: 'dist/*.tgz'}
  - {type: baseline, reference: x}
"""


def imported(folder: Path, files: dict[str, str], start: str = "") -> tuple[dict[str, dict[str, object]], list[str]]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    importer = Importer(folder)
    importer.read(folder / start)
    suites = {}
    for name, text in importer.suites.items():
        layer = parse_document(text, f"test-{name}.yaml", SuiteConfig)
        assert [str(problem) for problem in layer.problems] == []
        assert " \n" not in text
        suites[name] = {key: value for key, value in layer.values().items() if key != "name"}
    return suites, [*importer.to_do]


def test_evals_of_a_skill_become_suites(tmp_path: Path) -> None:
    suites, to_do = imported(tmp_path, {"skills/pdf/evals/evals.json": SKILL_EVALS})
    assert suites == {
        "pdf-1": {
            "prompt": "Rotate a.pdf.",
            "acceptanceCriteria": (
                "Every page is rotated.",
                "The skill used rotate.py",
                "The result is as described: A rotated file.",
            ),
            "checks": ({"called": "Skill(pdf)"},),
        },
        "pdf-two": {
            "prompt": "Merge them: a, b.",
            "acceptanceCriteria": ("There is one file.",),
            "checks": ({"called": "Skill(pdf)"},),
        },
    }
    assert [line.removeprefix("skills/pdf/evals/evals.json:") for line in to_do] == [
        "4: pdf-1: have evals/files/a.pdf in the repository, named in the prompt",
        "5: pdf-1: timeout has no equivalent",
    ]


def test_queries_that_should_trigger_become_checks_of_the_skill_whose_folder_they_lie_in(tmp_path: Path) -> None:
    suites, to_do = imported(tmp_path, {"skills/forms/evals/evals.json": TRIGGERS})
    checks = [({word: "Skill(forms)"},) for word in ("called", "notCalled")]
    assert [suite["checks"] for suite in suites.values()] == checks
    assert to_do == []


def test_a_promptfoo_configuration_becomes_a_suite_for_each_prompt_and_test(tmp_path: Path) -> None:
    files = {"promptfooconfig.yaml": PROMPTFOO, "prompt.txt": "Look at {{file}}.", "check.js": ""}
    suites, to_do = imported(tmp_path, files, "promptfooconfig.yaml")
    assert list(suites) == [f"finds-the-bug-{end}" for end in ("p1", "p1-2", "p2", "p2-2")]
    first, second, *_ = suites.values()
    assert (first["prompt"], second["prompt"]) == ("Review a.ts: strictly", "Review b.ts: strictly")
    assert second["answerCriteria"] == ("It names b.ts and the line.", "Sure.")
    assert first["efficiencyTargets"] == {"costUsd": 0.5, "durationSeconds": 120.0}
    assert first["answerCriteria"] == ("It names a.ts and the line.", "Sure.")
    assert first["checks"] == (
        {"called": "Skill(review-standards)"},
        {"notCalled": "Skill(release)"},
        {"called": "Read", "times": "2.."},
        {"called": "Grep"},
        {"called": "Glob"},
        {"order": ("Read", "Edit")},
        {"called": "Bash(*pytest*)"},
        {"called": "Bash(npm test*)", "times": "0..3"},
        {"says": "/(?i)SQL|(?i)injection\\ \\(blind\\)/"},
        {"notSays": "LGTM"},
        {"says": "/line \\d+/"},
        {"command": "node check.js"},
    )
    assert [line.removeprefix("promptfooconfig.yaml:").replace("finds the bug: ", "") for line in to_do] == [
        "3: providers has no equivalent",
        "18: mode has no equivalent",
        '20: no check can say {"called": "Bash with {\\"command\\": \\"x\\", \\"timeout\\": 5}"}',
        '25: no check can say {"says": "/(?<!no )bug/"}',
        "28: file://check.js gets no `output`: let it read files, and end with 0 or 1",
        "29: javascript has no equivalent",
        "31: is-json has no equivalent",
        "32: weight has no equivalent",
    ]


def test_cases_of_a_plugin_become_suites_with_their_graders(tmp_path: Path) -> None:
    files = {
        "evals/release/case.yaml": CASE,
        "evals/release/scaffold.sh": "true",
        "evals/asks/prompt.md": "---\ntags: [x]\nmax_turns: 3\nappend_system_prompt: Be brief.\n---\n\nWhat is\nit?\n",
        "evals/asks/graders/skill.md": "---\ntype: tool_used\ntool: Skill\nmin: 1\narm: with-only\n---\nIt fires.\n",
        "evals/asks/graders/asks.md": "---\ntype: llm\nfocus: last_message\n---\nIt asks\nfirst.\n",
        "evals/asks/graders/none.md": "---\ntype: regex\n---\nsorry\n",
        "evals/asks/graders/gone.md": "---\ntype: file_exists\npath: proposal.md\nexists: false\n---\n",
    }
    suites, to_do = imported(tmp_path, files)
    assert suites["releases"] == {
        "prompt": "Release it.",
        "execution": {"maxTurns": 12},
        "setupCommand": "bash evals/release/scaffold.sh",
        "checks": (
            {"says": "/v1\\.\\d/i"},
            {
                "command": "! grep -Pzq -- TODO CHANGELOG.md",
                "name": "CHANGELOG.md has no /TODO/",
            },
            {"called": "Skill(release)"},
            {"notCalled": "Bash(*git push*)"},
            {"before": {"first": "Bash(*npm test*)", "then": "Bash(*git commit*)"}},
            {"before": {"first": "Read", "then": "Write"}},
            {"changed": ("dist/*.tgz",)},
        ),
    }
    assert suites["asks"]["prompt"] == "What is\nit?"
    assert suites["asks"]["answerCriteria"] == ("It asks first.",)
    assert suites["asks"]["checks"] == (
        {"command": "test ! -e proposal.md", "name": "No proposal.md."},
        {"says": "/sorry/"},
        {"called": "Skill"},
    )
    assert to_do == [
        "evals/asks/prompt.md:4: asks: append_system_prompt has no equivalent",
        "evals/asks/graders/skill.md:5: asks: arm has no equivalent",
        'evals/release/case.yaml:7: releases: no check can say {"contains in trace": "/x/"}',
        'evals/release/case.yaml:10: releases: no check can say {"called": "Bash with a(?!b)"}',
        "evals/release/case.yaml:14: releases: baseline has no equivalent",
    ]


def test_a_folder_without_anything_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds nothing that can be imported"):
        imported(tmp_path, {"a.txt": "x"})
    with pytest.raises(ConfigError, match="does not exist"):
        imported(tmp_path, {}, "nowhere")
    nothing = {"a/evals.json": "{nonsense", "b/evals.json": '{"evals": []}', "promptfooconfig.yaml": "# None yet.\n"}
    with pytest.raises(ConfigError, match="Nothing was imported") as raised:
        imported(tmp_path, nothing | {"promptfooconfig.mjs": "export default {}\n"})
    told = [line.split(": ", 1) for line in str(raised.value.hint).splitlines()]
    names = ("a/evals.json", "b/evals.json", "promptfooconfig.mjs", "promptfooconfig.yaml")
    assert [place for place, _ in told] == [f"{name}:1" for name in names]
    assert [what.split(",")[0] for _, what in told[1:]] == ["holds no case"] * 3


def test_skills_of_a_project_lie_in_a_hidden_folder_and_no_others_are_read(tmp_path: Path) -> None:
    evals = ".claude/skills/pdf/evals/evals.json"
    suites, _ = imported(tmp_path, {evals: SKILL_EVALS, ".git/evals.json": SKILL_EVALS, "dist/evals.json": SKILL_EVALS})
    assert [*suites] == ["pdf-1", "pdf-two"]


def test_a_file_that_cannot_be_read_is_left_to_do_beside_others(tmp_path: Path) -> None:
    config = (
        "prompts: ['Mend {{f}}.']\ntests: [{vars: {f: file://f.yaml}, assert: [{type: contains, value: x}]},"
        " {vars: {f: file://g.txt}}]\n"
    )
    (tmp_path / "g.txt").write_bytes(b"\xff")
    files = {"f.yaml": "a: [\n", "promptfooconfig.yaml": config, "a/case.yaml": "graders: [\n"}
    # One with graders is a case also below a configuration of promptfoo.
    files |= {"b/prompt.md": "Do.", "b/graders/g.md": "---\ntype: llm\n---\nDone.\n"}
    suites, to_do = imported(tmp_path, files)
    assert [*suites] == ["b", "promptfoo-1", "promptfoo-2"]
    assert {line.split(":")[0] for line in to_do} == {"a/case.yaml", "f.yaml", "g.txt", "promptfooconfig.yaml"}


ROUTES = """- vars: {prompt: 'It is still broken.'}
  description: reroutes to debug
  assert: [{type: skill-used, value: 'meridian:debug'}]
- vars: {prompt: 'Hello!'}
  assert: [{type: not-skill-used, value: 'meridian:debug'}, {type: contains-all, value: [Hi, there]}]
"""
ODD_CASE = """{tags: [a], prompt: x, runs: 2, weight: 2, max_turns: 0, allowed_tools: [Read], graders: [
  {type: assert-set}, {type: regex, pattern: ^a, flags: s}, {type: file_exists, path: a b, exists: false},
  {type: tool_used, max: 1}, {type: tool_used, tool: Bash, input: {command: ls}},
  {type: tool_used, tool: Agent, input_match: '"prompt": "x"'}]}
"""
SETS = """prompts: [a.txt]
tests: [assert: [
  {type: assert-set, threshold: 0.5, assert: [{type: contains-any, value: 'a, b'}, {type: not-cost, threshold: 1}]},
  {type: not-javascript, value: x}, {type: contains}, {type: llm-rubric, value: file://r.md},
  {type: contains, value: c, weight: 0, path: x}, {type: not-assert-set, assert: [{type: contains, value: d}]},
  {type: trajectory:tool-used, value: Read, min: 2}, {type: not-trajectory:tool-used, value: {name: Read, min: 2}},
  {type: contains, value: sk-ant-fake-0123456789abcdefghijklmnop}]]
"""
FILES = """prompts: [{raw: 'Do {{x}}.', label: x, config: y}, file:///etc/hosts, ../../up.md, 'file://', file://p.py:f]
tests: [file://none.yaml, t.csv, 'https://x.test/t', {vars: file://v.yaml, assert: [
  {type: python, value: 'file://../b c.py:f'}]}]
scenarios: []
"""
SHAPES: dict[str, tuple[dict[str, str], dict[str, object], list[str]]] = {
    "evaluations that name their skills": (
        {"evals.json": '[{"skills": ["forms"], "query": "Fill it in.", "expected_behavior": ["It asks."]}]'},
        {"prompt": "Fill it in.", "acceptanceCriteria": ("It asks.",)},
        [],
    ),
    "prompts that are all variables, tests in a file": (
        {"promptfooconfig.yaml": "prompts: ['{{prompt}}']\ntests: file://routes.yaml\n", "routes.yaml": ROUTES},
        {"prompt": "It is still broken.", "checks": ({"called": "Skill(meridian:debug)"},)},
        [],
    ),
    "assertions of all tests, and none of their own": (
        {
            "promptfooconfig.yaml": "prompts: ['Do {{path}}.']\ndefaultTest:\n  assert: [{type: equals, value: Done}]\n"
            "tests: [{vars: {path: a.py}}]\n"
        },
        {"prompt": "Do a.py.", "checks": ({"says": "/\\A\\s*Done\\s*\\z/"},)},
        [],
    ),
    "a configuration as JSON": (
        {
            "promptfooconfig.json": '{"prompts": ["Go."], "tests": [{"assert": [{"type": "g-eval", "value": ["A."]},'
            ' {"type": "starts-with", "value": "OK"}, {"type": "similar", "value": "x"}]}]}'
        },
        {"prompt": "Go.", "answerCriteria": ("A.",), "checks": ({"says": "/\\AOK/"},)},
        ["similar has no equivalent"],
    ),
    "a case with its grader inside and a fixture": (
        {
            "evals/pin/case.yaml": "name: pin\nprompt: Make it.\ngraders: {type: llm, criteria: It is.}\nmocks: x\n",
            "evals/pin/fixture.sh": "true",
        },
        {"prompt": "Make it.", "acceptanceCriteria": ("It is.",), "setupCommand": "bash evals/pin/fixture.sh"},
        ["mocks has no equivalent"],
    ),
    "a case of one prompt that must not call": (
        {
            "evals/review/prompt.md": "Review the diff.\n",
            "evals/review/graders/no.md": "---\ntype: tool_used\ntool: Skill\n"
            "input_match: '\"skill\":\\s*\"(?:[\\w-]+:)?improve\"'\nmax: 0\n---\n",
        },
        {"prompt": "Review the diff.", "checks": ({"notCalled": "Skill(improve)"},)},
        [],
    ),
    "JSON as Python writes it, and stated in several ways": (
        {
            "skills/pdf/evals.json": '{"evals": [{"prompt": "\\ud83d\\ude00 a\\/b", "assertions": ["A.", {"n": 1}],'
            ' "expectations": [{"assertion": "B."}], "expected_output": ["C"], "should_trigger": "false"}]}',
            "skills/pdf/SKILL.md": "",
        },
        {
            "prompt": "\U0001f600 a/b",
            "acceptanceCriteria": ("B.", "A.", "The result is as described: C"),
            "checks": ({"notCalled": "Skill(pdf)"},),
        },
        ["no text says what assertions means here"],
    ),
    "settings of a case, and graders of other kinds": (
        {"e v/case.yaml": ODD_CASE, "e v/graders/check.py": "", "e v/fixture.sh": "", "e v/scaffold.sh": ""},
        {
            "tags": ("a",),
            "trials": 2,
            "execution": {"allowedTools": ("Read",)},
            "setupCommand": "bash 'e v/fixture.sh' && bash 'e v/scaffold.sh'",
            "checks": (
                {"says": "/(?s-m)^a/"}, {"command": "test ! -e a\\ b", "name": "No a b."}, {"called": "Bash(ls)"}
            ),
        },
        [
            "maxTurns cannot be 0", "weight has no", "assert-set has no", '{"called": "", "times": 1}', "Agent with",
            "a grader without type",
        ],
    ),
    "a case with two prompts": (
        {"case.yaml": "execution: {prompt: Not this.}\ngraders: [{type: llm, rubric: It is.}]\n", "prompt.md": "This."},
        {"prompt": "This.", "acceptanceCriteria": ("It is.",)},
        ["prompt has no equivalent"],
    ),
    "a case with tags and options that no suite can have": (
        {"case.yaml": "tags: [a]\nprompt: x\nexecution:\n  runs: 0\n  timeout_seconds: soon\n  max_turns: 9\n"},
        {"tags": ("a",), "execution": {"maxTurns": 9}},
        ["case.yaml:4: ", "case.yaml:5: ", "has neither a criterion nor a check"],
    ),
    "texts of files with lines of dashes, and assertions of nothing": (
        {
            "promptfooconfig.yaml": "tests: [{vars: {prompt: file://a.txt}, assert: [{type: llm-rubric, value:"
            " file://a.txt}, {type: skill-used, value: []}, {type: trajectory:tool-sequence}]}]\n",
            "a.txt": "One.\n---\nTwo.\n",
        },
        {"prompt": "One.\n---\nTwo.", "answerCriteria": ("One. --- Two.",)},
        ["skill-used has no", '{"order": []}'],
    ),
    "groups that others take up, keys twice, and values that only some readers take for a word": (
        {
            "promptfooconfig.yaml": "x: &x {vars: {d: 2026-01-02, y: yes}, assert: [{type: contains, value: /a+/}]}\n"
            "prompts: ['On {{ d }} {{y}} {{u.v}}']\ntests: [{<<: *x, description: a, description: b}]\n"
        },
        {"prompt": "On 2026-01-02 yes {{u.v}}", "checks": ({"says": "//a\\+//"},)},
        ["the first time at 3", "x has no equivalent", "{{u.v}} has no value here"],
    ),
    "sets of assertions, and others turned around": (
        {"promptfooconfig.yaml": SETS, "a.txt": "One.\n---\nTwo.\n", "r.md": "It is."},
        {
            "prompt": "One.", "answerCriteria": ("It is.",),
            "checks": ({"says": "/a|b/"}, {"says": "c"}, {"called": "Read"}),
        },
        [
            "not-cost has no", "threshold has no", "not-javascript has no", "contains has no", "weight has no",
            "path has no", "not-assert-set has no", "min has no",
            '{"notCalled": "Read", "notTimes": "2.."}', '{"says": "***"}',
        ],
    ),
    "files that are elsewhere, programs and tables": (
        {
            "a/promptfooconfig.yaml": FILES, "a/v.yaml": "x: it", "a/t.csv": "x\n", "a/p.py": "", "b c.py": "",
            "../up.md": "Secret.", "promptfooconfig.mjs": "",
        },
        {"prompt": "Do it.", "checks": ({"command": "python3 'b c.py'"},)},
        [
            "scenarios has no", "prompts: config has no", "file:///etc/hosts is no file", "up.md is no",
            "file:// is no file", "p.py:f is a program", "none.yaml is no file", "t.csv is a program or a table",
            "https://x.test/t is no file", "gets no `output`", "promptfooconfig.mjs:1: holds no case",
        ],
    ),
    "a single evaluation, and assertions with more than a text": (
        {
            "e/evals.json": '{"skills": ["pdf-processing"], "query": "Extract it.", "expected_behavior":'
            ' ["It reads it.", {"text": "It saves it.", "check": "test -f out.txt"}]}',
        },
        {
            "prompt": "Extract it.", "acceptanceCriteria": ("It reads it.", "It saves it."),
            "checks": ({"called": "Skill(pdf-processing)"},),
        },
        ["e-1: check has no equivalent"],
    ),
    "assertions by reference, variables in variables, and limits given twice": (
        {
            "promptfooconfig.yaml": """assertionTemplates: {ok: {type: contains, value: 'ok {{a}}'},
  loop: {type: assert-set, assert: [{$ref: '#/assertionTemplates/loop'}]}}
prompts: ['Do {{a}}.{# once #}']
defaultTest: {assert: [{type: cost, threshold: 0.5}]}
tests: [{vars: {a: 'all of {{b}}', b: it}, assert: [{$ref: '#/assertionTemplates/ok'}, {$ref: '#/none'},
  {$ref: '#/assertionTemplates/loop'},
  {type: cost, threshold: 0.7}, {type: trajectory:step-count, value: {type: command, max: 4}}]}]
"""
        },
        {
            "prompt": "Do all of it.{# once #}", "efficiencyTargets": {"costUsd": 0.5},
            "checks": ({"says": "ok all of it"}, {"called": "Bash", "times": "0..4"}),
        },
        ["{# once #} has no value", "5: promptfoo-1: a grader", "2: promptfoo-1: a grader"],
    ),
    "rubrics of what a session did, and of its words": (
        {
            "promptfooconfig.yaml": "prompts: [Go.]\ntests: [assert: [{type: trajectory:goal-success, value: Fix it},"
            " {type: agent-rubric, value: It has a test.}, {type: llm-rubric, value: It is polite.}]]\n"
        },
        {
            "acceptanceCriteria": ("The goal is reached: Fix it", "It has a test."),
            "answerCriteria": ("It is polite.",),
        },
        [],
    ),
    "graders with keys and texts that are another's": (
        {
            "evals/x/case.yaml": "prompt: Do it.\n",
            "evals/x/graders/a.md": "---\ntype: regex\npattern: Done\nmin: 2\n---\n",
            "evals/x/graders/b.md": "---\ntype: llm\nrubric: It is done.\nflags: i\n---\nAnd well.\n",
        },
        {"checks": ({"says": "/Done/"},), "acceptanceCriteria": ("It is done.",)},
        ["a.md:4: x: min has no", "b.md:2: x: its head says what is wanted: the text below", "b.md:4: x: flags has no"],
    ),
    "prompts that programs and services make": (
        {"promptfooconfig.yaml": "prompts: ['exec:./gen.sh', 'langfuse://review:3', 'See https://x.test/a.md']\n"},
        {"prompt": "See https://x.test/a.md"},
        ["exec:./gen.sh is no file", "langfuse://review:3 is no file", "has neither"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_other_shapes_of_public_suites_are_known(shape: str, tmp_path: Path) -> None:
    files, wanted, left = SHAPES[shape]
    suites, to_do = imported(tmp_path, files)
    found = next(iter(suites.values()))
    assert {key: found[key] for key in wanted} == wanted
    assert len(to_do) == len(left), to_do
    assert all(part in line for part, line in zip(left, to_do, strict=True)), to_do
