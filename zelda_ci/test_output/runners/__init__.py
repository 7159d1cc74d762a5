"""One module per family of runners: lines of output in, tallies out."""
