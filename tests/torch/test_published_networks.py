"""The networks of the zoo have the keys, shapes and order of the weights that torchvision and timm publish."""

import itertools

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from published_networks import network, shapes_of
from torch import nn

pytestmark = pytest.mark.torch

PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "vgg16": 138_357_544,
    "mobilenet_v2": 3_504_872,
    "efficientnet_b0": 5_288_548,
    "efficientnet_lite0": 4_652_008,
    "convnext_tiny": 28_589_128,
    "vit_small": 22_050_664,
}
"""As torchvision's and timm's pages state them, for 1,000 classes."""

KEYS = {
    "resnet18": 122,
    "resnet34": 218,
    "resnet50": 320,
    "vgg16": 32,
    "mobilenet_v2": 314,
    "efficientnet_b0": 360,
    "efficientnet_lite0": 296,
    "convnext_tiny": 182,
    "vit_small": 152,
}


def layer(name, *shape):
    """A layer with bias: the outputs are the first axis of its weight."""
    return {f"{name}.weight": [*shape], f"{name}.bias": [shape[0]]}


def bn(name, width):
    keys = {f"{name}.{each}": [width] for each in ("weight", "bias", "running_mean", "running_var")}
    return {**keys, f"{name}.num_batches_tracked": []}


def conv_bn(conv, norm, *shape):
    return {f"{conv}.weight": [*shape], **bn(norm, shape[0])}


