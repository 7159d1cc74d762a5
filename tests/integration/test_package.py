"""What the package index gets: a wheel and an sdist that hold what they need and nothing else."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from zelda_ci import __version__

REPOSITORY = Path(__file__).parents[2]
KINDS = {".py", ".j2", ".css", ".js", ".json", ".yaml", ".md", ".typed"}
BESIDE = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "docs", "pyproject.toml", "schemas", ".gitignore"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def names_in(built: Path, package: str) -> set[str]:
    (file,) = built.glob(f"*.{package}")
    if package == "whl":
        return set(zipfile.ZipFile(file).namelist())
    return {name.partition("/")[2] for name in tarfile.open(file).getnames()}


def code() -> set[str]:
    """Everything of the package, with templates, style sheets, cassettes and the demo's project; no caches."""
    found = [path for path in (REPOSITORY / "zelda_ci").rglob("*") if not {"__pycache__", ".zelda"} & set(path.parts)]
    assert {path.suffix for path in found} >= KINDS
    return {str(path.relative_to(REPOSITORY)) for path in found if path.is_file()}


@pytest.mark.parametrize(("package", "beside"), [("tar.gz", BESIDE), ("whl", {f"zelda_ci-{__version__}.dist-info"})])
def test_the_package_holds_what_it_needs_and_nothing_else(built: Path, package: str, beside: set[str]) -> None:
    names, sources = names_in(built, package), code()
    assert sources - names == set()
    assert {name.partition("/")[0] for name in names - sources} == beside
    if package == "tar.gz":
        assert {f"schemas/{path.name}" for path in (REPOSITORY / "schemas").iterdir()} - names == set()


def test_the_package_index_shows_a_readme_whose_links_lead_into_the_release(built: Path) -> None:
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as wheel:
        text = wheel.read(f"zelda_ci-{__version__}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []
    ours = rf"https://\S+/zelda-ci/zelda-ci/(?:blob/)?v{re.escape(__version__)}/([^#]+)(?:#.*)?"
    paths = [found[1] for found in (re.fullmatch(ours, link) for link in links) if found]
    assert len(paths) > 15
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
