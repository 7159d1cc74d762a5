"""Two sets of results side by side: deltas, statistics, verdicts and the gate. Pure."""
