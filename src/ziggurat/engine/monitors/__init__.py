"""Owns the monitors: where numbers, pictures and events go."""
