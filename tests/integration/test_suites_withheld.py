"""No session finds the suites: not in its files, its history or its store. Commands do, where a suite asks for it."""

import base64
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Project, folder, repository
from zelda_ci.config.files import OwnFiles
from zelda_ci.domain.workspace import Workspace
from zelda_ci.workspace.workspaces import Workspaces

MARK = "the-answer-is-forty-two"
SUITE = f"prompt: Work.\nacceptanceCriteria: [{MARK}]\n"
CODE: dict[str, str | bytes] = {"src/a.py": "def a():\n    return 1\n", "README.md": "hello\n"}

SEARCH = f"""
    git status --porcelain --ignored
    grep -rlI {MARK} . --exclude-dir=.git | sed 's/^/file /'
    git log -p --all --format=%an | grep {MARK} | sed 's/^/log /'
    git cat-file --batch-all-objects --batch | grep -aE '{MARK}|test-.*yaml|zelda.config' | sed 's/^/object /'
    git fsck --no-dangling 2>&1 | grep -v '^notice'
    true
"""

ARRANGEMENTS: dict[str, dict[str, str | bytes]] = {
    "the default": {"zelda.config.yaml": f"# {MARK}\n", "zelda/test-a.yaml": SUITE, "zelda/test-b.yml": SUITE},
    "a folder of its own": {"zelda.config.yaml": "testDir: ./qa/suites/\n", "qa/suites/test-a.yaml": SUITE},
    "the top": {"zelda.config.yaml": 'testDir: "."\n', "test-a.yaml": SUITE},
    "prompts beside": {"zelda/test-a.yaml": "promptFile: p/a.md\n", "zelda/p/a.md": MARK, "zelda/README.md": MARK},
    "prompts elsewhere": {"zelda/test-a.yaml": "promptFile: ../prompts/a.md\n", "prompts/a.md": MARK},
    "results elsewhere": {"zelda.config.yaml": "resultsDir: out\n", "out/runs/r/result.yaml": MARK},
    "other projects": {
        "zelda/test-a.yaml": SUITE,
        "packages/one/zelda.config.yaml": "{testDir: 'e2e', judgeModel: claude-x-1}\n",
        "packages/one/e2e/test-a.yaml": SUITE,
        "packages/two/zelda/test-a.yaml": SUITE,
    },
    "odd names": {
        "zelda.config.yaml": 'testDir: "q a/\\"zwölf\\"/tab\\there"\n',
        'q a/"zwölf"/tab\there/test-\n\\x.yaml': SUITE,
        "-p/zelda/test- a.yaml": SUITE,
    },
    "a recording": {
        "zelda/test-a.yaml": SUITE,
        "tapes/a@judge.json": f'{{"format": 1, "exchanges": ["{MARK}"]}}',
        "tapes/a.json": f'{{"format": 1, "exchanges": ["{MARK}"]}}',
    },
    "something broken": {"zelda.config.yaml": "{[", "zelda/test-a.yaml": f"}}: {MARK}"},
}


def seen(project: Project, script: str = SEARCH, **settings: Any) -> str:
    """What a session finds with a shell."""

    async def look(workspaces: Workspaces, workspace: Workspace) -> str:
        done = await workspaces.run_command(workspace, script, 60)
        assert done.exit_code == 0, done.output
        return done.output

    return str(project.work(look, **settings))


def objects(base: Path) -> str:
    """What any repository among the workspaces holds, packs and loose objects alike, other than its own."""
    found = []
    for pack in base.rglob("*.pack"):
        content = pack.read_bytes()
        for at in range(12, len(content) - 20):
            if content[at : at + 1] == b"x":
                try:
                    found.append(zlib.decompressobj().decompress(content[at:]))
                except zlib.error:
                    continue
    return b"\n".join(found).decode("utf-8", "replace")


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_a_session_finds_nothing_of_the_suites(arrangement: str, tmp_path: Path) -> None:
    project = repository(tmp_path, CODE)
    project.write(ARRANGEMENTS[arrangement])
    project.git("add", "-Af")
    project.git("commit", "-qm", "with suites")
    look = f"{SEARCH} cat src/a.py README.md"
    assert seen(project, look, historyDepth=5) == "def a():\n    return 1\nhello\n"
    held = objects(project.base)
    assert MARK not in held
    assert "return 1" in held


@pytest.mark.parametrize("arrangement", ["prompts elsewhere", "odd names"])
def test_nor_in_a_copy_of_a_folder(arrangement: str, tmp_path: Path) -> None:
    project = folder(tmp_path, {**CODE, **ARRANGEMENTS[arrangement]})
    assert seen(project, f"{SEARCH} cat src/a.py README.md") == "def a():\n    return 1\nhello\n"


