"""The private copy of a project in which a session works, and its end."""
