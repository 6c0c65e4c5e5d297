"""What people can change in a studio: each operation declared once, with who may use it and what the audit log says."""

from __future__ import annotations

from ziggurat.operations.table import OPERATIONS, Operation, find_operation

__all__ = ["OPERATIONS", "Operation", "find_operation"]
