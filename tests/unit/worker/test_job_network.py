"""A job keeps the text of its standard network; one of release 0.1, which did not, has the network of then."""

from pathlib import Path

import pytest

from ziggurat.errors import DataError, UnknownNameError
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec
from ziggurat.worker.job_network import keep_network, kept_network, standard_text
from ziggurat.zoo import ZOO, former_network_path, network_path


def spec_of(network, backend="tensorflow"):
    return parse_spec({"kind": "train", "version": 1, "network": network, "data": "digits", "backend": backend})


def test_job_that_begins_keeps_its_network(tmp_path):
    job = JobFolder(tmp_path / "job")
    text = keep_network(spec_of("resnet18"), job)
    assert text == job.network.read_text() == network_path("resnet18", "tensorflow").read_text()
    assert (tmp_path / "job" / "network.py").is_file()


def test_job_goes_on_with_the_network_that_it_kept(tmp_path):
    job = JobFolder(tmp_path)
    job.network.write_text("# as it was\n")
    assert kept_network(spec_of("resnet18"), job) == "# as it was\n"


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "vgg16", "mobilenet_v2"])
def test_job_of_0_1_has_the_network_of_then(tmp_path, name):
    text = kept_network(spec_of(name), JobFolder(tmp_path))
    assert text == (ZOO / "tensorflow" / "release_0_1" / f"{name}.py").read_text()
    assert "slim.conv2d" in text
    assert text != standard_text(spec_of(name))


def test_network_that_is_as_it_was_has_one_file(tmp_path):
    assert former_network_path("lenet", "tensorflow") is None
    assert kept_network(spec_of("lenet"), JobFolder(tmp_path)) == network_path("lenet", "tensorflow").read_text()


@pytest.mark.parametrize("spec", [spec_of("mlp", "null"), spec_of({"source": "file", "path": "net.py", "text": "x"})])
def test_network_without_a_standard_file_keeps_none(tmp_path, spec):
    job = JobFolder(tmp_path)
    assert keep_network(spec, job) is None
    assert kept_network(spec, job) is None
    assert not job.network.exists()


def test_unknown_network_is_named(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean `resnet18`"):
        keep_network(spec_of("resnet-18"), JobFolder(tmp_path))


def test_kept_network_that_cannot_be_read_is_named(tmp_path):
    Path(tmp_path / "network.py").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(DataError, match=r"file of a standard network must be readable.*network\.py"):
        kept_network(spec_of("lenet"), JobFolder(tmp_path))
