"""Which suites a change can concern. Pure."""
