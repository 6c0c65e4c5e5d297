"""Monitors: the sinks for scalars, images and events."""
