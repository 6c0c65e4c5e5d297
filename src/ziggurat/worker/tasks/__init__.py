"""Owns the tasks of the training half: short processes that evaluate, predict, export, describe and debug."""
