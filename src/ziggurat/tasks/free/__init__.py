"""Free: networks that define themselves what they learn, such as generative adversarial networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.errors import DatapointError
from ziggurat.records.schema import KINDS, Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import PrimaryMetric, Task, TaskContext, as_color, raw_outputs
from ziggurat.tasks.metric import Metric

__all__ = ["FREE"]


class Free(Task):
    """Target: the class number where the dataset has classes, else none. What is measured is up to the network."""

    name = "free"
    title = "free network"
    primary_metric = PrimaryMetric("cost", "min", "loss")
    order = 1000
    is_default = False
    generates = True
    has_best = False

    def accepts(self, schema: Schema) -> str:
        """Return why a network cannot read a dataset; empty where it can."""
        if KINDS[schema.kind][0] not in ("image", "row", "text"):
            return f"A network gets images, rows or texts; this dataset is of kind {schema.kind}."
        return ""

    def _has_classes(self, schema: Schema) -> bool:
        return bool(schema.class_names) and schema.kind in ("image-classification", "text-classification", "table")

    def target(self, context: TaskContext) -> ArraySpec | None:
        """Return the class number; None where there are no classes."""
        return ArraySpec((), "int64", len(context.class_names)) if self._has_classes(context.schema) else None

    def sample(self, context: TaskContext, point: Sequence[Any], key: Any) -> list[np.ndarray]:
        """Return the input, and the class number where there is one."""
        x = context.preprocessing.decode(point[0], key)
        if self._has_classes(context.schema) and point[1] is None:
            raise DatapointError(key, "it has no class.")
        return [x, np.asarray(point[1], np.int64)] if self._has_classes(context.schema) else [x]

    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return none: the network summarizes what it measures."""
        return []

    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return nothing beside the rows."""
        return {}

    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return nothing."""
        return {}

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return that nothing is classified."""
        return {"classifier": False, "classes": list(context.class_names)}

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return that there may be an image."""
        return {"form": "image", "output": "output"}

    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return the numbers of each output."""
        return raw_outputs(outputs)

    def picture(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the first output where it is an image, (H, W, 3) uint8: from 0 to 1, or 0 to 255; else None."""
        found = np.asarray(outputs.get("output", ()), np.float32)
        if found.ndim != 3 or found.shape[2] not in (1, 3):
            return None
        scale = 255.0 if found.min() >= 0 and found.max() <= 1 else 1.0
        image = np.clip(np.rint(np.nan_to_num(found * scale)), 0, 255).astype(np.uint8)
        return as_color(image)


FREE: Final = Free()
