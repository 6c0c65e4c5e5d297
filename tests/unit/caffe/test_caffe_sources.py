"""Archives of DIGITS's Download Model and folders of DIGITS jobs; pickles that would do something do nothing."""

import collections
import datetime
import io
import json
import pickle
import tarfile
import zipfile

import numpy as np
import pytest

from tests.caffe_files import LENET, LENET_SOLVER, blob, caffemodel
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.importing import ImportOptions, convert
from ziggurat.compat.caffe.layers import read_network
from ziggurat.compat.caffe.sources import ImportFiles, given_files, load_status
from ziggurat.compat.caffe.weights import random_arrays
from ziggurat.errors import DataError

DEPLOY = (
    'input: "data" input_dim: 1 input_dim: 1 input_dim: 28 input_dim: 28 '
    + LENET[LENET.index('layer {\n  name: "conv1') : LENET.index('layer { name: "accuracy')]
)


class ModelJob:
    """Like a job of DIGITS: plain attributes and a list of tasks."""

    def __init__(self, tasks=()):
        self._name, self.dataset_id, self.tasks = "old lenet", "20170101-000000-aaaa", list(tasks)


class TrainTask:
    """Like a task of DIGITS."""

    framework_id = "caffe"

    def __init__(self, framework_id):
        self.framework_id = framework_id
        self.when, self.counts = datetime.datetime(2017, 1, 1), collections.OrderedDict(a=1)


def files(folder):
    arrays = random_arrays(build_graph(read_network(LENET), (1, 28, 28)))
    (folder / "deploy.prototxt").write_text(DEPLOY)
    (folder / "train_val.prototxt").write_text(LENET)
    (folder / "solver.prototxt").write_text(LENET_SOLVER)
    for step, factor in ((900, 1), (1200, 2), (30, 3)):
        scaled = {name: [each * factor for each in group] for name, group in arrays.items()}
        (folder / f"snapshot_iter_{step}.caffemodel").write_bytes(caffemodel(scaled))
    return arrays


def archive(folder, kind):
    info = {"framework": "caffe", "name": "my lenet", "snapshot file": "snapshot_iter_900.caffemodel"}
    files(folder)
    (folder / "info.json").write_text(json.dumps(info))
    (folder / "labels.txt").write_text("\n".join("0123456789"))
    (folder / "mean.binaryproto").write_bytes(blob(np.full((1, 28, 28), 33.0), old_axes=True))
    path = folder.parent / f"model.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as opened:
            for each in folder.iterdir():
                opened.write(each, each.name)
    else:
        with tarfile.open(path, "w:gz" if kind == "tar.gz" else "w") as opened:
            for each in folder.iterdir():
                opened.add(each, each.name)
    return path


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_a_downloaded_model_is_imported_whole(tmp_path, kind):
    (tmp_path / "in").mkdir()
    with given_files(ImportFiles(network=archive(tmp_path / "in", kind))) as found:
        assert found.weights is not None
        assert (found.name, found.weights.name) == ("my lenet", "snapshot_iter_900.caffemodel")
        conversion = convert(found, ImportOptions())
    assert conversion.labels == list("0123456789")
    assert conversion.graph.shapes[conversion.graph.image] == (1, 28, 28)
    assert float(conversion.state["mean_image"].mean()) == 33.0
    assert conversion.fields["schedule"]["policy"] == "inv"
    assert conversion.file.text.count("nn.Conv2d(") == 2


def test_a_job_folder_finds_its_dataset_beside_it(tmp_path):
    job, dataset = tmp_path / "20170202-000000-bbbb", tmp_path / "20170101-000000-aaaa"
    job.mkdir()
    dataset.mkdir()
    (dataset / "labels.txt").write_text("zero\none\n")
    arrays = files(job)
    (job / "status.pickle").write_bytes(pickle.dumps(ModelJob([TrainTask("caffe")]), protocol=2))
    with given_files(ImportFiles(network=job)) as found:
        assert found.weights is not None
        assert (found.name, found.weights.name) == ("old lenet", "snapshot_iter_1200.caffemodel")
        assert found.labels == dataset / "labels.txt"
        conversion = convert(found, ImportOptions())
    assert np.allclose(conversion.state["ip2.bias"], arrays["ip2"][1] * 2)
    assert conversion.warnings == ["2 class names, and 10 classes in the network."]


def test_a_job_of_another_framework_is_named(tmp_path):
    files(tmp_path)
    (tmp_path / "status.pickle").write_bytes(pickle.dumps(ModelJob([TrainTask("tensorflow")]), protocol=2))
    with pytest.raises(CaffeError, match="framework tensorflow"), given_files(ImportFiles(network=tmp_path)):
        pass


def test_a_job_of_torch_has_its_newest_model(tmp_path):
    for name in ("model.lua", "snapshot_9_Model.t7", "snapshot_10_Model.t7", "mean.jpg", "labels.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "status.pickle").write_bytes(pickle.dumps(ModelJob([TrainTask("torch")]), protocol=2))
    with given_files(ImportFiles(network=tmp_path)) as found:
        names = [found.network, found.weights, found.mean, found.labels]
    assert [each.name for each in names] == ["model.lua", "snapshot_10_Model.t7", "mean.jpg", "labels.txt"]


class Harm:
    """An object that deletes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (eval, (f"__import__('os').remove({str(self.path)!r})",))


def test_a_pickle_makes_no_objects_and_calls_nothing(tmp_path):
    witness = tmp_path / "witness"
    witness.write_text("")
    found = load_status(pickle.dumps({"bad": Harm(witness), "job": ModelJob()}, protocol=2))
    assert witness.exists()
    assert found["bad"] == {}
    assert found["job"]["dataset_id"] == "20170101-000000-aaaa"
    assert load_status(b"cos\nsystem\n(S'true'\ntR.") == {}


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"junk", b"(lp0\nI1\n"])
def test_a_damaged_pickle_is_an_error(content):
    with pytest.raises(CaffeError, match="pickle"):
        load_status(content)


def test_an_archive_that_leads_out_is_refused(tmp_path):
    path = tmp_path / "model.tar"
    with tarfile.open(path, "w") as opened:
        member = tarfile.TarInfo("../deploy.prototxt")
        member.size = 1
        opened.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(DataError), given_files(ImportFiles(network=path)):
        pass
    assert not (tmp_path.parent / "deploy.prototxt").exists()


@pytest.mark.parametrize("name", ["net.py", "net.h5"])
def test_files_of_other_frameworks_are_named(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(CaffeError, match=name), given_files(ImportFiles(network=tmp_path / name)):
        pass
