"""Where projects, recordings and results lie, and whose they are."""

import os
from pathlib import Path

from tests.scenarios.stage import BAD, GOOD, GREETING, NO_KEY, Stage
from tests.support import needs
from zelda_ci.cli.run import CASSETTES, PROJECT


def test_a_recording_is_replayed_without_a_key(tmp_path: Path) -> None:
    sources = [file for file in PROJECT.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    files = {str(file.relative_to(PROJECT)): file.read_bytes() for file in sources}
    cassettes = {f".cassettes/{file.name}": file.read_bytes() for file in CASSETTES.iterdir()}
    with Stage(tmp_path, {**files, **cassettes}) as stage:
        # The recorded patches hold what this project tracks.
        stage.commit({".gitignore": files[".gitignore"]})
        done = stage.push((), replay=".cassettes", suites="receipt-tax", variables=NO_KEY)
        assert done.code == 0, done.printed
        assert [command.data for command in done.told("group")] == ["Runs"]
        assert "nothing was spent" in done.printed


def test_a_project_below_the_workspace_has_its_results_and_annotations_there(tmp_path: Path) -> None:
    others = {"shop/zelda/test-other.yaml": GREETING, "README.md": "# Shops\n", "shop/zelda.config.yaml": "trials: 1\n"}
    with Stage(tmp_path, {"shop/zelda/test-greeting.yaml": GREETING, **others}) as stage:
        done = stage.push([*BAD, *BAD], working_directory="shop", config="zelda.config.yaml", max_cost_usd="0.5")
        assert done.code == 1, done.printed
        assert [command.data for command in done.told("group")] == ["Runs"]
        assert done.outputs["results-path"] == "shop/.zelda/ci/zelda-results.json"
        told = {command.properties["file"] for command in done.commands if "file" in command.properties}
        assert told == {"shop/zelda/test-greeting.yaml", "shop/zelda/test-other.yaml"}
        results = (stage.project.path / done.outputs["results-path"]).read_text()
        assert '"maxCostUsd": 0.5' in results


@needs.ROOT
def test_what_is_written_into_somebody_elses_workspace_is_theirs(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        for path in (stage.project.path, *stage.project.path.rglob("*")):
            os.chown(path, 12345, 12345, follow_symlinks=False)
        done = stage.pull_request(pull, GOOD, junit_path="reports/deep/zelda.xml")
        assert done.code == 0, done.printed
        assert f"main@{stage.tip[:7]}" in done.printed
        others = [str(path) for path in stage.project.path.rglob("*") if path.lstat().st_uid != 12345]
        assert others == []
