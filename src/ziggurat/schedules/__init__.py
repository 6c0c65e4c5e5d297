"""Owns schedules: how a rate goes from the first step of a training to the last, as pure functions of the progress."""
