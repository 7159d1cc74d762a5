"""The metrics: one module each, none knowing another."""
