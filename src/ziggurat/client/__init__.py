"""Owns asking a studio from a program: the words of its REST API as methods, and its errors as those of Ziggurat."""

from ziggurat.client.client import Client

__all__ = ["Client"]
