"""Shows what a training asks of the machine: what its spec names, or one accelerator where it may have one."""

import pytest

from ziggurat.entities import ResourceRequest
from ziggurat.layout import JobFolder
from ziggurat.specs import TrainSpec, parse_spec, save_spec
from ziggurat.workspace.new_jobs import JobMaker, JobRequest, train_needs
from ziggurat.workspace.studio.findings import device_finding


def spec(**fields):
    return TrainSpec.model_validate({"kind": "train", "version": 1, "network": "lenet", "data": "digits", **fields})


@pytest.mark.parametrize(
    ("fields", "accelerators", "expected"),
    [
        ({"backend": "tensorflow"}, 2, ResourceRequest(devices=1, slot="device")),
        ({"backend": "tensorflow"}, 0, ResourceRequest(slot="cpu")),
        ({"backend": "tensorflow", "devices": ["cpu:0"]}, 2, ResourceRequest(slot="cpu")),
        ({"backend": "null"}, 2, ResourceRequest(slot="cpu")),
        (
            {"backend": "tensorflow", "devices": ["gpu:3", "gpu:1"]},
            4,
            ResourceRequest(devices=2, device_indices=(1, 3), slot="device"),
        ),
        ({"backend": "torch", "nodes": 2}, 4, ResourceRequest(slot="cpu", nodes=2)),
        (
            {"backend": "torch", "nodes": 2, "gpus_per_node": 4},
            8,
            ResourceRequest(devices=4, slot="device", nodes=2),
        ),
    ],
)
def test_needs(fields, accelerators, expected):
    assert train_needs(spec(**fields), accelerators=accelerators) == expected


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        ({}, ResourceRequest(devices=1, slot="device")),
        ({"devices": ["cpu:0"]}, ResourceRequest(slot="cpu")),
        ({"nodes": 2}, ResourceRequest(slot="cpu")),
        ({"nodes": 2, "gpus_per_node": 4}, ResourceRequest(devices=1, slot="device")),
    ],
)
def test_an_evaluation_asks_for_what_its_training_asked(fields, needs, tmp_path):
    trained = tmp_path / "trained"
    trained.mkdir()
    save_spec(spec(backend="torch", **fields), JobFolder(trained).spec)
    queued = []
    maker = JobMaker(tmp_path / "jobs", queued.append, lambda: 0.0, lambda: 2)
    content = {"kind": "evaluate", "version": 1, "model": str(trained)}
    parse_spec(content, source="the test")
    maker.make(JobRequest(spec=content), "ann")
    assert queued[0].needs == needs


@pytest.mark.parametrize(
    ("fields", "here", "accelerators", "text"),
    [
        ({}, [], {}, "It trains on the CPU."),
        ({}, [], {"node-b": 2}, "It trains on a GPU of node-b, and waits until one is free."),
        ({}, [{"index": 0}], {"studio": 1}, "It trains on a GPU, and waits until one is free."),
        ({"devices": ["cpu:0"]}, [], {"node-b": 2}, "It trains on the CPU."),
        ({"backend": "null"}, [], {"node-b": 2}, "It trains on the CPU."),
        (
            {"nodes": 2, "gpus_per_node": 4},
            [],
            {},
            "It trains on 2 nodes with 4 GPUs of each, and waits until all of them are free.",
        ),
        (
            {"nodes": 3, "batch_size": 63},
            [],
            {},
            "It trains on 3 nodes with the CPU of each, and waits until all of them are free.",
        ),
    ],
)
def test_the_check_says_where_a_training_runs(fields, here, accelerators, text):
    machine = {"devices": here, "why_no_devices": ""}
    assert device_finding(spec(**{"backend": "torch", **fields}), machine, accelerators)["sentence"] == text
