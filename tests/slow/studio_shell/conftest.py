"""No settings of the person who tests."""

from tests.unit.studio_shell.conftest import quiet_environment

__all__ = ["quiet_environment"]
