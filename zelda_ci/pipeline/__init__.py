"""The story: `run` tells that of one run, `batch` that of an invocation, `recovery` that of a run which was killed."""
