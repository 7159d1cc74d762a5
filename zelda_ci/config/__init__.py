"""YAML in, resolved suites out; every problem named with its file, line and key."""
