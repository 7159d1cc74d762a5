"""release.yml, line by line: real git, a real build and real installations; registries and actions are played."""

import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_release import package_index
from tests.support.releases import REPOSITORY, ReleaseRepository
from tests.support.workflow_steps import TOKEN, StepFailedError, WorkflowRun, copied

# The first test waits for a build, two installations and two demos.
pytestmark = pytest.mark.timeout(1800)

WORKFLOW = REPOSITORY / ".github" / "workflows" / "release.yml"
IMAGE = "ghcr.io/zelda-ci/zelda-ci"
SOURCES = (
    "zelda_ci",
    "docs",
    "schemas",
    "requirements",
    "scripts/release.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)


def digest(name: str) -> str:
    """What the played registry gives an image."""
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


class Stage:
    """A repository whose release/v1.2.3 was pushed, and the runs of the workflow for it."""

    def __init__(self, folder: Path, index: str) -> None:
        self.folder = folder
        self.index = index
        self.repository = ReleaseRepository.make(folder / "repository")
        for name in SOURCES:
            source, target = REPOSITORY / name, self.repository.clone / name
            target.parent.mkdir(parents=True, exist_ok=True)
            ignored = shutil.ignore_patterns("__pycache__", ".zelda")
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored) if source.is_dir() else shutil.copy(
                source, target
            )
        shutil.copy(REPOSITORY / ".gitignore", self.repository.clone)
        self.source = self.repository.commit("1.2.3")
        self.used: list[tuple[str, dict[str, str]]] = []
        self.run = WorkflowRun(
            WORKFLOW,
            folder / "run",
            {
                "sha": self.source,
                "ref_name": "release/v1.2.3",
                "repository": "zelda-ci/zelda-ci",
                "token": TOKEN,
                "server_url": "https://github.com",
            },
            {
                "actions/checkout": self.checkout,
                "actions/setup-python": lambda *_: None,
                "actions/upload-artifact": self.upload,
                "actions/download-artifact": self.download,
                "./.github/workflows/ci.yml": self.use("tests"),
                "actions/attest-build-provenance": self.use("attest"),
                "pypa/gh-action-pypi-publish": self.publish,
            },
            {"INDEX": index},
        )
        self.run.folder.mkdir()

    def use(self, name: str) -> Any:
        return lambda inputs, _: self.used.append((name, inputs))

    def checkout(self, inputs: dict[str, str], workspace: Path) -> None:
        assert inputs["persist-credentials"] == "False"
        found = self.repository.checkout(inputs["ref"], whole=inputs.get("fetch-depth") == "0")
        copied(found, workspace)

    def upload(self, inputs: dict[str, str], workspace: Path) -> None:
        shutil.rmtree(self.folder / "artifacts" / inputs["name"], ignore_errors=True)
        copied(workspace / inputs["path"], self.folder / "artifacts" / inputs["name"])

    def download(self, inputs: dict[str, str], workspace: Path) -> None:
        copied(self.folder / "artifacts" / inputs["name"], workspace / inputs["path"])

    def publish(self, inputs: dict[str, str], workspace: Path) -> None:
        files = sorted(file.name for file in (workspace / "dist").iterdir())
        self.used.append(("pypi", {**inputs, "files": " ".join(files)}))

    def release(self) -> dict[str, Any]:
        """The release that gh made."""
        return dict(json.loads((self.run.folder / "played" / "release.json").read_text()))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The workflow, run once from the beginning to the end."""
    with package_index(None) as address:
        (folder := tmp_path_factory.mktemp("release") / "stage").mkdir()
        (folder / "repository").mkdir()
        stage = Stage(folder, address)
        stage.run.execute()
        yield stage


def test_every_line_was_run(stage: Stage) -> None:
    lines = [step["name"] for job in stage.run.jobs.values() for step in job.get("steps", []) if "run" in step]
    twice = [step["name"] for step in stage.run.jobs["image"]["steps"] if "run" in step]
    assert sorted(stage.run.ran) == sorted([*lines, *twice])


def test_the_tags_name_a_commit_whose_action_pulls_the_image_of_both_platforms(stage: Stage) -> None:
    tags = stage.repository.tags()
    assert set(tags) == {"v1.2.3", "v1"}
    assert tags["v1"] == tags["v1.2.3"]
    both = f"{IMAGE}@{digest(f'{IMAGE}:commit-{stage.source}')}"
    action = stage.repository.git("show", "v1:action.yml", where=stage.repository.remote)
    assert f"\n  image: docker://{both}\n" in action
    calls = stage.run.calls()
    one = [f"{IMAGE}@{digest(f'linux/{platform}')}" for platform in ("amd64", "arm64")]
    made = [call[4:] for call in calls if call[:4] == ["docker", "buildx", "imagetools", "create"]]
    assert made == [
        ["--tag", f"{IMAGE}:commit-{stage.source}", *one],
        ["--tag", f"{IMAGE}:v1.2.3", both],
        ["--tag", f"{IMAGE}:v1", both],
    ]
    tried = [call[3] for call in calls if call[:3] == ["docker", "run", "--rm"]]
    assert tried == one


def test_the_image_is_built_on_a_base_by_digest_with_sbom_and_provenance(stage: Stage) -> None:
    builds = [call for call in stage.run.calls() if call[:3] == ["docker", "buildx", "build"]]
    base = re.findall(r"^ARG BASE=(.*)$", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE)[0]
    for build in builds:
        assert f"BASE={base}@{digest(base)}" in build
        assert f"org.opencontainers.image.base.name={base}" in build
        assert f"org.opencontainers.image.base.digest={digest(base)}" in build
        assert f"org.opencontainers.image.revision={stage.source}" in build
        assert "org.opencontainers.image.version=1.2.3" in build
        assert "type=provenance,mode=max" in build
        assert any(re.match(r"type=sbom,generator=\S+@sha256:[0-9a-f]{64}$", word) for word in build)
    assert [build[build.index("--platform") + 1] for build in builds] == ["linux/amd64", "linux/arm64"]
    attested = dict(stage.used)["attest"]
    assert attested["subject-digest"] == digest(f"{IMAGE}:commit-{stage.source}")


def test_what_is_published_is_what_was_built_and_tried(stage: Stage) -> None:
    published = dict(stage.used)["pypi"]
    files = ["zelda_ci-1.2.3-py3-none-any.whl", "zelda_ci-1.2.3.tar.gz"]
    assert published == {"skip-existing": "True", "files": " ".join(files)}
    made = stage.release()
    assert (made["tag"], made["kind"], made["files"]) == ("v1.2.3", "--latest", files)
    assert made["notes"] == "### Added\n\n- It works.\n"
    # Nothing is published before all tests have passed.
    assert [name for name, _ in stage.used] == ["tests", "attest", "pypi"]


def test_a_second_attempt_changes_nothing(stage: Stage) -> None:
    before, calls = stage.repository.tags(), len(stage.run.calls())
    stage.run.execute("check", "image", "index", "pypi", "release")
    assert stage.repository.tags() == before
    again = stage.run.calls()[calls:]
    assert [call for call in again if call[:3] == ["gh", "release", "create"]] == []


def test_a_draft_that_an_attempt_left_is_replaced(stage: Stage) -> None:
    file = stage.run.folder / "played" / "release.json"
    file.write_text(json.dumps({"isDraft": True}))
    stage.run.execute("release")
    assert stage.release()["files"]


def test_a_job_that_failed_half_way_is_finished_by_the_next_attempt(stage: Stage) -> None:
    for name in ("v1", "v1.2.3"):
        stage.repository.git("update-ref", "-d", f"refs/tags/{name}", where=stage.repository.remote)
    (stage.run.folder / "played" / "release.json").unlink()
    hook = stage.repository.remote / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" != refs/tags/v1 ]\n')
    hook.chmod(0o755)
    with pytest.raises(StepFailedError, match="The tag of the major version follows: error: git push failed"):
        stage.run.execute("release")
    assert set(stage.repository.tags()) == {"v1.2.3"}
    hook.unlink()
    stage.run.execute("release")
    tags = stage.repository.tags()
    assert tags["v1"] == tags["v1.2.3"]


def test_a_step_that_refuses_ends_the_run_before_anything_is_built(stage: Stage) -> None:
    other = WorkflowRun(WORKFLOW, stage.folder / "other", {**stage.run.github, "ref_name": "v1.2.3"}, stage.run.actions)
    other.folder.mkdir()
    with pytest.raises(StepFailedError, match=r"v1\.2\.3 is not pushed by hand"):
        other.execute()
    assert other.calls() == []


def test_a_fork_releases_nothing(stage: Stage) -> None:
    fork = {**stage.run.github, "repository": "somebody/zelda-ci"}
    other = WorkflowRun(WORKFLOW, stage.folder / "fork", fork, stage.run.actions)
    other.folder.mkdir()
    other.execute("check")
    assert (other.ran, other.outputs) == ([], {"check": {}})


@pytest.mark.parametrize("package", ["tar.gz", "whl"])
def test_the_package_holds_what_it_needs_and_nothing_else(stage: Stage, package: str) -> None:
    (file,) = (stage.folder / "artifacts" / "dist").glob(f"*.{package}")
    listed = ["tar", "tzf"] if package == "tar.gz" else ["python3", "-m", "zipfile", "-l"]
    words = subprocess.run([*listed, file], check=True, capture_output=True, text=True).stdout
    names = {line.split()[0].removeprefix("zelda_ci-1.2.3/") for line in words.splitlines()}
    sources = {str(path.relative_to(REPOSITORY)) for path in code() if path.is_file()}
    assert sources - names == set()
    beside = {name.partition("/")[0] for name in names - sources}
    if package == "whl":
        assert beside == {"File", "zelda_ci-1.2.3.dist-info"}
    else:
        schemas = {f"schemas/{path.name}" for path in (REPOSITORY / "schemas").iterdir()}
        assert schemas - names == set()
        only = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "docs", "pyproject.toml", "schemas", ".gitignore"}
        assert beside == only


def test_the_package_index_shows_a_readme_whose_links_lead_into_the_release(stage: Stage) -> None:
    (file,) = (stage.folder / "artifacts" / "dist").glob("*.whl")
    with zipfile.ZipFile(file) as wheel:
        text = wheel.read("zelda_ci-1.2.3.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []
    ours = [re.fullmatch(r"https://\S+/zelda-ci/zelda-ci/(?:blob/)?v1\.2\.3/([^#]+)(?:#.*)?", link) for link in links]
    paths = [found[1] for found in ours if found]
    assert len(paths) > 15
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    assert {f"Project-URL: {name}" for name in ("Changelog", "Documentation", "Issues")} <= {
        line.partition(",")[0] for line in text.splitlines()
    }


def code() -> list[Path]:
    """Everything of the package, with templates, style sheets, cassettes and the demo's project; no caches."""
    found = [path for path in (REPOSITORY / "zelda_ci").rglob("*") if not {"__pycache__", ".zelda"} & set(path.parts)]
    kinds = {path.suffix for path in found}
    assert {".py", ".j2", ".css", ".js", ".json", ".yaml", ".md", ".typed"} <= kinds
    return found
