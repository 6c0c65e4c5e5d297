"""Benchmarks: each module with a function ``run`` is one, and ``python -m bench`` runs them."""
