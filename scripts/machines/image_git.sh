# What sessions do with git.
export HOME=/tmp/home GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b.c
mkdir $HOME; cd $HOME; git init -q -b main one; cd one
for each in 1 2 3; do echo $each >> file; git add -A; git commit -qm "Line $each"; done
GIT_SEQUENCE_EDITOR="sed -i '2s/pick/fixup/'" git rebase -q -i --root
test "$(git rev-list --count HEAD)" = 2
echo 4 >> file; echo y | git add -p >/dev/null; git diff --cached --quiet && exit 1
git stash -q; git stash pop -q; git commit -qam "Line 4"
git init -q ../two; git -C ../two commit -q --allow-empty -m Two
git -c protocol.file.allow=always submodule --quiet add ../two lib; git commit -qm Lib
git -c protocol.file.allow=always clone -q --recurse-submodules "$PWD" ../three
git -C ../three submodule status | grep -q lib
git worktree add -q ../tree -b topic; git -C ../tree mv file named; git -C ../tree commit -qm Rename
git merge -q --no-ff -m Merge topic; git cherry-pick --no-commit HEAD^2; git format-patch -q -1 -o .. topic
git bisect start HEAD HEAD~2 >/dev/null; git bisect run test ! -f named >/dev/null; git bisect reset 2>/dev/null
git request-pull HEAD~1 . main >/dev/null
FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --msg-filter 'sed s/Line/Row/' -- main >/dev/null 2>&1
git log --oneline main | grep -q Row
git difftool --tool-help >/dev/null; git gc -q; git fsck
git archive main | tar -t >/dev/null; git blame named >/dev/null
