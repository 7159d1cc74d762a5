"""Leading a coding session: what Zelda needs from an agent, and Claude Code as one."""
