"""Use cases of the studio, under the same names for pages, REST, client and shell."""

from ziggurat.workspace.studio.studio import Studio

__all__ = ["Studio"]
