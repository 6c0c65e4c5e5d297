"""Forward pass of Caffe in NumPy against values that were worked out by hand from the definitions."""

import numpy as np
import pytest

from tests.caffe_files import conv, layer, relu, with_input
from ziggurat.compat.caffe.forward import forward
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.layers import read_network


def given(text, image, arrays=None):
    """Return what the last layer gives for one image."""
    image = np.asarray(image, np.float32)
    graph = build_graph(read_network(with_input(image.shape, *text)), None)
    values = forward(
        graph, image[None], {name: [np.asarray(a, np.float32) for a in each] for name, each in (arrays or {}).items()}
    )
    return values[graph.outputs[-1]][0]


RAMP = np.arange(25, dtype=np.float32).reshape(1, 5, 5)


def test_a_pooling_rounds_up_where_a_convolution_rounds_down():
    pooled = given([layer("p", "Pooling", "data", "kernel_size: 2 stride: 2")], RAMP)
    assert pooled[0].tolist() == [[6, 8, 9], [16, 18, 19], [21, 23, 24]]
    assert given(
        [conv("c", "data", "num_output: 1 kernel_size: 2 stride: 2 bias_term: false")],
        RAMP,
        {"c": [np.ones((1, 1, 2, 2))]},
    ).shape == (1, 2, 2)


def test_an_average_counts_padding_but_not_what_lies_behind_it():
    pooled = given([layer("p", "Pooling", "data", "pool: AVE kernel_size: 3 stride: 2 pad: 1")], np.ones((1, 4, 4)))
    assert np.allclose(pooled[0], [[4 / 9, 6 / 9, 2 / 6], [6 / 9, 1, 3 / 6], [2 / 6, 3 / 6, 1 / 4]])


def test_a_window_that_begins_in_the_padding_is_left_out():
    assert given([layer("p", "Pooling", "data", "kernel_size: 2 stride: 2 pad: 1")], RAMP[:, :3, :3]).shape == (1, 2, 2)


def test_local_normalization_divides_alpha_by_its_size():
    image = np.asarray([1, 2, 3, 4], np.float32).reshape(4, 1, 1)
    found = given([layer("n", "LRN", "data", "local_size: 3 alpha: 3 beta: 1 k: 1")], image)
    assert np.allclose(found.ravel(), [1 / 6, 2 / 15, 3 / 30, 4 / 26])


def test_sums_of_batch_normalization_are_divided_by_their_count():
    image = np.asarray([[[3.0]], [[5.0]]])
    text = [layer("b", "BatchNorm", "data", "eps: 0")]
    assert np.allclose(given(text, image, {"b": [[2, 6], [8, 18], [2]]}).ravel(), [1, 2 / 3])
    zero = given([layer("b", "BatchNorm", "data", "eps: 0.25")], image, {"b": [[2, 6], [8, 18], [0]]})
    assert np.allclose(zero.ravel(), [6, 10])


def test_a_scale_has_a_bias_where_it_is_asked_for():
    image = np.ones((2, 1, 1))
    assert given([layer("s", "Scale", "data")], image, {"s": [[2, 3]]}).ravel().tolist() == [2, 3]
    text = [layer("s", "Scale", "data", "bias_term: true")]
    assert given(text, image, {"s": [[2, 3], [10, 20]]}).ravel().tolist() == [12, 23]


def test_an_inner_product_flattens_channels_first():
    image = np.arange(8).reshape(2, 2, 2)
    weight = np.zeros((1, 8))
    weight[0, 5] = 1  # channel 1, row 0, column 1
    assert given(
        [layer("f", "InnerProduct", "data", "num_output: 1 bias_term: false")], image, {"f": [weight]}
    ).tolist() == [5]


def test_groups_see_their_own_channels():
    image = np.asarray([1.0, 10.0]).reshape(2, 1, 1)
    text = [conv("c", "data", "num_output: 2 kernel_size: 1 group: 2")]
    assert given(text, image, {"c": [np.ones((2, 1, 1, 1)), [0.5, 0.25]]}).ravel().tolist() == [1.5, 10.25]


def test_a_deconvolution_spreads_its_kernel():
    text = [layer("d", "Deconvolution", "data", "num_output: 1 kernel_size: 2 stride: 2 bias_term: false")]
    found = given(text, [[[1, 2]]], {"d": [[[[[1, 2], [3, 4]]]]]})
    assert found[0].tolist() == [[1, 2, 2, 4], [3, 4, 6, 8]]


def test_layers_in_place_change_what_comes_after_them():
    text = [layer("n", "Power", "data", "scale: -1"), relu("r", "n"), layer("s", "Power", "n", "shift: 1")]
    assert given(text, [[[2, -3]]])[0].tolist() == [[1, 4]]


def test_a_crop_begins_at_its_offset():
    cut = conv("c", "data", "num_output: 1 kernel_size: 4 bias_term: false")
    found = given(
        [cut, layer("x", "Crop", "data c", "axis: 2 offset: 1 offset: 2")], RAMP, {"c": [np.ones((1, 1, 4, 4))]}
    )
    assert found[0].tolist() == [[7, 8], [12, 13]]


@pytest.mark.parametrize(
    ("options", "expected"), [("operation: PROD", 6), ("operation: MAX", 3), ("coeff: 2 coeff: -1", 1), ("", 5)]
)
def test_elementwise_operations(options, expected):
    text = [layer("s", "Slice", "data", "", "a b"), layer("e", "Eltwise", "a b", options)]
    assert given(text, np.asarray([2.0, 3.0]).reshape(2, 1, 1)).ravel().tolist() == [expected]
