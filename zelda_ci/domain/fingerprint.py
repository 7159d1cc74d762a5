"""What the outcome of a trial may depend on, as digests: trials with the same fingerprint may be pooled.

Three things are kept apart. `outcome` is what the pull request and the suite decide: prompt, settings, judges, steering
files. `tree` is the project's own code. `platform` is what changes without anybody's commit: Claude Code, the models
that answered, the system.
"""

from typing import Literal

from zelda_ci.domain.base import Record

# Names of parts that a suite does not decide.
STEERING, SUITE_FILES, EVALUATORS, REPLAYED = "steeringFiles", "suiteFiles", "evaluators", "replayed"
NAMED_FILES = "namedFiles"
PLATFORM = ("cli", "agentSdk", "models", "system", "isolationLevel")

# How a file steers: by its own name or place, or as one of the project's own that a file which steers imports or runs.
Steers = Literal["itself", "drawn"]


class Fingerprint(Record):
    """Digests of what one trial's outcome may depend on; trials with equal ones may be pooled."""

    outcome: str
    """Digest of everything apart from platform and project code."""
    platform: str
    """Claude Code's version, the models that answered, and the system, in words."""
    tree: str
    """Digest of the project's own code: neither steering files nor Zelda's."""
    parts: dict[str, str] = {}
    """Parts that `outcome` and `platform` were made of, by name: they say what differs."""

    def differences(self, other: "Fingerprint") -> tuple[str, ...]:
        """Names of the parts that differ, and `tree`."""
        names = dict.fromkeys([*self.parts, *other.parts])
        parts = [name for name in names if self.parts.get(name) != other.parts.get(name)]
        return (*parts, *(["tree"] if self.tree != other.tree else []))
