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
        "integration/test_claude_code.py::"
        "test_a_session_edits_runs_a_command_and_commits": "a session starts with the rights that the level leaves",
        "integration/test_claude_code.py::"
        "test_background_shells_and_daemons_do_not_outlive_a_session": "the supervisor ends what the level lets it see",
        "integration/test_claude_code_shells.py": "its shells are confined once more",
        "integration/test_isolation_*": "it is the subject",
        "integration/test_launches.py": "processes are started through the level's programs",
        "integration/test_mcp_startup.py::"
        "test_the_prompt_waits_for_a_server_that_needs_seconds_to_start": "they start with its rights",
        "integration/test_model_proxy_socket.py": "without a network a session reaches the model by a socket",
        "integration/test_process.py": "what a command leaves is ended by the supervisor",
        "integration/test_project_environment.py": "toolchains are reached through the level",
        "integration/test_run_bounds.py": "bounds hold for the run's user",
        "integration/test_run_command.py::"
        "test_suites_run_side_by_side_and_are_reported_in_order_as_confined_as_was_required": "a run as users start it",
        "integration/test_run_offline.py": "the network is closed by the level",
        "integration/test_run_withheld.py": "what is withheld stays out of reach",
        "integration/test_shells.py::"
        "test_where_there_is_no_bash_it_is_said_what_is_not_noticed": "shells are found on the run's own PATH",
        "integration/test_suites_withheld.py::"
        "test_what_commands_see_lies_beyond_the_session": "what is withheld stays out of reach",
        "integration/test_transcript_check.py": "forgers get as far as the level lets them",
        "integration/test_workspace_supervisor.py": "it ends what the level lets it see",
    },
    # Whose the files are: root's, the run's, or all of them an ordinary user's, who may not enter everything.
    "owner": {
        "integration/test_base_commit.py::"
        "test_another_commit_is_checked_out_beside_the_head_by_whatever_name": "its files may be another user's",
        "integration/test_ownership.py": "what root makes is handed over",
        "integration/test_protected_paths.py": "files of others are refused",
        "integration/test_run_on_a_full_disk.py::"
        "test_where_the_workspaces_disk_is_full_nothing_is_green_that_is_not_whole": "mounts a small disk",
        "integration/test_run_protected.py::"
        "test_a_session_gains_nothing_by_what_it_does_to_tests_setup_and_build": "files are put back whoever owns them",
        "integration/test_working_tree.py::"
        "test_the_working_tree_is_tested_and_nothing_of_the_repository_changes": "its copy belongs to the run's user",
        "integration/test_workspace_changes.py": "they are those of the run's user",
        "integration/test_workspace_commands.py": "they run as the run's user",
        "integration/test_workspace_life.py": "it belongs to the run's user",
        "integration/test_workspace_removal.py": "what is removed belongs to the run's user",
        "integration/test_workspace_reports.py": "the run's user wrote them",
        "integration/test_workspace_repositories.py::"
        "test_a_full_disk_is_named_and_leaves_nothing": "mounts a small disk",
        "integration/test_workspace_submodules.py::"
        "test_a_session_finds_the_files_of_nested_submodules_and_a_clean_tree": "they belong to the run's user",
        "integration/test_workspace_sweep.py": "what is swept belongs to the run's user",
    },
    # Root makes namespaces without bubblewrap; where it cannot, it gives every run a user of its own.
    "root": {
        "hostile/test_greens.py": "setup and session leave files of the run's user",
        "integration/test_closed_home.py": "what is closed to the run's user leaves its PATH",
        "integration/test_init_projects.py::"
        "test_a_python_project_whose_packages_cannot_be_had_leaves_out_what_needs_them": "it is tried in a run",
        "integration/test_run_correctness.py::"
        "test_a_command_that_does_not_end_is_ended_with_all_that_it_started": "commands run as the run's user",
        "integration/test_run_event_loop.py": "files are handed over while others run",
        "integration/test_run_interrupted.py::"
        "test_the_remains_of_a_killed_run_are_made_a_result_by_the_next_start": "they belong to the run's user",
        "integration/test_setup.py::"
        "test_every_run_installs_what_its_own_commit_has": "what setup installs belongs to the run's user",
        "scenarios/test_places.py::"
        "test_what_is_written_into_somebody_elses_workspace_is_theirs": "the files of the runner are not the run's",
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
