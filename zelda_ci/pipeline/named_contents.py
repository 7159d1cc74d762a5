"""Submodules and files of Git LFS that are not in the tested tree: said before anything is spent."""

from collections.abc import Iterator, Mapping, Sequence

from zelda_ci.domain import numbers
from zelda_ci.domain.workspace import NamedContents, Parts
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.base_commit import UNAVAILABLE

MAX_NAMED = 5

SUBMODULES = "Give actions/checkout `submodules: recursive`; elsewhere run `git submodule update --init --recursive`."
FETCH = "Fetch submodules with their history, and Git LFS files with `git lfs fetch` and the name of the other commit."
LFS = "Give actions/checkout `lfs: true`; elsewhere run `git lfs pull`."


def about_contents(contents: NamedContents) -> Iterator[str]:
    """What of them no session sees, and how it would."""
    if absent := contents.submodules.missing:
        count = numbers.format_count(len(absent), "submodule")
        yield f"The checkout lacks {count}, so sessions find empty folders: {_listed(absent)}. {SUBMODULES}"
    if pointers := contents.lfs.missing:
        count = numbers.format_count(len(pointers), "file")
        yield f"The checkout lacks {count} of Git LFS, so sessions find pointers: {_listed(pointers)}. {LFS}"
    if contents.changed:
        count = numbers.format_count(len(contents.changed), "submodule")
        listing = _listed(dict.fromkeys(contents.changed, ""))
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
    kinds = (("submodule", base.submodules, head.submodules), ("Git LFS file", base.lfs, head.lfs))
    found = [sentence for noun, old, new in kinds for sentence in _differences(noun, old, new)]
    if found:
        raise WorkspaceError(f"It would not be a fair comparison. {' '.join(found)}", hint=FETCH, code=UNAVAILABLE)


def _differences(noun: str, base: Parts, head: Parts) -> Iterator[str]:
    if head.missing and not (head.present or base.present):
        return
    lacks = {path: why for path, why in base.missing.items() if path not in head.missing}
    if lacks:
        yield f"The checkout lacks {numbers.format_count(len(lacks), noun)} of the base commit: {_listed(lacks)}."
    lacks = {path: why for path, why in head.missing.items() if path in base.present}
    if lacks:
        count = numbers.format_count(len(lacks), noun)
        yield f"The checkout lacks {count} of the tested commit that the base has: {_listed(lacks)}."


def _listed(paths: Mapping[str, str]) -> str:
    """The first, each with the reason where there is a special one, and how many more."""
    named: Sequence[str] = [f"{path} ({why})" if why else path for path, why in sorted(paths.items())]
    more = len(named) - MAX_NAMED
    return ", ".join(named[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
