"""Projects on disk, and what is said about them."""

from pathlib import Path

from zelda_ci.config import project
from zelda_ci.config.project import InvalidConfigError, LoadedProject
from zelda_ci.config.suites import LoadedSuite

GOOD = "prompt: Do it.\n"


def make(root: Path, **files: str | bytes) -> Path:
    """Write files; `zelda_test_a` stands for zelda/test-a.yaml, `config` for zelda.config.yaml."""
    for key, content in files.items():
        name = "zelda.config.yaml" if key == "config" else f"zelda/{key.removeprefix('zelda_').replace('_', '-')}.yaml"
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def problems(root: Path) -> list[str]:
    """Every line that the user sees."""
    try:
        project.load(root)
    except InvalidConfigError as invalid:
        return [str(problem) for problem in invalid.problems]
    return []


def about_suite(root: Path, text: str | bytes) -> list[str]:
    """What is said about a single suite, without the file's name."""
    lines = problems(make(root, test_x=text))
    assert all(line.startswith("zelda/test-x.yaml") for line in lines), lines
    return [line.removeprefix("zelda/test-x.yaml").removeprefix(":").lstrip() for line in lines]


def about_config(root: Path, text: str | bytes) -> list[str]:
    """What is said about the project's configuration beside a good suite, without the file's name."""
    lines = problems(make(root, config=text, test_x=GOOD))
    assert all(line.startswith("zelda.config.yaml") for line in lines), lines
    return [line.removeprefix("zelda.config.yaml").removeprefix(":").lstrip() for line in lines]


def loaded(root: Path, **files: str | bytes) -> LoadedProject:
    """A project that must be right."""
    return project.load(make(root, **files))


def only_suite(root: Path, **files: str | bytes) -> LoadedSuite:
    """The suite of a project with one."""
    (suite,) = loaded(root, **files).suites
    return suite
