"""Owns one file for each revision; a released one is never changed."""

__all__: list[str] = []
