"""What of a project is not in the tested tree, submodules and files of Git LFS too: said before anything is spent."""

from collections.abc import Iterator, Mapping

from zelda_ci.domain.numbers import format_count, some_of
from zelda_ci.domain.workspace import NamedContents, WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.base_commit import UNAVAILABLE

MAX_NAMED, MAX_FILES = 5, 10

SUBMODULES = "Give actions/checkout `submodules: recursive`; elsewhere run `git submodule update --init --recursive`."
FETCH = "Fetch submodules with their history, and Git LFS files with `git lfs fetch` and the name of the other commit."
LFS = "Give actions/checkout `lfs: true`; elsewhere run `git lfs pull`."


def about_the_tree(source: WorkspaceSource) -> Iterator[str]:
    """What is not tested, and how it would be."""
    if source.changed and not source.parent:
        count = format_count(len(source.changed), "uncommitted file")
        listing = some_of(source.changed, MAX_FILES)
        yield f"{count} will not be tested, since a commit is: {listing}. Commit what matters."
    if source.left_out:
        listing = some_of(source.left_out, MAX_FILES)
        yield f"Left out of the working tree, since credentials may be in them: {listing}. Commit what is none."
    yield from about_contents(source.contents)


def about_contents(contents: NamedContents) -> Iterator[str]:
    """What of them no session sees, and how it would."""
    if absent := contents.submodules.missing:
        yield f"{_lacking(absent, 'submodule', ', so sessions find empty folders')} {SUBMODULES}"
    if absent := contents.lfs.missing:
        yield f"{_lacking(absent, 'file', ' of Git LFS, so sessions find pointers')} {LFS}"
    if contents.changed:
        count, listing = format_count(len(contents.changed), "submodule"), some_of(sorted(contents.changed), MAX_NAMED)
        yield (
            f"What is changed in {count} will not be tested, but the commit that the project names: {listing}. "
            "Commit what matters there and in the project."
        )


def check_fair(base: NamedContents, head: NamedContents) -> None:
    """See to it that neither side is tested without what the other has.

    What neither has is fair: a workflow that checks out no submodules does so for both.

    Raises:
        WorkspaceError: One of them lacks something.
    """
    found = []
    for noun, old, new in (("submodule", base.submodules, head.submodules), ("Git LFS file", base.lfs, head.lfs)):
        if not new.missing or new.present or old.present:
            lost = {path: why for path, why in old.missing.items() if path not in new.missing}
            new_lost = {path: why for path, why in new.missing.items() if path in old.present}
            found += [_lacking(lost, noun, " of the base commit")] if lost else []
            found += [_lacking(new_lost, noun, " of the tested commit that the base has")] if new_lost else []
    if found:
        raise WorkspaceError(f"It would not be a fair comparison. {' '.join(found)}", hint=FETCH, code=UNAVAILABLE)


def _lacking(paths: Mapping[str, str], noun: str, more: str) -> str:
    """The first of what the checkout lacks, each with the reason where there is a special one, in a sentence."""
    listing = some_of([f"{path} ({why})" if why else path for path, why in sorted(paths.items())], MAX_NAMED)
    return f"The checkout lacks {format_count(len(paths), noun)}{more}: {listing}."
