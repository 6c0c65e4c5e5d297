"""RT-DETRv2 or D-FINE of Hugging Face's transformers as a network file for PyTorch.

Lv et al., "RT-DETRv2" (2024), and Peng et al., "D-FINE" (ICLR 2025): detectors whose queries find an object each, so
that boxes seldom overlap. It needs ``pip install transformers scipy``, and not torchvision. The input's sides are
multiples of 32, such as 640; the preprocessing takes no mean off.

The names of the weights are those of the library, so that a ``model.safetensors`` of theirs can be started from.
"""

import sys

import torch
import utils as digits
from model import Tower
from utils import model_property

try:
    import scipy  # noqa: F401 - the library matches queries and objects with it
    import transformers
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"This network needs `{error.name}`. Install it: pip install transformers scipy"
    ) from error

KIND = "RTDetrV2"  # or "DFine"
# What is not the library's default: here RT-DETRv2 on ResNet-18. Published weights have theirs in `config.json`.
BACKBONE = {"depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic"}
CONFIG = {"encoder_in_channels": [128, 256, 512], "decoder_layers": 3, "hidden_expansion": 0.5}


def rows(each):
    """Return the length of anything, of a tensor as it is while an export looks on."""
    return each.shape[0] if isinstance(each, torch.Tensor) else len(each)


class UserModel(Tower):
    def build(self):
        options = dict(CONFIG, num_labels=self.nclasses)
        if KIND == "RTDetrV2":
            stages = ["stage2", "stage3", "stage4"]
            options["backbone_config"] = transformers.RTDetrResNetConfig(out_features=stages, **BACKBONE)
        config = getattr(transformers, f"{KIND}Config")(**options)
        detector = getattr(transformers, f"{KIND}ForObjectDetection")(config)
        # `len` of a tensor makes a constant of the number of samples, which an export must leave open.
        vars(sys.modules[type(detector).__module__])["len"] = rows
        for name, child in detector.named_children():
            self.add_module(name, child)  # under the library's names
        self.__dict__["detector"] = detector  # not a module of this one a second time

    def labels(self):
        """The objects of each image as the library takes them: middle, width and height as shares of the input."""
        _, height, width = self.input_shape
        objects = digits.boxes_of(self.y)
        low, high = objects.boxes.split(2, dim=-1)
        boxes = torch.cat([(low + high) / 2, high - low], dim=-1) / low.new_tensor([width, height, width, height])
        return [
            {"class_labels": classes[is_object], "boxes": each[is_object]}
            for classes, each, is_object in zip(objects.classes, boxes, objects.is_object)
        ]

    @model_property
    def found(self):
        """Logits, boxes and, where there are objects to learn, the loss."""
        images = self.x / 255
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        return self.detector(pixel_values=images, labels=None if self.y is None else self.labels())

    @model_property
    def inference(self):
        _, height, width = self.input_shape
        middle, size = self.found.pred_boxes.split(2, dim=-1)
        corners = torch.cat([middle - size / 2, middle + size / 2], dim=-1)
        boxes = corners * corners.new_tensor([width, height, width, height])
        return torch.cat([boxes, self.found.logits.sigmoid()], dim=-1)

    @model_property
    def loss(self):
        return self.found.loss
