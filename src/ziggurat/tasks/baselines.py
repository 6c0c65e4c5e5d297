"""Baselines beside a result: what a constant, a linear model or gradient boosting reaches on the same samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from ziggurat.errors import DataError
from ziggurat.tasks.classification_metrics import class_figures, confusion_matrix, macro_f1

__all__ = [
    "Baseline",
    "majority_class",
    "mean_image_mse",
    "split_rows",
    "table_classification_baselines",
    "table_regression_baselines",
]

_MOST_ROWS: Final = 100_000
_MOST_BOOSTED_CATEGORIES: Final = 255
_MOST_BOOSTED_CLASSES: Final = 100
_MOST_STEPS: Final = 1000
_SEED: Final = 0


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A simple model's result on the samples that a network is validated on.

    Args:
        name: ``mean``, ``linear``, ``boosting``, ``majority`` or ``mean_image``.
        title: for people, in lower case.
        scores: name of a metric → its value, on the validation samples; empty where there is none.
        reason: why there is no score, or what restricts it, as a full sentence; empty where nothing is to be said.
    """

    name: str
    title: str
    scores: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


def table_regression_baselines(
    train_x: np.ndarray, train_y: np.ndarray, val_x: np.ndarray, val_y: np.ndarray, categories: Sequence[int]
) -> list[Baseline]:
    """Return what the mean of the training split, least squares and gradient boosting reach.

    The models learn from 100,000 rows at most, drawn with a fixed seed.

    Args:
        train_x: (N, F) numbers of the training split, finite.
        train_y: (N,) or (N, K) targets, not scaled.
        val_x: (M, F) numbers of the validation split.
        val_y: (M,) or (M, K) targets, not scaled.
        categories: for each of the F numbers how many categories it has; 0 for a measured number.

    Returns:
        ``mean``, ``linear`` and ``boosting``, with ``rmse``, ``mae`` and ``r2``: over all values of RMSE and MAE, the
        mean over the K values of R², of those that vary in the validation split. Without scikit-learn the last two
        have a reason in place of scores.

    Raises:
        DataError: where a split is empty, or the arrays do not belong together.
    """
    train_y, val_y = _columns(train_y), _columns(val_y)
    _check(train_x, train_y, val_x, val_y, categories)
    mean = np.broadcast_to(train_y.mean(axis=0), val_y.shape)
    found = [Baseline(name="mean", title="mean of the training split", scores=_regression_scores(mean, val_y))]
    rows, note = _some_rows(len(train_x))

    def measured(model: Any) -> dict[str, float]:
        predicted = model.fit(train_x[rows], train_y[rows]).predict(val_x)
        return _regression_scores(np.asarray(predicted, np.float64).reshape(val_y.shape), val_y)

    found.append(_fitted("linear", "linear regression", lambda: measured(_linear_model(categories)), note))
    found.append(_fitted("boosting", "gradient boosting", lambda: measured(_boosted_model(categories)), note))
    return found


def table_classification_baselines(
    train_x: np.ndarray, train_y: np.ndarray, val_x: np.ndarray, val_y: np.ndarray, categories: Sequence[int]
) -> list[Baseline]:
    """Return what the most frequent class, logistic regression and gradient boosting reach.

    The models learn from 100,000 rows at most, drawn with a fixed seed; boosting is left out above 100 classes, of
    which each would need trees of its own.

    Args:
        train_x: (N, F) numbers of the training split, finite.
        train_y: (N,) class numbers.
        val_x: (M, F) numbers of the validation split.
        val_y: (M,) class numbers.
        categories: for each of the F numbers how many categories it has; 0 for a measured number.

    Returns:
        ``majority``, ``linear`` and ``boosting``, with ``accuracy`` and ``macro_f1``. Without scikit-learn the last two
        have a reason in place of scores.

    Raises:
        DataError: where a split is empty, or the arrays do not belong together.
    """
    train_y, val_y = np.asarray(train_y, np.int64), np.asarray(val_y, np.int64)
    _check(train_x, train_y, val_x, val_y, categories)
    found = [majority_class(train_y, val_y)]
    rows, note = _some_rows(len(train_x))
    classes = len(np.unique(train_y[rows]))

    def measured(model: Any) -> dict[str, float]:
        return _class_scores(model.fit(train_x[rows], train_y[rows]).predict(val_x), val_y)

    one = "" if classes > 1 else "The training split has one class only."
    many = "" if classes <= _MOST_BOOSTED_CLASSES else f"There are more than {_MOST_BOOSTED_CLASSES} classes."
    linear, boosted = (
        (lambda: measured(_logistic_model(categories))),
        (lambda: measured(_boosted_classifier(categories))),
    )
    found.append(_fitted("linear", "logistic regression", linear, note, one))
    found.append(_fitted("boosting", "gradient boosting", boosted, note, one or many))
    return found


