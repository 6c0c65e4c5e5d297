"""What a worker may read and fetch: for the people of a studio less than for the user who started it."""

from __future__ import annotations

from ziggurat.datasets.sources import limit_addresses
from ziggurat.net.ssrf import AllowedAddresses
from ziggurat.records.offered_folders import offer_folders
from ziggurat.settings import Settings

__all__ = ["keep_to_addresses"]


def keep_to_addresses(settings: Settings) -> None:
    """Let this process fetch, and read of this machine, what its settings allow.

    Args:
        settings: of this process; a person on their own machine may fetch from everywhere.
    """
    allowed = AllowedAddresses.of("source_hosts", settings.source_hosts) if settings.is_for_others else None
    limit_addresses(allowed)
    offer_folders(settings.offered_folders)