def resnet(blocks, wide):
    """``wide``: 1 with two layers of 3x3 a block, 4 with a bottleneck."""
    keys, channels = conv_bn("conv1", "bn1", 64, 3, 7, 7), 64
    for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512), strict=True), start=1):
        for number in range(count):
            name = f"layer{stage}.{number}"
            kernels = [(width, channels, 3, 3), (width, width, 3, 3)]
            if wide == 4:
                kernels = [(width, channels, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
            for at, kernel in enumerate(kernels, start=1):
                keys |= conv_bn(f"{name}.conv{at}", f"{name}.bn{at}", *kernel)
            if number == 0 and channels != wide * width:
                kernel = (wide * width, channels, 1, 1)
                keys |= conv_bn(f"{name}.downsample.0", f"{name}.downsample.1", *kernel)
            channels = wide * width
    return keys | layer("fc", 1000, channels)


def vgg16():
    widths = {0: 64, 2: 64, 5: 128, 7: 128, 10: 256, 12: 256, 14: 256}
    widths |= dict.fromkeys((17, 19, 21, 24, 26, 28), 512)
    keys, channels = {}, 3
    for number, width in widths.items():
        keys |= layer(f"features.{number}", width, channels, 3, 3)
        channels = width
    keys |= layer("classifier.0", 4096, 25088) | layer("classifier.3", 4096, 4096)
    return keys | layer("classifier.6", 1000, 4096)


def inverted(name, steps, start):
    """Keys of the parts of an inverted residual block: pairs of convolution and norm, numbered from ``start``."""
    keys = {}
    for number, kernel in enumerate(steps, start=start):
        keys |= conv_bn(f"{name}.{number}.0", f"{name}.{number}.1", *kernel)
    return keys


def mobilenet_v2():
    keys, channels = conv_bn("features.0.0", "features.0.1", 32, 3, 3, 3), 32
    widths = [16, 24, 24, *[32] * 3, *[64] * 4, *[96] * 3, *[160] * 3, 320]
    for number, width in enumerate(widths, start=1):
        inner = channels if number == 1 else 6 * channels
        steps = [(inner, channels, 1, 1)] * (number > 1) + [(inner, 1, 3, 3)]
        name = f"features.{number}.conv"
        keys |= inverted(name, steps, 0)
        keys |= conv_bn(f"{name}.{len(steps)}", f"{name}.{len(steps) + 1}", width, inner, 1, 1)
        channels = width
    return keys | conv_bn("features.18.0", "features.18.1", 1280, 320, 1, 1) | layer("classifier.1", 1000, 1280)


def efficientnet_b0():
    keys, channels = conv_bn("features.0.0", "features.0.1", 32, 3, 3, 3), 32
    stages = [(16, 3, 1), (24, 3, 2), (40, 5, 2), (80, 3, 3), (112, 5, 3), (192, 5, 4), (320, 3, 1)]
    for stage, (width, side, blocks) in enumerate(stages, start=1):
        for number in range(blocks):
            inner = channels if stage == 1 else 6 * channels
            steps = [(inner, channels, 1, 1)] * (stage > 1) + [(inner, 1, side, side)]
            name = f"features.{stage}.{number}.block"
            keys |= inverted(name, steps, 0)
            keys |= layer(f"{name}.{len(steps)}.fc1", channels // 4, inner, 1, 1)
            keys |= layer(f"{name}.{len(steps)}.fc2", inner, channels // 4, 1, 1)
            keys |= inverted(name, [(width, inner, 1, 1)], len(steps) + 1)
            channels = width
    return keys | conv_bn("features.8.0", "features.8.1", 1280, 320, 1, 1) | layer("classifier.1", 1000, 1280)


def efficientnet_lite0():
    """As Google's weights are named after they were added: without the underscores before each part."""
    keys, channels, number = conv_bn("conv_stem", "bn0", 32, 3, 3, 3), 32, 0
    stages = [(3, 16, 1), (3, 24, 2), (5, 40, 2), (3, 80, 3), (5, 112, 3), (5, 192, 4), (3, 320, 1)]
    for kernel, width, blocks in stages:
        expansion = 1 if width == 16 else 6
        for _ in range(blocks):
            name, inner = f"blocks.{number}", expansion * channels
            if expansion > 1:
                keys |= conv_bn(f"{name}.expand_conv", f"{name}.bn0", inner, channels, 1, 1)
            keys |= conv_bn(f"{name}.depthwise_conv", f"{name}.bn1", inner, 1, kernel, kernel)
            keys |= conv_bn(f"{name}.project_conv", f"{name}.bn2", width, inner, 1, 1)
            channels, number = width, number + 1
    return keys | conv_bn("conv_head", "bn1", 1280, 320, 1, 1) | layer("fc", 1000, 1280)


def convnext_tiny():
    keys = layer("features.0.0", 96, 3, 4, 4) | layer("features.0.1", 96)
    for stage, (width, blocks) in enumerate([(96, 3), (192, 3), (384, 9), (768, 3)]):
        if stage:
            keys |= layer(f"features.{2 * stage}.0", width // 2) | layer(
                f"features.{2 * stage}.1", width, width // 2, 2, 2
            )
        for number in range(blocks):
            name = f"features.{2 * stage + 1}.{number}"
            keys |= {f"{name}.layer_scale": [width, 1, 1]} | layer(f"{name}.block.0", width, 1, 7, 7)
            keys |= layer(f"{name}.block.2", width)
            keys |= layer(f"{name}.block.3", 4 * width, width) | layer(f"{name}.block.5", width, 4 * width)
    return keys | layer("classifier.0", 768) | layer("classifier.2", 1000, 768)


def vit_small():
    keys = {"cls_token": [1, 1, 384], "pos_embed": [1, 197, 384]} | layer("patch_embed.proj", 384, 3, 16, 16)
    for number in range(12):
        name = f"blocks.{number}"
        keys |= (
            layer(f"{name}.norm1", 384) | layer(f"{name}.attn.qkv", 1152, 384) | layer(f"{name}.attn.proj", 384, 384)
        )
        keys |= layer(f"{name}.norm2", 384) | layer(f"{name}.mlp.fc1", 1536, 384) | layer(f"{name}.mlp.fc2", 384, 1536)
    return keys | layer("norm", 384) | layer("head", 1000, 384)


PUBLISHED = {
    "resnet18": resnet((2, 2, 2, 2), 1),
    "resnet34": resnet((3, 4, 6, 3), 1),
    "resnet50": resnet((3, 4, 6, 3), 4),
    "vgg16": vgg16(),
    "mobilenet_v2": mobilenet_v2(),
    "efficientnet_b0": efficientnet_b0(),
    "efficientnet_lite0": efficientnet_lite0(),
    "convnext_tiny": convnext_tiny(),
    "vit_small": vit_small(),
}
HEADS = {
    "vgg16": "classifier.6",
    "mobilenet_v2": "classifier.1",
    "efficientnet_b0": "classifier.1",
    "convnext_tiny": "classifier.2",
    "vit_small": "head",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_network_has_published_keys_in_order(name):
    with torch.device("meta"):
        model = network(name, 1000, [3, 224, 224])
    assert list(shapes_of(model).items()) == list(PUBLISHED[name].items())
    assert len(PUBLISHED[name]) == KEYS[name]
    assert sum(each.numel() for each in model.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_other_number_of_classes_changes_the_head_alone(name):
    with torch.device("meta"):
        model = network(name, 7, [3, 224, 224])
    head = HEADS.get(name, "fc")
    changed = {key: shape for key, shape in shapes_of(model).items() if shape != PUBLISHED[name][key]}
    assert changed == {f"{head}.weight": [7, PUBLISHED[name][f"{head}.weight"][1]], f"{head}.bias": [7]}


@pytest.mark.parametrize(
    ("name", "side", "channels"),
    [(name, 32, 3) for name in PUBLISHED if name != "vgg16"]
    + [(name, 28, 1) for name in ("resnet18", "mobilenet_v2", "efficientnet_b0", "efficientnet_lite0")],
)
def test_published_network_takes_small_images(name, side, channels):
    torch.manual_seed(0)
    model = network(name, 3, [channels, side, side])
    x = torch.rand(4, channels, side, side) * 255
    loss = nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 2, 0]))
    loss.backward()
    assert torch.isfinite(loss)
    assert all(each.grad is not None for each in model.parameters())


@pytest.mark.parametrize("name", ["resnet18", "resnet34", "resnet50"])
def test_resnet_keeps_small_images_in_the_stem(name):
    small, larger = (network(name, 2, [3, side, side]) for side in (64, 65))
    assert (small.conv1.kernel_size, small.conv1.stride, small.is_small) == ((3, 3), (1, 1), True)
    assert (larger.conv1.kernel_size, larger.conv1.stride, larger.is_small) == ((7, 7), (2, 2), False)


@pytest.mark.parametrize(("side", "strides"), [(64, 3), (65, 5)])
@pytest.mark.parametrize("name", ["mobilenet_v2", "efficientnet_b0", "efficientnet_lite0"])
def test_mobile_network_halves_small_images_less(name, side, strides):
    model = network(name, 2, [3, side, side])
    assert sum(each.stride == (2, 2) for each in model.modules() if isinstance(each, nn.Conv2d)) == strides


@pytest.mark.parametrize("name", PUBLISHED)
def test_batch_norm_and_layer_norm_have_published_epsilons(name):
    with torch.device("meta"):
        model = network(name, 10, [3, 64, 64])
    for each in model.modules():
        if isinstance(each, nn.BatchNorm2d):
            assert (each.eps, each.momentum) == ((1e-3, 0.01) if name == "efficientnet_lite0" else (1e-5, 0.1))
        if isinstance(each, nn.LayerNorm):
            assert each.eps == 1e-6


def first_input(name, x):
    """Return what the first convolution of a network gets."""
    model = network(name, 2, list(x.shape[1:])).eval()
    seen = []
    first = next(each for each in model.modules() if isinstance(each, nn.Conv2d))
    first.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(x)
    return seen[0][0, :, 0, 0].tolist()


def test_resnet_normalizes_colors_as_imagenet():
    x = torch.full((1, 3, 32, 32), 255.0)
    expected = [(1 - mean) / std for mean, std in ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))]
    assert first_input("resnet18", x) == pytest.approx(expected, rel=1e-6)


def test_resnet_normalizes_gray_images_by_constants():
    assert first_input("resnet18", torch.full((1, 1, 32, 32), 255.0)) == pytest.approx([2.0])


def test_vit_normalizes_images_from_minus_1_to_1():
    x = torch.cat([torch.zeros(1, 1, 32, 32), torch.full((1, 2, 32, 32), 255.0)], dim=1)
    assert first_input("vit_small", x) == pytest.approx([-1, 1, 1])


def test_vit_has_a_place_for_each_patch():
    with torch.device("meta"):
        model = network("vit_small", 2, [3, 40, 64])
    assert list(model.pos_embed.shape) == [1, 1 + 2 * 4, 384]


def test_stochastic_depth_drops_whole_samples_in_training():
    torch.manual_seed(0)
    model = network("convnext_tiny", 2, [3, 32, 32])
    block = model.features[7][2]
    assert block.dropped == pytest.approx(0.1)
    nn.init.ones_(block.layer_scale)
    x = torch.rand(1, 768, 1, 1).expand(400, -1, -1, -1)
    with torch.no_grad():
        added = (block.train()(x) - x).flatten(1)
        whole = (block.eval()(x) - x).flatten(1)
    dropped = (added == 0).all(dim=1)
    assert 20 <= int(dropped.sum()) <= 65, "of 400 samples, 40 are expected"
    np.testing.assert_allclose(added[~dropped].numpy(), (whole / 0.9)[~dropped].numpy(), rtol=1e-3, atol=1e-5)


def test_stochastic_depth_grows_with_the_depth():
    with torch.device("meta"):
        model = network("efficientnet_b0", 2, [3, 224, 224])
    rates = [each.dropped for each in model.modules() if hasattr(each, "dropped")]
    assert rates == pytest.approx([0.2 * number / 16 for number in range(16)])
    assert all(earlier < later for earlier, later in itertools.pairwise(rates))
