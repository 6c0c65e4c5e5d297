"""Retrieval of sources: local folders, archives and remote sources become folders that an importer can read."""

from ziggurat.datasets.sources.cache import SourceLimits
from ziggurat.datasets.sources.opening import came_from_outside, check_offered, is_remote, open_source
from ziggurat.datasets.sources.secrets import public_uri
from ziggurat.datasets.sources.web import limit_addresses

__all__ = [
    "SourceLimits",
    "came_from_outside",
    "check_offered",
    "is_remote",
    "limit_addresses",
    "open_source",
    "public_uri",
]
