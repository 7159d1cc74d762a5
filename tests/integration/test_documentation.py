"""The pages: what is generated is current, and every command and sample in them is tried."""

import importlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.support.command import environment, run
from tests.support.projects import repository
from tests.support.schemas import checker
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.cli.commands import zelda
from zelda_ci.domain.suite import JudgeSettings
from zelda_ci.survey.folder import kinds

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`(zelda [a-z][^`\n]*)`")
# What stands for a value of one's own.
PLACEHOLDERS = {"COMMAND": "run"}
# Pages whose commands are run for real, in the order in which they stand, each page in a project of its own.
RUN_FOR_REAL = {"README.md": 3, "docs/your-first-suite.md": 6}
# Options of other programs, in sentences.
FOREIGN = re.compile("--(filter|find-links|frozen-lockfile|gtest_output|no-sandbox|security-opt|token|user)")
# YAML that is neither a suite nor a configuration: parts of workflows.
OTHER_YAML = {"README.md": 2, "docs/action.md": 1, "docs/shards.md": 1, "docs/your-first-suite.md": 1}


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path, *languages: str) -> list[str]:
    return [body for _, language, body in BLOCK.findall(page.read_text("utf-8")) if language in languages]


def commands(script: str) -> Iterator[list[str]]:
    """Every call of `zelda` in shell lines, without pipes and redirections."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.removeprefix("$ ").replace(r"\|", "|"), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        call: list[str] = []
        for word in [*lexer, ";"]:
            if re.fullmatch(r"[|&;<>()]+", word):
                if call[:1] == ["zelda"] and word != "()":  # a function of that name is no call
                    yield call[1:]
                call = []
            else:
                call.append(word)


def said(page: Path) -> list[list[str]]:
    """Commands in samples and in sentences; `…` stands for anything, and so says nothing."""
    lines = [*blocks(page, "sh", "bash"), *INLINE.findall(page.read_text("utf-8"))]
    lines += [line for body in blocks(page, "") for line in body.splitlines() if line.startswith("$ zelda ")]
    found = [call for line in lines if "…" not in line and "..." not in line for call in commands(line)]
    return [[PLACEHOLDERS.get(word, word) for word in call if word != "--verbose"] for call in found]


def understood(arguments: list[str]) -> str:
    """Why the real command line does not take them; empty where it does."""
    try:
        main = zelda.make_context("zelda", list(arguments), resilient_parsing=False)
        name, command, rest = zelda.resolve_command(main, [*main._protected_args, *main.args])
        assert command
        known = {option for each in command.params for option in [*each.opts, *each.secondary_opts]} | {"--help", "-h"}
        strange = [word for word in rest if word.startswith("-") and word.partition("=")[0] not in known]
        if strange or len(rest) < 1 or any(word.isupper() for word in rest):
            return ", ".join(strange)
        command.make_context(name, [word for word in rest if word not in {"--help", "-h"}], parent=main)
    except click.MissingParameter:
        return ""
    except click.exceptions.Exit:
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_one_that_the_command_line_takes(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packages" / "api").mkdir(parents=True)  # a package of a monorepo, in examples
    for downloaded in ("artifact", "artifacts", "parts"):
        (tmp_path / downloaded).mkdir()
    monkeypatch.chdir(tmp_path)
    wrong = {" ".join(call): why for call in said(page) if (why := understood(call))}
    assert wrong == {}


def test_a_command_with_a_wrong_option_or_name_is_found() -> None:
    assert understood(["run", "--last-faild"])
    assert understood(["runn"])
    assert understood(["run", "--jobs", "many"])
    assert list(commands("zelda show latest --patch | git apply # zelda x\n")) == [["show", "latest", "--patch"]]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_sample_in_yaml_is_a_suite_or_a_configuration_and_json_can_be_read(page: Path) -> None:
    suite, config = checker("zelda.suite.schema.json"), checker("zelda.config.schema.json")
    for body in blocks(page, "json"):
        json.loads(body)
    others = [
        body
        for body in blocks(page, "yaml")
        if not (_is_valid(suite, body) or _is_valid(suite, f"prompt: x\n{body}") or _is_valid(config, body))
    ]
    assert len(others) == OTHER_YAML.get(name_of(page), 0), others


def _is_valid(checker: Any, body: str) -> bool:
    try:
        given = re.findall(r"^\w+(?=:)", body, re.MULTILINE)
        return len({*given}) == len(given) and bool(checker.is_valid(yaml.safe_load(body)))
    except yaml.YAMLError:
        return False


def test_options_and_inputs_that_pages_name_exist() -> None:
    context = click.Context(zelda)
    commands = [zelda, *filter(None, (zelda.get_command(context, name) for name in zelda.list_commands(context)))]
    options = {option for command in commands for it in command.params for option in it.opts} | {"--help"}
    inputs = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))["inputs"].keys()
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text("utf-8"))
        named = {*re.findall(r"`(--[a-z][\w-]+)", prose)} - options
        assert [option for option in named if not FOREIGN.fullmatch(option)] == [], page
        given = {*re.findall(r"\binput `([a-z-]+)`", prose)}
        for step in (step for body in blocks(page, "yaml") for step in _steps(yaml.safe_load(body))):
            given |= step.get("with", {}).keys()
        assert given <= inputs, page


