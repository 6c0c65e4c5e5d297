"""Tensorpack's names over ours: the import hook, the table of names, and programs in all of Tensorpack's ages."""

import gc
import importlib
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from callback_trainings import train

from ziggurat import dataflow
from ziggurat.compat.tensorpack import hook
from ziggurat.compat.tensorpack.names import MODULES, all_names
from ziggurat.compat.tensorpack.notes import LEFT_OUT, NOTES
from ziggurat.errors import UsageError
from ziggurat.tf import trainers


@pytest.fixture
def tensorpack():
    """The package under its own name, for one test."""
    hook.install()
    yield importlib.import_module("tensorpack")
    hook.uninstall()


# ---- the hook


def test_tensorpack_is_found_only_while_it_is_asked_for() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tensorpack")
    hook.install()
    assert importlib.import_module("tensorpack.dataflow.common").BatchData is dataflow.BatchData
    hook.uninstall()
    assert not any(name.startswith("tensorpack") for name in sys.modules)


def test_every_name_of_the_table_is_there_or_left_out() -> None:
    names = list(all_names())
    assert len(names) > 400
    for each in names:
        assert each.ours or each.note, each
        assert each.state in ("same", "changed", "left out")


def test_every_module_imports_with_all_its_names(tensorpack) -> None:
    for name in MODULES:
        module = importlib.import_module(name)
        for each in module.__all__:
            assert getattr(module, each) is not None, f"{name}.{each}"


def test_notes_are_of_names_that_exist() -> None:
    there = {each.name: each.state for each in all_names()}
    assert [name for name in LEFT_OUT if there.get(name) != "left out"] == []
    assert [name for name in NOTES if there.get(name) != "changed"] == []


def test_a_star_import_gives_what_programs_use(tensorpack) -> None:
    found: dict[str, object] = {}
    exec("from tensorpack import *", found)
    for name in ("Conv2D", "ModelDesc", "logger", "imgaug", "dataset", "summary", "SmartInit", "argscope", "tfv1"):
        assert name in found
    assert found["Trainer"] is trainers.Trainer
    assert callable(found["argscope"])


def test_a_function_is_not_hidden_by_its_module(tensorpack) -> None:
    importlib.import_module("tensorpack.tfutils.argscope")
    from tensorpack.tfutils import argscope  # pyright: ignore[reportMissingImports]

    assert callable(argscope)


def test_what_is_left_out_says_what_to_use(tensorpack) -> None:
    with pytest.raises(UsageError, match="torchrun"):
        tensorpack.BytePSTrainer()


def test_an_unknown_name_is_an_attribute_error(tensorpack) -> None:
    with pytest.raises(AttributeError, match="BatchData"):
        _ = tensorpack.BatchDate


def test_one_class_under_all_its_names(tensorpack) -> None:
    old = importlib.import_module("tensorpack.graph_builder")
    assert old.ModelDesc is tensorpack.ModelDesc
    assert (
        importlib.import_module("tensorpack.tfutils.tower").TowerFunc
        is importlib.import_module("ziggurat.tf.tower").TowerFunc
    )


# ---- older arguments


def test_older_arguments_of_flows(tensorpack) -> None:
    ds = tensorpack.RepeatedData(tensorpack.DataFromList([[1], [2]], shuffle=False), nr=2)
    assert [dp[0] for dp in ds] == [1, 2, 1, 2]
    ds = tensorpack.DataFromGenerator(lambda: iter([[1], [2]]), size=2)
    assert len(ds) == 2
    assert [dp[0] for dp in ds] == [1, 2]


def test_pickled_files_are_read(tensorpack, tmp_path) -> None:
    ds = tensorpack.DataFromList([[np.arange(3), i] for i in range(4)], shuffle=False)
    serialize = importlib.import_module("tensorpack.dataflow.serialize")
    serialize.LMDBSerializer.save(ds, str(tmp_path / "a.lmdb"))
    found = list(serialize.LMDBSerializer.load(str(tmp_path / "a.lmdb"), shuffle=False))
    assert [each[1] for each in found] == [0, 1, 2, 3]


def test_digits_have_the_attributes_of_tensorpack(tensorpack, tmp_path) -> None:
    stored = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    for name, values in (("images-idx3", stored), ("labels-idx1", np.array([3, 7], np.uint8))):
        sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
        head = bytes([0, 0, 8, values.ndim]) + sizes
        (tmp_path / f"t10k-{name}-ubyte").write_bytes(head + values.tobytes())

    ds = tensorpack.dataset.Mnist("test", shuffle=False, dir=str(tmp_path))

    assert (ds.images.shape, ds.images.dtype, ds.train_or_test) == ((2, 28, 28, 1), np.float32, "test")
    ds.reset_state()
    for image, datapoint in zip(ds.images, ds, strict=True):
        assert np.array_equal(image[..., 0], datapoint[0])
    again = pickle.loads(pickle.dumps(ds))
    assert again._float_images is None  # the files are read again in another process
    assert np.array_equal(again.images, ds.images)


