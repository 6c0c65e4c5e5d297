"""Owns the worker: the process that turns a job folder's spec into a training, and says what happened."""
