"""The story of a run in CI: `evaluating` runs suites and tells, `commenting` tells of what another workflow stored."""
