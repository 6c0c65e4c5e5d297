"""Owns the list of standard networks as people see it, and their source, to be changed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ziggurat.errors import UnknownNameError
from ziggurat.zoo import STANDARD_NETWORKS, network_path

__all__ = ["network_text", "standard_networks"]


def standard_networks(framework: str) -> list[dict[str, Any]]:
    """Return the standard networks that a framework has a file for, as JSON values."""
    return [asdict(network) for network in STANDARD_NETWORKS.values() if _has_file(network.name, framework)]


def network_text(name: str, framework: str) -> str:
    """Return the source of a standard network.

    Raises:
        UnknownNameError: where there is none of that name.
    """
    return network_path(name, framework).read_text(encoding="utf-8")


def _has_file(name: str, framework: str) -> bool:
    try:
        network_path(name, framework)
    except UnknownNameError:
        return False
    return True
