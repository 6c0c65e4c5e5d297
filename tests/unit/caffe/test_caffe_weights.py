"""Files with arrays of Caffe, and how they become those of a network file."""

import numpy as np
import pytest

from tests.caffe_files import LENET, blob, caffemodel, conv, layer, unpacked, with_input
from ziggurat.compat.caffe.blobs import read_caffemodel, read_mean
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.importing import ImportOptions, convert
from ziggurat.compat.caffe.layers import read_network
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.compat.caffe.weights import fitted, random_arrays
from ziggurat.protobuf_wire import bytes_field


def written(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("form", ["layer", "V1", "V0"])
@pytest.mark.parametrize("options", [{}, {"old_axes": True}, {"double": True}])
def test_arrays_are_read_in_every_form(tmp_path, form, options):
    array = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    found = read_caffemodel(written(tmp_path / "a", caffemodel({"ip/1": [array, array[0]]}, form=form, **options)))
    assert list(found) == ["ip/1"]
    assert np.array_equal(found["ip/1"][0].reshape(2, 3), array)
    assert found["ip/1"][0].shape == ((1, 1, 2, 3) if "old_axes" in options else (2, 3))


def test_numbers_need_not_be_packed(tmp_path):
    shape = bytes_field(7, bytes_field(1, b"\x03"))
    layers = b"".join(
        bytes_field(100, bytes_field(1, name) + bytes_field(7, shape + unpacked((1.5, -2, 3), number)))
        for name, number in ((b"floats", 5), (b"doubles", 8))
    )
    found = read_caffemodel(written(tmp_path / "a", layers))
    assert {name: each[0].tolist() for name, each in found.items()} == {"floats": [1.5, -2, 3], "doubles": [1.5, -2, 3]}


def test_a_mean_is_an_image_of_channels(tmp_path):
    mean = np.random.default_rng(0).uniform(0, 255, (3, 4, 5)).astype(np.float32)
    assert np.array_equal(read_mean(written(tmp_path / "a", blob(mean, old_axes=True))), mean)
    assert read_mean(written(tmp_path / "b", blob(mean[:, :1, :1]))).shape == (3, 1, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "0 layers, none with weights"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (caffemodel({"a": [np.ones(3)]})[:-2], "a field of"),
        (b"\xa2\x06\xff", "an integer without an end"),
        (
            bytes_field(100, bytes_field(1, b"a") + bytes_field(7, bytes_field(7, bytes_field(1, b"\x05")))),
            "An array has 0 numbers, which do not fit its shape (5,)",
        ),
        (b"layer { name: 1 }", ""),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path, content, words):
    with pytest.raises(CaffeError) as caught:
        read_caffemodel(written(tmp_path / "net.caffemodel", content))
    assert words in str(caught.value)


def test_weights_that_do_not_fit_are_an_error():
    graph = build_graph(read_network(with_input((3, 8, 8), conv("c", "data", "num_output: 4 kernel_size: 3"))), None)
    good = [np.zeros((4, 3, 3, 3)), np.zeros((1, 1, 1, 4))]
    assert fitted(graph, {"c": good})[0]["c"][1].shape == (4,)
    for arrays, words in (
        ([good[0]], "has 2 array(s), and the weights have 1"),
        ([np.zeros((3, 4, 3, 3)), good[1]], "an array of shape (4, 3, 3, 3), and the weights one of (3, 4, 3, 3)"),
    ):
        with pytest.raises(CaffeError) as caught:
            fitted(graph, {"c": arrays})
        assert words in str(caught.value)
    with pytest.raises(CaffeError, match="no layer has a name of theirs"):
        fitted(graph, {"other": good})


def test_batch_normalization_counts_its_steps(tmp_path):
    text = with_input((2, 4, 4), layer("b", "BatchNorm", "data"), layer("s", "Scale", "b", "bias_term: true"))
    path = written(tmp_path / "net.prototxt", text.encode())
    arrays = {"b": [[2.0, 4.0], [6.0, 8.0], [1.999]], "s": [[1.0, 2.0], [3.0, 4.0]]}
    weights = written(tmp_path / "w", caffemodel(arrays))
    state = convert(ImportFiles(network=path, weights=weights), ImportOptions()).state
    assert np.allclose(state["b.running_mean"], np.asarray([2, 4]) / 1.999)
    assert np.allclose(state["b.running_var"], np.asarray([6, 8]) / 1.999)
    assert int(state["b.num_batches_tracked"]) == 2
    assert state["s.bias"].tolist() == [3, 4]


def test_a_mean_image_is_cut_in_its_center(tmp_path):
    mean = np.arange(3 * 6 * 6, dtype=np.float32).reshape(3, 6, 6)
    text = with_input((3, 4, 4), conv("c", "data", "num_output: 4 kernel_size: 3"))
    files = ImportFiles(
        network=written(tmp_path / "n.prototxt", text.encode()), mean=written(tmp_path / "m", blob(mean, old_axes=True))
    )
    found = convert(files, ImportOptions())
    assert np.array_equal(found.state["mean_image"], mean[:, 1:5, 1:5])
    assert any("cut in the center" in note for note in found.notes)


def test_a_mean_file_that_was_not_given_is_a_warning(tmp_path):
    text = LENET.replace("scale: 0.00390625", 'mean_file: "some/mean.binaryproto"')
    found = convert(ImportFiles(network=written(tmp_path / "n", text.encode())), ImportOptions(shape=(1, 28, 28)))
    assert any("`mean_file` 'some/mean.binaryproto' was not given" in each for each in found.warnings)


def test_layers_without_weights_begin_fresh(tmp_path):
    path = written(tmp_path / "net.prototxt", LENET.encode())
    arrays = random_arrays(build_graph(read_network(LENET), (1, 28, 28)))
    arrays["renamed"] = arrays.pop("ip2")
    found = convert(ImportFiles(network=path, weights=written(tmp_path / "w", caffemodel(arrays))), ImportOptions())
    assert "Not in the weights, so they begin fresh: `ip2`." in found.warnings
    assert "Only in the weights, so left out: `renamed`." in found.warnings
    assert "ip2.weight" not in found.state


def test_the_source_of_the_images_says_how_they_are_prepared(tmp_path):
    text = 'layer { name: "l" type: "Data" top: "label" transform_param { scale: 9 } data_param { batch_size: 4 } }'
    text += 'layer { name: "d" type: "Data" top: "data" transform_param { scale: 0.5 } }'
    text += conv("c", "data", "num_output: 4 kernel_size: 1") + layer("loss", "SoftmaxWithLoss", "c label")
    found = convert(ImportFiles(network=written(tmp_path / "n", text.encode())), ImportOptions(shape=(3, 8, 8)))
    assert found.preparation.scale == 0.5
