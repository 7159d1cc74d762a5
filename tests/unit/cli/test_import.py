"""`zelda import` as a command: what it writes, says and refuses."""

from pathlib import Path

from click.testing import CliRunner

from zelda_ci.cli.commands import zelda

EVALS = """{"skill_name": "pdf", "evals": [{"id": 1, "prompt": "Rotate a.pdf.", "files": ["a.pdf"]}]}"""


def imported(project: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(zelda, ["import", str(project / "evals.json"), "--project", str(project), *words])
    return result.exit_code, result.output + str(result.exception or "")


def test_what_is_imported_twice_is_the_same_and_what_somebody_changed_is_kept(tmp_path: Path) -> None:
    (tmp_path / "evals.json").write_text(EVALS)
    suite = tmp_path / "zelda/imported/test-pdf-1.yaml"
    code, said = imported(tmp_path)
    assert (code, said.splitlines()) == (
        0,
        [
            "wrote zelda/imported/test-pdf-1.yaml",
            "",
            "To do by hand (1):",
            "- [ ] evals.json:1: pdf-1: have a.pdf in the repository, named in the prompt",
            "",
            "Next: read the suites, then `zelda validate`.",
        ],
    )
    written = suite.read_bytes()
    (tmp_path / "evals.json").write_text(f"\n{EVALS}")
    assert imported(tmp_path)[1].startswith("kept zelda/imported/test-pdf-1.yaml\n")
    assert suite.read_bytes() == written
    suite.write_text("prompt: Mine.\n")
    code, said = imported(tmp_path)
    assert (code, suite.read_text()) == (1, "prompt: Mine.\n")
    assert "These say something else already: zelda/imported/test-pdf-1.yaml." in said
    assert imported(tmp_path, "--force")[0] == 0
    assert suite.read_bytes() == written
    # One that is named twice is read once, and names of other suites are not taken.
    (tmp_path / "zelda/test-a.yaml").write_text("name: pdf-1\nprompt: x\n")
    _, said = imported(tmp_path, str(tmp_path))
    assert said.splitlines()[0] == "wrote zelda/imported/test-pdf-1-2.yaml"
