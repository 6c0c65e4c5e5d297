"""Training engine: the loop, callbacks, monitors, schedules and checkpoints, shared by every framework."""
