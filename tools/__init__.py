"""Checks of `make check` and the generator of the reference pages: `python -m tools.NAME`."""
