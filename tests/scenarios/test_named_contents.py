"""`zelda ci` where commits name submodules and files of Git LFS: tested where they are checked out, else said so."""

from pathlib import Path

from tests.scenarios.stage import GOOD, Stage
from tests.support.named_contents import add_submodule, keep, pointer
from tests.support.projects import repository

CONTENT = b"a large file\n"
NEEDS_ALL = (
    "prompt: Add a greeting.\nmetrics: { requirementFulfillment: false, toolUsage: false }\n"
    "testCommand: test -f greeting.txt && grep -q library lib/a.txt && grep -q large big.bin\n"
)
FILES: dict[str, str | bytes] = {
    "README.md": "# Shop\n",
    "zelda/test-greeting.yaml": NEEDS_ALL,
    ".gitattributes": "*.bin filter=lfs -text\n",
    "big.bin": pointer(CONTENT),
}


def test_what_the_job_checked_out_is_tested_and_what_it_did_not_is_said(tmp_path: Path) -> None:
    library = repository(tmp_path, {"a.txt": "the library\n"}, name="library")
    with Stage(tmp_path, FILES) as stage:
        add_submodule(stage.upstream, library.path, "lib")
        stage.tip = stage.upstream.git("rev-parse", "HEAD")
        pull = stage.open_pull()
        done = stage.pull_request(pull, GOOD)
        assert done.code == 1, done.printed
        warnings = [command.data for command in done.told("warning")]
        for words in (
            "The checkout lacks 1 submodule, so sessions find empty folders: lib.",
            "lacks 1 file of Git LFS",
        ):
            assert sum(words in warning for warning in warnings) == 1, warnings
            assert words in stage.bodies()[0]

        stage.project.git("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
        keep(stage.project.path / ".git", CONTENT)
        done = stage.pull_request(pull, GOOD)
        assert done.code == 0, done.printed
        assert "The checkout lacks" not in done.printed + stage.bodies()[0]
