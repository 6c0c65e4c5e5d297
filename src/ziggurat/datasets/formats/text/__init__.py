"""Labeled texts."""
