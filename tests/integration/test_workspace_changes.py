"""What a session changed is found, whatever it did to hide, break or misuse the way of finding it."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE
from tests.support.projects import ENVIRON, Project, folder, repository
from zelda_ci.domain.workspace import Changes, Workspace
from zelda_ci.workspace.workspaces import Workspaces

FILES: dict[str, str | bytes] = {
    "README.md": "hello\n",
    "src/a.py": "def a():\n    return 1\n",
    "src/b.py": "".join(f"line {n}\n" for n in range(50)),
    "data.bin": bytes(range(256)) * 4,
    "link.txt": "will become a link\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = repository(tmp_path, FILES)
    (made.path / "link").symlink_to("README.md")
    made.commit()
    made.level = "none"
    return made


def applied(project: Project, patch: str, tmp_path: Path, encoding: str = "utf-8") -> Path:
    """The start state with the patch applied by plain git."""
    clone = tmp_path / "applied"
    project.git("clone", "-q", str(project.path), str(clone))
    subprocess.run(
        ["git", "apply", "--binary", "-"],
        cwd=clone,
        env=ENVIRON,
        input=patch.encode(encoding),
        check=True,
        capture_output=True,
    )
    return clone


def test_every_kind_of_change_is_in_the_patch_and_can_be_applied(project: Project, tmp_path: Path) -> None:
    changes, patch = project.changes_after(r"""
        set -e
        printf 'def a():\n    return 2\n' > src/a.py
        git mv src/b.py src/renamed.py
        git commit -qam 'committed'
        printf '\000\001\002' > data.bin
        head -c 3000 /dev/urandom > new.bin
        rm link.txt; ln -s src link.txt
        rm link; ln -s elsewhere link
        printf '#!/bin/sh\n' > run.sh; chmod +x run.sh
        chmod +x README.md
        mkdir -p deep/er; printf 'no newline' > deep/er/file
        : > empty
    """)
    kept = ("README.md", "data.bin", "deep/er/file", "empty", "link", "link.txt", "new.bin", "run.sh", "src/a.py")
    assert changes.files == (*kept, "src/renamed.py")
    assert (changes.insertions, changes.deletions) == (5, 3)
    assert changes.patch_bytes == len(patch.encode())
    assert not changes.truncated
    assert "rename from src/b.py\nrename to src/renamed.py" in patch
    assert "old mode 100644\nnew mode 100755" in patch
    clone = applied(project, patch, tmp_path)
    assert (clone / "src/a.py").read_text().endswith("return 2\n")
    assert (clone / "data.bin").read_bytes() == b"\0\1\2"
    assert len((clone / "new.bin").read_bytes()) == 3000
    assert (clone / "link.txt").readlink() == Path("src")
    assert (clone / "link").readlink() == Path("elsewhere")
    assert os.access(clone / "README.md", os.X_OK)
    assert (clone / "deep/er/file").read_text() == "no newline"


@pytest.mark.parametrize("what", ["./* .gitignore .git", "../*"])
def test_deleting_everything_is_a_change(project: Project, what: str) -> None:
    changes, _ = project.changes_after(f"rm -rf {what} 2>/dev/null; find $PWD/.. -delete 2>/dev/null; true")
    assert len(changes.files) == 7
    assert changes.insertions == 0


def test_ignored_files_are_left_out_unless_the_session_committed_them(project: Project) -> None:
    assert project.changes_after("touch README.md src/*; git status >/dev/null")[1] == ""
    changes, patch = project.changes_after("""
        printf 'node_modules/\\n*.log\\ndist/\\n' > .gitignore
        mkdir -p node_modules/pkg dist; echo x > node_modules/pkg/index.js; echo y > debug.log
        echo built > dist/app.js; git add -f dist/app.js; git commit -qm 'the build'
        echo shown > src/new.py
    """)
    assert changes.files == (".gitignore", "dist/app.js", "src/new.py")
    assert "node_modules/pkg" not in patch


def test_odd_names_and_forms_are_changes_like_any_other(project: Project, tmp_path: Path) -> None:
    changes, patch = project.changes_after(r"""
        for name in 'with space' '-rf' 'quo"te' 'back\slash' ':(top)x' '*' '~' "new
