"""Building blocks of the benchmarks: rounds, reports, data, and the loaders that are compared."""
