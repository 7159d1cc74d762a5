"""The HTML report: one file that needs nothing else, readable without scripts and better with them."""
