"""Owns the conformance suites that hold any implementation, built in or plugged in, to its contract."""

from ziggurat.testing.backend import BackendConformance

__all__ = ["BackendConformance"]
