"""Instant checks of a network file's code: syntax, the contract, and names that do not exist; nothing is executed.

The names of a framework's modules come from files, so that no framework is imported. A file that these modules cannot
judge with certainty is passed: each finding is meant to be a mistake.
"""

from ziggurat.workspace.network_checks.check import check_network, check_syntax
from ziggurat.workspace.network_checks.findings import CodeFinding

__all__ = ["CodeFinding", "check_network", "check_syntax"]
