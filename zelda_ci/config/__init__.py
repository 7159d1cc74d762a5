"""The user's files and environment: read, checked, merged. Every problem is told with its file, line and column."""
