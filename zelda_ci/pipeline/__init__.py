"""The story: `run` tells that of one run, `batch` that of an invocation."""