line"; do echo odd > "./$name"; done
        printf odd > "$(printf 'not-utf8-\377')"
        rm README.md && mkdir README.md && echo in > README.md/inside
        rm -r src && echo flat > src
    """)
    assert {"not-utf8-?", "new\nline"} < {*changes.files}
    assert {*changes.files} > {"README.md", "README.md/inside", "src", "src/a.py", "src/b.py"}
    assert len(changes.files) == 14
    clone = applied(project, patch.replace(r"not-utf8-\377", "not-utf8"), tmp_path)
    assert (clone / "new\nline").read_text() == "odd\n"
    assert (clone / "README.md/inside").read_text() == "in\n"
    assert (clone / "src").read_text() == "flat\n"


def test_text_in_another_encoding_is_as_in_the_file_unless_a_secret_is_beside_it(
    project: Project, tmp_path: Path
) -> None:
    latin = "gr\xfcn\nwei\xdf\n".encode("latin-1")
    project.write({"latin.txt": latin, "secret.txt": latin})
    project.commit()
    secret = "ghp_" + "".join("0a1B2c3D4e5F6g7H8i9J"[index % 20] for index in range(36))
    patch = project.home / "changes.patch"

    async def work(workspaces: Workspaces, workspace: Workspace) -> None:
        script = f"printf 'blau \\344\\n' >> latin.txt; printf 'token={secret} \\344\\n' >> secret.txt"
        await workspaces.run_command(workspace, script, PATIENCE)
        await workspaces.changes(workspace, patch)

    project.work(work)
    content = patch.read_bytes()
    assert b" wei\xdf\n+blau \xe4\n" in content
    assert secret.encode() not in content
    clean = content[: content.index(b"diff --git a/secret.txt")]
    clone = applied(project, clean.decode("latin-1"), tmp_path, "latin-1")
    assert (clone / "latin.txt").read_bytes() == latin + b"blau \xe4\n"


def test_names_that_differ_by_case_alone_are_two(project: Project, tmp_path: Path) -> None:
    # As git says of a project on the disk of a Mac or of Windows.
    project.git("config", "core.ignorecase", "true")
    changes, patch = project.changes_after(
        "mv README.md readme.md; mkdir SRC; echo new > SRC/a.py; echo more > src/A.py"
    )
    assert changes.files == ("SRC/a.py", "readme.md", "src/A.py")
    assert (applied(project, patch, tmp_path) / "SRC/a.py").read_text() == "new\n"


PLANTS = {
    "settings": r"""
        mkdir hooks; printf '#!/bin/sh\ntouch {trace}\n' | tee hooks/post-index-change > hooks/post-checkout
        chmod +x hooks/*; git config core.hooksPath hooks; git config core.fsmonitor 'touch {trace}'
        git config filter.evil.clean 'touch {trace}; cat'; git config filter.evil.process 'touch {trace}'
        git config filter.evil.required true; git config diff.evil.textconv 'touch {trace}; cat'
        git config diff.evil.command 'touch {trace}'; echo '* filter=evil diff=evil' > .gitattributes
        git config diff.external 'touch {trace}'; git config alias.diff-index '!touch {trace}'
        git config core.pager 'touch {trace}'; git config core.editor 'touch {trace}'
    """,
    "home": "git config --global core.fsmonitor 'touch {trace}'; git config --global filter.lfs.clean 'touch {trace}'",
    "include": "printf '[core]\\n\\tfsmonitor = touch {trace}\\n\\tworktree = /etc\\n' > evil;"
    "git config include.path $PWD/evil; echo '*' > $(git rev-parse --git-path info/exclude)",
    "objects": "git replace $(git rev-parse HEAD:README.md) $(git rev-parse HEAD:src/a.py);"
    "echo /tmp > $(git rev-parse --git-path objects/info/alternates)",
    "flags": "git update-index --assume-unchanged src/a.py; git update-index --skip-worktree src/b.py;"
    "echo '* -diff binary' > .gitattributes; touch $(git rev-parse --git-path index.lock)",
    "no repository": "rm -rf .git ../git",
    "own repository": "rm .git; git init -q; git config core.fsmonitor 'touch {trace}'; git add .; git commit -qm mine",
    "elsewhere": "echo 'gitdir: /nowhere' > .git",
    "bare in the tree": "git init -q --bare . ;"
    "printf '[core]\\n\\tbare = true\\n\\tfsmonitor = touch {trace}\\n' > config",
    "broken index": "echo broken > $(git rev-parse --git-path index)",
    "index pipe": "rm $(git rev-parse --git-path index); mkfifo $(git rev-parse --git-path index)",
    "no access": "mkdir -p ../limit.json/inner; chmod 000 ..",
    "nothing left of the run": "d=$(TMPDIR=/tmp mktemp -d); cp -a . $d/ws; cd ..; rm -rf *; mv $d/ws ws; rmdir $d",
    "trap for the measurement": "for n in changes git2 index trash; do rm -rf ../$n; ln -s /etc ../$n; done",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_nothing_that_the_session_planted_is_run_or_believed(project: Project, tmp_path: Path, plant: str) -> None:
    trace = tmp_path / "ran"
    script = PLANTS[plant].replace("{trace}", str(trace))

    async def work(workspaces: Workspaces, workspace: Workspace) -> Changes:
        line = f"echo mine >> src/a.py; echo new > zzz.txt; echo more >> src/b.py\n{script}"
        done = await workspaces.run_command(workspace, line, PATIENCE)
        assert done.exit_code == 0, done.output
        trace.unlink(missing_ok=True)
        return await workspaces.changes(workspace, tmp_path / "patch")

    before = project.fingerprint()
    changes = project.work(work)
    assert not trace.exists()
    assert {"src/a.py", "src/b.py", "zzz.txt"} <= set(changes.files)
    assert "+mine" in (tmp_path / "patch").read_text()
    assert project.fingerprint() == before
    assert project.leftovers() == []


@pytest.mark.parametrize(
    "trap",
    [
        "yes '*.pattern' | head -c 2000000 > $name",
        "ln -s /dev/zero $name",
        "mkfifo $name.pipe; ln -s $name.pipe $name",
        "mkdir $name",
    ],
)
def test_files_that_git_reads_cannot_hold_it_up(project: Project, trap: str) -> None:
    names = ".gitignore .gitattributes .gitmodules src/.gitignore src/.gitattributes"
    script = f"for name in {names}; do rm -f $name; {trap}; done; echo new > zzz.txt; echo mine >> src/a.py"
    changes, patch = project.changes_after(script)
    assert {"src/a.py", "zzz.txt"} <= set(changes.files)
    assert "+mine" in patch


def test_special_files_closed_folders_and_deep_trees_do_no_harm(project: Project, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/b.py").write_text("the developer's secret\n")
    changes, patch = project.changes_after(rf"""
        mkfifo pipe README.pipe; rm README.md; mkfifo README.md
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
        mkdir closed; echo x > closed/x; chmod 000 closed
        echo secret > unreadable; chmod 000 unreadable
        ln -s / root; ln -s /proc/self/fd/0 zero; ln -s . loop; rm -rf src; ln -s {tmp_path}/outside src
        printf '*.txt working-tree-encoding=UTF-16\n*.odd working-tree-encoding=no-such\n' > .gitattributes
        printf 'not utf-16\377' > a.txt; echo x > b.odd; printf 'gr\374n\n' > latin1.md
        python3 -c "
import os
for n in range(200):
    os.mkdir('d' * 40); os.chdir('d' * 40)
open('bottom', 'w').write('x')
"
    """)
    assert {"README.md", "root", "zero", "loop", "src", "a.txt", "b.odd", "latin1.md"} <= set(changes.files)
    assert "deleted file mode 100644" in patch
    assert "pipe" not in changes.files
    assert "developer's secret" not in patch
    assert "+gr\N{REPLACEMENT CHARACTER}n" in patch
    assert project.leftovers() == []


def test_a_workspace_that_was_replaced_by_a_link_counts_as_deleted(project: Project, tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim/file").write_text("precious\n")

    async def work(workspaces: Workspaces, workspace: Workspace) -> Changes:
        line = f"cd ..; mv ws old; ln -s {tmp_path}/victim ws"
        assert (await workspaces.run_command(workspace, line, PATIENCE)).exit_code == 0
        after = await workspaces.run_command(workspace, "touch here", PATIENCE)
        assert (after.exit_code, "working folder is gone" in after.output) == (1, True)
        return await workspaces.changes(workspace, tmp_path / "patch")

    changes = project.work(work)
    assert len(changes.files) == 7
    assert "precious" not in (tmp_path / "patch").read_text()
    assert [entry.name for entry in (tmp_path / "victim").iterdir()] == ["file"]
    assert project.leftovers() == []


def test_repositories_inside_count_as_the_files_they_hold(project: Project, tmp_path: Path) -> None:
    changes, patch = project.changes_after("""
        git init -q inner; cd inner; echo one > one; git add .; git commit -qm inner
        git init -q innermost; echo two > innermost/two
        mkdir ../empty; git init -q ../empty; mkdir ../fake; echo 'gitdir: /nowhere' > ../fake/.git; echo f > ../fake/f
        git init -q --bare ../bare.git
    """)
    assert {"inner/one", "inner/innermost/two", "fake/f"} <= set(changes.files)
    assert not any("/.git/" in name for name in changes.files)
    assert (applied(project, patch, tmp_path) / "inner/innermost/two").read_text() == "two\n"


def test_huge_files_are_named_and_not_read(project: Project) -> None:
    project.write({"gone.bin": os.urandom(11 << 20)})
    project.commit()
    changes, patch = project.changes_after(
        "rm gone.bin; truncate -s 1T huge; head -c 12000000 /dev/zero > large; echo x > small"
    )
    assert changes.files == ("gone.bin", "huge", "large", "small")
    assert changes.truncated
    assert sorted(patch.splitlines()[:3]) == [
        f"# not in this patch: 'gone.bin' ({11 << 20} bytes before)",
        "# not in this patch: 'huge' (1099511627776 bytes)",
        "# not in this patch: 'large' (12000000 bytes)",
    ]
    assert "+x" in patch
    assert len(patch) < 1000


@pytest.mark.parametrize("make", [repository, folder])
def test_an_edit_that_changes_neither_size_nor_second_is_found_each_time(tmp_path: Path, make: Any) -> None:
    files: dict[str, str | bytes] = {f"f{n}": "a" for n in range(30)}
    project = make(tmp_path, files)

    async def work(workspaces: Workspaces, workspace: Workspace) -> list[Changes]:
        found = []
        for content in ("b", "c"):
            for name in files:
                (workspace.root / name).write_text(content)
            found.append(await workspaces.changes(workspace, tmp_path / "patch"))
        return found

    for changes in project.work(work):
        assert (changes.files, changes.insertions) == (tuple(sorted(files)), 30)


def test_the_measurement_changes_nothing_in_the_workspace(project: Project, tmp_path: Path) -> None:
    async def work(workspaces: Workspaces, workspace: Workspace) -> tuple[str, str]:
        line = "ls -lR --full-time . ../git; find . inner/.git -type f | xargs cat | cksum; test -p .gitmodules"
        made = "echo x > src/new; git init -q inner; mkfifo .gitmodules; git add src"
        await workspaces.run_command(workspace, made, PATIENCE)
        before = await workspaces.run_command(workspace, line, PATIENCE)
        await workspaces.changes(workspace, tmp_path / "patch")
        after = await workspaces.run_command(workspace, line, PATIENCE)
        assert after.exit_code == 0
        return before.output, after.output

    before, after = project.work(work)
    differing = [line for line in before.splitlines() if line not in after.splitlines()]
    # The time of the folders whose files were set aside.
    assert {line.split()[-1] for line in differing} <= {"inner", "."}
