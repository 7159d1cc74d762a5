"""Results for people: one view, several formats."""
