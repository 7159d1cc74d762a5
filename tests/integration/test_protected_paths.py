"""Protected files are as they were committed when build and tests run, whatever a session did to them."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import needs
from tests.support.projects import Project, folder, repository
from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.domain.workspace import Workspace
from zelda_ci.workspace.clean_checkout import CheckedOut
from zelda_ci.workspace.workspaces import Workspaces

FILES: dict[str, str | bytes] = {
    "src/a.py": "def a():\n    return 1\n",
    "tests/test_a.py": "from src.a import a\nassert a() == 1\n",
    "tests/data/expected.bin": bytes(range(256)),
    "build.sh": "#!/bin/sh\ntest -f src/a.py\n",
    ".gitignore": ".zelda/\nignored/\n*.pyc\n",
}
PROTECTED = ("tests/**", "build.sh")

ATTACKS = {
    "edited and committed": ("echo pass > tests/test_a.py; git commit -qam cheat", ["tests/test_a.py"]),
    "its times forged": (
        """
            cp -p tests/test_a.py t; echo 'from src.a import a;assert a() == 9' > tests/test_a.py
            truncate -s $(stat -c %s t) tests/test_a.py; touch -r t tests/test_a.py; rm t; git update-index -q --refresh
        """,
        ["tests/test_a.py"],
    ),
    "hidden from git": (
        """
            git update-index --assume-unchanged tests/test_a.py; git update-index --skip-worktree build.sh
            echo pass > tests/test_a.py; echo true > build.sh; echo '*' > "$(git rev-parse --git-path info/exclude)"
        """,
        ["build.sh", "tests/test_a.py"],
    ),
    "removed": ("rm -r tests build.sh", ["build.sh", "tests/data/expected.bin", "tests/test_a.py"]),
    "renamed": ("git mv tests/test_a.py tests/b.py", ["tests/b.py", "tests/test_a.py"]),
    "a file added": ("echo 'import os; os._exit(0)' > tests/conftest.py", ["tests/conftest.py"]),
    "an ignored file tracked": ("echo x > tests/x.pyc; git add -f tests/x.pyc", ["tests/x.pyc"]),
    "the mode": ("chmod -x build.sh", ["build.sh"]),
    "a link in place of a file": ("ln -sf ../src/a.py tests/test_a.py", ["tests/test_a.py"]),
    "a link in place of the folder": (
        "cp -r tests fake; echo pass > fake/test_a.py; rm -r tests; ln -s fake tests",
        ["tests/data/expected.bin", "tests/test_a.py"],
    ),
    "a link out in place of the folder": (
        "rm -r tests; ln -s /etc tests",
        ["tests/data/expected.bin", "tests/test_a.py"],
    ),
    "a folder in place of a file": ("rm build.sh; mkdir build.sh; echo x > build.sh/x", ["build.sh", "build.sh/x"]),
    "a pipe in place of a file": ("rm tests/test_a.py; mkfifo tests/test_a.py", ["tests/test_a.py"]),
    "a repository in place of the folder": (
        "rm -r tests; git init -q tests; echo x > tests/test_a.py; cd tests; git add .; git commit -qm x",
        ["tests/data/expected.bin", "tests/test_a.py"],
    ),
    "attributes": (
        "echo '* text eol=crlf filter=evil ident' > .gitattributes; echo pass > tests/test_a.py",
        ["tests/test_a.py"],
    ),
    "configuration": (
        """
            git config core.hooksPath $PWD/hooks; git config filter.evil.smudge 'echo pass'; git config core.fsmonitor x
            mkdir hooks; printf '#!/bin/sh\\necho pass > tests/test_a.py\\n' > hooks/post-checkout; chmod +x hooks/*
            echo '* filter=evil' > .gitattributes
        """,
        [],
    ),
    "the whole repository": ("rm -rf .git; git init -q; echo pass > tests/test_a.py", ["tests/test_a.py"]),
    "everything": ("rm -rf ./* .git", ["build.sh", "tests/data/expected.bin", "tests/test_a.py"]),
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = repository(tmp_path, FILES)
    (made.path / "build.sh").chmod(0o755)
    made.commit()
    return made


def checked_after(project: Project, script: str, look: str = "true", **settings: Any) -> tuple[CheckedOut, str]:
    """What is restored after a session that runs a script, and what a test command there prints."""

    async def work(workspaces: Workspaces, workspace: Workspace) -> tuple[CheckedOut, str]:
        await workspaces.run_command(workspace, script, 60, phase="session")
        checked = await workspaces.check_out_again(workspace)
        said = await workspaces.run_command(checked.workspace, look, 60, phase="test")
        return checked, str(said.output)

    done: tuple[CheckedOut, str] = project.work(work, **{"protected_paths": PROTECTED, **settings})
    return done


LOOK = """\
for file in tests/test_a.py tests/data/expected.bin build.sh; do test -h "$file" || sha256sum "$file"; done
find tests build.sh | sort; test -h tests && echo LINK; stat -c %a build.sh
"""


@pytest.mark.parametrize("attack", ATTACKS)
def test_protected_files_are_as_committed(project: Project, attack: str) -> None:
    script, changed = ATTACKS[attack]
    checked, said = checked_after(project, script, LOOK)
    expected = subprocess.run(["sh", "-c", LOOK], cwd=project.path, capture_output=True, text=True, check=False).stdout
    assert said == expected
    assert sorted(checked.restored) == changed


@pytest.mark.parametrize("level", ["full", "uid", "landlock", "none"])
def test_it_is_so_at_every_level_and_nothing_that_a_session_left_in_temporary_folders_is_there(
    place: Path, level: IsolationLevel
) -> None:
    project = repository(place, FILES)
    project.level = level
    needs.level(level)
    before = project.fingerprint()
    script, changed = ATTACKS["a link in place of the folder"]
    name = f"zelda-planted-{os.getpid()}"
    shared = "/tmp /var/tmp /dev/shm $TMPDIR $HOME" if level != "none" else "$TMPDIR $HOME"
    script += f"; for d in {shared}; do touch $d/{name} 2>/dev/null; done; truncate -s 11000000 src/large.bin"
    look = f"for d in {shared}; do ls $d/{name} 2>/dev/null; done; cat tests/test_a.py && touch made && echo can write"
    checked, said = checked_after(project, script, look)
    assert said == "from src.a import a\nassert a() == 1\ncan write\n"
    assert sorted(checked.restored) == changed
    assert [str(name) for name in checked.left_out] == ["src/large.bin"]
    assert project.leftovers() == []
    assert project.fingerprint() == before


def test_the_rest_of_the_work_is_there_and_nothing_that_git_ignores(project: Project) -> None:
    script = """
        printf 'def a():\\n    return 2\\n' > src/a.py; echo new > src/new.py; git add src; git commit -qm work
        echo late > src/late.py; mkdir ignored; echo x > ignored/plugin.py; rm .gitignore; git config user.name Me
        ln -s new.py src/link; chmod +x src/new.py; echo evil > "$HOME/.bashrc"; echo evil > "$TMPDIR/x"
    """
    look = """
        cat src/a.py src/new.py src/late.py; readlink src/link; test -x src/new.py && echo executable
        ls -a "$HOME" "$TMPDIR"; ls -d ignored .gitignore; git log --oneline | wc -l; git config user.name
    """
    checked, said = checked_after(project, script, look)
    assert "return 2\nnew\nlate\nnew.py\nexecutable\n" in said
    assert "evil" not in said
    assert "bashrc" not in said
    assert "Zelda CI" in said
    assert checked.restored == ()
    assert checked.left_out == ()


def test_patterns_are_those_of_the_projects_folder(tmp_path: Path) -> None:
    made = repository(tmp_path, {"pkg [1]/tests/a": "1\n", "tests/a": "1\n", "pkg [1]/deep/conftest.py": "1\n"})
    part = Project(made.path / "pkg [1]", made.home)
    script = "echo 2 > tests/a; echo 2 > ../tests/a; echo 2 > deep/conftest.py; mkdir more; echo 2 > more/conftest.py"
    checked, said = checked_after(
        part, script, "cat tests/a ../tests/a deep/conftest.py; ls", protected_paths=("tests", "**/conftest.py")
    )
    assert said.startswith("1\n2\n1\n")
    assert "more" not in said
    assert [str(name) for name in checked.restored] == [
        "pkg [1]/deep/conftest.py",
        "pkg [1]/more/conftest.py",
        "pkg [1]/tests/a",
    ]


def test_a_project_without_a_repository_is_protected_too(tmp_path: Path) -> None:
    plain = folder(tmp_path, FILES)
    checked, said = checked_after(
        plain, "echo pass > tests/test_a.py; echo 1 > src/b.py", "cat tests/test_a.py src/b.py"
    )
    assert said == "from src.a import a\nassert a() == 1\n1\n"
    assert [str(name) for name in checked.restored] == ["tests/test_a.py"]
