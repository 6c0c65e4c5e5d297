"""Owns the list of standard networks as people see it, and their source, to be changed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ziggurat.zoo import STANDARD_NETWORKS, network_path
from ziggurat.zoo.backends import known_networks

__all__ = ["network_text", "standard_networks"]


def standard_networks(framework: str) -> list[dict[str, Any]]:
    """Return the standard networks that a framework has a file for, as JSON values."""
    found = [STANDARD_NETWORKS[name] for name in known_networks(framework) or () if name in STANDARD_NETWORKS]
    return [{**asdict(network), "kinds": list(network.kinds)} for network in found]


def network_text(name: str, framework: str) -> str:
    """Return the source of a standard network.

    Raises:
        UnknownNameError: where there is none of that name.
    """
    return network_path(name, framework).read_text(encoding="utf-8")
