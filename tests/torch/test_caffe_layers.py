"""Each layer of Caffe as a line of a network file: PyTorch gives what the forward pass in NumPy gives."""

from typing import Any

import numpy as np
import pytest

from tests.caffe_files import caffemodel, conv, layer, relu, with_input
from ziggurat.compat.caffe.importing import ImportOptions, convert, parity
from ziggurat.compat.caffe.running import run_network
from ziggurat.compat.caffe.sources import ImportFiles

FULL = layer("fc", "InnerProduct", "x", "num_output: 4")
LAYERS = {
    "convolution": conv("c", "data", "num_output: 4 kernel_size: 3"),
    "convolution_without_bias": conv("c", "data", "num_output: 4 kernel_size: 3 bias_term: false"),
    "convolution_oblong": conv("c", "data", "num_output: 4 kernel_h: 3 kernel_w: 1 stride_h: 2 pad_w: 2"),
    "convolution_two_numbers": conv("c", "data", "num_output: 4 kernel_size: 3 kernel_size: 2 pad: 1 pad: 0"),
    "convolution_dilated": conv("c", "data", "num_output: 4 kernel_size: 3 dilation: 2 pad: 2"),
    "convolution_in_groups": conv("c", "data", "num_output: 9 kernel_size: 3 group: 3"),
    "convolution_depthwise": layer(
        "c", "ConvolutionDepthwise", "data", more="convolution_param { num_output: 3 kernel_size: 3 }"
    ),
    "deconvolution": layer("d", "Deconvolution", "data", "num_output: 5 kernel_size: 4 stride: 2 pad: 1"),
    "deconvolution_in_groups": layer("d", "Deconvolution", "data", "num_output: 6 group: 3 kernel_size: 3 stride: 3"),
    "deconvolution_dilated": layer("d", "Deconvolution", "data", "num_output: 2 kernel_size: 3 stride: 2 dilation: 2"),
    "pooling_rounds_up": layer("x", "Pooling", "data", "kernel_size: 2 stride: 2"),
    "pooling_rounds_down": layer("x", "Pooling", "data", "kernel_size: 2 stride: 2 round_mode: FLOOR"),
    "pooling_average_rounds_down": layer("x", "Pooling", "data", "pool: AVE kernel_size: 3 stride: 3 ceil_mode: false"),
    "pooling_clipped": layer("x", "Pooling", "data", "kernel_size: 2 stride: 2 pad: 1"),
    "pooling_average": layer("x", "Pooling", "data", "pool: AVE kernel_size: 3 stride: 2"),
    "pooling_average_clipped": layer("x", "Pooling", "data", "pool: AVE kernel_size: 3 stride: 2 pad: 1"),
    "pooling_oblong": layer("x", "Pooling", "data", "kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 2"),
    "pooling_global": layer("x", "Pooling", "data", "pool: AVE global_pooling: true"),
    "pooling_global_max": layer("x", "Pooling", "data", "pool: MAX global_pooling: true"),
    "inner_product": layer("fc", "InnerProduct", "data", "num_output: 4"),
    "inner_product_transposed": layer("fc", "InnerProduct", "data", "num_output: 4 transpose: true"),
    "inner_product_of_the_last_axis": layer("fc", "InnerProduct", "data", "num_output: 4 axis: -1"),
    "lrn": layer("n", "LRN", "data", "local_size: 3 alpha: 0.01 beta: 0.5 k: 2"),
    "lrn_within": layer("n", "LRN", "data", "local_size: 3 alpha: 0.001 beta: 0.75 norm_region: WITHIN_CHANNEL"),
    "batch_norm": layer("b", "BatchNorm", "data", "eps: 0.001"),
    "batch_norm_fixed": layer("b", "BatchNorm", "data", "use_global_stats: true"),
    "batch_norm_of_rows": layer("x", "Flatten", "data") + layer("b", "BatchNorm", "x"),
    "scale": layer("s", "Scale", "data"),
    "scale_with_bias": layer("s", "Scale", "data", "bias_term: true"),
    "scale_of_all_axes": layer("s", "Scale", "data", "num_axes: -1 bias_term: true"),
    "scale_of_a_later_axis": layer("s", "Scale", "data", "axis: 2"),
    "scale_of_two": conv("c", "data", "num_output: 3 kernel_size: 1")
    + layer("g", "Pooling", "c", "pool: AVE global_pooling: true")
    + layer("f", "Flatten", "g")
    + layer("s", "Scale", "c f", "axis: 0"),
    "bias": layer("s", "Bias", "data"),
    "relu_leaky": relu("r", "data", "negative_slope: 0.1"),
    "prelu": layer("p", "PReLU", "x", "", "x"),
    "prelu_shared": layer("p", "PReLU", "x", "channel_shared: true", "x"),
    "elu": layer("e", "ELU", "x", "alpha: 0.5"),
    "sigmoid": layer("e", "Sigmoid", "x"),
    "tanh": layer("e", "TanH", "x"),
    "absolute": layer("e", "AbsVal", "x"),
    "power": layer("e", "Power", "data", "power: 2 scale: 0.01 shift: -0.5"),
    "power_affine": layer("e", "Power", "data", "scale: 0.01 shift: -0.5"),
    "dropout": layer("e", "Dropout", "data", "dropout_ratio: 0.25", "data"),
    "dropout_that_scales_the_test": layer("e", "Dropout", "data", "dropout_ratio: 0.25 scale_train: false"),
    "concat": layer("e", "Concat", "data x"),
    "concat_of_rows": layer("e", "Concat", "data x", "axis: -1"),
    "concat_old": layer("e", "Concat", "data x", "concat_dim: 2"),
    "slice": layer("e", "Slice", "data", "slice_point: 1", "one two") + layer("z", "Concat", "two one"),
    "slice_equal": layer("e", "Slice", "data", "axis: 1", "one two three") + layer("z", "Eltwise", "one two three"),
    "eltwise_sum": layer("e", "Eltwise", "data x", "coeff: 1 coeff: -0.5"),
    "eltwise_product": layer("e", "Eltwise", "data x", "operation: PROD"),
    "eltwise_max": layer("e", "Eltwise", "data x", "operation: MAX"),
    "flatten": layer("e", "Flatten", "data"),
    "flatten_part": layer("e", "Flatten", "data", "axis: 2 end_axis: -1"),
    "reshape": layer("e", "Reshape", "data", "shape { dim: 0 dim: -1 dim: 7 }"),
    "reshape_part": layer("e", "Reshape", "data", "shape { dim: 7 dim: 9 } axis: 2"),
    "crop": layer("c", "Convolution", "data", "num_output: 2 kernel_size: 4")
    + layer("e", "Crop", "data c", "axis: 2 offset: 1 offset: 2"),
    "softmax": layer("e", "Softmax", "x", "axis: 2") + relu("r", "e"),
    "split": layer("e", "Split", "x", "", "one two") + layer("z", "Eltwise", "one two"),
    "silence": layer("e", "Split", "x", "", "one two") + layer("z", "Silence", "two", "", " ") + relu("r", "one"),
    "in_place_twice": conv("c", "data", "num_output: 4 kernel_size: 1")
    + relu("r", "c")
    + relu("q", "c", "negative_slope: 1"),
    "names_of_any_kind": conv("class", "data", "num_output: 4 kernel_size: 1")
    + conv("3x3/a-b", "class", "num_output: 4 kernel_size: 1")
    + conv("3x3/a.b", "3x3/a-b", "num_output: 4 kernel_size: 1")
    + relu("train", "3x3/a.b"),
}  # fmt: skip
NEEDS_X = [
    name for name, text in LAYERS.items() if ('bottom: "x"' in text) and ('top: "x"' not in text.split("layer")[1])
]


