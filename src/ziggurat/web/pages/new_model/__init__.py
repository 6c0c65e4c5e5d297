"""The form for a new model."""
