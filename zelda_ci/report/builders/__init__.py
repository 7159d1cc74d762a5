"""From results to a report: everything that sorts, rounds, labels and words. Pure."""
