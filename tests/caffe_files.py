"""Files of Caffe written by tests: networks as text, and weights in both old forms and the present one."""

import numpy as np

from ziggurat.protobuf_wire import bytes_field, double_field, field_key, integer_field, varint


def blob(array, *, old_axes=False, double=False):
    """Return an array as bytes: with the shape of today, or with four old axes."""
    array = np.asarray(array)
    if not old_axes:
        head = bytes_field(7, bytes_field(1, b"".join(varint(side) for side in array.shape)))
    else:
        axes = (1,) * (4 - array.ndim) + array.shape
        head = b"".join(integer_field(number, side) for number, side in enumerate(axes, start=1))
    if double:
        return head + bytes_field(8, array.astype("<f8").tobytes())
    return head + bytes_field(5, array.astype("<f4").tobytes())


def caffemodel(arrays, *, form="layer", old_axes=False, double=False):
    """Return a ``.caffemodel`` of layer → arrays; forms: ``layer``, ``V1`` and ``V0``."""
    whole = bytes_field(1, b"test")
    for name, each in arrays.items():
        blobs = [blob(array, old_axes=old_axes, double=double) for array in each]
        if form == "layer":
            whole += bytes_field(100, bytes_field(1, name.encode()) + b"".join(bytes_field(7, b) for b in blobs))
        elif form == "V1":
            whole += bytes_field(2, bytes_field(4, name.encode()) + b"".join(bytes_field(6, b) for b in blobs))
        else:
            inner = bytes_field(1, name.encode()) + b"".join(bytes_field(50, b) for b in blobs)
            whole += bytes_field(2, bytes_field(1, inner))
    return whole


def unpacked(values, number):
    """Return numbers with a key each, as writers without packing have them."""
    if number == 8:
        return b"".join(double_field(8, value) for value in values)
    return b"".join(field_key(number, 5) + np.float32(value).tobytes() for value in values)


def with_input(shape, *layers, name="data"):
    """Return a network for images of a shape (C, H, W)."""
    dims = " ".join(f"dim: {side}" for side in (1, *shape))
    return f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {dims} }} }} }}\n' + "\n".join(
        layers
    )


def layer(name, kind, bottoms="", options="", tops="", more=""):
    """Return a layer; ``bottoms`` and ``tops`` are names with spaces between them."""
    parts = [f'name: "{name}" type: "{kind}"']
    parts += [f'bottom: "{each}"' for each in bottoms.split()]
    parts += [f'top: "{each}"' for each in (tops or name).split()]
    field = {
        "Deconvolution": "convolution_param", "InnerProduct": "inner_product_param", "BatchNorm": "batch_norm_param",
        "ContrastiveLoss": "contrastive_loss_param",
    }.get(kind, f"{kind.lower()}_param")  # fmt: skip
    return f"layer {{ {' '.join(parts)} {f'{field} {{ {options} }}' if options else ''} {more} }}"


def conv(name, bottom, options):
    """Return a convolution."""
    return layer(name, "Convolution", bottom, options)


def relu(name, blob_name, options=""):
    """Return a ReLU in place."""
    return layer(name, "ReLU", blob_name, options, blob_name)


