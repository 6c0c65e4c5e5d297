"""The form for a new dataset."""
