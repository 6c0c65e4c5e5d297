"""Datasets that release 0.1 stored in HDF5 or npz: read as they are, converted once, whole or not at all."""

import signal
import subprocess
import sys

import cv2
import numpy as np
import pytest

from tests.old_stores import store_as_0_1_did
from ziggurat.dataflow import RecordData
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.records.manifest import Manifest
from ziggurat.records.stores import convert_old_store, open_records
from ziggurat.specs import load_spec, parse_spec
from ziggurat.worker.source import convert_old_stores, open_source

CONVERT = """
import os, signal, sys
from pathlib import Path
from ziggurat.records.stores import convert_old_store
def kill_before_it_has_its_name(event, arguments):
    if event == "os.link":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill_before_it_has_its_name)
convert_old_store(Path(sys.argv[1]))
"""


@pytest.fixture(params=["hdf5", "npz"])
def dataset(request, tmp_path):
    """Forty noisy images of two classes, in the stores of 0.1."""
    random = np.random.default_rng(4)
    for number in range(40):
        path = tmp_path / "images" / ("cat", "dog")[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), random.integers(0, 256, (40, 48, 3), np.uint8))
    folder = tmp_path / "dataset"
    create_dataset(CreationRequest(source=str(tmp_path / "images"), name="pets", workers=0), folder)
    store_as_0_1_did(folder, request.param)
    return folder


def content_of(folder):
    found = {}
    for split in ("train", "val"):
        flow = RecordData(folder, split)
        found[split] = [(flow.key(row), *flow.datapoint(row)) for row in range(len(flow))]
        flow.close()
    return [(split, key, label, image.tobytes()) for split, rows in found.items() for key, image, label in rows]


def test_a_store_is_converted_once(dataset):
    before, manifest = content_of(dataset), (dataset / "manifest.json").read_bytes()
    old = dataset / Manifest.load(dataset).splits["train"].stores[0].path

    said = convert_old_stores(str(dataset))

    assert [text.split(", a store")[0] for text in said] == [
        f"The records of {dataset / store.path}"
        for note in Manifest.load(dataset).splits.values()
        for store in note.stores
    ]
    assert content_of(dataset) == before
    assert (dataset / "manifest.json").read_bytes() == manifest
    assert old.exists(), "the manifest has its checksum"
    assert convert_old_stores(str(dataset)) == []


def test_it_is_the_new_store_that_is_read(dataset):
    before = content_of(dataset)
    convert_old_stores(str(dataset))
    for note in Manifest.load(dataset).splits.values():
        (dataset / note.stores[0].path).write_bytes(b"no store any more")

    assert content_of(dataset) == before
    assert len(open_source(str(dataset), {}, 0).splits["train"]) == 30


def test_a_kill_in_the_middle_leaves_the_old_store_in_use(dataset):
    before = content_of(dataset)
    old = dataset / Manifest.load(dataset).splits["train"].stores[0].path

    killed = subprocess.run([sys.executable, "-c", CONVERT, str(old)], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert len(list(dataset.glob(".*.partial"))) == 1
    assert content_of(dataset) == before
    with open_records(convert_old_store(old)) as records:
        assert len(records) == 30
    assert list(dataset.glob(".*.partial")) == []
    assert content_of(dataset) == before


def test_a_store_that_cannot_be_converted_is_read_as_it_is(dataset):
    before = content_of(dataset)
    for split in ("train", "val"):
        old = Manifest.load(dataset).splits[split].stores[0].path
        (dataset / f"{old}.lmdb").symlink_to(dataset / "nowhere")  # what stands there cannot be written over

    said = convert_old_stores(str(dataset))

    assert len(said) == 2
    assert all("is read as it is, a store of release 0.1 that cannot be converted" in text for text in said)
    assert content_of(dataset) == before


@pytest.mark.parametrize("store", ["hdf5", "npz"])
def test_no_new_dataset_is_stored_so(store, tmp_path):
    spec = {"kind": "dataset", "version": 1, "source": str(tmp_path), "store": store}
    with pytest.raises(Exception, match="`store` must be `lmdb` or `tfrecord`; for files in HDF5, export the dataset"):
        parse_spec(spec)
    with pytest.raises(Exception, match=f"`{store}` is not a known store"):
        CreationRequest(source=str(tmp_path), name="x", store=store)


def test_a_creation_of_0_1_goes_on_with_a_store_of_today(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text('{"kind": "dataset", "version": 1, "source": "/data/pets", "store": "hdf5"}')

    assert load_spec(path).store == "lmdb"
