"""The steps of a release, against a real remote: which tag comes to be where, and what is refused."""

from pathlib import Path

import pytest
import yaml

from tests.support.releases import IMAGE, OTHER_IMAGE, REPOSITORY, ReleaseRepository, Step, changelog, step


@pytest.fixture
def repository(tmp_path: Path) -> ReleaseRepository:
    return ReleaseRepository.make(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with all branches, of 1.2.3, for tests that leave everything as it is."""
    (folder := tmp_path_factory.mktemp("releases") / "one").mkdir()
    repository = ReleaseRepository.make(folder)
    return repository.checkout(repository.commit("1.2.3"), whole=True)


def release(repository: ReleaseRepository, commit: str, version: str, image: str = IMAGE) -> tuple[Step, Step]:
    """What the last job of the workflow does: the tag of the version, then that of its major version."""
    where = repository.checkout(commit)
    tagged = step(where, "tag", version, "--image", image)
    assert tagged.code == 0, tagged.err
    moved = step(where, "move", version)
    assert moved.code == 0, moved.err
    return tagged, moved


def test_a_release_is_a_commit_that_only_names_the_image(repository: ReleaseRepository) -> None:
    source = repository.commit("1.2.3")
    whole = repository.checkout(source, whole=True)
    checked = step(whole, "check", "1.2.3")
    assert (checked.code, checked.err) == (0, "")
    assert {name: checked.outputs[name] for name in ("version", "tag")} == {"version": "1.2.3", "tag": "v1.2.3"}
    dockerfile = (REPOSITORY / "Dockerfile").read_text("utf-8")
    assert f"ARG BASE={checked.outputs['base']}\n" in dockerfile
    assert "@sha256:" in checked.outputs["buildkit"]
    assert "@sha256:" in checked.outputs["scanner"]

    tagged, moved = release(repository, source, "1.2.3")
    commit = tagged.outputs["commit"]
    assert tagged.outputs == {"commit": commit, "image": IMAGE, "kind": "--latest"}
    assert moved.outputs == {"moving": "v1"}
    assert repository.tags() == {"v1.2.3": commit, "v1": commit}
    assert repository.git("rev-parse", f"{commit}^@", where=repository.remote) == source
    changed = repository.git("diff", "--numstat", source, commit, where=repository.remote)
    assert changed == "1\t1\taction.yml"
    action = repository.git("show", f"{commit}:action.yml", where=repository.remote)
    before = (REPOSITORY / "action.yml").read_text("utf-8").strip()
    assert action == before.replace("\n  image: Dockerfile\n", f"\n  image: docker://{IMAGE}\n")
    read = yaml.safe_load(action)
    assert read.pop("runs") == {"using": "docker", "image": f"docker://{IMAGE}", "args": ["ci"]}
    built = yaml.safe_load(before)
    assert built.pop("runs")["image"] == "Dockerfile"
    assert read == built
    assert repository.git("log", "-1", "--format=%s", commit, where=repository.remote) == "Release 1.2.3"


def test_a_second_attempt_keeps_the_first_ones_image_and_finishes_what_the_first_did_not(
    repository: ReleaseRepository,
) -> None:
    source = repository.commit("1.2.3")
    first = step(repository.checkout(source), "tag", "1.2.3", "--image", IMAGE)
    assert first.code == 0
    assert list(repository.tags()) == ["v1.2.3"]
    checked = step(repository.checkout(source, whole=True), "check", "1.2.3")
    assert checked.code == 0, checked.err
    (second, moved) = release(repository, source, "1.2.3", OTHER_IMAGE)
    assert second.outputs["commit"] == first.outputs["commit"]
    assert second.outputs["image"] == IMAGE
    assert moved.outputs == {"moving": "v1"}
    assert repository.tags() == dict.fromkeys(("v1", "v1.2.3"), first.outputs["commit"])
    # The branch keeps its Dockerfile, and the same source and image make the same commit.
    assert repository.git("rev-parse", "main", where=repository.remote) == source
    for tag in ("v1", "v1.2.3"):
        repository.git("update-ref", "-d", f"refs/tags/{tag}", where=repository.remote)
    (third, _) = release(repository, source, "1.2.3")
    assert third.outputs["commit"] == first.outputs["commit"]


def test_v1_follows_newer_releases_only_and_versions_are_compared_as_numbers(repository: ReleaseRepository) -> None:
    old = repository.commit("1.9.4")
    (first, _) = release(repository, old, "1.9.4")
    assert first.outputs["kind"] == "--latest"
    release(repository, repository.commit("1.10.0"), "1.10.0")
    at = repository.tags()["v1.10.0"]
    assert repository.tags()["v1"] == at

    repository.git("checkout", "--quiet", "--detach", old)
    patch = repository.commit("1.9.5", branch="maintenance/1.9")
    checked = step(repository.checkout(patch, whole=True), "check", "1.9.5")
    assert checked.code == 0, checked.err
    (tagged, moved) = release(repository, patch, "1.9.5")
    assert tagged.outputs["kind"] == "--latest=false"
    assert moved.outputs == {"moving": ""}
    assert "v1 stays: v1.10.0 is newer than v1.9.5" in moved.err
    assert repository.tags()["v1"] == at

    # Nor does a second attempt at an older one, when a newer one came meanwhile.
    (_, again) = release(repository, old, "1.9.4")
    assert again.outputs == {"moving": ""}
    assert repository.tags()["v1"] == at


def test_a_pre_release_moves_nothing_keeps_nothing_back_and_neither_does_0_x(repository: ReleaseRepository) -> None:
    release(repository, repository.commit("1.2.0"), "1.2.0")
    for version in ("1.3.0rc1", "1.3.0b12", "0.2.0"):
        before = repository.tags()
        source = repository.commit(version)
        assert step(repository.checkout(source, whole=True), "check", version).code == 0
        (tagged, moved) = release(repository, source, version)
        assert moved.outputs == {"moving": ""}
        assert tagged.outputs["kind"] == ("--latest=false" if version == "0.2.0" else "--prerelease")
        assert repository.tags() == {**before, f"v{version}": tagged.outputs["commit"]}
    (tagged, _) = release(repository, repository.commit("1.2.9"), "1.2.9")
    assert tagged.outputs["kind"] == "--latest"
    assert repository.tags()["v1"] == repository.tags()["v1.2.9"]


def test_a_tag_of_a_version_that_somebody_made_or_moved_is_never_touched(repository: ReleaseRepository) -> None:
    source = repository.commit("1.2.3")
    stray = repository.git("commit-tree", f"{source}^{{tree}}", "-p", source, "-m", "Mine")
    repository.git("push", "--quiet", "origin", f"{stray}:refs/tags/v1.2.3")
    before = repository.tags()
    whole = repository.checkout(source, whole=True)
    for name, words in (("check", ()), ("tag", ("--image", IMAGE)), ("move", ())):
        refused = step(whole, name, "1.2.3", *words)
        assert refused.code == 1
        assert f"v1.2.3 is there already, on {stray}, which was not made from {source}" in refused.err
    assert repository.tags() == before


def test_a_release_of_another_commit_and_one_with_anything_else_changed_is_none_of_ours(
    repository: ReleaseRepository,
) -> None:
    release(repository, repository.commit("1.2.2"), "1.2.2")
    later = repository.commit("1.2.2", entry="- It works better.")
    refused = step(repository.checkout(later, whole=True), "check", "1.2.2")
    assert (refused.code, "give the change a new version" in refused.err) == (1, True)
    source = repository.commit("1.2.3")
    repository.write("action.yml", (REPOSITORY / "action.yml").read_text().replace("Dockerfile", f"docker://{IMAGE}"))
    repository.write("zelda_ci/__main__.py", "import evil\n")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "Release 1.2.3")
    repository.git("push", "--quiet", "origin", "HEAD:refs/tags/v1.2.3")
    refused = step(repository.checkout(source, whole=True), "check", "1.2.3")
    assert (refused.code, "was not made from" in refused.err) == (1, True)


def test_a_v1_that_somebody_moved_is_brought_back_and_named(repository: ReleaseRepository) -> None:
    release(repository, repository.commit("1.2.3"), "1.2.3")
    source = repository.commit("1.2.4")
    stray = repository.git("commit-tree", f"{source}^{{tree}}", "-p", source, "-m", "Mine")
    repository.git("tag", "--force", "--annotate", "--message", "Mine", "v1", stray)
    repository.git("push", "--quiet", "--force", "origin", "refs/tags/v1")
    assert repository.tags()["v1"] == stray
    (_, moved) = release(repository, source, "1.2.4")
    assert f"v1 was on {stray}, which is no release: somebody moved it" in moved.err
    assert repository.tags()["v1"] == repository.tags()["v1.2.4"]


def test_a_name_that_is_no_release_is_refused(whole: Path) -> None:
    for trigger, why in (
        *((f"release/v{version}", "is no release") for version in ("1.2", "01.2.3", "1.2.3.dev1")),
        ("release/v1.2.3-rc.1", "not -rc.1"),
        ("v1.2.3", "is not pushed by hand"),
    ):
        refused = step(whole, "check", trigger)
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith("error: ")
        assert why in refused.err


def test_a_changelog_that_does_not_fit_is_refused(repository: ReleaseRepository) -> None:
    repository.commit("1.2.3")
    for text, why in (
        (changelog("1.2.3", unreleased="- Forgotten.\n"), "has entries under [Unreleased]"),
        *((changelog("1.2.3", day=day), "no date") for day in ("", " - 2026-02-31", " - soon")),
        (changelog("1.2.2"), "must begin with ## [Unreleased] and ## [1.2.3] - DATE"),
        (changelog("1.2.3").replace("## [Unreleased]\n", ""), "must begin with"),
        (changelog("1.2.3").replace("releases/tag/v1.2.3\n", "releases/tag/v1.2.4\n"), "no link for the version"),
        (changelog("1.2.3", entry="").replace("### Added\n", ""), "says nothing under [1.2.3]"),
    ):
        refused = step(repository.checkout(rewritten(repository, text), whole=True), "check", "1.2.3")
        assert (refused.code, why in refused.err) == (1, True), refused.err


def rewritten(repository: ReleaseRepository, text: str) -> str:
    """A commit with another changelog, pushed to main."""
    repository.write("CHANGELOG.md", text)
    repository.git("commit", "--quiet", "--all", "--message", "Another changelog")
    repository.git("push", "--quiet", "origin", "HEAD:main")
    return repository.git("rev-parse", "HEAD")


def test_the_notes_are_the_section_and_nothing_else(repository: ReleaseRepository) -> None:
    entry = "- **One** with `code`.\n  It goes on.\n\n### Fixed\n\n- Two [link](https://example.com)."
    source = repository.commit("1.2.3", entry=entry)
    assert step(repository.checkout(source), "notes", "1.2.3").out == f"### Added\n\n{entry}\n"


def test_another_version_in_the_package_and_a_commit_that_was_not_merged_are_refused(
    repository: ReleaseRepository,
) -> None:
    source = repository.commit("1.2.4")
    refused = step(repository.checkout(source, whole=True), "check", "1.2.3")
    assert (refused.code, "zelda_ci/__init__.py says 1.2.4" in refused.err) == (1, True)
    source = repository.commit("1.2.3", branch="feature")
    refused = step(repository.checkout(source, whole=True), "check", "1.2.3")
    assert refused.code == 1
    assert f"{source} is neither in main nor in maintenance/1.2: merge it there first" in refused.err


def test_only_an_image_by_digest_is_written(whole: Path) -> None:
    for image in ("ghcr.io/zelda-ci/zelda-ci:v1", f"{IMAGE}0", f"{IMAGE}\nargs: x", ""):
        refused = step(whole, "tag", "1.2.3", "--image", image)
        assert (refused.code, "is no image by digest" in refused.err) == (1, True)
    assert step(whole, "move", "1.2.3").err == "error: v1.2.3 is not there: v1 can only follow a release\n"
