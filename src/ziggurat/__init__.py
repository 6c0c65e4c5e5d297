"""Ziggurat: a web studio and a Python engine for training deep networks.

The package itself imports nothing, so that ``import ziggurat`` costs no time. Import what you need from its doors:
``ziggurat.dataflow`` (data loading), ``ziggurat.callbacks`` (callbacks and monitors), ``ziggurat.testing``
(conformance suites).
"""

__all__ = ["__version__"]

__version__ = "0.2.0.dev0"
