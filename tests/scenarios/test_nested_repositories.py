"""A project in a repository of its own inside the workspace: a submodule, or one that an earlier step has made."""

import json
from pathlib import Path

from tests.integration.test_run_against import GREETS, SILENT, SUITE, model
from tests.scenarios.stage import FILES, GOOD, GREETING, Done, Stage
from tests.scenarios.test_side_by_side import ONE_LOOK, batch
from tests.support.github_server import Pull
from tests.support.named_contents import add_submodule
from tests.support.projects import Project, repository

CLOSED = "isolation: { network: { setup: none, session: none, build: none, test: none } }\n"


def networks(stage: Stage, done: Done) -> set[str]:
    found = json.loads((stage.project.path / done.outputs["results-path"]).read_bytes())["runs"]
    return {value for run in found for value in run["config"]["isolation"]["network"].values()}


def raised(stage: Stage, shop: Project, change: dict[str, str | bytes]) -> Pull:
    """A pull request that raises the submodule `shop` to a commit with this change; the submodule is checked out."""
    shop.git("config", "uploadpack.allowAnySHA1InWant", "true")
    add_submodule(stage.upstream, f"file://{shop.path}", "shop")
    stage.commit()
    shop.write(change)
    shop.commit()
    stage.upstream.git("pull", "-q", cwd=stage.upstream.path / "shop")
    pull = stage.open_pull({"NEWS.md": "Open.\n"})
    stage.project.git("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--depth=1")
    return pull


def test_of_a_submodule_the_commit_that_the_base_names_gives_rights(tmp_path: Path) -> None:
    shop = repository(tmp_path, {"README.md": "# Shop\n", "zelda/test-a.yaml": GREETING, "zelda.config.yaml": CLOSED})
    base = shop.git("rev-parse", "HEAD")
    with Stage(tmp_path, {"README.md": "# All of it\n"}) as stage:
        git, pull = stage.project.git, raised(stage, shop, {"zelda.config.yaml": "{}\n"})
        done = stage.pull_request(pull, GOOD, working_directory="shop")
        assert done.code == 0, done.printed
        assert networks(stage, done) == {"none"}
        assert f"Settings that give rights are those of the base, {base[:7]}" in done.printed

        git("-c", "protocol.file.allow=always", "fetch", "-q", "origin", base, cwd=stage.project.path / "shop")
        git("checkout", "-q", "--detach", base, cwd=stage.project.path / "shop")
        done = stage.pull_request(pull, GOOD, working_directory="shop")
        assert done.code == 2, done.printed
        assert f"The submodule shop is at {base[:7]}" in done.printed


def test_of_a_submodule_the_base_runs_beside_it(tmp_path: Path) -> None:
    shop = repository(tmp_path, {"README.md": "# Shop\n", "CLAUDE.md": GREETS, "zelda/test-greeting.yaml": SUITE})
    base = shop.git("rev-parse", "HEAD")
    with Stage(tmp_path, {"README.md": "# All of it\n"}) as stage:
        pull = raised(stage, shop, {"CLAUDE.md": SILENT})
        done = stage.pull_request(pull, model, working_directory="shop", trials=ONE_LOOK)
        found = batch(stage, done)
        assert len(found["baseRuns"]) == 2, done.printed
        assert found["base"]["commit"] == base


def test_a_repository_that_a_step_has_made_is_tested_without_rights_of_its_own(tmp_path: Path) -> None:
    """Of the same repository it would be another commit than the one that the event is about."""
    with Stage(tmp_path, {"README.md": "# All of it\n"}) as stage:
        pull = stage.open_pull({"NEWS.md": "Open.\n"})
        made = repository(stage.project.path, {**FILES, "zelda.config.yaml": "historyDepth: 7\n"}, name="made")
        done = stage.pull_request(pull, GOOD, working_directory="made")
        assert done.code == 0, done.printed
        assert "Settings that give rights are those of the base" in done.printed

        made.git("remote", "add", "origin", "https://github.com/Octo/Shop.git")
        done = stage.push(GOOD, working_directory="made")
        assert done.code == 2, done.printed
        assert "is checked out, but push asks for" in done.printed
