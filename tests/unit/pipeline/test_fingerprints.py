"""Equal runs have equal fingerprints, and whatever an outcome may depend on changes them."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from tests.builders import suite
from tests.support.cases import for_each
from zelda_ci import metrics
from zelda_ci.domain.base import Record
from zelda_ci.domain.run import Fingerprint, Steers
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.pipeline.fingerprints import SETS, WITHOUT_EFFECT, TreeDigests, fingerprint, judged_again
from zelda_ci.selection.effects import ChangeSet, FileText, ProjectFiles, how_it_steers
from zelda_ci.workspace.git import Git, TreeFile
from zelda_ci.workspace.store import TestedFiles

PLATFORM = {"agentSdk": "0.2.186", "system": "debian", "isolationLevel": "full", "cli": "2.1.329", "models": "claude"}
NO_GIT = cast("Git", None)
FILES = (
    TreeFile("CLAUDE.md", "100644", "a1"),
    TreeFile(".claude/skills/deploy/SKILL.md", "100644", "b2"),
    TreeFile("src/main.py", "100644", "c3"),
)


def tree_of(files: Iterable[TreeFile], whole: Iterable[TreeFile] = ()) -> TreeDigests:
    """As selection's rule sees the files."""
    listed, project = list(files), ProjectFiles("", "", "")
    globs = {file.path: (file.content,) for file in listed if "/rules/" in file.path}
    texts = {file.path: FileText("", globs.get(file.path, ())) for file in listed}
    found = {path: how_it_steers(path, text, ChangeSet(), project) for path, text in texts.items()}
    steers: dict[str, Steers] = {path: how for path, how in found.items() if how}
    return TreeDigests(TestedFiles(listed, tuple(whole), NO_GIT, ""), steers, {})


def of(resolved: ResolvedSuite | None = None, **fields: Any) -> Fingerprint:
    given = {"tree": tree_of(FILES), "platform": PLATFORM, **fields}
    return fingerprint(resolved or suite(), **given)


def settings() -> list[tuple[str, str]]:
    """Every setting of a suite, groups by their settings."""
    found = []
    for name in ResolvedSuite.model_fields:
        value = getattr(suite(), name)
        inner = type(value).model_fields if isinstance(value, Record) else [""]
        found += [(name, key) for key in inner if name not in WITHOUT_EFFECT]
    return found


@for_each(settings())
def test_every_setting_that_has_an_effect_changes_the_outcome_and_is_named(name: str, key: str) -> None:
    plain = suite()
    group = getattr(plain, name)
    other = suite(checks=[{"called": "Read"}]).checks if name == "checks" else "another"
    changed = plain.model_copy(update={name: group.model_copy(update={key: "another"}) if key else other})
    before, after = of(plain), of(changed)
    assert before.outcome != after.outcome
    assert (before.tree, before.platform) == (after.tree, after.platform)
    assert ResolvedSuite.model_fields[name].alias in before.differences(after)


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_names_and_what_is_made_of_results_have_no_effect(name: str) -> None:
    another = suite(gate={"paths": ["nothing/here"]}).gate if name == "gate" else "another"
    assert of(suite().model_copy(update={name: another})) == of()


@pytest.mark.parametrize("setting", sorted(SETS))
def test_the_order_of_a_set_says_nothing(setting: str) -> None:
    name, key = setting.split(".")
    group = getattr(suite(), name)
    one, other = (
        of(suite().model_copy(update={name: group.model_copy(update={key: order})}))
        for order in (("one", "two"), ("two", "one"))
    )
    assert one == other
    assert one != of()


def test_a_default_that_is_written_out_or_stored_and_read_again_is_the_same() -> None:
    written = suite(execution={"timeoutSeconds": 1800.0, "maxTurns": 30}, judge={"maxLookupCostUsd": 1})
    assert of(written) == of()
    stored = ResolvedSuite.model_validate_json(suite().model_dump_json(by_alias=True, exclude_none=True))
    assert of(stored) == of()


def replaced(path: str, values: Mapping[str, str]) -> Fingerprint:
    files = [TreeFile(**{**vars(file), **values}) if file.path == path else file for file in FILES]
    return of(tree=tree_of(files))


@pytest.mark.parametrize(
    ("path", "change", "differs"),
    [
        ("CLAUDE.md", {"content": "ff"}, ("steeringFiles",)),
        (".claude/skills/deploy/SKILL.md", {"mode": "100755"}, ("steeringFiles",)),
        ("src/main.py", {"content": "ff"}, ("tree",)),
        ("src/main.py", {"path": "src/AGENTS.md"}, ("steeringFiles", "tree")),
        ("src/main.py", {"path": "src/.mcp.json"}, ("steeringFiles", "tree")),
        ("src/main.py", {"path": "src/claude.py"}, ("tree",)),
    ],
)
def test_steering_files_and_code_are_kept_apart(path: str, change: dict[str, str], differs: tuple[str, ...]) -> None:
    other = replaced(path, change)
    assert of().differences(other) == differs
    assert (of().outcome != other.outcome) == ("steeringFiles" in differs)
    assert (of().tree != other.tree) == ("tree" in differs)


def test_suites_count_only_where_commands_see_them() -> None:
    extra = [TreeFile("zelda/fixture.py", "100644", "e5")]
    hidden, shown = tree_of(FILES), tree_of(FILES, whole=[*FILES, *extra])
    assert of(tree=hidden).outcome == of(tree=shown).outcome
    seeing = suite(commandsSeeSuites=True)
    assert of(seeing, tree=hidden).outcome != of(seeing, tree=shown).outcome


@pytest.mark.parametrize("part", PLATFORM)
def test_the_platform_is_apart_from_the_outcome(part: str) -> None:
    before, after = of(), of(platform=PLATFORM | {part: "another"})
    assert before.platform != after.platform
    assert (before.outcome, before.tree) == (after.outcome, after.tree)
    assert before.differences(after) == (part,)


def test_versions_of_evaluators_and_prompts_and_recordings_count(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = metrics.versions(suite().metrics)
    assert len(set(versions)) == 4
    assert "0" not in versions.values()
    assert versions["requirementFulfillment"].split(".") == ["5", "5"]
    found = {of().outcome, of(replayed=True).outcome}
    # They are constants: no input changes them.
    for kind in metrics.EVALUATORS.values():
        monkeypatch.setattr(kind, "version", "99")
        found.add(of().outcome)
    assert len(found) == 6


def test_a_run_that_is_judged_again_has_the_fingerprint_of_one_judged_so_at_once() -> None:
    other = suite(judgeModel="claude-opus-5-5")
    assert judged_again(of(), other) == of(other)


def test_equal_runs_are_equal_in_any_order_and_where_nobody_knows_who_feels_what_every_file_counts() -> None:
    assert of(tree=tree_of(reversed(FILES))) == of()
    files = [[TreeFile("src/main.py", "100644", content)] for content in ("a", "b")]
    before, after = (TreeDigests(TestedFiles(it, (), NO_GIT, ""), None, {}) for it in files)
    assert of(tree=before).outcome != of(tree=after).outcome
