"""Layers: values against NumPy, names of variables and results, and arguments by their older names."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, StateError, UsageError
from ziggurat.tf.models import (
    AvgPooling,
    BatchNorm,
    BNReLU,
    ConcatWith,
    Conv2D,
    Conv2DTranspose,
    Deconv2D,
    Dropout,
    FixedUnPooling,
    FullyConnected,
    GlobalAvgPooling,
    InstanceNorm,
    LayerNorm,
    Maxout,
    MaxPooling,
    PReLU,
    layer_register,
)
from ziggurat.tf.tower import TowerContext


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        tf.set_random_seed(1)
        yield made


def image(*shape: int) -> np.ndarray:
    return np.random.RandomState(3).randn(*(shape or (2, 7, 6, 4))).astype(np.float32)


def run(*fetches: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches))


def convolved(x: np.ndarray, kernel: np.ndarray, stride: int, padding: str, dilation: int = 1) -> np.ndarray:
    """Convolve one window after another: (N, H, W, C) by (h, w, C, F)."""
    reach = [dilation * (size - 1) + 1 for size in kernel.shape[:2]]
    if padding == "same":
        lengths = [-(-size // stride) for size in x.shape[1:3]]
        more = [max((out - 1) * stride + span - size, 0) for out, span, size in zip(lengths, reach, x.shape[1:3])]
        x = np.pad(x, [(0, 0), *((total // 2, total - total // 2) for total in more), (0, 0)])
    else:
        lengths = [(size - span) // stride + 1 for size, span in zip(x.shape[1:3], reach)]
    found = np.zeros((len(x), *lengths, kernel.shape[3]), np.float64)
    for row in range(lengths[0]):
        for column in range(lengths[1]):
            top, left = row * stride, column * stride
            window = x[:, top : top + reach[0] : dilation, left : left + reach[1] : dilation]
            found[:, row, column] = np.tensordot(window, kernel, 3)
    return found


def channels_first(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 3, 1, 2)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation"),
    [(1, "same", 1), (2, "SAME", 1), (2, "valid", 1), (1, "VALID", 2), (1, "same", 2)],
)
def test_tutorial_26_conv2d(stride: int, padding: str, dilation: int) -> None:
    out = Conv2D("conv", tf.constant(image()), 5, (3, 2), stride, padding, dilation_rate=dilation)
    gradients = tf.gradients(out, [out.variables.W, out.variables.b])
    got, kernel, *found = run(out, out.variables.W, *gradients)
    assert kernel.shape == (3, 2, 4, 5)
    np.testing.assert_allclose(got, convolved(image(), kernel, stride, padding.lower(), dilation), atol=1e-5)
    assert all(np.isfinite(each).all() and np.any(each) for each in found)


def test_tutorial_26_conv2d_of_channel_groups() -> None:
    out = Conv2D("conv", tf.constant(image()), 6, 3, split=2, use_bias=False)
    got, kernel = run(out, out.variables.W)
    assert kernel.shape == (3, 3, 2, 6)
    groups = [convolved(image()[..., 2 * g : 2 * g + 2], kernel[..., 3 * g : 3 * g + 3], 1, "same") for g in (0, 1)]
    np.testing.assert_allclose(got, np.concatenate(groups, -1), atol=1e-5)
    assert [each.op.name for each in tf.global_variables()] == ["conv/W"]


@pytest.mark.parametrize("options", [{"strides": 2}, {"split": 2}, {"dilation_rate": 2}], ids=str)
def test_tutorial_26_conv2d_channels_first(options: dict[str, Any]) -> None:
    last = Conv2D("conv", tf.constant(image()), 6, 3, **options)
    with tf.variable_scope("", reuse=True):
        first = Conv2D("conv", tf.constant(channels_first(image())), 6, 3, data_format="NCHW", **options)
    got, wanted = run(first, last)
    np.testing.assert_allclose(got, channels_first(wanted), atol=1e-5)


@pytest.mark.parametrize(("padding", "stride"), [("same", 2), ("valid", 2), ("same", 3), ("valid", 1)])
@pytest.mark.parametrize("is_size_known", [True, False])
def test_tutorial_26_conv2d_transpose(padding: str, stride: int, is_size_known: bool) -> None:
    assert Deconv2D is Conv2DTranspose
    x = image() if is_size_known else tf.placeholder_with_default(image(), [None, None, None, 4])
    out = Deconv2D("up", tf.convert_to_tensor(x), 5, 3, stride, padding, use_bias=False)
    probe = tf.constant(np.random.RandomState(5).randn(*run(out)[0].shape).astype(np.float32))
    back = tf.nn.conv2d(probe, out.variables.W, stride, padding.upper())
    # The transpose B of A by its definition: <Bx, y> = <x, Ay>.
    left, right = run(tf.reduce_sum(out * probe), tf.reduce_sum(back * x))
    np.testing.assert_allclose(left, right, rtol=1e-4)
    extra = 0 if padding == "same" else max(3 - stride, 0)
    assert tuple(probe.shape) == (2, 7 * stride + extra, 6 * stride + extra, 5)
    assert out.shape.as_list() == ([2, *probe.shape.as_list()[1:]] if is_size_known else [None, None, None, 5])


def test_tutorial_26_deconv_channels_first() -> None:
    last = Deconv2D("up", tf.constant(image()), 5, 3, 2, "valid")
    with tf.variable_scope("", reuse=True):
        first = Deconv2D("up", tf.constant(channels_first(image())), 5, 3, 2, "valid", "channels_first")
    got, wanted = run(first, last)
    np.testing.assert_allclose(got, channels_first(wanted), atol=1e-5)


def test_tutorial_26_fully_connected() -> None:
    out = FullyConnected("fc", tf.constant(image()), 3, activation=tf.nn.relu, bias_initializer=tf.ones_initializer())
    got, kernel = run(out, out.variables.W)
    assert kernel.shape == (7 * 6 * 4, 3)
    np.testing.assert_allclose(got, np.maximum(image().reshape(2, -1) @ kernel + 1, 0), atol=1e-4)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_tutorial_26_pooling(data_format: str) -> None:
    def laid(x: np.ndarray) -> np.ndarray:
        return x if data_format == "channels_last" else channels_first(x)

    x = tf.constant(laid(image()))
    largest, mean, overall = run(
        MaxPooling("max", x, 2, data_format=data_format),
        AvgPooling("mean", x, (3, 2), 1, "SAME", data_format=data_format),
        GlobalAvgPooling("all", x, data_format=data_format),
    )
    blocks = image()[:, :6].reshape(2, 3, 2, 3, 2, 4)
    np.testing.assert_array_equal(largest, laid(blocks.max((2, 4))))
    window = image()[:, 0:3, 0:2].mean((1, 2))
    np.testing.assert_allclose(
        np.moveaxis(mean, -1 if data_format == "channels_last" else 1, 1)[:, :, 1, 0], window, atol=1e-6
    )
    corner = image()[:, 0:2, 0:2].mean((1, 2))  # the row above is padding, which counts nothing
    np.testing.assert_allclose(
        np.moveaxis(mean, -1 if data_format == "channels_last" else 1, 1)[:, :, 0, 0], corner, atol=1e-6
    )
    np.testing.assert_allclose(overall, image().mean((1, 2)), atol=1e-6)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_fixed_unpooling_is_a_kronecker_product(data_format: str) -> None:
    is_last = data_format == "channels_last"
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = tf.constant(image() if is_last else channels_first(image()))
    (got,) = run(FixedUnPooling("up", x, (2, 3), matrix, data_format))
    one = got[1, :, :, 2] if is_last else got[1, 2]
    np.testing.assert_allclose(one, np.kron(image()[1, :, :, 2], matrix), atol=1e-6)
    (zeros,) = run(FixedUnPooling("zeros", tf.constant(image()), 2))
    assert np.array_equal(zeros[:, ::2, ::2], image())
    assert np.count_nonzero(zeros) == image().size


def test_layer_norm_and_instance_norm() -> None:
    x = image()
    layer, instance = LayerNorm("layer", tf.constant(x)), InstanceNorm("instance", tf.constant(x), epsilon=1e-3)
    first = InstanceNorm("first", tf.constant(channels_first(x)), 1e-3, data_format="channels_first", use_affine=False)
    got_layer, got_instance, got_first = run(layer, instance, first)
    wanted = (x - x.mean((1, 2, 3), keepdims=True)) / np.sqrt(x.var((1, 2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(got_layer, wanted, atol=1e-5)
    wanted = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-3)
    np.testing.assert_allclose(got_instance, wanted, atol=1e-5)
    np.testing.assert_allclose(got_first, channels_first(wanted), atol=1e-5)
    names = [each.op.name for each in tf.trainable_variables()]
    assert names == ["layer/gamma", "layer/beta", "instance/gamma", "instance/beta"]
    assert layer.variables.gamma.shape == (4,)


def test_prelu_maxout_and_concat_with() -> None:
    x = tf.constant(image())
    slope, largest, joined = run(PReLU("p", x, 0.25), Maxout(x, 2), ConcatWith("join", x, [x, x], 3))
    np.testing.assert_allclose(slope, np.where(image() > 0, image(), 0.25 * image()), atol=1e-6)
    np.testing.assert_array_equal(largest, image().reshape(2, 7, 6, 2, 2).max(-1))
    np.testing.assert_array_equal(joined, np.concatenate([image()] * 3, 3))
    assert [each.op.name for each in tf.trainable_variables()] == ["p/alpha"]


def test_tutorial_27_other_libraries_beside_these_layers() -> None:
    with TowerContext("", is_training=True):
        x = Conv2D("conv", tf.constant(image()), 4, 3)
        x = tf.layers.batch_normalization(x, training=True, name="other")
        x = tf.layers.flatten(x)
        x = tf.nn.xw_plus_b(x, tf.get_variable("plain", [168, 3]), tf.zeros([3]))
        x = FullyConnected("fc", x, 2)
    assert [each.op.name for each in tf.trainable_variables()] == [
        *("conv/W", "conv/b", "other/gamma", "other/beta", "plain", "fc/W", "fc/b")
    ]
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2  # those of the other library too
    assert run(x)[0].shape == (2, 2)


def test_tutorial_28_defaults_and_names_of_the_model_zoo() -> None:
    with TowerContext("", is_training=True), tf.variable_scope("group0"):
        x = Conv2D("conv1", tf.constant(image(8, 16, 16, 3)), 64, 3, activation=BNReLU)
        x = FullyConnected("linear", x, 10)
    assert {each.op.name: tuple(each.shape) for each in tf.global_variables()} == {
        "group0/conv1/W": (3, 3, 3, 64),
        "group0/conv1/b": (64,),
        "group0/conv1/bn/gamma": (64,),
        "group0/conv1/bn/beta": (64,),
        "group0/conv1/bn/mean/EMA": (64,),
        "group0/conv1/bn/variance/EMA": (64,),
        "group0/linear/W": (16 * 16 * 64, 10),
        "group0/linear/b": (10,),
    }
    kept = [each.op.name for each in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)]
    assert kept == ["group0/conv1/bn/mean/EMA", "group0/conv1/bn/variance/EMA"]
    (weights,) = run(next(each for each in tf.trainable_variables() if each.op.name == "group0/linear/W"))
    assert weights.std() == pytest.approx(np.sqrt(2 / (16 * 16 * 64)), rel=0.02)  # variance scaling by 2 / fan-in


def test_tutorial_31_variables_of_a_layer() -> None:
    layer = Conv2D("conv1", tf.constant(image()), 32, 3)
    assert layer.variables.W.op.name == "conv1/W"
    assert layer.variables.b.op.name == "conv1/b"
    assert layer.variables.all() == [layer.variables.W, layer.variables.b]
    with pytest.raises(AttributeError, match="has W, b"):
        _ = layer.variables.gamma


def test_tutorial_32_the_result_is_name_output() -> None:
    with TowerContext("", is_training=True):
        x = tf.constant(image())
        made = {
            "conv": Conv2D("conv", x, 3, 3),
            "up": Conv2DTranspose("up", x, 3, 3),
            "fc": FullyConnected("fc", x, 3, tf.nn.relu),
            "bn": BatchNorm("bn", x),
            "ln": LayerNorm("ln", x),
            "in": InstanceNorm("in", x),
            "bnrelu": BNReLU("bnrelu", x),
            "prelu": PReLU("prelu", x),
            "max": MaxPooling("max", x, 2),
            "avg": AvgPooling("avg", x, 2),
            "all": GlobalAvgPooling("all", x),
            "drop": Dropout("drop", x),
            "cat": ConcatWith("cat", x, x, 3),
            "out": Maxout("out", x, 2),
            "unpool": FixedUnPooling("unpool", x, 2),
        }
    assert {name: tensor.name for name, tensor in made.items()} == {name: f"{name}/output:0" for name in made}
    assert made["prelu"].variables.alpha.op.name == "prelu/alpha"


def test_tutorial_33_layers_outside_of_a_trainer() -> None:
    x = tf.constant(image())
    with TowerContext("", is_training=True):
        trained = Dropout("drop", BatchNorm("bn", Conv2D("conv", x, 3, 3)))
    with tf.variable_scope(tf.get_variable_scope(), reuse=True), TowerContext("test", is_training=False):
        tested = Dropout("drop", BatchNorm("bn", Conv2D("conv", x, 3, 3)))
    assert tested.name == "test/drop/output:0"
    assert len(tf.trainable_variables()) == 4
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
    got_trained, got_tested, plain = run(trained, tested, trained.graph.get_tensor_by_name("conv/output:0"))
    assert np.mean(got_trained == 0) > 0.3
    np.testing.assert_allclose(got_tested, plain / np.sqrt(1 + 1e-5), rtol=1e-5)  # averages 0 and 1, nothing dropped


def test_tutorial_33_without_a_tower_a_layer_asks_for_one() -> None:
    with pytest.raises(StateError, match=r"TowerContext\('', is_training=True\)"):
        BatchNorm("bn", tf.constant(image()))


def test_tutorial_34_plain_functions_of_other_libraries() -> None:
    def dense(x: Any, units: int) -> Any:  # as a library of symbolic functions has it
        weights = tf.get_variable("weights", [x.shape[1], units], regularizer=lambda w: 0.1 * tf.nn.l2_loss(w))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op("moving"))
        return x @ weights

    for tower, is_training in (("", True), ("predict", False)):
        reuse = tf.variable_scope(tf.get_variable_scope(), reuse=not is_training)
        with reuse, TowerContext(tower, is_training), tf.variable_scope("dense"):
            dense(tf.ones([2, 3]), 4)
    assert [each.op.name for each in tf.global_variables()] == ["dense/weights"]
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 1
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1


def test_older_names_of_arguments() -> None:
    zeros = tf.zeros_initializer()
    with TowerContext("", is_training=True):
        x = tf.constant(image())
        layer = Conv2D("c", x, out_channel=5, kernel_shape=3, stride=2, padding="VALID", nl=tf.nn.relu, W_init=zeros)
        assert layer.shape.as_list() == [2, 3, 2, 5]
        assert Conv2D("d", x, 5, 3, data_format="NHWC", b_init=zeros, nl=None).shape[-1] == 5
        assert FullyConnected("f", x, out_dim=3).shape[-1] == 3
        assert MaxPooling("m", x, shape=3, stride=1, padding="SAME").shape[1] == 7
        layer = BatchNorm("b", x, decay=0.5, use_bias=False, use_scale=False, use_local_stat=True, internal_update=True)
        assert [name for name in vars(layer.variables) if "moving" not in name] == ["mean", "variance"]
    with pytest.raises(UsageError, match="an older name of `filters`"):
        Conv2D("e", tf.constant(image()), out_channel=5, filters=5, kernel_size=3)


def test_regularizers_of_layers() -> None:
    x = tf.constant(image())
    costs = {"kernel_regularizer": 1.0, "bias_regularizer": 10.0, "activity_regularizer": 100.0}
    options = {name: lambda _, cost=cost: tf.constant(cost) for name, cost in costs.items()}
    Conv2D("c", x, 3, 3, split=1, **options)
    Conv2DTranspose("u", x, 3, 3, **options)
    FullyConnected("f", x, 3, **options)
    with tf.variable_scope("", reuse=True):
        Conv2D("c", x, 3, 3, kernel_regularizer=options["kernel_regularizer"])
    assert sum(run(*tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))) == 333


def test_dropout_by_position_keeps_and_by_rate_drops() -> None:
    x = tf.ones([10_000])
    with TowerContext("", is_training=True):
        with pytest.warns(UserWarning, match="probability to keep a value, 0.9"):
            kept = Dropout(x, 0.9)
        shares = run(
            kept, Dropout("a", x, keep_prob=0.8), Dropout(x, rate=0.3), Dropout(x), Dropout(x, is_training=False)
        )
    assert [round(float(np.mean(each == 0)), 1) for each in shares] == [0.1, 0.2, 0.3, 0.5, 0]
    np.testing.assert_allclose(shares[0].max(), 1 / 0.9, rtol=1e-6)


def test_dropout_masks_follow_the_step() -> None:
    with TowerContext("", is_training=True), tf.variable_scope("deep"):
        out = Dropout("drop", tf.ones([64]), rate=0.5)
    step = tf.train.get_global_step()
    assert step.op.name == "global_step"
    with tf.Session() as session:
        masks = []
        for number in (0, 1, 2, 1):
            session.run(tf.global_variables_initializer())
            step.load(number, session)
            masks.append(session.run(out).tobytes())
    assert masks[1] == masks[3]
    assert len(set(masks)) == 3


def test_sizes_that_do_not_fit_are_errors() -> None:
    x = tf.constant(image())
    for rule, build in (
        ("`kernel_size` is a number above 0", lambda: Conv2D("a", x, 3, (1, 2, 3))),
        ("`padding` is same or valid", lambda: Conv2D("b", x, 3, 3, padding="full")),
        ("`data_format` is", lambda: MaxPooling("c", x, 2, data_format="NHCW")),
        ("`split` divides", lambda: Conv2D("d", x, 3, 3, split=2)),
        ("strides or a dilation", lambda: Conv2D("e", x, 3, 3, 2, dilation_rate=2)),
        ("needs to know the number of its input channels", lambda: Conv2D("f", tf.placeholder(tf.float32), 3, 3)),
        ("all sizes of its input", lambda: FullyConnected("g", tf.placeholder(tf.float32, [None, None]), 3)),
        ("`num_unit` divides", lambda: Maxout(x, 3)),
        ("`unpool_mat` has the shape", lambda: FixedUnPooling("h", x, 2, np.ones((2, 3)))),
    ):
        with pytest.raises(ConfigurationError, match=rule):
            build()


def test_a_layer_of_ones_own() -> None:
    @layer_register(log_shape=True)
    def Scaled(x: Any, factor: float = 1.0) -> Any:
        return x * tf.get_variable("factor", initializer=factor)

    @layer_register(use_scope=False)
    def Halved(x: Any) -> Any:
        return x / 2

    out = Scaled("mine", tf.constant(image()), 3.0)
    assert out.name == "mine/output:0"
    assert tf.global_variables()[0].op.name == "mine/factor"
    np.testing.assert_allclose(run(out)[0], 3 * image(), rtol=1e-6)
    with pytest.raises(UsageError, match=r"`Scaled` got a .* where its first argument, the name, is expected"):
        Scaled(tf.constant(image()))
    with pytest.raises(UsageError, match="`Halved` has no name"):
        Halved("half", tf.constant(image()))
    with pytest.raises(UsageError, match="is a tensor"):
        Scaled("mine", "no tensor")


def test_shapes_are_said_once_for_each_layer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="ziggurat.program")
    for reuse in (None, True):
        with tf.variable_scope("", reuse=reuse):
            Conv2D("conv", tf.placeholder(tf.float32, [None, 7, 6, 4]), 3, 3)
    assert caplog.messages == ["conv input: [None, 7, 6, 4]", "conv output: [None, 7, 6, 3]"]
