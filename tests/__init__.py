"""Tests: what they share across folders is imported as ``tests.folder.module``."""
