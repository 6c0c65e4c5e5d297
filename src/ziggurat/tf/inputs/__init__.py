"""Input sources: how batches get into the towers of a graph."""
