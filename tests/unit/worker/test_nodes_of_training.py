"""A training over several nodes: its fields, what is refused before anything is made, and where a process is in it."""

from typing import Any

import pytest

from ziggurat.engine.backend import ProcessPlace
from ziggurat.entities.backend_info import backend_infos
from ziggurat.errors import ConfigurationError, SpecError
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import prepare_job
from ziggurat.worker.node_process import device_of_process, place_of_process
from ziggurat.workspace.job_folders import JobFolders
from ziggurat.workspace.training_checks import obstacle_of
from ziggurat.zoo.backends import with_backend

VARIABLES = {
    "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "node-a", "MASTER_PORT": "29500",
}  # fmt: skip


def spec(**fields: Any) -> TrainSpec:
    found = parse_spec({"kind": "train", "version": 1, "network": "lenet", "data": "digits", **fields})
    assert isinstance(found, TrainSpec)
    return found


def test_one_node_stands_in_no_spec():
    assert {"nodes", "gpus_per_node"}.isdisjoint(spec().model_dump())
    content = spec(nodes=2, gpus_per_node=4).model_dump(mode="json")
    assert (content["nodes"], content["gpus_per_node"], spec(**content).towers) == (2, 4, 8)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"nodes": 2, "devices": ["gpu:0"]},
            '`devices` must be left out of a training on 2 nodes (received: "gpu:0")',
        ),
        ({"gpus_per_node": 2}, "`gpus_per_node` must be left out of a training on one node (received: 2)."),
        ({"nodes": 3}, "`batch_size` must be divisible by the 3 processes (received: 64)."),
        ({"nodes": 2, "gpus_per_node": 5}, "`batch_size` must be divisible by the 10 processes (received: 64)."),
        ({"nodes": 0}, "`nodes`"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(SpecError) as raised:
        spec(**fields)
    assert message in str(raised.value)


def test_auto_is_a_backend_that_trains_on_nodes():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    assert with_backend(spec(nodes=2)).backend == "torch"
    assert obstacle_of(spec(nodes=2)) is None


@pytest.mark.parametrize("backend", [name for name, info in backend_infos().items() if not info.trains_on_nodes])
def test_other_backends_are_refused_before_a_job_is_made(backend):
    found = obstacle_of(spec(nodes=2, backend=backend))
    assert found is not None
    assert f"The backend `{backend}` does not train on several nodes (received: 2 nodes)." in str(found)
    assert any(each["field"] == "nodes" for each in found.details["problems"])


def test_the_worker_refuses_such_a_backend_too(tmp_path):
    with pytest.raises(ConfigurationError, match=r"`null` does not train on several nodes \(received: 4 processes\)"):
        asked = spec(backend="null", network="mlp", nodes=4)
        prepare_job(asked, JobFolder(tmp_path), Settings(), ProcessPlace(0, 4, "node-a", 1))


def test_a_folder_on_this_machine_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="on 2 nodes needs a studio with a cluster"):
        JobFolders(Settings(workspace=tmp_path)).create(spec(nodes=2), tmp_path / "job")
    assert not (tmp_path / "job").exists()


def test_the_variables_say_where_a_process_is():
    four = spec(nodes=2, gpus_per_node=2)
    assert place_of_process(four, VARIABLES) == ProcessPlace(3, 4, "node-a", 29500)
    assert device_of_process(four, VARIABLES) == "gpu:1"
    assert device_of_process(spec(nodes=2), VARIABLES) == "cpu"


def test_a_resume_may_have_fewer_processes_if_the_studio_says_so():
    fewer = {**VARIABLES, "RANK": "0", "WORLD_SIZE": "1", "ZIGGURAT_RESUMED_ON": "Resumed on 1 of 4 processes."}
    four = spec(nodes=2, gpus_per_node=2)
    assert place_of_process(four, fewer) == ProcessPlace(0, 1, "node-a", 29500)
    for changes in ({"ZIGGURAT_RESUMED_ON": ""}, {"WORLD_SIZE": "3"}, {"WORLD_SIZE": "8"}, {"WORLD_SIZE": "0"}):
        with pytest.raises(ConfigurationError, match="do not fit a training of 4 processes"):
            place_of_process(four, {**fewer, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"RANK": "", "MASTER_PORT": ""}, "and this process was not: RANK, MASTER_PORT are not set."),
        ({"WORLD_SIZE": "2"}, "do not fit a training of 4 processes (received: 3 of 2)."),
        ({"RANK": "4"}, "do not fit a training of 4 processes (received: 4 of 4)."),
        ({"MASTER_PORT": "x"}, "MASTER_PORT is no whole number (received: x)."),
    ],
)
def test_variables_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ConfigurationError) as raised:
        place_of_process(spec(nodes=2, gpus_per_node=2), {**VARIABLES, **changes})
    assert message in str(raised.value)