def majority_class(labels: np.ndarray, val_labels: np.ndarray | None = None) -> Baseline:
    """Return what the most frequent class reaches, of equally frequent ones the one with the smallest number.

    Args:
        labels: (N) class numbers of the training split; those below 0 are unknown, and count for nothing.
        val_labels: (M) class numbers of the validation split; None for ``labels``.

    Raises:
        DataError: where one of both has no label.
    """
    known = _known(labels)
    checked = known if val_labels is None else _known(val_labels)
    most = int(np.bincount(known).argmax())
    scores = _class_scores(np.full(len(checked), most), checked)
    return Baseline(name="majority", title="most frequent class", scores=scores)


class _Rows(Protocol):
    def samples(self) -> Iterable[Sequence[np.ndarray]]: ...


def split_rows(split: _Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (N, F) and targets (N, …) of a split of a table.

    Raises:
        DataError: where it has none.
    """
    samples = list(split.samples())
    _check_count(len(samples))
    return np.stack([sample[0] for sample in samples]), np.stack([np.asarray(sample[1]) for sample in samples])


def mean_image_mse(train_targets: Iterable[np.ndarray], val_targets: Iterable[np.ndarray]) -> Baseline:
    """Return the mean squared error of the mean target image; memory does not grow with the images.

    Args:
        train_targets: images of one shape, in the unit in which the error is measured.
        val_targets: images of the same shape.

    Returns:
        ``mean_image`` with ``mse``: the mean over all pixels and channels of all images.

    Raises:
        DataError: where a split is empty, or the images have several shapes.
    """
    total, count = np.zeros(()), 0
    for image in train_targets:
        total = _same_shape(image, total, count).astype(np.float64) + total
        count += 1
    _check_count(count)
    mean = total / count
    error, count = 0.0, 0
    for image in val_targets:
        error += float(np.square(_same_shape(image, mean, 1) - mean).mean())
        count += 1
    _check_count(count)
    return Baseline(name="mean_image", title="mean image of the training split", scores={"mse": error / count})


# ---- models


def _fitted(name: str, title: str, measure: Callable[[], dict[str, float]], note: str, obstacle: str = "") -> Baseline:
    """Return the baseline of a model of scikit-learn, or why there is none."""
    if obstacle:
        return Baseline(name=name, title=title, reason=obstacle)
    try:
        # A model that has not converged is still a baseline, and the user cannot change its options.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Baseline(name=name, title=title, scores=measure(), reason=note)
    except ImportError:
        reason = "The package `scikit-learn` is not installed; install it with: pip install scikit-learn."
    except (ValueError, MemoryError, np.linalg.LinAlgError) as error:
        reason = f"It cannot be fitted: {str(error).splitlines()[0] if str(error) else type(error).__name__}."
    return Baseline(name=name, title=title, reason=reason)


def _linear_model(categories: Sequence[int]) -> Any:
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(_one_hot(categories), LinearRegression())


def _logistic_model(categories: Sequence[int]) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(_one_hot(categories), LogisticRegression(max_iter=_MOST_STEPS, random_state=_SEED))


def _one_hot(categories: Sequence[int]) -> Any:
    """Return what scales measured numbers, and gives each category a number of its own; unseen ones have none."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    return make_column_transformer(
        (StandardScaler(), [place for place, count in enumerate(categories) if not count]),
        (OneHotEncoder(handle_unknown="ignore"), [place for place, count in enumerate(categories) if count]),
    )


