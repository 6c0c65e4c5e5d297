"""Client of the pretrained weights of a studio."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ziggurat.client.connection import Connection, given

__all__ = ["WeightsClient"]

_BLOCK_BYTES: Final = 1 << 20


class WeightsClient:
    """The pretrained weights of a studio.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[dict[str, Any]]:
        """Return the weights by name: ``name``, ``reference``, ``network``, ``license``, ``sha256``, ``users``, …"""
        return self._connection.ask("GET", "/weights")

    def get(self, name: str) -> dict[str, Any]:
        """Return weights by their name."""
        return self._connection.ask("GET", f"/weights/{name}")

    def add(self, file: Path | str, **known: Any) -> dict[str, Any]:
        """Send a file of this machine, and add it; return the weights.

        Args:
            file: in the format safetensors, or of PyTorch (``.pth``, ``.pt``).
            known: ``name``, ``title``, ``network``, ``license``, ``source``, ``sha256``, ``class_count``, ``classes``,
                ``mean``, ``std``, ``size``, ``color``.
        """
        path = Path(file)
        with path.open("rb") as stream:
            blocks = iter(lambda: stream.read(_BLOCK_BYTES), b"")
            upload = self._connection.ask("POST", "/uploads", params={"name": path.name}, content=blocks)
        try:
            return self._connection.ask("POST", "/weights", json={"file": upload["source"], **given(known)})
        finally:
            self._connection.ask("DELETE", f"/uploads/{upload['id']}", params={"forever": True})

    def remove(self, name: str, *, forever: bool = False) -> None:
        """Delete weights that no training needs now; they can be restored for some days.

        Args:
            name: of the weights; with ``forever`` also the name or id of deleted ones.
            forever: remove them from the disk at once.
        """
        self._connection.ask("DELETE", f"/weights/{name}", params={"forever": forever})

    def restore(self, name: str) -> dict[str, Any]:
        """Put deleted weights, named by name or id, back, and return them."""
        return self._connection.ask("POST", f"/weights/{name}/restore")

    def downloads(self) -> list[dict[str, Any]]:
        """Return the download list; ``is_added`` and ``download`` say how each entry is."""
        return self._connection.ask("GET", "/weights-downloads")

    def download(self, name: str) -> dict[str, Any]:
        """Ask for a download, which runs in the background; return its state."""
        return self._connection.ask("POST", f"/weights-downloads/{name}")

    def cancel(self, name: str) -> None:
        """End a download, or take one that failed out of the list."""
        self._connection.ask("DELETE", f"/weights-downloads/{name}")
