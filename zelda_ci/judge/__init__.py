"""A model that judges: asked with versioned prompts, answering in a form that is checked."""
