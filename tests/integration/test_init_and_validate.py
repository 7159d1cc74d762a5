"""`zelda init` and `zelda validate` as processes: files, exit codes, what is printed where, terminals."""

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import run
from tests.support.measured import measured
from tests.support.patience import PATIENCE
from tests.support.warm import Process

GOOD = "prompt: Do it.\n"
FILES = {"zelda.config.yaml", "zelda/test-example.yaml"}
NEXT = (
    "Next: replace the prompt in zelda/test-example.yaml with a task of yours, if you have a better one; "
    "`zelda check`, then `zelda run example`."
)
NOTHING = [
    "No manifest of a known language is here, so no command is proposed.",
    "No CLAUDE.md, skills or rules found.",
    "",
]


def environment(**more: str) -> dict[str, str]:
    path = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])}
    # Where a user has nothing better, init says so or asks first: not here.
    accepted = {"ZELDA_ACCEPT_ISOLATION": "landlock"}
    return {**path, **accepted, "HOME": "/nonexistent", **measured(), **more}


def zelda(*arguments: str, cwd: Path, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return run(arguments, cwd, environment(**more), stdin)


def on_terminal(*arguments: str, cwd: Path, answers: str = "", **more: str) -> tuple[str, int]:
    """Run on a pseudo-terminal, typing answers at once; everything shown and the exit code."""
    master, slave = pty.openpty()
    process = Process(arguments, cwd, environment(TERM="xterm-256color", **more), (slave, slave, slave))
    os.close(slave)
    os.write(master, answers.encode())
    shown = b"".join(read_all(master))
    code = process.wait(60)
    os.close(master)
    return shown.decode().replace("\r\n", "\n"), code


def read_all(master: int) -> Iterator[bytes]:
    while select.select([master], [], [], PATIENCE)[0]:
        try:
            data = os.read(master, 4096)
        except OSError:  # Linux says so when the other side has closed
            return
        if not data:
            return
        yield data


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def write(root: Path, **files: str) -> Path:
    for key, text in files.items():
        name = "zelda.config.yaml" if key == "config" else f"zelda/{key.replace('_', '-')}.yaml"
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


# --- init ----------------------------------------------------------------------------------------------------------


def test_init_writes_two_files_says_so_and_tells_the_next_step(tmp_path):
    done = zelda("init", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        *NOTHING,
        "wrote zelda.config.yaml",
        "wrote zelda/test-example.yaml",
        "",
        NEXT,
    ]
    assert (done.stderr, done.returncode) == ("", 0)
    assert set(tree(tmp_path)) == FILES


def test_an_existing_configuration_is_refused_without_a_terminal(tmp_path):
    write(tmp_path, config="trials: 3\n")
    done = zelda("init", cwd=tmp_path)
    assert done.stderr.startswith(
        "error: zelda.config.yaml exists already; nothing was changed.\nOverwrite with --force,"
    )
    assert (done.stdout, done.returncode) == ("", 2)
    assert tree(tmp_path) == {"zelda.config.yaml": b"trials: 3\n"}


def test_force_overwrites_keeps_the_mode_and_is_repeatable(tmp_path):
    write(tmp_path, config="trials: 3\n", test_example="old\n")
    (tmp_path / "zelda.config.yaml").chmod(0o640)
    done = zelda("init", "--force", cwd=tmp_path)
    assert done.stdout.splitlines()[3:5] == [
        "overwrote zelda.config.yaml",
        "overwrote zelda/test-example.yaml",
    ]
    assert (tmp_path / "zelda.config.yaml").stat().st_mode & 0o777 == 0o640
    before = tree(tmp_path)
    again = zelda("init", "--force", cwd=tmp_path)
    assert again.stdout.splitlines()[5] == ""
    assert tree(tmp_path) == before


def test_on_a_terminal_it_warns_and_asks_about_each_file(tmp_path):
    write(tmp_path, config="trials: 3\n", test_example="old\n")
    shown, code = on_terminal("init", cwd=tmp_path, answers="n\ny\n")
    assert "warning: zelda.config.yaml exists already" in shown
    assert "Overwrite zelda.config.yaml? [y/N]: " in shown
    assert "kept zelda.config.yaml" in shown
    assert "overwrote zelda/test-example.yaml" in shown
    assert code == 0
    assert (tmp_path / "zelda.config.yaml").read_text() == "trials: 3\n"
    assert (tmp_path / "zelda/test-example.yaml").read_text() != "old\n"


IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "file zelda": lambda root: (root / "zelda").write_text("x"),
    "folder config": lambda root: (root / "zelda.config.yaml").mkdir(),
    "link zelda": lambda root: (root / "zelda").symlink_to("/usr"),
}


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("file zelda", "zelda/test-example.yaml cannot be made: "),
        ("folder config", "zelda.config.yaml is there already, but it is not a regular file."),
        ("link zelda", "zelda/test-example.yaml would lie outside the project: its folder is a symbolic link."),
    ],
)
def test_what_is_in_the_way_ends_in_a_clear_error_and_no_half_written_set(kind, error, tmp_path):
    IN_THE_WAY[kind](tmp_path)
    before = tree(tmp_path)
    done = zelda("init", "--force", cwd=tmp_path)
    assert done.stderr.startswith(f"error: {error}")
    assert (done.stdout, done.returncode) == ("", 2)
    assert tree(tmp_path) == before
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_full_disk_changes_nothing(tmp_path):
    write(tmp_path, config="trials: 3\n")
    before = tree(tmp_path)
    # A limit on the size of files stands for the full disk: the first file does not fit.
    command = f"ulimit -f 1; exec {shlex.quote(sys.executable)} -B -m zelda_ci init --force"
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; {command}"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "error: There is no space left to write zelda.config.yaml." in done.stderr
    assert done.returncode == 2
    assert tree(tmp_path) == before


