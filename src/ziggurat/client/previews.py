"""Client methods for previews before a job is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ziggurat.client.connection import Connection, given

__all__ = ["PreviewClient"]


class PreviewClient:
    """Looks at trainings and datasets that do not exist yet.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rate_curve(
        self, spec: Mapping[str, Any], *, points: int = 300, steps_per_epoch: int | None = None
    ) -> dict[str, Any]:
        """Return the learning rate over a training: ``epochs``, ``rates``, ``sentence``."""
        body = {"spec": dict(spec), "points": points, **given({"steps_per_epoch": steps_per_epoch})}
        return self._connection.ask("POST", "/trainings/rate-curve", json=body)

    def augmented(self, dataset: str, spec: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """Return images as the network will get them; options: ``row``, ``split``, ``count``, ``seed``."""
        body = {"dataset": dataset, "spec": dict(spec), **given(options)}
        return self._connection.ask("POST", "/trainings/augmented", json=body)

    def preflight(self, spec: Mapping[str, Any], *, describe: bool = True, **request: Any) -> dict[str, Any]:
        """Return what a training will take: ``findings``, ``steps``, ``steps_per_epoch``, ``parameters``.

        Args:
            spec: of the training.
            describe: whether the data is measured and the network built; takes seconds.
            request: as for ``Client.train``.
        """
        body = {"spec": _whole(spec), "describe": describe, **given(request)}
        return self._connection.ask("POST", "/trainings/preflight", json=body)

    def text(self, spec: Mapping[str, Any], **request: Any) -> dict[str, str]:
        """Return a training in other words: ``cli``, ``json``, ``python``; arguments as for ``Client.train``."""
        return self._connection.ask("POST", "/trainings/text", json={"spec": _whole(spec), **given(request)})

    def dataset(self, spec: Mapping[str, Any], **limits: Any) -> dict[str, Any]:
        """Return what is in a source, boxes and masks too; limits: ``samples``, ``time_limit_s``."""
        return self._connection.ask("POST", "/datasets/preview", json={"spec": dict(spec), **given(limits)})


def _whole(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "train", "version": 1, **spec}
