"""Where commands of a suite are run: told, kept, and never lost to a full or forbidden disk."""

from pathlib import Path

import pytest

from tests.builders import START
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import StorageError
from zelda_ci.events import Event, Phase, PhaseStarted
from zelda_ci.metrics.base import CommandRequest, Ran
from zelda_ci.pipeline.evaluation import WorkspaceCommandRunner
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.workspaces import Workspaces


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return repository(tmp_path)


def ordered(project: Project, order: CommandRequest, *, spoiled: bool = False) -> tuple[Ran, list[Event], Path]:
    """What came of an order, what was told meanwhile, and the folder of the run."""
    store, told = ResultStore(project.results), list[Event]()
    folder = store.begin("example", START)
    if spoiled:
        (folder.path / "test.log").mkdir()

    async def work(workspaces: Workspaces, workspace: Workspace) -> Ran:
        return await WorkspaceCommandRunner(workspaces, store, told.append).run(workspace, order)

    return project.work(work, folder.run_id), told, folder.path


def test_an_order_is_told_carried_out_and_kept(project: Project) -> None:
    order = CommandRequest("test", "echo '<a/>' > junit.xml; echo done; exit 3", 60, {"test": ("junit.xml",)})
    ran, told, folder = ordered(project, order)
    assert (ran.result.exit_code, ran.result.output) == (3, "done\n")
    assert [(file.path, file.raw) for file in ran.written["test"]] == [("junit.xml", b"<a/>\n")]
    assert told == [PhaseStarted(folder.name, Phase.TEST)]
    assert (folder / "test.log").read_text() == "done\n"


def test_a_result_whose_log_cannot_be_written_is_none(project: Project) -> None:
    with pytest.raises(StorageError, match=r"test.log cannot be made: Is a directory"):
        ordered(project, CommandRequest("test", "echo done", PATIENCE), spoiled=True)
