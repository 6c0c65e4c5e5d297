"""Owns what the benchmarks are made of: rounds, reports, data, and the loaders that are compared."""
