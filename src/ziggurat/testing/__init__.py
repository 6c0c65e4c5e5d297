"""Conformance suites that check any implementation, built in or plugged in, against its contract."""

from ziggurat.testing.backend import BackendConformance
from ziggurat.testing.backend_info import BackendInfoConformance

__all__ = ["BackendConformance", "BackendInfoConformance"]
