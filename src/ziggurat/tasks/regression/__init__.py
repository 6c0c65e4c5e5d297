"""Regression: one or more measured values for each sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.target_scaling import TargetScaling
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import PrimaryMetric, SplitData, Task, TaskContext, constant_scores, raw_outputs
from ziggurat.tasks.baselines import Baseline, split_rows, table_regression_baselines
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.regression_metrics import RegressionMetric
from ziggurat.tasks.report import MetricInfo, Report, ReportChart, ScoreInfo, spread_places

__all__ = ["REGRESSION"]

_KINDS: Final = ("image-regression", "table")
_DRAWN: Final = 2000
"""Points of a chart at most."""


class Regression(Task):
    """Target: (k) measured values, as they are. Output of the network: (N, k) values, or (N) of one.

    The target's mean and deviation over the training split are told to the network, which may scale its output by them.
    """

    name = "regression"
    title = "regression"
    primary_metric = PrimaryMetric("rmse", "min", "RMSE")
    order = 20
    score = ScoreInfo("error", sign=-1)
    metric_info = {
        "rmse": MetricInfo("RMSE", mode="min", help="Root of the mean squared error, in the unit of the value."),
        "mae": MetricInfo("Mean absolute error", mode="min", help="In the unit of the value."),
        "r2": MetricInfo("R²", help="1: no error. 0: as good as always the mean."),
        "values": MetricInfo("Values", mode=""),
        "name": MetricInfo("Value", mode=""),
        "count": MetricInfo("Samples", mode=""),
    }

    def accepts(self, schema: Schema) -> str:
        """Return why a dataset has no measured values to learn; empty where it has."""
        if schema.kind not in _KINDS:
            return f"Regression needs measured values for each sample; this dataset is of kind {schema.kind}."
        if schema.class_names:
            return "Regression needs measured values; the target of this dataset has classes."
        if schema.kind == "table" and not schema.target:
            return "Regression needs a target column; this dataset has none."
        return ""

    def fit(self, schema: Schema, labels: Iterable[Any]) -> dict[str, Any]:
        """Return number, mean and deviation of the values that are to be learned."""
        known = [np.atleast_1d(np.asarray(label, np.float64)) for label in labels if label is not None]
        known = [each for each in known if np.isfinite(each).all()]  # the others are counted when their turn comes
        widths = {len(each) for each in known}
        if len(widths) != 1:
            raise DataError(
                f"The samples of the training split have {' and '.join(map(str, sorted(widths)))} values to learn, not "
                "the same number each."
                if widths
                else "No sample of the training split has a value to learn.",
                advice="Check the labels on the page of the dataset.",
            )
        return {"target": TargetScaling.fit(np.stack(known)).as_json()}

    def target(self, context: TaskContext) -> ArraySpec:
        """Return the values, with their mean and deviation over the training split."""
        scaling = TargetScaling.from_json(context.statistics["target"])
        return ArraySpec((len(scaling.mean),), "float32", mean=tuple(scaling.mean), std=tuple(scaling.deviation))

    def usual_target(self, shape: Sequence[int], classes: int) -> ArraySpec:
        """Return one value."""
        return ArraySpec((1,))

    def encode(self, context: TaskContext, label: Any, key: Any) -> np.ndarray:
        """Return the values of one sample.

        Raises:
            DatapointError: where there is none, they are of another number, or one is not finite.
        """
        spec = self.target(context)
        if label is None:
            raise DatapointError(key, "it has no value to learn.")
        values = np.atleast_1d(np.asarray(label, np.float32))
        if values.shape != spec.shape:
            raise DatapointError(key, f"it has {len(values)} values to learn instead of {spec.shape[0]}.")
        if not np.isfinite(values).all():
            raise DatapointError(key, "its value to learn is no finite number.")
        return values

    def names(self, context: TaskContext) -> list[str]:
        """Return a name for each value."""
        count = self.target(context).shape[0]
        if count == 1:
            return [context.schema.target or "value"]
        return [f"value {number}" for number in range(1, count + 1)]

    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return RMSE, mean absolute error and R²."""
        return [RegressionMetric(self.names(context))]

    def baselines(self, context: TaskContext, train: SplitData, val: SplitData) -> list[Baseline]:
        """Return what the mean of the training split reaches; of tables also a linear model and gradient boosting."""
        if context.schema.parts[0] != "row":
            mean = np.array(self.target(context).mean, np.float32)
            scores = constant_scores(context, mean, val)
            return [Baseline(name="mean", title="mean of the training split", scores=scores)]
        (train_x, train_y), (val_x, val_y) = (split_rows(split) for split in (train, val))
        return table_regression_baselines(train_x, train_y, val_x, val_y, context.preprocessing.categories)

    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return values, predictions, and minus the absolute error, which ranks the samples."""
        count = self.target(context).shape[0]
        return {
            "targets": np.zeros((samples, count), np.float32),
            "predicted": np.zeros((samples, count), np.float32),
            "score": np.zeros(samples, np.float32),
        }

    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the results of a batch; the error of several values is the root of the mean of their squares."""
        known = np.asarray(targets["y"], np.float32)
        found = _values(outputs["output"], known.shape)
        error = np.sqrt(np.mean(np.square(found.astype(np.float64) - known), axis=1))
        return {"targets": known, "predicted": found, "score": -error.astype(np.float32)}

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return the names of the values."""
        return {"classifier": False, "classes": [], "values": self.names(context)}

    def report(self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Report:
        """Return the metrics, predicted against actual values, and residuals against predicted values."""
        plain = super().report(summary, arrays)
        if "targets" not in arrays or not len(arrays["targets"]):
            return plain
        known, found = arrays["targets"], arrays["predicted"]
        places = spread_places(len(known), _DRAWN)
        names = summary.get("values") or ["value"]
        few = f" {len(places)} of {len(known)} samples are drawn." if len(places) < len(known) else ""
        charts = [
            ReportChart(
                "predicted",
                "Predicted against actual",
                {
                    "kind": "scatter",
                    "x": "Actual",
                    "y": "Predicted",
                    "diagonal": True,
                    "groups": _points(known, found, places, names),
                },
                f"Each point is a sample; on the line, the prediction is right.{few}",
            ),
            ReportChart(
                "residuals",
                "Residuals",
                {
                    "kind": "scatter",
                    "x": "Predicted",
                    "y": "Predicted − actual",
                    "groups": _points(found, found.astype(np.float64) - known, places, names),
                },
                f"A good model has no pattern here: the points lie evenly around 0.{few}",
            ),
        ]
        return Report(plain.values, plain.tables, charts)

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return that there are values, and their names."""
        return {"form": "values", "output": "output", "names": self.names(context)}

    def sample_label(self, context: TaskContext, arrays: Sequence[np.ndarray]) -> dict[str, Any]:
        """Return the values."""
        return {"values": [float(each) for each in np.ravel(arrays[1])]}

    def sample_prediction(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return the predicted values; None for one that is not finite."""
        values = np.ravel(np.asarray(outputs["output"], np.float64))
        return {"values": [float(f"{each:.6g}") if np.isfinite(each) else None for each in values]}

    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return ``values``: name and value of each."""
        found = np.atleast_1d(np.asarray(outputs["output"], np.float64)) if "output" in outputs else np.zeros(())
        names = self.names(context)
        if found.shape != (len(names),):
            return raw_outputs(outputs)
        return {"values": [{"name": name, "value": float(value)} for name, value in zip(names, found, strict=True)]}


def _points(x: np.ndarray, y: np.ndarray, places: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the points of a chart: of each value, (x, y, place of the sample), where both are finite."""
    return [
        {
            "name": name,
            "points": [
                [float(x[place, number]), float(y[place, number]), int(place)]
                for place in places
                if np.isfinite(x[place, number]) and np.isfinite(y[place, number])
            ],
        }
        for number, name in enumerate(names)
    ]


def _values(output: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.asarray(output, np.float32)
    if found.size != np.prod(shape, dtype=int):
        raise DataError(
            "A network for regression gives a number for each value of its data.",
            received=f"shape {found.shape} for targets of shape {shape}",
            advice="Give its last layer as many units.",
        )
    return found.reshape(shape)


REGRESSION: Final = Regression()