def _boosted_model(categories: Sequence[int]) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.multioutput import MultiOutputRegressor

    return MultiOutputRegressor(
        HistGradientBoostingRegressor(categorical_features=_boosted_categories(categories), random_state=_SEED)
    )


def _boosted_classifier(categories: Sequence[int]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(categorical_features=_boosted_categories(categories), random_state=_SEED)


def _boosted_categories(categories: Sequence[int]) -> Any:
    """Return which numbers are categories to the trees; those with more than they can tell apart are numbers."""
    return [0 < count <= _MOST_BOOSTED_CATEGORIES for count in categories]


def _some_rows(count: int) -> tuple[np.ndarray, str]:
    """Return the rows that a model learns from, in order, and what to say of that."""
    if count <= _MOST_ROWS:
        return np.arange(count), ""
    chosen = np.random.default_rng(_SEED).choice(count, _MOST_ROWS, replace=False)
    return np.sort(chosen), f"It learned from {_MOST_ROWS:,} of {count:,} rows."


# ---- scores


def _regression_scores(predicted: np.ndarray, actual: np.ndarray) -> dict[str, float]:
    errors = predicted - actual
    squares = np.square(errors).sum(axis=0)
    spread = np.square(actual - actual.mean(axis=0)).sum(axis=0)
    scores = {"rmse": float(np.sqrt(np.square(errors).mean())), "mae": float(np.abs(errors).mean())}
    varies = actual.min(axis=0) < actual.max(axis=0)
    if varies.any():
        scores["r2"] = float((1 - squares[varies] / spread[varies]).mean())
    return scores


def _class_scores(predicted: np.ndarray, actual: np.ndarray) -> dict[str, float]:
    classes = int(max(predicted.max(), actual.max())) + 1
    matrix = confusion_matrix(actual, predicted, classes)
    scores = {"accuracy": float(matrix.trace() / matrix.sum())}
    mean_f1 = macro_f1(class_figures(matrix, [""] * classes))
    return scores if mean_f1 is None else {**scores, "macro_f1": mean_f1}


# ---- checks


def _columns(values: np.ndarray) -> np.ndarray:
    found = np.asarray(values, np.float64)
    return found[:, None] if found.ndim == 1 else found


def _check(
    train_x: np.ndarray, train_y: np.ndarray, val_x: np.ndarray, val_y: np.ndarray, categories: Sequence[int]
) -> None:
    _check_count(min(len(train_x), len(val_x)))
    belong = len(train_x) == len(train_y) and len(val_x) == len(val_y) and train_y.shape[1:] == val_y.shape[1:]
    if not belong or train_x.shape[1:] != (len(categories),) or val_x.shape[1:] != (len(categories),):
        shapes = ", ".join(str(each.shape) for each in (train_x, train_y, val_x, val_y))
        raise DataError(
            "A baseline needs rows and targets of the same samples, with one number for each entry of `categories`.",
            received=f"{shapes}, and {len(categories)} entries",
        )


def _check_count(count: int) -> None:
    if not count:
        raise DataError(
            "A split has no samples, and a baseline needs some to learn from and some to be measured on.",
            advice="Check the splits of the dataset.",
        )


def _known(labels: np.ndarray) -> np.ndarray:
    found = np.asarray(labels, np.int64).ravel()
    known = found[found >= 0]
    _check_count(len(known))
    return known


def _same_shape(image: np.ndarray, other: np.ndarray, count: int) -> np.ndarray:
    if count and image.shape != other.shape:
        raise DataError("The images of a mean have one shape.", received=f"{other.shape} and {image.shape}")
    return image