def _steps(sample: Any) -> Iterator[dict[str, Any]]:
    """The uses of the action in a part of a workflow, however deep."""
    if isinstance(sample, dict) and re.match(r"zelda-ci/zelda-ci(/runner)?@", str(sample.get("uses"))):
        yield sample
    inner = sample.values() if isinstance(sample, dict) else sample if isinstance(sample, list) else ()
    for each in inner:
        yield from _steps(each)


# What projects have that are in the tables of the pages for Python and Node.
MARKS = {
    "pip": {"requirements.txt": "pytest"},
    "uv": {"uv.lock": "", "pyproject.toml": "[tool.pytest]"},
    "Poetry": {"poetry.lock": "", "pyproject.toml": "[tool.pytest]"},
    "only the standard library": {"tests/test_a.py": "import unittest"},
    "npm": {"package-lock.json": ""},
    "pnpm": {"pnpm-lock.yaml": ""},
    "Yarn": {"yarn.lock": "", ".yarnrc.yml": ""},
    "Bun": {"bun.lock": ""},
}


def test_the_commands_of_tables_are_those_that_init_proposes() -> None:
    shown, proposed = {}, {}
    for page, more in (("python", {}), ("node", {"package.json": "{}"})):
        text = (REPOSITORY / f"docs/{page}.md").read_text("utf-8")
        for name, *commands in re.findall(
            r"^\| (?!You use)([\w ]+) \| (?:`(.+?)`|none)[^|]*\|(?: `(.+?)` \|)?$", text, re.MULTILINE
        ):
            files = MARKS[name] | more
            kind, *_ = kinds(files, files.__getitem__)
            shown[name], proposed[name] = commands, [kind.setup, kind.test]
    assert shown == proposed
    assert shown.keys() == MARKS.keys()


def test_the_defaults_that_the_page_of_judges_shows_are_those_that_hold() -> None:
    shown = yaml.safe_load(blocks(REPOSITORY / "docs/judges.md", "yaml")[0])["judge"]
    assert shown == {**JudgeSettings().model_dump(mode="json", by_alias=True)}


def test_commands_are_run_only_where_that_is_said() -> None:
    found = {
        name_of(page): sum(1 for body in blocks(page, "bash") for _ in commands(body))
        for page in PAGES
        if blocks(page, "bash")
    }
    assert found == RUN_FOR_REAL


