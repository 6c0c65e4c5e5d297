"""Helpers of Tensorpack's ``utils``, each against an independent result."""

import importlib
import pickle
import queue

import cv2
import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tensorpack import graphs, layers, symbolic
from ziggurat.compat.tensorpack.datasets import BSDS500
from ziggurat.compat.tensorpack.gradients import AccumGradOptimizer
from ziggurat.compat.tensorpack.loading import TryResumeTraining
from ziggurat.compat.tensorpack.utils import argtools, concurrency, fs, general, rect, serialize, stats, viz
from ziggurat.errors import DataError, StateError
from ziggurat.tf import logger
from ziggurat.tf.loading import JustCurrentSession, SaverRestore
from ziggurat.tf.varmanip import save_checkpoint_vars


def run(tensor, feed=None):
    """Return the value of a tensor, after the variables were initialized."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor, feed)


# ---- arguments


def test_arguments_are_mapped_by_name() -> None:
    @argtools.map_arg(a=lambda x: x * 2)
    def total(a, b=1):
        return a + b

    assert total(3) == 7
    assert total(b=5, a=1) == 7


def test_results_are_remembered_by_graph() -> None:
    calls = []

    @argtools.graph_memoized
    def made(x):
        calls.append(x)
        return len(calls)

    with tf.Graph().as_default():
        assert (made(1), made(1), made(2)) == (1, 1, 2)
    with tf.Graph().as_default():
        assert made(1) == 3


def test_a_method_remembers_none_too_and_is_called_once() -> None:
    class Own:
        count = 0

        @argtools.memoized_method
        def nothing(self):
            self.count += 1

        @argtools.call_only_once
        def once(self):
            return 1

    own = Own()
    own.nothing(), own.nothing()
    assert own.count == 1
    assert own.once() == 1
    with pytest.raises(StateError):
        own.once()


def test_shapes() -> None:
    assert argtools.shape2d(3) == [3, 3]
    assert argtools.shape4d((2, 5)) == [1, 2, 5, 1]
    assert argtools.shape4d(2, "NCHW") == [1, 1, 2, 2]


# ---- numbers


def test_moments_are_those_of_all_values() -> None:
    values = np.random.RandomState(0).rand(50, 3)
    moments, counter = stats.OnlineMoments(), stats.StatCounter()
    for value in values:
        moments.feed(value)
        counter.feed(value.sum())
    np.testing.assert_allclose(moments.mean, values.mean(0))
    np.testing.assert_allclose(moments.std, values.std(0))
    assert counter.average == pytest.approx(values.sum(1).mean())
    assert counter.count == 50


def test_binary_statistics() -> None:
    found = stats.BinaryStatistics()
    found.feed(np.array([1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, 1]))
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(2 / 3)


def test_times_in_words() -> None:
    assert general.humanize_time_delta(3661) == "1 hour 1 minute 1 second"
    assert general.humanize_time_delta(0) == "0 second"
    assert general.humanize_time_delta(90061.5) == "1 day 1 hour 1 minute 1 second"


def test_generators_differ_and_come_again_with_the_seed() -> None:
    general.fix_rng_seed(3)
    first = [general.get_rng().randint(10**6) for _ in range(3)]
    general.fix_rng_seed(3)
    assert [general.get_rng().randint(10**6) for _ in range(3)] == first
    assert len(set(first)) == 3


def test_a_line_is_reached_once() -> None:
    assert [general.execute_only_once() for _ in range(3)] == [True, False, False]


# ---- files, threads, boxes


def test_objects_as_bytes() -> None:
    value = {"a": np.arange(3), "b": [1, "x"]}
    back = serialize.loads(serialize.dumps(value))
    assert back["b"] == value["b"]
    np.testing.assert_array_equal(pickle.loads(serialize.dumps(value))["a"], value["a"])


def test_nothing_is_downloaded(tmp_path, monkeypatch) -> None:
    with pytest.raises(DataError, match="Fetch http"):
        fs.download("http://example.org/a.bin", tmp_path)
    (tmp_path / "a.bin").write_bytes(b"12")
    assert fs.download("http://example.org/a.bin", tmp_path, expect_size=2).endswith("a.bin")
    monkeypatch.setenv("TENSORPACK_DATASET", str(tmp_path / "sets"))
    assert fs.get_dataset_path("mnist") == str(tmp_path / "sets" / "mnist")


def test_a_loop_in_a_thread_is_stopped() -> None:
    done: queue.Queue[int] = queue.Queue()
    loop = concurrency.LoopThread(lambda: done.put(1))
    loop.start()
    assert done.get(timeout=10) == 1
    loop.stop()
    loop.join(10)
    assert not loop.is_alive()


def test_items_come_in_the_order_of_their_ranks() -> None:
    box = concurrency.OrderedContainer()
    box.put(1, "b")
    assert not box.has_next()
    box.put(0, "a")
    assert [box.get(), box.get()] == [(0, "a"), (1, "b")]


def test_boxes_by_pixels_and_by_edges() -> None:
    box = rect.IntBox(1, 2, 3, 5)
    assert (box.w, box.h, box.area()) == (3, 4, 12)
    assert rect.FloatBox.from_intbox(box).area() == 12
    assert box.roi(np.zeros((9, 9))).shape == (4, 3)


def test_a_grid_of_images() -> None:
    images = np.stack([np.full((4, 6), value, np.uint8) for value in (10, 20, 30)])
    grid = viz.stack_patches(images, 2, 2, border=2, bgcolor=0)
    assert grid.shape == (10, 14, 1)
    assert grid[0, 0, 0] == 10
    assert grid[0, 8, 0] == 20
    assert grid[6, 0, 0] == 30
    assert grid[6, 8, 0] == 0
    assert [each.shape for each in viz.gen_stack_patches(images, 1, 2, border=0)] == [(4, 12, 1)] * 2
    with pytest.raises(DataError):
        viz.stack_patches([np.zeros((2, 2)), np.zeros((3, 3))], 1, 2)


def test_boxes_are_drawn_inside_the_image_only() -> None:
    image = np.zeros((20, 20, 3), np.uint8)
    drawn = viz.draw_boxes(image, [[2, 3, 10, 12]], labels=["a"])
    assert drawn.any()
    assert not image.any()
    with pytest.raises(DataError):
        viz.draw_boxes(image, [[2, 3, 30, 12]])


def test_edges_of_bsds500_are_the_share_of_people(tmp_path) -> None:
    cv2, scipy_io = importlib.import_module("cv2"), importlib.import_module("scipy.io")
    root = tmp_path / "BSR" / "BSDS500" / "data"
    for part in ("images", "groundTruth"):
        (root / part / "val").mkdir(parents=True)
    cv2.imwrite(str(root / "images" / "val" / "7.jpg"), np.full((481, 321, 3), 99, np.uint8))
    people = np.empty((1, 2), object)
    for person in range(2):
        entry = np.zeros((1, 1), [("Boundaries", "O")])
        entry[0, 0]["Boundaries"] = np.full((481, 321), person, np.uint8)
        people[0, person] = entry
    scipy_io.savemat(root / "groundTruth" / "val" / "7.mat", {"groundTruth": people})
    ((image, edges),) = list(BSDS500("val", str(tmp_path)))
    assert image.shape == (321, 481, 3)
    assert edges.shape == (321, 481)
    assert edges.min() == edges.max() == 0.5


# ---- graphs


def test_what_depends_on_what() -> None:
    with tf.Graph().as_default():
        a = tf.placeholder(tf.float32, [], name="a")
        b = tf.add(a, 1.0, name="b")
        other = tf.constant(1.0)
        assert graphs.dependency_of_targets(b, a)
        assert not graphs.dependency_of_targets(other, a)
        assert graphs.dependency_of_fetches(["b:0"], a)
        assert graphs.get_op_tensor_name("b") == ("b", "b:0")
        assert graphs.get_tensors_by_names(["b"])[0] is b


def test_an_image_is_sampled_between_its_pixels() -> None:
    image = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    places = np.array([[[[0.5, 1.5], [2.0, 3.0]]]], np.float32)
    with tf.Graph().as_default():
        found = run(layers.ImageSample("sample", [tf.constant(image), tf.constant(places)]))
    np.testing.assert_allclose(found[0, 0, :, 0], [(1 + 2 + 5 + 6) / 4, 11])


def test_upsampling_keeps_a_constant_image() -> None:
    with tf.Graph().as_default():
        found = run(layers.BilinearUpSample("up", tf.fill([2, 3, 5, 2], 7.0), 2))
    assert found.shape == (2, 6, 10, 2)
    np.testing.assert_allclose(found, 7.0, rtol=1e-5)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_upsampling_is_bilinear_at_any_size(factor: int) -> None:
    pixels = np.random.RandomState(0).rand(1, 5, 7, 2).astype(np.float32)
    with tf.Graph().as_default():
        image = tf.placeholder(tf.float32, [None, None, None, 2])
        larger = run(layers.BilinearUpSample("up", image, factor), {image: pixels})
    expected = cv2.resize(pixels[0], None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
    np.testing.assert_allclose(larger[0], expected, atol=1e-5)


def test_the_temperature_of_a_softmax_is_kept_as_its_inverse() -> None:
    scores = np.array([[1.0, 2.0, 4.0]], np.float32)
    with tf.Graph().as_default():
        made = layers.SoftMax("s", tf.constant(scores), use_temperature=True, temperature_init=4.0)
        found = run([made, tf.global_variables()[0]])
    np.testing.assert_allclose(found[0], np.exp(scores / 4) / np.exp(scores / 4).sum(), rtol=1e-5)
    assert found[1] == 0.25  # as files of Tensorpack have it


def test_without_a_folder_nothing_is_resumed(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logger, "_folder", None)
    save_checkpoint_vars({"w": np.zeros(2)}, "model-3")
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model-3"\n')
    assert isinstance(TryResumeTraining(), JustCurrentSession)
    monkeypatch.setattr(logger, "_folder", tmp_path)
    assert isinstance(TryResumeTraining(), SaverRestore)


def test_a_placeholder_with_open_sizes() -> None:
    with tf.Graph().as_default():
        x = symbolic.shapeless_placeholder(tf.zeros([4, 3]), 0, "x")
        assert x.shape.as_list() == [None, 3]
        assert run(tf.shape(x), {x: np.ones((9, 3))}).tolist() == [9, 3]


def test_balanced_cross_entropy_weighs_both_classes_alike() -> None:
    logits = np.array([2.0, -1.0, 0.5, 0.0], np.float32)
    label = np.array([1, 0, 0, 0], np.int32)
    likely = 1 / (1 + np.exp(-logits))
    beta = 3 / 4
    expected = np.mean(-beta * label * np.log(likely) - (1 - beta) * (1 - label) * np.log(1 - likely))
    with tf.Graph().as_default():
        found = run(symbolic.class_balanced_sigmoid_cross_entropy(tf.constant(logits), tf.constant(label)))
    assert found == pytest.approx(expected, rel=1e-5)


def test_only_positive_gradients_pass_a_guided_relu() -> None:
    with tf.Graph().as_default():
        x = tf.constant([-1.0, 2.0, 3.0])
        with symbolic.guided_relu():
            y = tf.nn.relu(x)
        assert run(tf.gradients(y * [1.0, 1.0, -1.0], x)[0]).tolist() == [0, 1, 0]


def test_accumulated_gradients_are_summed_as_in_tensorpack() -> None:
    with tf.Graph().as_default():
        weight = tf.get_variable("weight", initializer=0.0)
        step = AccumGradOptimizer(tf.train.GradientDescentOptimizer(0.5), 2).minimize(3.0 * weight)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = []
            for _ in range(4):
                session.run(step)
                found.append(session.run(weight))
    assert found == [0.0, -3.0, -3.0, -6.0]
