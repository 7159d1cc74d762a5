"""Zelda CI: regression tests for the files that steer Claude Code."""

__version__ = "0.1.0"