def test_nor_in_a_partial_clone_whose_packs_have_more(tmp_path: Path) -> None:
    origin = repository(tmp_path, {**CODE, **ARRANGEMENTS["the default"]})
    origin.git("config", "uploadpack.allowFilter", "true")
    clone = Project(tmp_path / "clone", tmp_path / "elsewhere" / "home")
    origin.git("clone", "-q", "--filter=blob:none", f"file://{origin.path}", str(clone.path))
    assert seen(clone) == ""
    assert MARK not in objects(clone.base)


def test_nor_in_trees_as_old_tools_wrote_them(tmp_path: Path) -> None:
    project = repository(tmp_path, {"zelda/test-a.yaml": SUITE})
    below = bytes.fromhex(project.git("rev-parse", "HEAD:zelda"))
    words = ("hash-object", "-w", "-t", "tree", "--literally", "--stdin")
    tree = project.git(*words, stdin=b"040000 zelda\0" + below)
    project.git("reset", "-q", "--hard", project.git("commit-tree", tree, "-m", "old"))
    assert seen(project, f"{SEARCH} ls") == ""


def test_what_the_configuration_says_today_counts_and_what_it_said_then(tmp_path: Path) -> None:
    project = repository(tmp_path, {**CODE, "zelda.config.yaml": "testDir: old\n", "old/test-a.yaml": SUITE})
    project.git("mv", "old", "between")
    project.write({"zelda.config.yaml": "testDir: between\n", "old/code.py": "x = 1\n"})
    project.commit()
    project.git("mv", "between", "new")
    project.write({"zelda.config.yaml": ""})
    project.commit()
    project.own = OwnFiles(test_dir="new")
    assert seen(project, historyDepth=9) == ""
    assert seen(project, "cat old/code.py; git log --format=%s", historyDepth=9) == "x = 1\nmore\nmore\nfirst\n"


def test_the_same_commit_becomes_the_same_commit_on_another_machine(tmp_path: Path) -> None:
    project = repository(tmp_path, CODE)
    project.commit()
    # Without suites it stays what it is, also where history is cut; with them the result names the user's own.
    assert seen(project, "git rev-parse HEAD") == project.git("rev-parse", "HEAD") + "\n"
    project.write(ARRANGEMENTS["the default"])
    theirs = project.commit()
    commit = seen(project, "git rev-parse HEAD")
    other = Project(tmp_path / "clone", tmp_path / "elsewhere" / "home")
    project.git("clone", "-q", str(project.path), str(other.path))
    assert seen(other, "git rev-parse HEAD") == commit != f"{theirs}\n"

    async def source(_: Workspaces, workspace: Workspace) -> tuple[str | None, bool]:
        return workspace.source.commit, workspace.source.dirty

    assert project.work(source) == (theirs, False)


def test_signed_merged_and_oddly_encoded_commits_keep_all_that_is_still_true(tmp_path: Path) -> None:
    project = repository(tmp_path, CODE)

    def commit(message: bytes, *parents: str, headers: bytes = b"", suites: bool = True) -> str:
        project.write({"n.txt": message} | ({"zelda/test-a.yaml": SUITE} if suites else {}))
        project.git("add", "-A")
        above = b"".join(b"parent %b\n" % parent.encode() for parent in parents)
        person = b"J\xf6rg <j@example.com> 1700000000 +0130"
        tree = project.git("write-tree").encode()
        body = b"tree %b\n%bauthor %b\ncommitter %b\n%b\n%b" % (tree, above, person, person, headers, message)
        return project.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=body)

    signed = b"encoding ISO-8859-1\ngpgsig -----BEGIN\n  line\n -----END\n"
    # Its signature is still true.
    untouched = commit(b"gr\xfcn\n", project.git("rev-parse", "HEAD"), headers=signed, suites=False)
    left = commit(b"left\n\nbody", untouched, headers=signed)
    right = commit(b"right", untouched)
    tip = commit(b"merge\n", left, right, headers=b"mergetag object 1\n type commit\n")
    project.git("update-ref", "refs/heads/main", tip)
    script = """
        git rev-list --reverse HEAD | while read name; do git cat-file commit $name | base64 -w0; echo; done
        git rev-parse HEAD^1~1
    """
    *lines, third = seen(project, script, historyDepth=9).split()
    bodies = [base64.b64decode(line) for line in lines]
    assert third == untouched
    assert bodies[1] == _body(project, untouched)
    for commit_id in (left, right, tip):
        before = _body(project, commit_id)
        (after,) = [body for body in bodies if body.endswith(before.partition(b"\n\n")[2])]
        kept = (b"author", b"committer", b"encoding")
        old, new = ([line for line in body.split(b"\n") if line.startswith(kept)] for body in (before, after))
        assert new == old
        assert b"BEGIN" not in after
        assert b"mergetag" not in after
        assert after.count(b"parent ") == before.count(b"parent ")
        assert not any(name.encode() in after for name in (left, right, tip))
    assert seen(project, historyDepth=9) == ""


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b"Foo<a@b> 1000000000 +0000", b"Foo <a@b> 1000000000 +0000"),
        (b"A <a@b>> 1000000000 +0000", b"A <a@b> 1000000000 +0000"),
        (b"A <<a@b> 1000000000 -0130 ", b"A <a@b> 1000000000 -0130"),
        (b"A <a@b>  1000000000  +0000", b"A <a@b> 1000000000 +0000"),
        (b"A <a@b> 99999999999999999999 +0000", b"A <a@b> 0 +0000"),
        (b"A <a@b>", b"A <a@b> 0 +0000"),
        (b"A 1000000000 +0000", b"A 1000000000 +0000 <> 1000000000 +0000"),
        (b"A <a@b> Mon Jan 1 2020", b"A <a@b> 0 +0000"),
        (b"A <a@b> 1 +0000\nauthor B <b@b> 2 +0000", b"A <a@b> 1 +0000"),
        (b"A", b"A <> 0 +0000"),
    ],
)
def test_whoever_made_a_commit_is_named_as_git_can_read_it(line: bytes, kept: bytes, tmp_path: Path) -> None:
    project = repository(tmp_path, {**CODE, "zelda/test-a.yaml": SUITE})
    tree = project.git("write-tree").encode()
    made = b"tree %b\nauthor %b\ncommitter C <c@example.com> 1 +0000\n\n%b" % (tree, line, b"long " * 500_000)
    tip = project.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=made)
    project.git("update-ref", "refs/heads/main", tip)
    said = seen(project, "git cat-file commit HEAD | head -c 200").encode()
    assert b"\nauthor %b\ncommitter C <c@example.com> 1 +0000\n\nlong long" % kept in said
    assert seen(project) == ""


