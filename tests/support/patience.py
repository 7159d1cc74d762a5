"""How long a test waits for what must happen: no measure of speed, since a busy machine may be twenty times slower."""

PATIENCE = 300
"""Seconds; pytest's own limit is beyond it, so that whoever waits in vain says for what."""
