"""Projects whose commits only name some of their contents: real submodules, and files of Git LFS.

Git LFS itself need not be installed: its filter is a shell script here, and its storage is laid out as it does.
"""

import hashlib
import shutil
from pathlib import Path

from tests.support.projects import Project, repository

ATTRIBUTES = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
CLEAN = (
    "t=$(mktemp); cat > $t; printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' "
    "$(sha256sum < $t | cut -d' ' -f1) $(stat -c %s $t); rm $t"
)


def add_submodule(project: Project, library: Path | str, path: str) -> None:
    """As `git submodule add` and a commit do it."""
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), path)
    project.commit(f"Add {path}")


def with_nested(tmp_path: Path) -> Project:
    """A project with a submodule that has one itself, both checked out."""
    inner = repository(tmp_path, {"deep.txt": "deep\n"}, name="inner")
    library = repository(
        tmp_path, {"src/lib.py": "X = 1\n", "run.sh": "echo lib\n", "lib.txt": "text\n"}, name="library"
    )
    (library.path / "run.sh").chmod(0o755)
    add_submodule(library, inner.path, "inner")
    project = repository(tmp_path, {"README.md": "hello\n", "lib-a/x": "before\n", "lib.txt": "after\n"})
    add_submodule(project, library.path, "lib")
    project.git("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--recursive")
    return project


def use_lfs(project: Project, folder: Path | None = None) -> None:
    """Give files that end with .bin to Git LFS."""
    top = folder or project.path
    (top / ".gitattributes").write_text(ATTRIBUTES)
    for name, value in (("clean", CLEAN), ("smudge", "cat"), ("required", "true")):
        project.git("config", f"filter.lfs.{name}", value, cwd=top)


def pointer(content: bytes) -> str:
    """What git keeps of a file of Git LFS."""
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"


def keep(repository_folder: Path, content: bytes) -> Path:
    """Put a content where Git LFS has them."""
    digest = hashlib.sha256(content).hexdigest()
    place = repository_folder / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def clone(project: Project, target: Path, *arguments: str) -> Project:
    """The same project, cloned as a workflow or a colleague would."""
    project.git("-c", "protocol.file.allow=always", "clone", "-q", *arguments, f"file://{project.path}", str(target))
    (target / ".zelda").mkdir()
    return Project(target, project.home)


def forget(project: Project, path: str) -> None:
    """Remove a submodule's files and its repository, as if it had never been checked out."""
    project.git("submodule", "deinit", "-q", "-f", path)
    shutil.rmtree(project.path / ".git/modules" / path, ignore_errors=True)
