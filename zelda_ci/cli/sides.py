"""The two sides of `zelda run --against`: compared when they have run, and whenever they are looked at again."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.domain.run import BatchResult, StoredTrials
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.pipeline.comparing import Compared, compare_arms, kept_comparison
from zelda_ci.report import terminal
from zelda_ci.report.builders.comparison import changed_row, comparison_view
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.model import ComparisonView, Section
from zelda_ci.report.terminal.pages import print_comparison, print_verdict
from zelda_ci.report.told import CiReport, PullRequestChanges
from zelda_ci.storage.history import RunHistory


@dataclass(frozen=True)
class ComparedSides:
    """An invocation that ran two commits, with what their comparison says."""

    batch: BatchResult
    compared: Compared

    @classmethod
    def of(cls, batch: BatchResult, stored: Mapping[str, StoredTrials]) -> Self:
        """Compare what ran, and by suite the stored trials that count beside it."""
        return cls(batch, compare_arms(batch, stored))

    @classmethod
    def read(cls, results_dir: Path, batch_id: str | None = None) -> Self | None:
        """Those of a stored batch, by default the newest; nothing where it had one side."""
        runs = RunHistory(results_dir).overview().runs if batch_id is None else ()
        kept = kept_comparison(results_dir, batch_id or runs[0].batch_id) if batch_id or runs else None
        return cls.of(*kept) if kept else None

    @property
    def changes(self) -> tuple[SteeringChange, ...]:
        """The files that steer and differ."""
        return self.batch.base.changed if self.batch.base else ()

    def report(self, subject: str) -> CiReport:
        """The same for an HTML report and for programs."""
        commit = self.batch.base.commit if self.batch.base else None
        origin = BaselineOrigin(state=BaselineState.FOUND, sentence="", commit=commit)
        changed = PullRequestChanges(steering=self.changes)
        compared = self.compared
        return CiReport(self.batch, compared.gate, origin, compared.comparison, subject=subject, changes=changed)

    def view(self) -> ComparisonView:
        """Every suite with every number."""
        base = self.batch.base
        names = {"baseline": base.commit[:12] if base and base.commit else "", "candidate": self.batch.batch_id}
        return comparison_view(self.compared.comparison, self.compared.gate, **names, changes=self.changes)

    def show(self, *, whole: bool) -> None:
        """Print how it ended as the comment on a pull request says it; first every number if the `whole` is wanted."""
        view, console = self.view(), terminal.open_console(sys.stdout)
        if whole:
            print_comparison(console, replace(view, gate=Section("", ())))
        print_verdict(console, ci_view(self.report("")), changed_row(self.changes), view.gate)
