"""Transcripts of any length, in a form that a judge can read."""
