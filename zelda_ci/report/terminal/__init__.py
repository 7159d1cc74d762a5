"""Everything that is shown on a terminal; with the commands, the only user of rich."""