def test_each_commit_of_a_history_keeps_all_but_the_suites(tmp_path: Path) -> None:
    project = repository(tmp_path, {**CODE, "zelda/test-a.yaml": SUITE, "file": "1", "folder/a": "2", "x y\té": "3"})
    (project.path / "file").unlink()
    shutil.rmtree(project.path / "folder")
    project.write({"file/x": "new", "folder": "new", "zelda/test-b.yaml": SUITE})
    (project.path / "x y\té").chmod(0o755)
    project.commit()
    shutil.rmtree(project.path / "file")
    (project.path / "file").symlink_to("folder")
    project.commit()
    script = "for n in HEAD HEAD~1 HEAD~2; do git ls-tree -r $n; done; git rev-parse --is-shallow-repository"
    *listed, is_shallow = seen(project, script, historyDepth=9).splitlines()
    own = [line for n in range(3) for line in project.git("ls-tree", "-r", f"HEAD~{n}").splitlines()]
    assert listed == [line for line in own if "\tzelda/" not in line]
    assert is_shallow == "false"


def _body(project: Project, name: str) -> bytes:
    return base64.b64decode(project.git("-c", "alias.raw=!git cat-file commit " + name + " | base64 -w0", "raw"))


def test_folders_of_suites_that_are_links(tmp_path: Path) -> None:
    project = repository(tmp_path, {**CODE, "quality/suites/test-a.yaml": SUITE, "shared/test-b.yaml": SUITE})
    (project.path / "zelda").symlink_to("quality/suites")
    (project.path / "quality/suites/test-b.yaml").symlink_to("../../shared/test-b.yaml")
    project.commit()
    assert seen(project) == ""
    copied = folder(tmp_path, {**CODE, "quality/suites/test-a.yaml": SUITE}, name="copied")
    (copied.path / "zelda").symlink_to("quality/suites")
    assert seen(copied) == ""


KEPT: dict[str, dict[str, str | bytes]] = {
    "tests among suites": {
        "zelda.config.yaml": "testDir: tests\n", "tests/test-a.yaml": "", "tests/test_a.py": "x",
        "k8s/test-deploy.yaml": "x", "a@judge.json": "{}", "a.json": "x",
    },
    "what steers Claude Code": {
        "zelda/test-a.yaml": "promptFile: ../CLAUDE.md\n", "CLAUDE.md": "x",
        "zelda/test-b.yaml": "promptFile: ../.claude/commands/a\n", ".claude/commands/a": "x",
    },
    "results at the top": {"zelda.config.yaml": "resultsDir: .\n", "x.txt": "x"},
    "a folder outside": {"zelda.config.yaml": "testDir: ../..\nresultsDir: ..\n", "x.txt": "x"},
    "a package called zelda": {"zelda/__init__.py": "x", "zelda/test-a.yaml": ""},
    "a folder called zelda without suites": {"zelda/notes.md": "x"},
}  # fmt: skip