# --- validate ------------------------------------------------------------------------------------------------------


def test_validate_shows_a_line_per_suite_and_names_what_only_looks_like_one(tmp_path):
    write(tmp_path, config="testCommand: make\n", test_api="prompt: x\nacceptanceCriteria: [One., Two.]\n", test_b=GOOD)
    write(tmp_path, shipping=GOOD, test_c=f"{GOOD}testCommand: []\n")
    done = zelda("validate", cwd=tmp_path)
    assert done.stdout.splitlines()[:2] == [
        "api  zelda/test-api.yaml  2 criteria, test",
        "b    zelda/test-b.yaml    test",
    ]
    assert done.stdout.splitlines()[3].startswith("3 suites are valid. ")
    named = "zelda/shipping.yaml looks like a suite and is not run: call it zelda/test-shipping.yaml"
    assert f"warning: {named}\n" in done.stderr
    done = zelda("run", "shipping", cwd=tmp_path)
    assert (done.returncode, f'error: No suite is called "shipping".\n{named}.' in done.stderr) == (2, True)


def test_validate_says_what_a_suite_asks_for_and_its_metrics_leave_out(tmp_path):
    routes = "kind: routing\nprompts:\n  - prompt: x\n    expect: none\ntestCommand: make\n"
    judged = f"{GOOD}testCommand: make\nacceptanceCriteria: [One.]\nmetrics: {{requirementFulfillment: false}}\n"
    write(tmp_path, test_a=judged, test_r=routes)
    for line in (
        "a    zelda/test-a.yaml  test, without 1 criterion: metrics.requirementFulfillment is off",
        "r.1  zelda/test-r.yaml  1 check, without test: metrics.functionalCorrectness is off",
    ):
        assert line in zelda("validate", cwd=tmp_path).stdout.splitlines()


