"""Owns the callbacks of every framework: saving, scheduling, watching, logging and evaluating."""
