"""Client methods for jobs that use a model: evaluation of a split, predictions for many images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ziggurat.client.connection import Connection, given

__all__ = ["EvaluationClient"]


class EvaluationClient:
    """The evaluations of a studio.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, model_id: str, *, split: str = "val", checkpoint: str = "") -> dict[str, Any]:
        """Put the evaluation of a model on a split into the queue; return the job."""
        body = {"split": split, "checkpoint": checkpoint}
        return self._connection.ask("POST", f"/models/{model_id}/evaluations", json=body)

    def create_many(self, model_id: str, source: str, **options: Any) -> dict[str, Any]:
        """Put predicting for many images into the queue; return the job.

        Args:
            model_id: of a training.
            source: folder of images or text list, on the studio's machine; ``datasets.upload`` sends one there.
            options: ``checkpoint``, ``image_folder``, ``top`` (1 to 5), ``limit``.
        """
        return self._connection.ask("POST", f"/models/{model_id}/inferences", json={"source": source, **given(options)})

    def of_model(self, model_id: str) -> list[dict[str, Any]]:
        """Return the jobs that used a model, of both kinds, newest first."""
        return self._connection.ask("GET", f"/models/{model_id}/evaluations")["jobs"]

    def summary(self, job_id: str) -> dict[str, Any]:
        """Return what was found: ``count``, ``failures``, ``accuracy``, ``confusion``, ``per_class``, …"""
        return self._connection.ask("GET", f"/evaluations/{job_id}")

    def samples(self, job_id: str, **chosen: Any) -> dict[str, Any]:
        """Return ``total`` and ``samples`` of a filter.

        Args:
            job_id: of the evaluation.
            chosen: ``label``, ``predicted``, ``only`` (``wrong``, ``right``), ``order`` (``hardest``, ``surest_wrong``,
                ``row``), ``min_score``, ``max_score``, ``offset``, ``limit``.
        """
        return self._connection.ask("GET", f"/evaluations/{job_id}/samples", params=given(chosen))

    def curves(self, job_id: str, class_index: int, *, points: int = 200) -> dict[str, Any]:
        """Return precision, recall, false and true positive rates of a class over its thresholds."""
        return self._connection.ask("GET", f"/evaluations/{job_id}/curves/{class_index}", params={"points": points})

    def at_threshold(self, job_id: str, threshold: float) -> dict[str, Any]:
        """Return the figures where samples below a score count as undecided."""
        return self._connection.ask("GET", f"/evaluations/{job_id}/at-threshold", params={"threshold": threshold})

    def top_of_class(self, job_id: str, class_index: int, limit: int = 10) -> list[dict[str, Any]]:
        """Return the samples with the highest score of a class, the most confident first."""
        return self._connection.ask("GET", f"/evaluations/{job_id}/top/{class_index}", params={"limit": limit})

    def differences(self, first_job_id: str, second_job_id: str, **chosen: Any) -> dict[str, Any]:
        """Return the samples that a second evaluation got right or wrong: ``which``, ``offset``, ``limit``."""
        path = f"/evaluations/{first_job_id}/differences/{second_job_id}"
        return self._connection.ask("GET", path, params=given(chosen))

    def picture(self, job_id: str, row: int, *, max_side_px: int = 1024) -> bytes:
        """Return an image that was predicted for as PNG."""
        return self._connection.content(f"/evaluations/{job_id}/pictures/{row}", params={"max_side_px": max_side_px})

    def table(self, job_id: str, target: Path) -> Path:
        """Write the predictions for all samples to ``target``: JSON where it ends in ``.json``, else CSV."""
        table_format = "json" if target.suffix == ".json" else "csv"
        return self._connection.save("GET", f"/evaluations/{job_id}/table", target, params={"format": table_format})
