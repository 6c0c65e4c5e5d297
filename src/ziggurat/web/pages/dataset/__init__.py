"""The pages of a dataset."""