def network(name):
    first = (
        conv("x", "data", "num_output: 3 kernel_size: 3 pad: 1") if name in (*NEEDS_X, "prelu", "prelu_shared") else ""
    )
    return with_input((3, 9, 7), first, LAYERS[name])


def converted(folder, text, **options):
    path = folder / "net.prototxt"
    path.write_text(text)
    return convert(ImportFiles(network=path), ImportOptions(**options))


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_in_pytorch_what_it_gives_in_numpy(tmp_path, name):
    report = parity(converted(tmp_path, network(name)), run_network)
    assert report["holds"], report


def test_shared_arrays_of_unlike_layers_are_one_parameter(tmp_path):
    rule = 'param { name: "w" }'
    text = with_input(
        (3, 9, 9),
        layer("one", "Convolution", "data", "num_output: 3 kernel_size: 3 pad: 1", more=rule),
        layer("two", "Convolution", "one", "num_output: 3 kernel_size: 3 stride: 2", more=rule),
    )
    conversion = converted(tmp_path, text)
    assert "self.two.weight = self.one.weight  # shared as w" in conversion.file.text
    assert parity(conversion, run_network)["holds"]


@pytest.mark.parametrize("color", ["BGR", "RGB"])
def test_mean_values_scale_and_colors_are_in_the_network(tmp_path, color):
    source = """layer { name: "d" type: "Data" top: "data" top: "label" transform_param {
        scale: 0.0078125 mean_value: 104 mean_value: 117 mean_value: 123 crop_size: 8 mirror: true } }"""
    conversion = converted(tmp_path, source + conv("c", "data", "num_output: 2 kernel_size: 3"), color=color)
    assert parity(conversion, run_network)["holds"]
    assert ("data.flip(1)" in conversion.file.text) == (color == "BGR")
    image = np.zeros((1, 3, 8, 8), np.float32)
    image[:, 0] = 255  # red
    state = {"c.weight": np.zeros((2, 3, 3, 3), np.float32), "c.bias": np.zeros(2, np.float32)}
    state["c.weight"][0, 2, 1, 1] = 1  # the last channel that the network takes: red in BGR
    outputs, _ = run_network(conversion.file.text, state, image)
    expected = (255 - 123) / 128 if color == "BGR" else (0 - 123) / 128
    assert np.allclose(outputs[0][:, 0], expected, atol=1e-6)


def test_double_weights_and_old_shapes_are_the_same_weights(tmp_path):
    text = with_input(
        (3, 9, 7), conv("c", "data", "num_output: 2 kernel_size: 3"), layer("f", "InnerProduct", "c", "num_output: 4")
    )
    path = tmp_path / "net.prototxt"
    path.write_text(text)
    source = np.random.default_rng(0)
    arrays = {"c": [source.normal(size=(2, 3, 3, 3)), source.normal(size=2)]}
    arrays["f"] = [source.normal(size=(4, 70)), source.normal(size=4)]
    forms: list[dict[str, Any]] = [{}, {"form": "V1"}, {"form": "V0"}, {"double": True}, {"old_axes": True}]
    states = []
    for number, options in enumerate(forms):
        weights = tmp_path / f"{number}.caffemodel"
        weights.write_bytes(caffemodel(arrays, **options))
        states.append(convert(ImportFiles(network=path, weights=weights), ImportOptions()).state)
    for state in states[1:]:
        assert all(np.array_equal(state[name], states[0][name]) for name in states[0])
