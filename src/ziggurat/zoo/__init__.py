"""Standard networks: files such as a user writes, and the table that names them.

They are data, executed in a worker like any user's file, and never imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.errors import UnknownNameError

__all__ = ["STANDARD_NETWORKS", "TASK_KINDS", "StandardNetwork", "network_path"]


@dataclass(frozen=True)
class StandardNetwork:
    """One standard network.

    Args:
        name: name under which a spec asks for it.
        title: its name for people, with the year of its paper.
        task: ``classification``, ``image`` (an image out), ``pairs`` (siamese) or ``regression``.
        input_shape: (H, W, C) it was made for; others work where the layers leave something over.
        learning_rate: a rate to start from, with momentum 0.9.
        source: the paper.
        smallest_px: shortest side of an image that its layers leave something of.
    """

    name: str
    title: str
    task: str
    input_shape: tuple[int, int, int]
    learning_rate: float
    source: str
    smallest_px: int = 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of datasets that it learns from."""
        return TASK_KINDS[self.task]


TASK_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "classification": ("image-classification",),
    "image": ("image-classification", "image-to-image"),
    "pairs": ("image-pairs",),
    "regression": ("image-regression", "table"),
}
"""Task → kinds of datasets that have what it learns; an auto-encoder needs images only, and leaves labels alone."""

STANDARD_NETWORKS: Final[dict[str, StandardNetwork]] = {
    network.name: network
    for network in (
        StandardNetwork(
            "lenet", "LeNet-5 (1998)", "classification", (28, 28, 1), 0.01, "LeCun et al., Proc. IEEE 86 (11), 1998", 16
        ),
        StandardNetwork("convnet", "Small convolutional network", "classification", (32, 32, 3), 0.02, "none: ours", 8),
        StandardNetwork(
            "alexnet",
            "AlexNet (2012)",
            "classification",
            (224, 224, 3),
            0.01,
            "Krizhevsky et al., NIPS 2012; arXiv 1404.5997",
            63,
        ),
        StandardNetwork(
            "googlenet", "GoogLeNet (2014)", "classification", (224, 224, 3), 0.01, "Szegedy et al., CVPR 2015"
        ),
        StandardNetwork(
            "vgg16", "VGG-16 (2014)", "classification", (224, 224, 3), 0.005, "Simonyan and Zisserman, ICLR 2015", 32
        ),
        StandardNetwork("resnet18", "ResNet-18 (2015)", "classification", (224, 224, 3), 0.05, "He et al., CVPR 2016"),
        StandardNetwork("resnet50", "ResNet-50 (2015)", "classification", (224, 224, 3), 0.05, "He et al., CVPR 2016"),
        StandardNetwork(
            "mobilenet_v2", "MobileNetV2 (2018)", "classification", (224, 224, 3), 0.05, "Sandler et al., CVPR 2018"
        ),
        StandardNetwork(
            "autoencoder", "Auto-encoder", "image", (28, 28, 1), 0.5, "Hinton and Salakhutdinov, Science 313, 2006"
        ),
        StandardNetwork(
            "siamese", "Siamese network", "pairs", (28, 28, 2), 0.01, "Hadsell, Chopra and LeCun, CVPR 2006", 16
        ),
        StandardNetwork("regression", "Linear regression", "regression", (1, 13, 1), 0.05, "Legendre, 1805"),
    )
}
"""name → standard network."""


def network_path(name: str, framework: str) -> Path:
    """Return the file of a standard network.

    Args:
        name: one of ``STANDARD_NETWORKS``.
        framework: ``tensorflow``.

    Raises:
        UnknownNameError: where there is none of that name for the framework; lists the nearest.
    """
    path = Path(__file__).parent / framework / f"{name}.py"
    if name not in STANDARD_NETWORKS or not path.is_file():
        there = [known for known in STANDARD_NETWORKS if (path.parent / f"{known}.py").is_file()]
        raise UnknownNameError(f"standard network for {framework}", name, there)
    return path
