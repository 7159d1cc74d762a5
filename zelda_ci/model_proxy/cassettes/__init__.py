"""Recorded sessions: written while a session runs, and played instead of one."""
