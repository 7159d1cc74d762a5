"""GitHub's side of a run in CI: its API, its artifacts, and what a workflow tells and wants to hear."""
