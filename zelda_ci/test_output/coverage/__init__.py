"""One module per family of coverage formats: text or bytes in, measurements out."""
