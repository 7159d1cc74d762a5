"""What a folder is before anything runs in it."""
