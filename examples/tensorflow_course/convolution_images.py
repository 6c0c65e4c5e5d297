"""Images of convolutions in TensorBoard: the kernels of the first layer, and what it makes of one digit.

Run it with ``python examples/tensorflow_course/convolution_images.py --folder run``, then ``tensorboard --logdir run``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Accuracy, DigitsModel, arguments, convolution, dense, digits, pooling, train

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow.dataset import SklearnDigits
from ziggurat.tf.callback import Callback

SCALE = 8  # pixels on the screen for one of the image


class Model(DigitsModel):
    """A network whose first layer has a name."""

    def scores(self, image: Any) -> Any:
        """Return (N, 10)."""
        net = tf.identity(convolution(image, 16, "conv1"), name="features")
        net = pooling(convolution(pooling(net), 32, "conv2"))
        return dense(net, 10, "scores")


class ConvolutionImages(Callback):
    """Puts the kernels and the features of one digit as images, after each epoch."""

    def __init__(self) -> None:
        self._digit = next(iter(SklearnDigits("val")))[0][None]
        self.shapes: dict[str, tuple[int, ...]] = {}

    def _setup_graph(self) -> None:
        self._predict = self.trainer.get_predictor(["image"], ["features"])
        variables = self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)
        self._kernel = next(each for each in variables if each.op.name == "conv1/kernel")

    def _trigger_epoch(self) -> None:
        kernel = self.trainer.sess.run(self._kernel)  # (3, 3, 1, 16)
        (features,) = self._predict(self._digit)  # (1, 8, 8, 16)
        for tag, maps in (("conv1/kernels", kernel[:, :, 0]), ("conv1/features", features[0])):
            image = mosaic(np.moveaxis(maps, 2, 0))
            self.shapes[tag] = image.shape
            self.trainer.monitors.put_image(tag, image)


def mosaic(maps: np.ndarray, columns: int = 4) -> np.ndarray:
    """Return maps (N, H, W) beside one another, as one image (H', W') uint8 from its darkest to its brightest value."""
    low, high = float(maps.min()), float(maps.max())
    bytes_ = np.uint8(255 * (maps - low) / max(high - low, 1e-12))
    framed = np.pad(bytes_, ((0, -len(maps) % columns), (0, 1), (0, 1)))
    rows = [np.hstack(list(framed[start : start + columns])) for start in range(0, len(framed), columns)]
    return np.kron(np.vstack(rows), np.ones((SCALE, SCALE), np.uint8))


def main() -> None:
    """Train, and write the images where a folder is given."""
    options = arguments("Images of convolutions.", epochs=4)
    images = ConvolutionImages()
    train(Model(), digits(), [Accuracy(), images], options.epochs)
    for tag, shape in images.shapes.items():
        print(f"image {tag} {shape}")


if __name__ == "__main__":
    main()
