"""Which tests depend on who runs them and on how runs are isolated: the table that says what is run where.

Everything runs once, as root with bubblewrap. On other machines only what they change is run again:
`python -m tests.arrangements isolation owner` prints it for a machine that changes these two, and without words for
one that changes all. `tests/architecture/test_arrangements.py` keeps the table complete.
"""

import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

TESTS = Path(__file__).parent
FOLDERS = ("hostile", "integration", "scenarios", "slow")

CHANGED: Mapping[str, Mapping[str, str]] = {
    # What keeps a run from the rest of the machine: namespaces or a user of its own, or only Landlock.
    "isolation": {
        "integration/test_claude_code.py": "a session starts with the rights that the level leaves",
        "integration/test_claude_code_shells.py": "its shells are confined once more",
        "integration/test_isolation_*": "it is the subject",
        "integration/test_launches.py": "processes are started through the level's programs",
        "integration/test_mcp_startup.py": "servers start with the rights of the session",
        "integration/test_model_proxy_socket.py": "without a network a session reaches the model by a socket",
        "integration/test_process.py": "what a command leaves is ended by the supervisor",
        "integration/test_project_environment.py": "toolchains are reached through the level",
        "integration/test_run_bounds.py": "bounds hold for the run's user",
        "integration/test_run_command.py::"
        "test_suites_run_side_by_side_and_are_reported_in_order_as_confined_as_was_required": "a run as users start it",
        "integration/test_run_offline.py": "the network is closed by the level",
        "integration/test_run_withheld.py": "what is withheld stays out of reach",
        "integration/test_shells.py": "shells are found on the run's own PATH",
        "integration/test_suites_withheld.py": "what is withheld stays out of reach",
        "integration/test_transcript_witness.py": "forgers get as far as the level lets them",
        "integration/test_workspace_supervisor.py": "it ends what the level lets it see",
    },
    # Whose the files are: root's, the run's, or all of them an ordinary user's, who may not enter everything.
    "owner": {
        "integration/test_base_commit.py": "a commit's files may be another user's",
        "integration/test_ownership.py": "what root makes is handed over",
        "integration/test_protected_paths.py": "files of others are refused",
        "integration/test_run_on_a_full_disk.py": "mounts a small disk",
        "integration/test_run_protected.py": "protected files are put back whoever owns them",
        "integration/test_working_tree.py": "files of a run belong to its user",
        "integration/test_workspace_*": "files of a run belong to its user",
    },
    # Root without bubblewrap gives every run a user of its own, from whom root's own toolchains are closed.
    "root": {
        "hostile/test_corpus.py::test_root_without_namespaces_gives_runs_to_another_user": "tried by the run's user",
        "hostile/test_greens.py": "setup and session leave files of the run's user",
        "integration/test_closed_home.py": "root covers what is closed to the run's user",
        "integration/test_init_projects.py": "init tries what it proposes in a run",
        "integration/test_run_correctness.py": "build and tests run with the rights that the level leaves",
        "integration/test_run_event_loop.py": "files are handed over while others run",
        "integration/test_run_interrupted.py": "what a killed run leaves belongs to its user",
        "integration/test_setup.py": "what setup installs belongs to the run's user",
        "scenarios/test_places.py": "the files of the runner are out of reach of a run",
    },
}


def files() -> list[str]:
    """All test modules outside of tests/unit, as they are named in the table."""
    return sorted(str(file.relative_to(TESTS)) for folder in FOLDERS for file in (TESTS / folder).glob("test_*.py"))


def changed(what: Iterable[str] = CHANGED) -> list[str]:
    """The files, or single tests of them, whose outcome a machine can change that differs in this."""
    rows = [row for each in what for row in CHANGED[each]]
    whole = [file for file in files() if any(fnmatchcase(file, row) for row in rows)]
    return sorted({*whole, *(row for row in rows if "::" in row)})


if __name__ == "__main__":
    sys.stdout.writelines(f"tests/{test}\n" for test in changed(sys.argv[1:] or CHANGED))
