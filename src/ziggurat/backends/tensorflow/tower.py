"""``Tower``: the base class of a user's network, with one object per device and stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ziggurat.engine.network_files import model_property

__all__ = ["Tower", "model_property"]


class Tower:
    """What a user's ``UserModel`` inherits: its input, its labels, and which graph it is built for.

    The class is built once for each device in training, once for validation and once for inference, over one set of
    variables under the scope ``model/``. It makes tensors; a step then runs them.

    Args:
        x: N is the tower's part of the batch. Images are float32 (N, H, W, C), RGB, 0 to 255 less the mean that the
            job asks for; pairs of images lie in the channels. Rows of tables are float32 (N, F), categories as their
            numbers. Texts are int32 or int64 (N, L), token numbers with 0 behind the end of a text.
        y: there in training and validation, None for inference and where nothing is to be learned but ``x`` itself.
            Classification: int64 (N). Several labels at once: float32 (N, nclasses) of 0 and 1. Masks: int64
            (N, H, W, 1), class numbers, with 255 where nothing counts. Numbers to predict: float32 (N, k). Images:
            float32 (N, H, W, C), 0 to 255. Pairs: int64 (N), 1 for the same and 0 for different.
        input_shape: shape of one sample, a list: [H, W, C] in px and channels, after the crop; [F]; [L].
        nclasses: number of classes where ``y`` holds class numbers, or one number for each class; None otherwise.
        is_training: True in the training graph, False in the validation graph and for inference.
        is_inference: True for inference.

    Attributes:
        inference: the output, written by the user as a ``@model_property``: a tensor whose first axis is N, or a list
            of tensors. Classes, also several at once: (N, nclasses) logits. Masks: (N, H, W, nclasses) logits. Numbers
            to predict: (N, k). Images: (N, H, W, C). Pairs: a list of two embeddings, (N, D) each. Anything else is a
            ``NetworkCodeError``.
        loss: what is minimized, written by the user as a ``@model_property``: a scalar tensor, or a list of
            ``{'loss': scalar tensor, 'vars': [variables]}``, each minimized over its own variables. Regularisation
            terms are added to it once, whatever the weights. It is not read for inference. Anything else is a
            ``NetworkCodeError``. A loss of your own is the mean over its samples: over validation batches, parts of a
            batch and devices it is averaged by their numbers. One that is made of ``digits.classification_loss`` with
            class weights, ``digits.segmentation_loss`` or ``digits.detection_loss`` is averaged as a whole by what
            these are divided by, so that neither batch size nor parts change it.
        summaries: a list that takes what ``tf.summary.*`` returns. A scalar becomes two curves, ``<tag>`` of training
            and ``validation_<tag>``, named by the last part of its tag; everything else goes to TensorBoard.
        target_shape: shape of one sample's part of ``y``, a list: ``[k]``, ``[H, W, 1]``, …; ``[]`` for class numbers,
            and where there is no ``y``. Unlike ``y``, it is there for inference, too.
        target_mean: mean of each value that is to be learned, over the training split, (k) float32; zeros where that is
            not known. An output ``net * self.target_std + self.target_mean`` is in the units of ``y`` from the start.
        target_std: standard deviation of each such value, (k) float32; ones where that is not known.
        categories: of a table's row, for each of its F numbers how many categories it has; 0 for a measured number. A
            tuple; empty for other inputs.
        vocabulary_size: how many token numbers texts have; None for other inputs.
        inference_inputs: a dict that takes what inference may be given beside ``x``, such as the noise of a generator:
            name → what ``tf.placeholder_with_default`` returns, (N, …). Where nothing is given, the default is used.
        train: None; nothing reads it. Files that were written for DIGITS may.
    """

    disableAutoDataParallelism: ClassVar[bool] = False  # noqa: N815 - the guide's name
    """Set to True in the class for one tower, however many devices the job has, so that it sees the whole batch."""

    newest_x: ClassVar[Any] = None
    """Input of the tower that was made last: the one that is being built."""

    def __init__(
        self,
        x: Any,
        y: Any,
        input_shape: Sequence[int],
        nclasses: int | None,
        is_training: bool,
        is_inference: bool,
    ) -> None:
        Tower.newest_x = x
        self.x = x
        self.y = y
        self.input_shape = list(input_shape)
        self.nclasses = nclasses
        self.target_shape: list[int] = []
        self.target_mean: Any = np.zeros(1, np.float32)
        self.target_std: Any = np.ones(1, np.float32)
        self.categories: tuple[int, ...] = ()
        self.vocabulary_size: int | None = None
        self.inference_inputs: dict[str, Any] = {}
        self.is_training = is_training
        self.is_inference = is_inference
        self.summaries: list[Any] = []
        self.train = None

    def gradientUpdate(self, grads: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:  # noqa: N802
        """Return the (gradient, variable) pairs to apply; a pair left out is not trained. Override it at will.

        It is called once for each tower and each loss, before gradients are averaged over the towers.

        Args:
            grads: pairs of a tensor and the variable of its shape; those without a gradient, and frozen variables, are
                left out already.
        """
        return grads

    def fineTuneHook(self, net: Any) -> Any:  # noqa: N802
        """Return the output to use when the job starts from a pretrained model; ``inference`` is that from then on.

        It is not called in a job that starts fresh.

        Args:
            net: the untuned output, ``inference``: a tensor, or a list of tensors.
        """
        return net
