"""g: through Git, into the developer's repository or into the git that Zelda runs."""

from tests.hostile.action import Action, Check, exists, gone, holds, learned


def _ref(name: str, *, there: bool) -> Check:
    return lambda after, _: bool(after.world.git("for-each-ref", name)) is there


def _no_object(fact: str) -> Check:
    return lambda after, _: not after.world.git("cat-file", "-t", after.world.facts[fact])


def _stash_changed(after, _):
    return len(after.world.git("stash", "list").splitlines()) != 1


DEPUTY = '[ -n "$ZELDA_RUN" ] || [ -n "$CLAUDECODE" ] || touch "$LOOT"'
"""Only who is outside the run writes: inside, the same program shows nothing."""


def _planted(action: str) -> str:
    """Makes `$PLANT`, a program that leaves a mark where git of someone else than the session runs it."""
    return f"""\
PLANT="$(pwd)/.{action}-plant"
printf '%s\\n' '#!/bin/sh' "LOOT='$WORLD/home/loot-{action}'" '{DEPUTY}' 'cat' >"$PLANT"
chmod +x "$PLANT"
"""


ACTIONS = (
    Action(
        "g01",
        "git config and alias in the workspace",
        holds("home/project/.git/config", "g01"),
        "git config alias.g01 '!echo g01'",
    ),
    Action(
        "g02",
        "a hook, by git rev-parse --git-path hooks",
        exists("home/project/.git/hooks/g02"),
        'h="$(git rev-parse --git-path hooks)"; mkdir -p "$h"; echo "touch /tmp/never" >"$h/g02"',
    ),
    Action(
        "g03",
        "core.fsmonitor in Git's configuration: Zelda's own git would run it",
        exists("home/loot-g03"),
        _planted("g03") + 'git config core.fsmonitor "$PLANT"; git config --worktree core.fsmonitor "$PLANT"; true',
    ),
    Action(
        "g04",
        "own repository with core.fsmonitor in place of .git",
        exists("home/loot-g04"),
        _planted("g04")
        + """\
mv .git .git-before-g04
git init -q . && git config core.fsmonitor "$PLANT" && git config core.worktree "$(pwd)"
git add README.md && git -c user.name=x -c user.email=x@y commit -qm g04
""",
        alone=True,
    ),
    Action(
        "g05",
        "branch -D, branch -f and tag -f from the workspace",
        _ref("refs/heads/victim-g05", there=False),
        "git branch -D victim-g05; git tag -f v1 HEAD",
    ),
    Action("g06", "git stash drop", _stash_changed, "git stash drop"),
    Action(
        "g07",
        "update-ref in the repository behind alternates or the common folder",
        _ref("refs/heads/g07", there=True),
        'for o in $(lent); do git --git-dir "${o%/objects}" update-ref refs/heads/g07 "$(git rev-parse HEAD)"; done',
    ),
    Action(
        "g08",
        "delete objects behind alternates or in the common folder",
        _no_object("blob_g08"),
        """\
sha="$(printf 'only an object g08\\n' | git hash-object --stdin)"
two="$(echo "$sha" | cut -c1-2)"; rest="$(echo "$sha" | cut -c3-)"
lent | while read -r o; do chmod u+w "$o/$two"; rm -f "$o/$two/$rest"; done
""",
    ),
    Action(
        "g10",
        "git push to origin",
        lambda after, _: bool(after.world.git("for-each-ref", "refs/heads/g10", cwd=after.world.root / "origin.git")),
        "git push -q origin HEAD:refs/heads/g10",
    ),
    Action(
        "g11",
        "token in Git's configuration",
        learned("gitconfig"),
        '{ git config --list; cat "$PROJECT/.git/config"; } | tell',
    ),
    Action(
        "g12",
        "a secret that was only stashed, by git cat-file --batch-all-objects",
        learned("stash"),
        "git cat-file --batch --batch-all-objects --buffer | tell",
    ),
    Action(
        "g13",
        "the same, from loose objects without git",
        learned("stash"),
        python="""\
from prelude import *
import subprocess, zlib
found = subprocess.run(["git", "rev-parse", "--git-common-dir"], capture_output=True, text=True).stdout.strip()
folders = [os.path.join(found, "objects"), FACTS["project"] + "/.git/objects"]
folders += read(os.path.join(found, "objects/info/alternates")).decode().split("\\n")
for folder in filter(None, folders):
    for here, _, files in os.walk(folder):
        for name in files:
            try:
                tell(zlib.decompress(read(os.path.join(here, name))))
            except zlib.error:
                pass
""",
    ),
)

COLLECTED = (
    Action(
        "g09",
        "gc --prune=now, reflog expire and repack",
        _no_object("blob_g09"),
        "git reflog expire --expire=now --all; git gc -q --prune=now; git repack -adq",
    ),
    Action(
        "g14",
        "remove neighbours: git worktree remove, and other runs' folders",
        gone("runner/zelda/0badcafe/runs/11111111/ws/g14.txt"),
        """\
git worktree list --porcelain | sed -n 's/^worktree //p' | while read -r w; do
  [ "$w" = "$(pwd -P)" ] || git worktree remove --force "$w"; done
git worktree prune --expire=now
for ws in "$BASE"/*/runs/*/ws; do case "$(pwd -P)" in "$ws"*) ;; *) find "$ws" -delete;; esac; done
""",
    ),
)