def test_validate_shows_every_value_with_its_origin_aligned(tmp_path):
    write(
        tmp_path,
        config="trials: 3\nexecution:\n  maxTurns: 20\n",
        test_api="prompt: |\n  Add it.\n  Test it.\nexecution:\n  maxTurns: 40\ntestCommand: [npm, test]\n",
    )
    done = zelda("validate", "--settings", cwd=tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    lines = done.stdout.splitlines()
    assert lines[0] == "api  zelda/test-api.yaml  test"
    assert lines[-1] == "1 suite is valid."
    rows = [re.split(r" {2,}", line.strip()) for line in lines[1:-2]]
    assert ["prompt", "Add it. Test it.", "zelda/test-api.yaml:1"] in rows
    assert ["trials", "3", "zelda.config.yaml:1"] in rows
    assert ["execution.maxTurns", "40", "zelda/test-api.yaml:5"] in rows
    assert ["execution.timeoutSeconds", "1800", "default"] in rows
    assert ["testCommand", "npm, test", "zelda/test-api.yaml:6"] in rows
    assert ["buildCommand", "-", "default"] in rows
    assert len({line.index(row[2], len(row[0]) + 4) for line, row in zip(lines[1:-2], rows, strict=True)}) == 1


MEASURED = {
    "test_a": ("", True),
    "test_b": ("setupCommand: make\n", True),
    "test_c": ("acceptanceCriteria: [It works.]\n", False),
    "test_d": ("acceptanceCriteria: [It works.]\nmetrics: {requirementFulfillment: false}\n", True),
    "test_e": ("testCommand: make\n", False),
    "test_f": ("buildCommand: make\nmetrics: {functionalCorrectness: false}\n", True),
}


def test_suites_that_can_neither_pass_nor_fail_are_told_so_and_json_holds_suites_and_origins(tmp_path):
    write(tmp_path, config="trials: 3\n", **{name: f"prompt: Grüße\n{suite}" for name, (suite, _) in MEASURED.items()})
    assert zelda("validate", cwd=tmp_path).stdout.count("measured only: ") == 4
    done = zelda("validate", "--json", cwd=tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    read = json.loads(done.stdout)
    assert [told["measured"] for told in read["suites"]] == [measured for _, measured in MEASURED.values()]
    assert (read["schemaVersion"], read["valid"], read["project"]) == (1, True, str(tmp_path.resolve()))
    suite = read["suites"][0]
    assert (suite["config"]["prompt"], suite["config"]["execution"]["maxTurns"]) == ("Grüße", 30)
    assert (suite["origins"]["trials"], suite["origins"]["execution.maxTurns"]) == ("zelda.config.yaml:1", "default")


def test_problems_go_to_standard_error_all_at_once(tmp_path):
    write(tmp_path, config="trials: 1.5\n", test_a="- x\n", test_b="prompt: 'x\n")
    done = zelda("validate", cwd=tmp_path)
    assert done.stderr.splitlines() == [
        "error: 3 problems in the configuration:",
        "zelda.config.yaml:1:9: trials must be a whole number, adaptive or a group of keys, not 1.5",
        "zelda/test-a.yaml:1:1: the file holds a list; it must hold keys, each followed by a colon and its value",
        "zelda/test-b.yaml:1:9: a quote is opened here and never closed",
        "Nothing was run. Correct the configuration, then check it with `zelda validate`.",
    ]
    assert (done.stdout, done.returncode) == ("", 2)
    told = json.loads(zelda("validate", "--json", cwd=tmp_path).stdout)
    assert (told["schemaVersion"], told["valid"], len(told["problems"])) == (1, False, 3)
    assert told["problems"][1]["file"] == "zelda/test-a.yaml"


def test_text_of_a_suite_cannot_steer_the_terminal(tmp_path):
    write(tmp_path, test_a='prompt: "a\\e[2Jb"\ntags: ["[red]x[/red]", "\\r\\bz"]\n')
    done = zelda("validate", "--settings", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "\b" not in done.stdout
    assert "[red]x[/red]" in done.stdout


def test_a_routing_suite_is_drafted_where_something_has_a_description(tmp_path: Path) -> None:
    without = zelda("init", "--yes", "--routing", cwd=tmp_path)
    assert "no routing suite: there is no skill, sub-agent or command that the model may call" in without.stdout
    (tmp_path / ".claude/skills/pdf").mkdir(parents=True)
    (tmp_path / ".claude/skills/pdf/SKILL.md").write_text("---\ndescription: Rotates and merges PDF files.\n---\nDo.\n")
    assert "wrote zelda/test-routing.yaml" in zelda("init", "--yes", "--routing", cwd=tmp_path).stdout
    assert "routing.4" in zelda("validate", cwd=tmp_path).stdout
    assert "kept zelda/test-routing.yaml" in zelda("init", "--yes", "--routing", cwd=tmp_path).stdout
