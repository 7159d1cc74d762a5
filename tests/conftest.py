"""What holds for every test: where its files lie, that none is measured by a clock, and what is told of a whole run."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.measured import count_supervisors
from tests.support.places import UMASK, make_passable

# A machine that is busy with something else must not fail a property.
settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")

# Whoever starts the tests in the background of a script, or by nohup, has them ignore SIGINT or SIGHUP, and all that
# they start: restored, since a test that interrupts a process would wait for its end in vain.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand tests are objects that stay, and collecting them makes little else."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


# Their tests last longest.
LONG = (
    "test_corpus",
    "test_shards",
    "test_cancelled",
    "test_run_against",
    "test_html_report_browser",
    "test_nightly",
    "test_simulation",
    "test_jobs_and_workflows",
    "test_conversation",
    "test_runner_action",
    "test_demo",
    "test_run_interrupted",
    "test_guides",
    "test_everyday",
    "test_judge_command",
    "test_run_correctness",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin each worker's share with long tests: one that began last would keep the machine waiting for it alone."""
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    others = [item for item in items if item.path.stem not in LONG]
    share, ordered = len(items) // workers, []
    for worker in range(workers):
        modules = LONG[worker::workers]
        ordered += [item for item in items if item.path.stem in modules]
        taken = share * (worker + 1) - len(ordered)
        ordered += others[:taken] if worker + 1 < workers else others
        others = others[taken:]
    items[:] = ordered


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Temporary folders lie where other users can reach them: pytest's own are closed, and closed again by every start.

    Workers of xdist get theirs from the process that started them.
    """
    os.umask(UMASK)
    if not config.option.basetemp:
        config.stash[TEMPORARY] = made = make_passable(prefix="zelda-tests-")
        config.option.basetemp = str(made / "t")
    count_supervisors()
    table = Path(".hypothesis/unicode_data", unicodedata.unidata_version)
    if not hasattr(config, "workerinput") and not table.exists():
        subprocess.run([sys.executable, "-c", CHARACTERS], check=True)


# In a fresh clone hypothesis makes its table of characters, which takes seconds and 200 MB that a process keeps: one
# process does it, and ends, in place of every worker.
CHARACTERS = "from hypothesis import find, strategies; find(strategies.text(), lambda _: True)"
TEMPORARY = pytest.StashKey[Path]()


@pytest.fixture(scope="session")
def tmp_path_factory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> pytest.TempPathFactory:
    """As pytest's own, but its folders are as open as those that a user makes."""
    make, base = tmp_path_factory.mktemp, tmp_path_factory.getbasetemp()
    for folder in (base, base.parent) if hasattr(request.config, "workerinput") else (base,):
        folder.chmod(0o755)

    def mktemp(basename: str, numbered: bool = True) -> Path:  # noqa: FBT001, FBT002 - as in pytest
        made = make(basename, numbered)
        made.chmod(0o755)
        return made

    tmp_path_factory.mktemp = mktemp  # type: ignore[method-assign]
    return tmp_path_factory


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a space in its path."""
    made = tmp_path / "with space"
    made.mkdir()
    return made


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """What failed tests left is worth a look; the rest is removed."""
    made = session.config.stash.get(TEMPORARY, None)
    if made and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(made, ignore_errors=True)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep which tests ran, how long, why they failed, and what the others would have needed."""
    SECONDS["/".join(report.nodeid.split("/")[:2])] += report.duration
    if report.skipped and not hasattr(report, "wasxfail"):
        OUTCOMES["skipped"][report.nodeid] = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    elif report.when == "call" or report.failed:
        OUTCOMES["ran"][report.nodeid] = report.outcome
    if report.failed:
        OUTCOMES["reasons"][report.nodeid] = report.longreprtext


SECONDS: defaultdict[str, float] = defaultdict(float)
OUTCOMES: dict[str, dict[str, str]] = {"ran": {}, "skipped": {}, "reasons": {}}


def pytest_unconfigure(config: pytest.Config) -> None:
    """For CI, which looks that every test ran somewhere; what runs before have told there stays."""
    file = os.environ.get("ZELDA_TEST_OUTCOMES")
    if file and not hasattr(config, "workerinput") and any(OUTCOMES.values()):
        told = Path(file)
        before = json.loads(told.read_text()) if told.exists() else {}
        together = {kind: before.get(kind, {}) | found for kind, found in OUTCOMES.items()}
        told.write_text(json.dumps(together, indent=1, sort_keys=True))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say where to look, and in CI where the seconds went."""
    if "ZELDA_TEST_OUTCOMES" in os.environ:
        for folder, seconds in sorted(SECONDS.items()):
            terminalreporter.write_line(f"{seconds:7.0f} s of tests in {folder}")
    made = config.stash.get(TEMPORARY, None)
    if made and made.exists():
        terminalreporter.write_line(f"files of these tests are kept in {made}")
