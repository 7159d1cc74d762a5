"""What the files of a workspace offer a session, by Claude Code's own rules of what it loads from where."""
