"""Which tests depend on who runs them and on how runs are isolated: the table that says what is run where.

Everything runs once. On machines that differ in user, bubblewrap or where toolchains lie, only what that changes is run
again: `python -m tests.arrangements` prints those files. `tests/architecture/test_arrangements.py` keeps it complete.
"""

import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

TESTS = Path(__file__).parent
FOLDERS = ("hostile", "integration", "scenarios", "slow")

CHANGED: Mapping[str, str] = {
    "hostile/test_*": "what an attack reaches depends on the level",
    "integration/test_base_commit.py": "a commit's files may be another user's",
    "integration/test_claude_code.py": "a session starts with the rights that the level leaves",
    "integration/test_claude_code_shells.py": "its shells are confined once more",
    "integration/test_closed_home.py": "root covers what is closed to the run's user",
    "integration/test_init_projects.py": "init tries what it proposes in a run",
    "integration/test_isolation_*": "it is the subject",
    "integration/test_launches.py": "processes are started through the level's programs",
    "integration/test_mcp_startup.py": "servers start with the rights of the session",
    "integration/test_model_proxy_socket.py": "without a network a session reaches the model by a socket",
    "integration/test_ownership.py": "what root makes is handed over",
    "integration/test_process.py": "what a command leaves is ended by the supervisor",
    "integration/test_project_environment.py": "toolchains are reached through the level",
    "integration/test_protected_paths.py": "files of others are refused",
    "integration/test_run_bounds.py": "bounds hold for the run's user",
    "integration/test_run_command.py": "a run as users start it",
    "integration/test_run_correctness.py": "build and tests run with the rights that the level leaves",
    "integration/test_run_event_loop.py": "a run as users start it",
    "integration/test_run_interrupted.py": "what a killed run leaves belongs to its user",
    "integration/test_run_offline.py": "the network is closed by the level",
    "integration/test_run_on_a_full_disk.py": "mounts a small disk",
    "integration/test_run_protected.py": "protected files are put back whoever owns them",
    "integration/test_run_withheld.py": "what is withheld stays out of reach",
    "integration/test_setup.py": "what setup installs belongs to the run's user",
    "integration/test_shells.py": "shells are found on the run's own PATH",
    "integration/test_suites_withheld.py": "what is withheld stays out of reach",
    "integration/test_transcript_witness.py": "forgers get as far as the level lets them",
    "integration/test_workspace_*": "files of a run belong to its user",
    "integration/test_working_tree.py": "files of a run belong to its user",
    "scenarios/test_places.py": "the files of the runner are out of reach of a run",
}


def files() -> list[str]:
    """All test modules outside of tests/unit, as they are named in the table."""
    return sorted(str(file.relative_to(TESTS)) for folder in FOLDERS for file in (TESTS / folder).glob("test_*.py"))


def changed(file: str) -> bool:
    """Whether an arrangement can change the outcome of a file's tests."""
    return any(fnmatchcase(file, pattern) for pattern in CHANGED)


if __name__ == "__main__":
    sys.stdout.writelines(f"tests/{file}\n" for file in files() if changed(file))
