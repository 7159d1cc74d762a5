"""Which states of the files that steer are the same to a suite: by the rule by which a change leaves it out. Pure.

Two states are alike to a suite if they differ only in texts that wait for a call or a file, and its trials tell that it
never called, missed, broke or touched any of them: they saw the very same texts. It fails open, as selection does: what
is not known is not alike.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from zelda_ci.compare.effects import ChangeSet, Effect, FileChange, FileText, ProjectFiles, effects_of
from zelda_ci.compare.evidence import Habits, counted
from zelda_ci.compare.impact import MIN_TRIALS, concerned
from zelda_ci.domain.fingerprint import PLATFORM, STEERING, Fingerprint, SteeringState
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.steering import UnitUse
from zelda_ci.redact import SafeText


@dataclass(frozen=True)
class _Candidate:
    """Trials of one state that may be the same to their suite as the wanted one."""

    trials: Sequence[RunResult]
    effects: Sequence[Effect]
    """What differs, by whom it concerns."""


def alike(
    exact: Sequence[RunResult],
    others: Iterable[Sequence[RunResult]],
    wanted: Fingerprint,
    today: Mapping[str, str],
) -> list[RunResult]:
    """Of trials of other states, those that saw what a trial of the wanted state would have seen.

    Args:
        exact: Trials of the suite in the wanted state.
        others: Its trials in other states, by state.
        wanted: The fingerprint of the state.
        today: What evidence must have been made with, by part of a fingerprint.
    """
    groups = [group for group in others if _is_of_suite(group[0].fingerprint, wanted)]
    candidates = [found for group in groups for found in _candidates(group, wanted)]
    if not candidates:
        return []
    trials = [*chain(exact, *groups)]
    waiting = frozenset(effect.unit or effect.path for each in candidates for effect in each.effects)
    uses = {id(run): [use for use in run.steering or () if use.unit.path in waiting] for run in chain(exact, *groups)}

    def habits(trials: Sequence[RunResult]) -> Habits:
        return Habits.of(trials, uses_of=lambda run: uses[id(run)])

    # Also what a state showed that is not alike: who calls a text in one state may call it in another.
    everything = habits(trials)
    unfelt = [each for each in candidates if not _feels(everything, each.effects, 0)]
    # These saw the texts of the wanted state, so all of them tell what a suite does there.
    tellers = counted(chain(exact, *(each.trials for each in unfelt)), today)
    evidence = everything if len(tellers) == len(trials) else habits(tellers)
    certain = [each for each in unfelt if not _feels(evidence, each.effects, MIN_TRIALS)]
    return [run for each in certain for run in each.trials if _tells(run, uses[id(run)], each.effects)]


def _feels(habits: Habits, effects: Iterable[Effect], min_trials: int) -> bool:
    """Whether a suite feels any of this, or too few trials tell."""
    for effect in effects:
        loading = frozenset(filter(effect.touches, habits.touched)) if effect.touches else frozenset[str]()
        if concerned(effect, habits, loading, min_trials):
            return True
    return False


def _tells(run: RunResult, uses: Iterable[UnitUse], effects: Iterable[Effect]) -> bool:
    """Whether a trial itself knows of all that differs that it did not feel it."""
    for effect in effects:
        if effect.scope == "files" and run.touched is None:
            return False
        if effect.scope == "unit" and not any(use.unit.path == effect.unit for use in uses):
            return False
    return True


def _is_of_suite(own: Fingerprint | None, wanted: Fingerprint) -> bool:
    """Whether only platform, code and steering files may differ."""
    if own is None:
        return False
    settled = {*own.parts, *wanted.parts} - {STEERING, *PLATFORM}
    return all(own.parts.get(part) == wanted.parts.get(part) for part in settled)


def _candidates(trials: Sequence[RunResult], wanted: Fingerprint) -> Iterator[_Candidate]:
    own = trials[0].fingerprint
    if own is None:
        return
    effects = _difference(own, wanted)
    if effects is None:
        return
    # The files are not all the same, but they are in trees that are.
    is_drawn_alike = own.steering and wanted.steering and own.steering.drawn == wanted.steering.drawn
    kept = [run for run in trials if is_drawn_alike or (run.fingerprint and run.fingerprint.tree == wanted.tree)]
    if kept:
        yield _Candidate(kept, effects)


def _difference(own: Fingerprint, wanted: Fingerprint) -> tuple[Effect, ...] | None:
    """What differs between two states, if nothing does but texts that wait; else nothing.

    Files of the project's own that steering files import or run are not looked at.
    """
    before, after = own.steering, wanted.steering
    if before is None or after is None or (before.folder, before.always) != (after.folder, after.always):
        return None
    project = ProjectFiles(after.folder, config="", test_dir="")
    found: list[Effect] = []
    for change in _changes(before, after):
        effects = list(effects_of(change, ChangeSet(), (), project))
        # What a newer or an older Zelda kept apart may be felt by everybody by today's rule.
        if not effects or any(effect.scope not in ("unit", "files") for effect in effects):
            return None
        found += effects
    return tuple(found)


def _changes(before: SteeringState, after: SteeringState) -> Iterator[FileChange]:
    for path in dict.fromkeys((*before.texts, *after.texts)):
        if before.texts.get(path) != after.texts.get(path):
            yield FileChange(path, _side(before, path), _side(after, path))


def _side(state: SteeringState, path: SafeText) -> FileText | None:
    """Heads are among what every suite feels: they are the same."""
    return FileText(globs=state.globs.get(path, ())) if path in state.texts else None
