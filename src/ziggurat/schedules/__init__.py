"""Hyperparameter schedules: a rate over the steps of a training run, as pure functions of the progress."""
