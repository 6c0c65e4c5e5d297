"""Features of the samples of a dataset, and what follows from them: maps, similar samples, doubtful labels."""