@pytest.mark.parametrize("arrangement", KEPT)
def test_what_is_no_suite_stays(arrangement: str, tmp_path: Path) -> None:
    project = repository(tmp_path, KEPT[arrangement])
    kept = [name for name in KEPT[arrangement] if KEPT[arrangement][name] in {"x", "{}"}]
    assert seen(project, "; ".join(f"test -f {name} && echo {name}" for name in kept)).split() == kept


def test_files_beside_the_suites_go_too_and_the_run_says_so(tmp_path: Path) -> None:
    project = repository(tmp_path, {**CODE, "zelda/test-a.yaml": SUITE, "zelda/fixtures/f.json": MARK})

    async def notes(_: Workspaces, workspace: Workspace) -> tuple[str, ...]:
        return workspace.notes

    assert seen(project) == ""
    assert project.work(notes) == (
        "Not in the workspace, since they lie in a folder of suites: zelda/fixtures/f.json.",
    )


def test_a_project_of_nothing_but_suites_has_its_folder(tmp_path: Path) -> None:
    whole = repository(tmp_path, {**CODE, "qa/zelda.config.yaml": "", "qa/zelda/test-a.yaml": SUITE})
    project = Project(whole.path / "qa", whole.home)
    assert seen(project, "pwd; ls -A").rpartition("/")[2] == "qa\n"
    assert seen(project, f"cd ..;{SEARCH}") == ""
    hidden = repository(tmp_path, {**CODE, ".qa/own.yaml": "", ".qa/tasks/test-a.yaml": SUITE}, name="hidden")
    inner = Project(hidden.path / ".qa", hidden.home, own=OwnFiles(test_dir="tasks"))
    assert seen(inner, f"ls; cd ..;{SEARCH}") == "own.yaml\n"
    bare = repository(tmp_path, {"zelda/test-a.yaml": SUITE}, name="bare")
    bare.git("rm", "-q", ".gitignore")
    bare.commit()
    assert seen(bare) == ""


def test_the_patch_is_silent_about_suites_and_shows_what_a_session_puts_there(tmp_path: Path) -> None:
    project = repository(tmp_path, {**CODE, **ARRANGEMENTS["the default"]})
    assert project.changes_after("true")[0].files == ()
    changes, patch = project.changes_after("mkdir zelda; echo mine > zelda/test-a.yaml; echo 2 > src/a.py")
    assert changes.files == ("src/a.py", "zelda/test-a.yaml")
    assert "new file mode 100644" in patch
    assert MARK not in patch


CHECK = "cat zelda/test-a.yaml; test -f zelda.config.yaml"


def in_commands(project: Project, session: str, script: str, **settings: Any) -> tuple[str, tuple[str, ...]]:
    async def check(workspaces: Workspaces, workspace: Workspace) -> tuple[str, tuple[str, ...]]:
        done = await workspaces.run_command(workspace, session, 60)
        assert done.exit_code == 0, done.output
        checked = await workspaces.check_out_again(workspace)
        done = await workspaces.run_command(checked.workspace, script, 60)
        assert done.exit_code == 0, done.output
        return done.output, checked.restored

    return project.work(check, commandsSeeSuites=True, **settings)  # type: ignore[no-any-return]


@pytest.mark.parametrize("make", [repository, folder])
def test_commands_see_suites_where_a_suite_says_so_and_the_session_does_not(make, tmp_path: Path) -> None:
    project = make(tmp_path, {**CODE, **ARRANGEMENTS["the default"]})
    assert seen(project, commandsSeeSuites=True) == ""
    output, restored = in_commands(project, f"test ! -e zelda; {SEARCH} echo 3 > src/a.py", f"{CHECK}; cat src/a.py")
    assert (output, restored) == (f"{SUITE}3\n", ())


@pytest.mark.parametrize(
    ("make", "forgery"),
    [
        (repository, "mkdir zelda; echo mine > zelda/test-a.yaml"),
        (repository, "echo mine > zelda"),
        (repository, "ln -s src zelda"),
        (folder, "ln -s src zelda"),
    ],
)
def test_and_they_see_the_committed_ones(make, forgery: str, tmp_path: Path) -> None:
    project = make(tmp_path, {**CODE, **ARRANGEMENTS["the default"]})
    output, restored = in_commands(project, forgery, CHECK, protectedPaths=["src/**"])
    assert output == SUITE
    assert len(restored) == 1


def test_what_commands_see_lies_beyond_the_session(tmp_path: Path) -> None:
    """Its own repository borrows from a store that never had the suites."""
    project = repository(tmp_path, {**CODE, **ARRANGEMENTS["the default"]})
    script = 'cat "$(git rev-parse --git-common-dir)/objects/info/alternates"'
    lent = Path(seen(project, script, commandsSeeSuites=True).strip())
    assert MARK not in objects(lent)
    assert list(lent.glob("pack/*.pack"))
