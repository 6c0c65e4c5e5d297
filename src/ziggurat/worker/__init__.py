"""The worker: the process that runs the spec of a job folder as a training and reports events."""
