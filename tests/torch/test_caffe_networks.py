"""Whole networks of Caffe: the network file in PyTorch, the forward pass in NumPy, and OpenCV's reader of Caffe."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.caffe_files import LENET, NETWORKS, caffemodel, googlenet_with_losses
from ziggurat.compat.caffe.forward import forward
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.importing import ImportOptions, convert, parity
from ziggurat.compat.caffe.layers import read_network
from ziggurat.compat.caffe.running import run_network
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.compat.caffe.weights import random_arrays

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
PUBLISHED = SHARED / "caffe-prototxt"


def converted(folder, text, **options):
    path = folder / "net.prototxt"
    path.write_text(text)
    graph = build_graph(read_network(text), options.get("shape"))
    arrays = random_arrays(graph, seed=3)
    weights = folder / "net.caffemodel"
    weights.write_bytes(caffemodel(arrays))
    return convert(ImportFiles(network=path, weights=weights), ImportOptions(**options)), graph, arrays


@pytest.mark.parametrize("name", NETWORKS)
def test_a_converted_network_gives_what_caffe_gives(tmp_path, name):
    conversion, _, arrays = converted(tmp_path, NETWORKS[name]())
    report = parity(conversion, run_network)
    assert report["holds"], report
    assert report["largest_difference"] < 5e-6
    assert not report["random_weights"]
    assert max(row["difference"] for row in report["layers"]) < 1e-5
    assert sum(each.size for each in conversion.state.values()) > 500
    assert set(conversion.arrays) == set(arrays)


def test_lenet_of_a_training_agrees(tmp_path):
    conversion, _, _ = converted(tmp_path, LENET, shape=(1, 28, 28))
    report = parity(conversion, run_network)
    assert report["holds"]
    assert [row["layer"] for row in report["layers"]] == ["conv1", "pool1", "conv2", "pool2", "ip1", "ip2"]


def test_all_classifiers_of_a_training_agree(tmp_path):
    conversion, graph, _ = converted(tmp_path, googlenet_with_losses())
    report = parity(conversion, run_network)
    assert report["holds"]
    assert [graph.names[number] for number in graph.outputs] == ["loss3/classifier", "loss1/classifier"]


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs the published .prototxt files")
@pytest.mark.parametrize(
    ("file", "shape"),
    [
        ("bvlc/mnist/mnist_autoencoder.prototxt", (1, 28, 28)),
        ("bvlc/siamese/mnist_siamese_train_test.prototxt", (2, 28, 28)),
        ("bvlc/cifar10/cifar10_full_sigmoid_train_test_bn.prototxt", (3, 32, 32)),
    ],
)
def test_a_published_network_agrees(file, shape):
    conversion = convert(ImportFiles(network=PUBLISHED / file), ImportOptions(shape=shape))
    assert parity(conversion, run_network)["holds"]


def opencv_path():
    """Return what Python's path needs so that ``cv2`` reads Caffe; None where it is not installed."""
    for path in ("", os.environ.get("OPENCV4_PATH", "")):
        code = "import cv2; print(hasattr(cv2.dnn, 'readNetFromCaffe'))"
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        if done.stdout.strip() == "True":
            return path
    return None


@pytest.fixture(scope="module")
def opencv():
    path = opencv_path()
    if path is None:
        pytest.skip("needs OpenCV 4 in a folder that OPENCV4_PATH names: OpenCV 5 does not read Caffe")
    return path


@pytest.mark.parametrize("name", NETWORKS)
def test_the_forward_pass_equals_that_of_opencv(tmp_path, name, opencv):
    text = NETWORKS[name]()
    _, graph, arrays = converted(tmp_path, text)
    images = np.random.default_rng(1).normal(0, 1, (2, *graph.shapes[graph.image])).astype(np.float32)
    blobs = [graph.names[number] for number in graph.outputs]
    np.save(tmp_path / "images.npy", images)
    program = Path(__file__).with_name("caffe_opencv.py")
    words = [tmp_path / "net.prototxt", tmp_path / "net.caffemodel", tmp_path / "images.npy", tmp_path / "out.npz"]
    environment = {**os.environ, "PYTHONPATH": opencv}
    subprocess.run([sys.executable, program, *map(str, words), *blobs], env=environment, check=True, timeout=120)
    values = forward(graph, images, arrays)
    with np.load(tmp_path / "out.npz") as found:
        assert len(found.files) == len(blobs)
        for number, key in zip(graph.outputs, found.files, strict=True):
            expected = values[number]
            assert found[key].size == expected.size, re.sub(r"\s+", " ", text[:80])
            gap = np.abs(found[key].reshape(expected.shape) - expected).max() / np.abs(expected).max()
            assert gap < 1e-5, (name, graph.names[number], gap)
