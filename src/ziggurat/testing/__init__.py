"""Conformance suites that check any implementation, built in or plugged in, against its contract."""

from ziggurat.testing.backend import BackendConformance

__all__ = ["BackendConformance"]
