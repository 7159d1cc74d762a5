"""One module per family of report files: bytes in, tallies out."""
