"""What the files of a workspace offer a session, by Claude Code's own rules of what it loads from where."""

from zelda_ci.execution.manifest.scan import scan

__all__ = ["scan"]
