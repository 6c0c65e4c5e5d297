"""The list of runs, datasets and tests."""
