"""``Tower`` on PyTorch: the base class of a user's network, a module with one light view for each batch."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np
import torch
from torch import nn

from ziggurat.engine.network_files import model_property
from ziggurat.errors import NetworkCodeError

__all__ = ["Tower", "model_property"]

_logger = logging.getLogger(__name__)

_OF_A_VIEW: Final = "_is_view"


class Tower(nn.Module):
    """What a user's ``UserModel`` inherits: its input, its labels, and what it is computed for.

    It is a PyTorch module: ``build`` makes the layers once. For each batch, a view of it that shares the layers holds
    ``x`` and ``y``, and its ``@model_property`` values are computed once.

    Args:
        input_shape: shape of one sample, a list: [C, H, W] in channels and px, after the crop; [F]; [L].
        nclasses: number of classes where ``y`` holds class numbers, or one number for each class; None otherwise.

    Attributes:
        x: on the tower's device. Images are float32 (N, C, H, W), RGB, 0 to 255 less the mean that the job asks for;
            pairs of images lie in the channels. Rows of tables are float32 (N, F), categories as their numbers. Texts
            are int64 (N, L), token numbers with 0 behind the end of a text.
        y: there in training and validation, None for inference and where nothing is to be learned but ``x`` itself.
            Classification: int64 (N). Several labels at once: float32 (N, nclasses) of 0 and 1. Masks: int64
            (N, H, W), class numbers, with 255 where nothing counts. Numbers to predict: float32 (N, k). Images:
            float32 (N, C, H, W), 0 to 255. Pairs: int64 (N), 1 for the same and 0 for different.
        inference: the output, written by the user as a ``@model_property``: a tensor whose first axis is N, or a list
            of tensors. Classes, also several at once: (N, nclasses) logits. Masks: (N, nclasses, H, W) logits. Numbers
            to predict: (N, k). Images: (N, C, H, W). Pairs: a list of two embeddings, (N, D) each.
        loss: what is minimized, written by the user as a ``@model_property``: a scalar tensor, or a list of
            ``{'loss': scalar tensor, 'vars': [parameters]}``, each minimized over its own parameters. It is not read
            for inference. A loss of your own is the mean over its samples: over validation batches, parts of a batch
            and devices it is averaged by their numbers. One that is made of ``digits.classification_loss`` with class
            weights, ``digits.segmentation_loss`` or ``digits.detection_loss`` is averaged as a whole by what these are
            divided by, so that neither batch size nor parts change it.
        summaries: a list that takes what ``digits.scalar``, ``digits.image`` and ``digits.histogram`` return. A scalar
            becomes two curves, ``<tag>`` of training and ``validation_<tag>``; the others go to TensorBoard.
        is_training: True in a training step, False in validation and inference.
        is_inference: True for inference.
        step: number of finished steps; 0 in validation and inference.
        target_shape: shape of one sample's part of ``y``, a list; ``[]`` for class numbers and where there is no ``y``.
        target_mean: mean of each value that is to be learned, over the training split, (k) float32; zeros where that is
            not known. An output ``net * self.target_std + self.target_mean`` is in the units of ``y`` from the start.
        target_std: standard deviation of each such value, (k) float32; ones where that is not known.
        categories: of a table's row, for each of its F numbers how many categories it has; 0 for a measured number. A
            tuple; empty for other inputs.
        vocabulary_size: how many token numbers texts have; None for other inputs.
    """

    disableAutoDataParallelism: ClassVar[bool] = False  # noqa: N815 - the guide's name
    """Set to True in the class for one process, however many devices the job has, so that it sees the whole batch."""

    x: Any
    y: Any

    def __init__(self, input_shape: Sequence[int], nclasses: int | None) -> None:
        super().__init__()
        self.input_shape = list(input_shape)
        self.nclasses = nclasses
        self.target_shape: list[int] = []
        self.target_mean: Any = torch.zeros(1)
        self.target_std: Any = torch.ones(1)
        self.categories: tuple[int, ...] = ()
        self.vocabulary_size: int | None = None
        self.is_training = False
        self.is_inference = False
        self.step = 0
        self.summaries: list[Any] = []
        self._given: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}

    def build(self) -> None:
        """Make the layers, once: ``self.conv1 = nn.Conv2d(...)``. ``input_shape`` and the like are there, ``x`` is not.

        The initialization is PyTorch's, uniform in ±1/√(fan in) for convolutions and linear layers, where you do not
        choose another one with ``nn.init``. DIGITS's Torch networks began like that, too; Caffe's with Xavier.
        """

    def gradientUpdate(self, grads: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:  # noqa: N802
        """Return the (gradient, parameter) pairs to apply; a pair left out is not trained. Override it at will.

        It is called once for each loss, with the gradients of the whole batch: those of several devices are added up
        before, and each device calls it with the same. What it draws at random is the same on all of them, too.

        Args:
            grads: pairs of a tensor and the parameter of its shape; those without a gradient, and frozen parameters,
                are left out already.
        """
        return grads

    def fineTuneHook(self, net: Any) -> Any:  # noqa: N802
        """Return the output to use when the job starts from a pretrained model; ``inference`` is that from then on.

        It is not called in a job that starts fresh.

        Args:
            net: the untuned output, ``inference``: a tensor, or a list of tensors.
        """
        return net

    def inference_input(self, name: str, default: Any) -> Any:
        """Return what inference may be given beside ``x``, such as the noise of a generator.

        Args:
            name: of what may be given; (N, …) like ``default``.
            default: tensor that is used in training, and where nothing is given.
        """
        self._asked[name] = default
        given = self._given.get(name)
        return default if given is None else given

    def cuda(self, device: Any = None) -> Self:
        """Return the tower: Ziggurat moves it, and each batch, to the device of the job.

        Args:
            device: not looked at.
        """
        _logger.warning("`cuda()` does nothing in a network file: the job's devices are used.")
        return self

    def view(self, x: Any, y: Any, **attributes: Any) -> Self:
        """Return a view on the same layers for one batch.

        Args:
            x: the samples.
            y: their labels, or None.
            **attributes: of the view, such as ``is_training``.
        """
        found = copy.copy(self)
        # Layers are looked up in dictionaries that the views share; anything else is the view's own.
        found.__dict__ |= {"x": x, "y": y, "summaries": [], "_asked": {}, "_model_properties": {}, **attributes}
        found.__dict__[_OF_A_VIEW] = True
        return found

    def forward(self, x: Any) -> Any:
        """Return the output of inference: ``inference`` of a view on ``x``."""
        return self.view(x, None, is_inference=True).inference

    def __getattr__(self, name: str) -> Any:
        found = getattr(type(self), name, None)
        if isinstance(found, model_property):  # it raised an AttributeError, which PyTorch would hide behind its own
            return found.__get__(self, type(self))
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if _OF_A_VIEW in self.__dict__ and isinstance(value, nn.Module | nn.Parameter):
            raise NetworkCodeError(
                "Layers are made once, in `build`.",
                received=f"`self.{name} = {type(value).__name__}(...)` while a batch is computed",
                advice="Write `def build(self):` and make the layer there.",
            )
        super().__setattr__(name, value)


def as_tensor(values: Sequence[float]) -> torch.Tensor:
    """Return numbers as a float32 tensor."""
    return torch.from_numpy(np.array(values, np.float32))
