"""Owns the benchmarks: each module here with a function ``run`` is one, and ``python -m bench`` runs them."""
