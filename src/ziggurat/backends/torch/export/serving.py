"""Module for export: the network for inference alone, with its preprocessing where that is to be inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from ziggurat.backends.torch.network import Network, channels_first
from ziggurat.backends.torch.standalone_boxes import Kept, best_detections
from ziggurat.backends.torch.trained import named_outputs
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.engine.detection_parity import DETECTIONS, DetectionRule
from ziggurat.tasks.preprocessing import InputPreprocessing

__all__ = ["ServingModule"]


class ServingModule(nn.Module):
    """A network as others call it: one array in, name → output out, images (N, H, W, C) on both sides.

    Args:
        network: with its weights, in evaluation mode, on the CPU.
        preprocessing: what it was trained with.
        inside: whether the module preprocesses by itself: it takes images (N, height, width, C) float32, RGB, 0 to 255,
            or encoded rows (N, F) float64. There is nothing to do for texts: their token numbers are the input.
        rule: of detections: their non-maximum suppression is inside, too. None for outputs as the network gives them.

    Attributes:
        kept: another way to do it than ``first_kept``, where the format has one.
        input_shape: of one sample that it takes.
        input_dtype: name of the NumPy type that it takes.
    """

    def __init__(
        self,
        network: Network,
        preprocessing: InputPreprocessing,
        *,
        inside: bool,
        rule: DetectionRule | None = None,
    ) -> None:
        super().__init__()
        self.model = network.module
        self._network = network
        self._scores = network.gives_class_scores
        self._rule = rule if inside else None
        self.kept: Kept | None = None
        self._before: nn.Module = _AsItIs(network)
        self.input_shape: tuple[int, ...] = network.source.shape
        self.input_dtype = network.source.dtype
        if inside and isinstance(preprocessing, Preprocessing):
            images = network.source.shape[-1] // preprocessing.channels
            self._before = _Images(preprocessing, images)
            self.input_shape = (*preprocessing.size, preprocessing.channels * images)
        elif inside and isinstance(preprocessing, TablePreprocessing):
            self._before = _Rows(preprocessing)
            self.input_shape, self.input_dtype = preprocessing.shape, "float64"
        self.eval()

    def forward(self, input: torch.Tensor) -> dict[str, torch.Tensor]:  # noqa: A002 - the name of the model's input
        """Return name → output of a batch: ``output``, ``output_1``, …, and ``probabilities`` of a classifier.

        ``detections`` stands in the place of boxes and scores.
        """
        found = named_outputs(self._network.predict(self._network.laid_out(self._before(input))), scores=self._scores)
        if self._rule is None or self._rule.output not in found:
            return found
        rule, output = self._rule, found.pop(self._rule.output)
        limits = {"least_score": rule.least_score, "iou": rule.iou, "most": rule.most}
        return {DETECTIONS: best_detections(output, kept=self.kept, **limits), **found}

    def samples(self, count: int) -> torch.Tensor:
        """Return samples of zeros as it takes them."""
        return torch.from_numpy(np.zeros((count, *self.input_shape), self.input_dtype))


class _AsItIs(nn.Module):
    """Takes what the network gets, in the order of axes of a batch."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._is_image = network.source.is_image
        self._is_integer = np.dtype(network.source.dtype).kind in "iu"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._is_image:
            return channels_first(x)
        return x.long() if self._is_integer else x


class _Images(nn.Module):
    """Does what ``Preprocessing.finish`` does, for each of the images in the channels.

    Args:
        preprocessing: of the job.
        images: of one sample.
    """

    mean: torch.Tensor | None

    def __init__(self, preprocessing: Preprocessing, images: int) -> None:
        super().__init__()
        self._images = images
        self._height, self._width, self._channels = preprocessing.output_shape
        self._whitens = preprocessing.whitening
        size = preprocessing.size
        self._top, self._left = (size[0] - self._height) // 2, (size[1] - self._width) // 2
        mean = preprocessing.mean_values
        self.register_buffer("mean", None if mean is None else torch.from_numpy(np.array(mean, np.float32)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = x.split(self._channels, dim=3) if self._images > 1 else [x]
        finished = [self._finished(part) for part in parts]
        return channels_first(torch.cat(finished, dim=3) if self._images > 1 else finished[0])

    def _finished(self, x: torch.Tensor) -> torch.Tensor:
        if self.mean is not None:
            x = x - self.mean
        x = x[:, self._top : self._top + self._height, self._left : self._left + self._width]
        if not self._whitens:
            return x
        numbers = x.double()
        level = numbers.mean(dim=(1, 2, 3), keepdim=True)
        variance = (numbers - level).square().mean(dim=(1, 2, 3), keepdim=True)
        least = 1 / np.sqrt(self._height * self._width * self._channels)
        return ((numbers - level) / variance.sqrt().clamp(min=float(least))).float()


class _Rows(nn.Module):
    """Does what ``TablePreprocessing.finish`` does, in float64, which has the digits for seconds of years.

    Args:
        preprocessing: of the job.
    """

    offset: torch.Tensor
    matrix: torch.Tensor

    def __init__(self, preprocessing: TablePreprocessing) -> None:
        super().__init__()
        self._count = len(preprocessing.offset)
        self.register_buffer("offset", torch.from_numpy(np.array(preprocessing.offset, np.float64)))
        self.register_buffer("matrix", torch.from_numpy(np.array(preprocessing.matrix, np.float64)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        measured: Any = rows[:, : self._count] - self.offset
        measured = measured @ self.matrix if self.matrix.ndim == 2 else measured * self.matrix
        return torch.cat([measured, rows[:, self._count :]], dim=1).float()
