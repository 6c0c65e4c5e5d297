"""Fixtures of the shell tests."""

from tests.unit.cli.conftest import quiet_environment, tiny_worker, ziggurat

__all__ = ["quiet_environment", "tiny_worker", "ziggurat"]
