"""Attacks on the developer and on Zelda itself, as data, and what is left of them at each level of isolation."""