def test_cifar_has_the_attributes_of_tensorpack(tensorpack, tmp_path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    rows = np.arange(2 * 3072).reshape(2, 3072).astype(np.uint8)
    (folder / "test_batch").write_bytes(pickle.dumps({b"data": rows, b"labels": [4, 1]}))

    ds = tensorpack.dataset.Cifar10("test", dir=str(tmp_path))

    assert (ds.train_or_test, ds.cifar_classnum) == ("test", 10)
    assert [label for _, label in ds.data] == [4, 1]
    assert np.array_equal(ds.data[1][0], rows[1].reshape(3, 32, 32).transpose(1, 2, 0))


def test_a_monitor_gets_name_and_value(tensorpack) -> None:
    from ziggurat.engine.monitor import Image, Scalar

    class Own(tensorpack.MonitorBase):
        def __init__(self):
            self.got = []

        def process_scalar(self, name, val):
            self.got.append((name, val))

        def process_image(self, name, val):
            self.got.append((name, val.shape))

    own = Own()
    own.process_scalar(Scalar("cost", 0.5, 1, 1, 0.0))
    own.process_image(Image("seen", np.zeros((4, 5, 3), np.uint8), 1, 1, 0.0))
    assert own.got == [("cost", 0.5), ("seen", (1, 4, 5, 3))]


def test_modules_are_pickled_by_name(tensorpack) -> None:
    module = importlib.import_module("tensorpack.dataflow.imgaug")
    assert pickle.loads(pickle.dumps(module)) is module


def test_batches_by_shape_wait_for_the_next_pass(tensorpack) -> None:
    points = [[np.zeros(2), 0], [np.zeros(3), 1], [np.zeros(2), 2], [np.zeros(3), 3], [np.zeros(3), 4]]
    ds = tensorpack.BatchDataByShape(tensorpack.DataFromList(points, shuffle=False), 2, 0)
    ds.reset_state()
    assert [batch[1].tolist() for batch in ds] == [[0, 2], [1, 3]]
    assert [batch[1].tolist() for batch in ds] == [[4, 1], [0, 2], [3, 4]]
    ds = tensorpack.BatchDataByShape(tensorpack.DataFromList(points, shuffle=False), 5, 0)
    ds.reset_state()
    assert [batch[1].tolist() for batch in ds] == [[1, 3, 4, 1, 3]]


def test_binary_decisions_have_any_shape(tensorpack) -> None:
    counted = tensorpack.BinaryClassificationStats("decided", "true")
    counted.before_inference()
    counted.on_values({"decided": np.array([[1, 1], [0, 1]]), "true": np.array([[1, 0], [1, 1]])}, None)
    assert sorted(counted.after_inference().values()) == pytest.approx([2 / 3, 2 / 3])


def test_a_schedule_may_come_in_any_order(tensorpack) -> None:
    callbacks = importlib.import_module("tensorpack.callbacks")
    rate = callbacks.ObjAttrParam(SimpleNamespace(value=1.0), "value")

    schedule = callbacks.ScheduledHyperParamSetter(rate, [(30, 0.01), (10.0, 0.1), (10, 0.5)])

    assert schedule.state()["schedule"] == [[10, 0.1], [30, 0.01]]  # the first one of an epoch counts


def test_augmentors_of_0_8_that_return_transforms_work(tensorpack) -> None:
    transform = importlib.import_module("tensorpack.dataflow.imgaug.transform")

    class Halves(transform.TransformAugmentorBase):
        def __init__(self, interp: int = 1) -> None:
            super().__init__()
            self._init(locals())

        def _get_augment_params(self, img: np.ndarray) -> Any:
            height, width = img.shape[:2]
            return transform.ResizeTransform(height, width, height // 2, width // 2, self.interp)

    imgaug = importlib.import_module("tensorpack.dataflow.imgaug")
    half, params = imgaug.AugmentorList([Halves()]).augment_return_params(np.zeros((8, 6, 3), np.uint8))
    assert half.shape == (4, 3, 3)
    points = imgaug.AugmentorList([Halves()]).augment_coords(np.asarray([[6.0, 8.0]]), params)
    np.testing.assert_array_equal(points, [[3.0, 4.0]])


@pytest.mark.parametrize("devices", [[0, 1], ["/gpu:0", "gpu:1"]])
def test_peak_memory_takes_numbers_and_names_of_devices(tensorpack, devices) -> None:
    tracker = tensorpack.PeakMemoryTracker(devices)
    assert tracker._given_devices == [0, 1]
    assert train([tracker], epochs=1).global_step == 8  # without a GPU, it says so


def test_a_forgotten_predictor_ends_the_thread_that_feeds_it(tensorpack) -> None:
    tf = tensorpack.tfv1

    class Model(tensorpack.ModelDesc):
        def inputs(self):
            return [tf.TensorSpec([None, 2], tf.float32, "x")]

        def build_graph(self, x):
            tf.identity(2 * x, name="twice")

    source = tensorpack.StagingInput(tensorpack.QueueInput([[np.ones((3, 2), np.float32)]]))
    config = tensorpack.PredictConfig(model=Model(), input_names=["x"], output_names=["twice"])
    predict = tensorpack.FeedfreePredictor(config, source)
    assert predict()[0].tolist() == [[2.0, 2.0]] * 3
    feed = predict._feed
    assert feed._thread.is_alive()
    del predict
    gc.collect()
    # A thread that was still at work inside of TensorFlow at the end of a program aborted the process.
    assert feed._thread is None
