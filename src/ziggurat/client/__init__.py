"""Python client of a studio: its REST API as methods, and its errors as Ziggurat errors."""

from ziggurat.client.client import Client

__all__ = ["Client"]
