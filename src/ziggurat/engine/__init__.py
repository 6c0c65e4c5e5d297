"""Owns the training engine: the loop, callbacks, monitors, schedules and checkpoints, for every framework alike."""
