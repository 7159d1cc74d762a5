"""The action on the runner; a package, so that tests can import what is in it."""
