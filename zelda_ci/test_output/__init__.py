"""Test output: what runners print and write, in dozens of formats, read into one summary."""
