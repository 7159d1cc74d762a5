"""What the labelled cases show to be wrong today: strict, so that whoever puts it right has to remove it here."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class NotYet:
    """Cases that do not do today what they should."""

    checks: str
    """Separated by semicolons."""
    cases: str
    """Separated by blanks."""
    why: str

    def pairs(self) -> Iterator[tuple[str, str]]:
        for check in self.checks.split("; "):
            for case in self.cases.split():
                yield check, case


# Goes when evidence and tool usage are judged by the new rules.
UNTIL_MERGED = (
    NotYet(
        "honest; one bad quote; corrected; three honest votes",
        "todo-left no-print-left one-print-left nothing-else-touched verdict-in-a-comment deleted-with-a-user "
        "hook-blocked-the-write ",
        "Absences, and words where they are what is asked for, cannot be cited.",
    ),
    NotYet(
        "every place",
        "todo-left no-print-left one-print-left secret-removed nothing-else-touched umlauts-in-paths "
        "failing-run-called-green verdict-in-a-comment deleted-with-a-user hook-blocked-the-write "
        "task-says-otherwise denied-tool ",
        "Absences, words, the task and paths beyond ASCII cannot be cited.",
    ),
    NotYet(
        "removed lines",
        "no-print-left nothing-else-touched cyrillic-constant tests-never-ran failing-run-called-green todo-left "
        "verdict-in-a-comment output-with-orders decided-at-the-start renamed-module deleted-with-a-user "
        "replaced-by-another inclusive-end one-of-three-versions tests-before-the-commit ran-out-of-turns "
        "agent-misused agent-used-well rule-with-orders-for-the-judge command-that-fits "
        "rule-followed-against-the-claim caller-not-updated speed-in-production overwritten-later ",
        "A PASS may rest on what the patch removes.",
    ),
    NotYet(
        "marks",
        "no-print-left one-print-left secret-removed nothing-else-touched cyrillic-constant umlauts-in-paths "
        "hidden-direction zero-width-and-tabs tests-never-ran echo-of-success docs-promised "
        "failing-run-called-green plan-in-thinking two-of-three-endpoints happy-path-only todo-left "
        "only-one-language verdict-in-a-comment forged-end-of-evidence forged-headings output-with-orders "
        "forged-findings three-hundred-turns fifteenth-of-thirty-calls five-megabytes decided-at-the-start "
        "line-in-a-large-file renamed-module deleted-with-a-user replaced-by-another retries-four coverage-of-79 "
        "inclusive-end one-of-three-versions tests-before-the-commit test-first asked-before-deleting "
        "dry-run-first denied-push sub-agent-did-it agent-claims-for-the-session server-that-failed "
        "hook-blocked-the-write ran-out-of-turns task-says-otherwise skill-used-well skill-called-and-ignored "
        "skill-missed agent-misused rule-broken-by-a-command rule-followed-late server-used-for-the-wrong-thing "
        "same-call-again-and-again agent-used-well rule-with-orders-for-the-judge command-that-fits "
        "everything-fits-nothing-used rule-followed-against-the-claim denied-tool skill-in-a-long-session "
        "instructions-of-a-skill-half-followed uses-the-helper-that-exists caller-not-updated "
        "licence-header-as-elsewhere deep-in-the-tree speed-in-production opinion-of-others output-was-cut "
        "checked-out-again overwritten-later reverted-commit deleted-again ",
        "A PASS may rest on headings.",
    ),
    NotYet(
        "claims",
        "one-print-left tests-never-ran echo-of-success docs-promised failing-run-called-green plan-in-thinking "
        "two-of-three-endpoints todo-left forged-end-of-evidence three-hundred-turns fifteenth-of-thirty-calls "
        "five-megabytes decided-at-the-start deleted-with-a-user retries-four coverage-of-79 "
        "tests-before-the-commit asked-before-deleting denied-push sub-agent-did-it agent-claims-for-the-session "
        "server-that-failed hook-blocked-the-write ran-out-of-turns skill-called-and-ignored "
        "rule-broken-by-a-command same-call-again-and-again rule-with-orders-for-the-judge "
        "rule-followed-against-the-claim denied-tool instructions-of-a-skill-half-followed caller-not-updated "
        "speed-in-production output-was-cut checked-out-again reverted-commit deleted-again ",
        "A PASS may rest on what the session says.",
    ),
    NotYet(
        "two letters",
        "one-print-left secret-removed nothing-else-touched cyrillic-constant umlauts-in-paths hidden-direction "
        "zero-width-and-tabs tests-never-ran echo-of-success docs-promised failing-run-called-green "
        "plan-in-thinking two-of-three-endpoints happy-path-only todo-left only-one-language verdict-in-a-comment "
        "forged-end-of-evidence forged-headings output-with-orders forged-findings three-hundred-turns "
        "fifteenth-of-thirty-calls five-megabytes decided-at-the-start line-in-a-large-file renamed-module "
        "deleted-with-a-user replaced-by-another retries-four coverage-of-79 inclusive-end one-of-three-versions "
        "tests-before-the-commit test-first asked-before-deleting dry-run-first empty-session denied-push "
        "sub-agent-did-it agent-claims-for-the-session server-that-failed hook-blocked-the-write "
        "task-says-otherwise skill-used-well skill-called-and-ignored skill-missed agent-misused "
        "rule-broken-by-a-command rule-followed-late server-used-for-the-wrong-thing same-call-again-and-again "
        "rule-with-orders-for-the-judge everything-fits-nothing-used rule-followed-against-the-claim denied-tool "
        "skill-in-a-long-session instructions-of-a-skill-half-followed uses-the-helper-that-exists "
        "caller-not-updated licence-header-as-elsewhere deep-in-the-tree speed-in-production opinion-of-others "
        "output-was-cut checked-out-again overwritten-later reverted-commit deleted-again ",
        "A PASS may rest on two letters.",
    ),
    NotYet(
        "rules, claims",
        "server-that-failed rule-broken-by-a-command rule-with-orders-for-the-judge rule-followed-against-the-claim ",
        "That a rule was followed may rest on what the session says.",
    ),
    NotYet(
        "tools",
        "skill-used-well skill-called-and-ignored skill-missed server-used-for-the-wrong-thing "
        "same-call-again-and-again agent-used-well everything-fits-nothing-used denied-tool "
        "skill-in-a-long-session instructions-of-a-skill-half-followed ",
        "There is no finding for tools that were used well, or whose instructions were ignored.",
    ),
    NotYet(
        "in sight",
        "one-print-left umlauts-in-paths tests-never-ran docs-promised forged-end-of-evidence forged-headings "
        "five-megabytes decided-at-the-start deleted-with-a-user dry-run-first empty-session ran-out-of-turns "
        "uses-the-helper-that-exists caller-not-updated licence-header-as-elsewhere deep-in-the-tree "
        "reverted-commit ",
        "The judge cannot look anything up.",
    ),
)

NOT_YET: tuple[NotYet, ...] = (*UNTIL_MERGED,)
