"""Owns the use cases of the studio: what a person can do, by the same names on pages, in REST, client and shell."""

from ziggurat.workspace.studio.studio import Studio

__all__ = ["Studio"]