LENET = """
name: "LeNet"
layer {
  name: "digits" type: "Data" top: "data" top: "label"
  include { phase: TRAIN }
  transform_param { scale: 0.00390625 }
  data_param { source: "somewhere" batch_size: 64 backend: LMDB }
}
layer {
  name: "digits" type: "Data" top: "data" top: "label"
  include { phase: TEST }
  transform_param { scale: 0.00390625 }
  data_param { source: "elsewhere" batch_size: 100 backend: LMDB }
}
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } bias_filler { type: "constant" } }
}
layer {
  name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer {
  name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } bias_filler { type: "constant" } }
}
layer {
  name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2" pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer {
  name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
  param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 500 weight_filler { type: "xavier" } bias_filler { type: "constant" } }
}
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer {
  name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } bias_filler { type: "constant" } }
}
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""

LENET_SOLVER = """
net: "train_test.prototxt"
test_iter: 100 test_interval: 500
base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005
lr_policy: "inv" gamma: 0.0001 power: 0.75
display: 100 max_iter: 10000 snapshot: 5000 snapshot_prefix: "lenet" solver_mode: GPU
"""


def alexnet(side=99):
    """Return AlexNet with local normalization and groups, with few channels, as a deploy file."""
    lines, bottom = [], "data"
    plan = [(1, 24, 11, 4, 0, 1, True), (2, 32, 5, 1, 2, 2, True), (3, 32, 3, 1, 1, 1, False)]
    plan += [(4, 32, 3, 1, 1, 2, False), (5, 24, 3, 1, 1, 2, False)]
    for number, count, kernel, stride, pad, group, is_normed in plan:
        options = f"num_output: {count} kernel_size: {kernel} stride: {stride} pad: {pad} group: {group}"
        lines += [conv(f"conv{number}", bottom, options), relu(f"relu{number}", f"conv{number}")]
        bottom = f"conv{number}"
        if is_normed:
            lines.append(layer(f"norm{number}", "LRN", bottom, "local_size: 5 alpha: 0.0001 beta: 0.75"))
            bottom = f"norm{number}"
        if number in (1, 2, 5):
            lines.append(layer(f"pool{number}", "Pooling", bottom, "pool: MAX kernel_size: 3 stride: 2"))
            bottom = f"pool{number}"
    for number, count in ((6, 64), (7, 64)):
        lines.append(layer(f"fc{number}", "InnerProduct", bottom, f"num_output: {count}"))
        lines += [relu(f"relu{number}", f"fc{number}")]
        lines.append(layer(f"drop{number}", "Dropout", f"fc{number}", "dropout_ratio: 0.5", f"fc{number}"))
        bottom = f"fc{number}"
    lines += [layer("fc8", "InnerProduct", bottom, "num_output: 20"), layer("prob", "Softmax", "fc8")]
    return with_input((3, side, side), *lines)


def inception(name, bottom, counts):
    """Return a block of four branches that are joined."""
    one, three_in, three, five_in, five, pooled = counts
    places = {
        "1x1": (bottom, f"num_output: {one} kernel_size: 1"),
        "3x3_reduce": (bottom, f"num_output: {three_in} kernel_size: 1"),
        "3x3": (f"{name}/3x3_reduce", f"num_output: {three} kernel_size: 3 pad: 1"),
        "5x5_reduce": (bottom, f"num_output: {five_in} kernel_size: 1"),
        "5x5": (f"{name}/5x5_reduce", f"num_output: {five} kernel_size: 5 pad: 2"),
    }
    lines = []
    for part, (source, options) in places.items():
        lines += [conv(f"{name}/{part}", source, options), relu(f"{name}/relu_{part}", f"{name}/{part}")]
    lines.append(layer(f"{name}/pool", "Pooling", bottom, "pool: MAX kernel_size: 3 stride: 1 pad: 1"))
    lines += [conv(f"{name}/pool_proj", f"{name}/pool", f"num_output: {pooled} kernel_size: 1")]
    lines.append(relu(f"{name}/relu_pool_proj", f"{name}/pool_proj"))
    parts = " ".join(f"{name}/{part}" for part in ("1x1", "3x3", "5x5", "pool_proj"))
    return [*lines, layer(f"{name}/output", "Concat", parts)]


def googlenet_body():
    """Return the layers of a small GoogLeNet up to its classifier."""
    return [
        conv("conv1/7x7_s2", "data", "num_output: 16 pad: 3 kernel_size: 7 stride: 2"),
        relu("conv1/relu_7x7", "conv1/7x7_s2"),
        layer("pool1/3x3_s2", "Pooling", "conv1/7x7_s2", "pool: MAX kernel_size: 3 stride: 2"),
        layer("pool1/norm1", "LRN", "pool1/3x3_s2", "local_size: 5 alpha: 0.0001 beta: 0.75"),
        *inception("inception_3a", "pool1/norm1", (8, 8, 12, 4, 8, 4)),
        layer("pool3/3x3_s2", "Pooling", "inception_3a/output", "pool: MAX kernel_size: 3 stride: 2"),
        *inception("inception_4a", "pool3/3x3_s2", (8, 8, 12, 4, 8, 4)),
        layer("pool5/avg", "Pooling", "inception_4a/output", "pool: AVE kernel_size: 8 stride: 1"),
        layer("loss3/classifier", "InnerProduct", "pool5/avg", "num_output: 10"),
    ]


def googlenet():
    """Return a small GoogLeNet as a deploy file."""
    return with_input((3, 64, 64), *googlenet_body(), layer("prob", "Softmax", "loss3/classifier"))


def googlenet_with_losses():
    """Return a small GoogLeNet for a training: with a second classifier whose loss weighs 0.3."""
    source = 'layer { name: "data" type: "Data" top: "data" top: "label" transform_param { crop_size: 64 mirror: true }'
    source += " data_param { batch_size: 8 } }"
    side = [
        layer("loss1/ave_pool", "Pooling", "inception_3a/output", "pool: AVE kernel_size: 5 stride: 3"),
        layer("loss1/classifier", "InnerProduct", "loss1/ave_pool", "num_output: 10"),
        layer("loss1/loss", "SoftmaxWithLoss", "loss1/classifier label", "", "loss1/loss1", "loss_weight: 0.3"),
        layer("loss3/loss", "SoftmaxWithLoss", "loss3/classifier label", "", "loss3/loss3", "loss_weight: 1"),
    ]
    return "\n".join([source, *googlenet_body(), *side])


def detectnet(phase):
    """Return a small DetectNet: a GoogLeNet without its head that gives coverage and boxes for each place of a grid.

    Args:
        phase: ``deploy``, which ends in a Python layer, or ``train``, which begins with a layer that makes labels.
    """
    if phase == "train":
        first = """layer { name: "train_data" type: "Data" top: "data" }
            layer { name: "train_label" type: "Data" top: "label" }
            layer { name: "train_transform" type: "DetectNetTransformation" bottom: "data" bottom: "label"
              top: "transformed_data" top: "transformed_label" }"""
    else:
        power = layer("deploy_transform", "Power", "data", "shift: -127", "transformed_data")
        first = with_input((3, 64, 96), power)
    return "\n".join(
        [
            first,
            conv("conv1/7x7_s2", "transformed_data", "num_output: 8 pad: 3 kernel_size: 7 stride: 2"),
            relu("conv1/relu_7x7", "conv1/7x7_s2"),
            layer("pool1/3x3_s2", "Pooling", "conv1/7x7_s2", "pool: MAX kernel_size: 3 stride: 2"),
            layer("pool1/norm1", "LRN", "pool1/3x3_s2", "local_size: 5 alpha: 0.0001 beta: 0.75"),
            *inception("inception_3a", "pool1/norm1", (8, 6, 8, 4, 6, 4)),
            layer("pool3/3x3_s2", "Pooling", "inception_3a/output", "pool: MAX kernel_size: 3 stride: 2"),
            *inception("inception_4a", "pool3/3x3_s2", (8, 8, 12, 4, 8, 4)),
            layer("pool4/3x3_s2", "Pooling", "inception_4a/output", "pool: MAX kernel_size: 3 stride: 2"),
            conv("cvg/classifier", "pool4/3x3_s2", "num_output: 1 kernel_size: 1"),
            layer("coverage/sig", "Sigmoid", "cvg/classifier", "", "coverage"),
            layer("bbox/regressor", "Convolution", "pool4/3x3_s2", "num_output: 4 kernel_size: 1", "bboxes"),
            layer("cluster", "Python", "coverage bboxes", "", "bbox-list"),
        ]
    )


def squeezenet():
    """Return a small SqueezeNet, which ends in a convolution and a global pooling."""

    def fire(name, bottom, narrow, wide):
        return [
            conv(f"{name}/squeeze1x1", bottom, f"num_output: {narrow} kernel_size: 1"),
            relu(f"{name}/relu_squeeze1x1", f"{name}/squeeze1x1"),
            conv(f"{name}/expand1x1", f"{name}/squeeze1x1", f"num_output: {wide} kernel_size: 1"),
            relu(f"{name}/relu_expand1x1", f"{name}/expand1x1"),
            conv(f"{name}/expand3x3", f"{name}/squeeze1x1", f"num_output: {wide} kernel_size: 3 pad: 1"),
            relu(f"{name}/relu_expand3x3", f"{name}/expand3x3"),
            layer(f"{name}/concat", "Concat", f"{name}/expand1x1 {name}/expand3x3"),
        ]

    return with_input(
        (3, 67, 67),
        conv("conv1", "data", "num_output: 16 kernel_size: 3 stride: 2"),
        relu("relu_conv1", "conv1"),
        layer("pool1", "Pooling", "conv1", "pool: MAX kernel_size: 3 stride: 2"),
        *fire("fire2", "pool1", 4, 12),
        layer("pool3", "Pooling", "fire2/concat", "pool: MAX kernel_size: 3 stride: 2"),
        *fire("fire4", "pool3", 8, 16),
        layer("drop9", "Dropout", "fire4/concat", "dropout_ratio: 0.5", "fire4/concat"),
        conv("conv10", "fire4/concat", "num_output: 10 kernel_size: 1"),
        relu("relu_conv10", "conv10"),
        layer("pool10", "Pooling", "conv10", "pool: AVE global_pooling: true"),
        layer("prob", "Softmax", "pool10"),
    )


def vgg():
    """Return a small VGG."""
    lines, bottom = [], "data"
    for block, counts in enumerate(((8, 8), (16, 16), (24, 24, 24)), start=1):
        for number, count in enumerate(counts, start=1):
            name = f"conv{block}_{number}"
            lines += [
                conv(name, bottom, f"num_output: {count} pad: 1 kernel_size: 3"),
                relu(f"relu{block}_{number}", name),
            ]
            bottom = name
        lines.append(layer(f"pool{block}", "Pooling", bottom, "pool: MAX kernel_size: 2 stride: 2"))
        bottom = f"pool{block}"
    lines += [layer("fc6", "InnerProduct", bottom, "num_output: 48"), relu("relu6", "fc6")]
    lines += [layer("fc8", "InnerProduct", "fc6", "num_output: 10"), layer("prob", "Softmax", "fc8")]
    return with_input((3, 32, 32), *lines)


def resnet():
    """Return a small ResNet: batch normalization and scale in place, sums, a pooling over everything."""

    def block(name, bottom, options, act=True):
        lines = [
            conv(f"res{name}", bottom, f"bias_term: false {options}"),
            layer(f"bn{name}", "BatchNorm", f"res{name}", "use_global_stats: true", f"res{name}"),
            layer(f"scale{name}", "Scale", f"res{name}", "bias_term: true", f"res{name}"),
        ]
        return [*lines, relu(f"res{name}_relu", f"res{name}")] if act else lines

    return with_input(
        (3, 56, 56),
        *block("1", "data", "num_output: 16 kernel_size: 7 pad: 3 stride: 2"),
        layer("pool1", "Pooling", "res1", "pool: MAX kernel_size: 3 stride: 2"),
        *block("2a_branch1", "pool1", "num_output: 32 kernel_size: 1", act=False),
        *block("2a_branch2a", "pool1", "num_output: 16 kernel_size: 3 pad: 1"),
        *block("2a_branch2b", "res2a_branch2a", "num_output: 32 kernel_size: 1", act=False),
        layer("res2a", "Eltwise", "res2a_branch1 res2a_branch2b", "operation: SUM"),
        relu("res2a_relu", "res2a"),
        layer("pool5", "Pooling", "res2a", "pool: AVE kernel_size: 14 stride: 1"),
        layer("fc1000", "InnerProduct", "pool5", "num_output: 10"),
        layer("prob", "Softmax", "fc1000"),
    )


def fcn():
    """Return a fully convolutional network: padded far, enlarged by deconvolutions, cut to the images."""
    return with_input(
        (3, 40, 48),
        conv("conv1_1", "data", "num_output: 8 pad: 20 kernel_size: 3"),
        relu("relu1_1", "conv1_1"),
        layer("pool1", "Pooling", "conv1_1", "pool: MAX kernel_size: 2 stride: 2"),
        conv("conv2_1", "pool1", "num_output: 12 pad: 1 kernel_size: 3"),
        relu("relu2_1", "conv2_1"),
        layer("pool2", "Pooling", "conv2_1", "pool: MAX kernel_size: 2 stride: 2"),
        conv("score_fr", "pool2", "num_output: 5 kernel_size: 1"),
        layer("upscore2", "Deconvolution", "score_fr", "num_output: 5 bias_term: false kernel_size: 4 stride: 2"),
        conv("score_pool1", "pool1", "num_output: 5 kernel_size: 1"),
        layer("upscore2c", "Crop", "upscore2 score_pool1", "axis: 2 offset: 1"),
        layer("fuse", "Eltwise", "upscore2c score_pool1", "operation: SUM"),
        layer("upscore", "Deconvolution", "fuse", "num_output: 5 group: 5 bias_term: false kernel_size: 4 stride: 2"),
        layer("score", "Crop", "upscore data", "axis: 2 offset: 19"),
    )


def siamese():
    """Return a siamese network: two channels, each through the same layers."""

    def branch(end, bottom):
        def shared(kind, name, source, options):
            rules = f'param {{ name: "{name}_w" lr_mult: 1 }} param {{ name: "{name}_b" lr_mult: 2 }}'
            return layer(f"{name}{end}", kind, source, options, more=rules)

        return [
            shared("Convolution", "conv1", bottom, "num_output: 8 kernel_size: 5"),
            layer(f"pool1{end}", "Pooling", f"conv1{end}", "pool: MAX kernel_size: 2 stride: 2"),
            shared("InnerProduct", "ip1", f"pool1{end}", "num_output: 20"),
            relu(f"relu1{end}", f"ip1{end}"),
            shared("InnerProduct", "feat", f"ip1{end}", "num_output: 2"),
        ]

    cut = layer("slice_pair", "Slice", "pair_data", "slice_dim: 1 slice_point: 1", "data data_p")
    return with_input((2, 28, 28), cut, *branch("", "data"), *branch("_p", "data_p"), name="pair_data")


NETWORKS = {
    "alexnet": alexnet, "fcn": fcn, "googlenet": googlenet, "resnet": resnet, "siamese": siamese,
    "squeezenet": squeezenet, "vgg": vgg,
}  # fmt: skip
"""Name → returns the text of a network with its input."""
