"""Standard networks: files such as a user writes, and the table that names them.

They are data, executed in a worker like any user's file, and never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.entities.backend_info import StandardNetwork, backend_info
from ziggurat.errors import UnknownNameError

__all__ = ["STANDARD_NETWORKS", "ZOO", "former_network_path", "network_path", "networks_in"]

ZOO: Final = Path(__file__).parent
"""Folder with a folder of network files for each framework."""

_RELEASE_0_1: Final = "release_0_1"
"""Folder beside the files of a framework: those that have changed since, as release 0.1 had them."""


_ADAM: Final[Mapping[str, Any]] = {"optimizer.name": "adam"}
"""In a recipe: the rate of the network is one of Adam."""

_OWN_COLORS: Final[Mapping[str, Any]] = {"preprocessing.mean": "none"}
"""In a recipe: the network scales the colors itself, as its published weights expect it."""

_DETECTOR: Final[Mapping[str, Any]] = {
    **_OWN_COLORS,
    "epochs": 60,
    "optimizer.name": "adamw",
    "weight_decay": 0.01,
    "preprocessing.resize_mode": "fill",
    "augmentation.flip": "fliplr",
}
"""In a recipe: of the detectors."""

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
            "vgg16",
            "VGG-16 (2014)",
            "classification",
            (224, 224, 3),
            0.005,
            "Simonyan and Zisserman, ICLR 2015",
            32,
            recipe={**_OWN_COLORS, "weight_decay": 0.0005},
        ),
        StandardNetwork(
            "resnet18",
            "ResNet-18 (2015)",
            "classification",
            (224, 224, 3),
            0.05,
            "He et al., CVPR 2016",
            recipe={**_OWN_COLORS, "weight_decay": 0.0001},
        ),
        StandardNetwork(
            "resnet34",
            "ResNet-34 (2015)",
            "classification",
            (224, 224, 3),
            0.05,
            "He et al., CVPR 2016",
            recipe={**_OWN_COLORS, "weight_decay": 0.0001},
        ),
        StandardNetwork(
            "resnet50",
            "ResNet-50 (2015)",
            "classification",
            (224, 224, 3),
            0.05,
            "He et al., CVPR 2016",
            recipe={**_OWN_COLORS, "weight_decay": 0.0001},
        ),
        StandardNetwork(
            "mobilenet_v2",
            "MobileNetV2 (2018)",
            "classification",
            (224, 224, 3),
            0.05,
            "Sandler et al., CVPR 2018",
            recipe={**_OWN_COLORS, "weight_decay": 0.00004},
        ),
        StandardNetwork(
            "efficientnet_b0",
            "EfficientNet-B0 (2019)",
            "classification",
            (224, 224, 3),
            0.05,
            "Tan and Le, ICML 2019",
            recipe={**_OWN_COLORS, "weight_decay": 0.00001},
        ),
        StandardNetwork(
            "efficientnet_lite0",
            "EfficientNet-Lite0 (2020)",
            "classification",
            (224, 224, 3),
            0.05,
            "Google, 2020, after Tan and Le, ICML 2019",
            recipe={**_OWN_COLORS, "weight_decay": 0.00001},
        ),
        StandardNetwork(
            "convnext_tiny",
            "ConvNeXt-Tiny (2022)",
            "classification",
            (224, 224, 3),
            0.0005,
            "Liu et al., CVPR 2022",
            32,
            recipe={**_OWN_COLORS, "optimizer.name": "adamw", "weight_decay": 0.05},
        ),
        StandardNetwork(
            "vit_small",
            "Vision Transformer, small, patches of 16 px (2021)",
            "classification",
            (224, 224, 3),
            0.0005,
            "Dosovitskiy et al., ICLR 2021",
            16,
            recipe={**_OWN_COLORS, "optimizer.name": "adamw", "weight_decay": 0.05},
        ),
        StandardNetwork(
            "unet_small",
            "Small U-Net",
            "segmentation",
            (64, 64, 3),
            0.02,
            "Ronneberger et al., MICCAI 2015",
            8,
            recipe={"epochs": 50, "augmentation.flip": "fliplr"},
        ),
        StandardNetwork(
            "unet", "U-Net (2015)", "segmentation", (256, 256, 3), 0.02, "Ronneberger et al., MICCAI 2015", 16
        ),
        StandardNetwork(
            "unet_lite0",
            "EfficientNet-Lite U-Net",
            "segmentation",
            (256, 256, 3),
            0.003,
            "Ronneberger et al., MICCAI 2015; Google, 2020",
            32,
            recipe={
                **_OWN_COLORS,
                "epochs": 50,
                "batch_size": 8,
                "optimizer.name": "adamw",
                "weight_decay": 0.01,
                "augmentation.flip": "fliplr",
            },
            backbone="efficientnet_lite0",
        ),
        StandardNetwork(
            "deeplab", "DeepLabv3 on ResNet-18 (2017)", "segmentation", (256, 256, 3), 0.02, "Chen et al., 2017", 16
        ),
        StandardNetwork(
            "detector_nano",
            "Small detector",
            "detection",
            (128, 128, 3),
            0.004,
            "ours, after FCOS, YOLOX and TOOD",
            16,
            recipe={**_DETECTOR, "batch_size": 32},
        ),
        StandardNetwork(
            "detector_small",
            "Detector on ResNet-18",
            "detection",
            (320, 320, 3),
            0.001,
            "ours, after FCOS, YOLOX and TOOD",
            32,
            recipe={**_DETECTOR, "batch_size": 16},
            backbone="resnet18",
        ),
        StandardNetwork(
            "detector_lite0",
            "EfficientNet-Lite detector",
            "detection",
            (320, 320, 3),
            0.003,
            "ours, after FCOS, YOLOX and TOOD; Google, 2020",
            32,
            recipe={**_DETECTOR, "batch_size": 8},
            backbone="efficientnet_lite0",
        ),
        StandardNetwork(
            "detector_medium",
            "Detector on ResNet-50",
            "detection",
            (512, 512, 3),
            0.001,
            "ours, after FCOS, YOLOX and TOOD",
            32,
            recipe={**_DETECTOR, "batch_size": 8},
            backbone="resnet50",
        ),
        StandardNetwork(
            "multilabel", "Small network for several labels", "multi-label", (32, 32, 3), 0.02, "none: ours", 8
        ),
        StandardNetwork(
            "image_regression",
            "Small network for numbers",
            "regression",
            (32, 32, 3),
            0.001,
            "none: ours",
            8,
            recipe=_ADAM,
        ),
        StandardNetwork("regression", "Linear regression", "regression", (1, 13, 1), 0.05, "Legendre, 1805"),
        StandardNetwork(
            "table_mlp",
            "Multilayer perceptron for tables",
            "regression",
            learning_rate=0.003,
            source="none: ours",
            input="table",
            other_tasks=("classification",),
            recipe=_ADAM,
        ),
        StandardNetwork(
            "table_linear",
            "Linear model for tables",
            "regression",
            learning_rate=0.005,
            source="Legendre, 1805",
            input="table",
            other_tasks=("classification",),
            recipe={"preprocessing.numbers": "whiten"},
        ),
        StandardNetwork(
            "text_cnn",
            "Convolutional network for texts (2014)",
            learning_rate=0.001,
            source="Kim, EMNLP 2014",
            input="text",
            recipe={**_ADAM, "epochs": 5},
        ),
        StandardNetwork(
            "text_transformer",
            "Small Transformer for texts (2017)",
            learning_rate=0.001,
            source="Vaswani et al., NIPS 2017",
            input="text",
            recipe={**_ADAM, "epochs": 3},
        ),
        StandardNetwork(
            "siamese",
            "Siamese network",
            "pairs",
            (28, 28, 2),
            0.001,
            "Hadsell, Chopra and LeCun, CVPR 2006",
            16,
            input="image-pair",
            recipe=_ADAM,
        ),
        StandardNetwork(
            "siamese16",
            "Siamese network, 16 numbers",
            "pairs",
            (28, 28, 2),
            0.01,
            "Hadsell, Chopra and LeCun, CVPR 2006",
            16,
            input="image-pair",
        ),
        StandardNetwork(
            "denoiser",
            "Small image-to-image network",
            "image-to-image",
            (32, 32, 3),
            0.001,
            "none: ours",
            recipe=_ADAM,
        ),
        StandardNetwork(
            "autoencoder",
            "Auto-encoder",
            "image-to-image",
            (28, 28, 1),
            0.5,
            "Hinton and Salakhutdinov, Science 313, 2006",
            recipe={"preprocessing.mean": "none", "epochs": 20},
        ),
        StandardNetwork(
            "gan",
            "Generative adversarial network",
            "free",
            (28, 28, 1),
            0.0002,
            "Radford et al., 2016",
            8,
            recipe={**_ADAM, "optimizer.beta_1": 0.5},
        ),
        StandardNetwork(
            "gan_encoder",
            "Conditional generative adversarial network with an encoder",
            "free",
            (28, 28, 1),
            0.0005,
            "Perarnau et al., 2016",
            8,
            recipe={**_ADAM, "optimizer.beta_1": 0.5},
        ),
    )
}
"""name → standard network; of those for a task, the one that is recommended comes first."""


def networks_in(folder: Path) -> tuple[StandardNetwork, ...]:
    """Return the standard networks that have a file in a folder."""
    return tuple(network for name, network in STANDARD_NETWORKS.items() if (folder / f"{name}.py").is_file())


def network_path(name: str, backend: str) -> Path:
    """Return the file of a standard network.

    Args:
        name: of the network.
        backend: whose network it is.

    Raises:
        UnknownNameError: where the backend is not installed, or has no file of that name; lists the nearest.
    """
    info = backend_info(backend)
    files = {} if info.zoo is None else {known: info.zoo / f"{known}.py" for known in info.network_names}
    there = {known: path for known, path in files.items() if path.is_file()}
    if name not in there:
        raise UnknownNameError(f"standard network for {backend}", name, there)
    return there[name]


def former_network_path(name: str, backend: str) -> Path | None:
    """Return the file that a standard network had in release 0.1; None where it is the same today, or there was none.

    Args:
        name: of the network.
        backend: whose network it is.

    Raises:
        UnknownNameError: where the backend is not installed.
    """
    zoo = backend_info(backend).zoo
    path = None if zoo is None else zoo / _RELEASE_0_1 / f"{name}.py"
    return path if path is not None and path.is_file() else None