@pytest.mark.parametrize("name", RUN_FOR_REAL)
def test_the_commands_for_newcomers_do_what_they_are_shown_for(name: str, tmp_path: Path) -> None:
    """With a model that only says a word: there is no verdict, but every command does its work."""
    page = REPOSITORY / name
    project = repository(tmp_path, {"README.md": "# Shop\n", "CLAUDE.md": "Write tests for every change.\n"})
    for sample in blocks(page, "yaml"):
        if named := re.match(r"# (zelda/test-\S+\.yaml)\n", sample):
            project.write({named[1]: sample})
    with ScriptedApi(lambda _: text("Done.")) as api:
        for call in (call for body in blocks(page, "bash") for call in commands(body)):
            if "--against" in call:
                project.write({"CLAUDE.md": "Write a test for every change.\n"})
                # As it is shown, it runs all of them, and often.
                suite = min(project.path.glob("zelda/test-*.yaml")).stem.removeprefix("test-")
                call = [*call, suite, "--trials", "1"]  # noqa: PLW2901
            done = run(call, project.path, environment(project, api.url))
            assert "Usage:" not in done.stderr, call
            # What the model's one word leaves without a verdict cannot be compared.
            assert "error:" not in done.stderr or "could not be evaluated" in done.stderr, (call, done.stderr)
            assert done.stdout, call
    assert list(project.path.glob("zelda/test-*.yaml"))
    runs = sorted(path.parent for path in project.path.glob(".zelda/runs/*/result.json"))
    assert runs
    # What docs/results.md and docs/history.md say of them.
    assert {(folder / "changes.patch").read_bytes() for folder in runs} == {b""}
    listed = run(["list"], project.path, environment(project)).stdout
    (recipe,) = re.findall(r"`zelda list \| (awk [^`]+)`", (REPOSITORY / "docs/history.md").read_text("utf-8"))
    words = shlex.split(recipe.replace("FAIL", "INCOMPLETE"))
    told = subprocess.run(words, input=listed, capture_output=True, text=True, check=True).stdout
    assert sorted(told.split()) == [folder.name for folder in runs]


def test_the_pages_of_commands_and_errors_are_current_and_one_that_is_not_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the script writes anew is seen where a setting is added."""
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    reference: Any = importlib.import_module("reference")
    for page in ("cli_page", "troubleshooting_page", "help_pages"):
        monkeypatch.setattr(reference, page, cache(getattr(reference, page)))
    assert (reference.main(["--check"]), capsys.readouterr().out) == (0, ""), "make reference"
    for folder in ("docs", "zelda_ci/cli/help"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    stale = tmp_path / "docs/cli.md"
    stale.write_text(stale.read_text("utf-8").replace("--last-failed", "--last-broken"), "utf-8")
    assert reference.main(["--check", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "stale: docs/cli.md\n"


# Their messages are put together from what fails, so the meaning uses their words.
WORDED = """
API_FAILED BASE_CONFIGURATION_INVALID BOUND_REACHED CASSETTE_DAMAGED CASSETTE_MISMATCH ENVIRONMENT_INVALID GITHUB_GONE
ISOLATION_NOT_ACCEPTED JUDGE_AUTHENTICATION_FAILED JUDGE_BILLING_FAILED JUDGE_RATE_LIMITED JUDGE_REFUSED LOCK_FAILED
MEMORY_MISSING MODEL_PROXY_FAILED MODEL_REFUSED NO_SPACE OVERRIDE_INVALID READ_PATH_REFUSED RECORDING_FAILED
REQUEST_REFUSED RESULT_DAMAGED RESULT_UNREADABLE RUN_AMBIGUOUS SETUP_FAILED TRANSCRIPT_FORGED
UNKNOWN_SUITE ZELDA_FAILED
"""


def test_the_page_of_errors_shows_what_each_code_says() -> None:
    """A rename in the code took the messages of a dozen codes off the page, and nobody saw it."""
    page = (REPOSITORY / "docs/troubleshooting.md").read_text("utf-8")
    silent = [row.split("`")[1] for row in page.splitlines() if row.startswith("| `") and "<br>" not in row]
    assert sorted(code for code in silent if re.fullmatch(r"[A-Z_]+", code)) == WORDED.split()
