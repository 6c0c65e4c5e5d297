"""``checkpoint`` looks at the checkpoints that a training wrote, and removes only what nobody needs."""

import socket
import time

import numpy as np
import pytest

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.entities import Heartbeat, write_heartbeat


def save(store, step, **arrays):
    meta = {
        "global_step": step,
        "epoch_num": step // 10,
        "latest": {"cost": [step, 1 / step]},
        "callbacks": {"Saver": {"a": 1}, "Silent": None},
    }
    return store.save(RunState(meta, {name.replace("__", "/"): array for name, array in arrays.items()}))


@pytest.fixture
def trained(job):
    """A job with three checkpoints."""
    store = CheckpointStore(job / "checkpoints")
    ones = np.ones((2, 3), np.float32)
    save(store, 10, layer__W=ones, layer__b=np.zeros(3, np.float32), steps=np.int64(10))
    save(store, 20, layer__W=ones + np.float32(0.5), layer__b=np.zeros(3, np.float32), steps=np.int64(20))
    save(store, 30, layer__W=np.ones((2, 4), np.float32), other=np.zeros(1))
    store.give_name("best", "step-00000020")
    return job


def test_ls_lists_them_oldest_first(ziggurat, trained):
    content = ziggurat("checkpoint", "ls", trained, "--json").content
    assert [(each["name"], each["step"], each["given_names"]) for each in content] == [
        ("step-00000010", 10, []),
        ("step-00000020", 20, ["best"]),
        ("step-00000030", 30, []),
    ]
    folder = trained / "checkpoints" / "step-00000010"
    assert content[0]["size_bytes"] == sum(path.stat().st_size for path in folder.iterdir())
    lines = ziggurat("checkpoint", "ls", trained).out.splitlines()
    assert lines[0].split() == ["checkpoint", "step", "bytes", "names"]
    assert lines[2].endswith("best")


def test_a_job_without_checkpoints_has_none(ziggurat, job):
    assert ziggurat("checkpoint", "ls", job).out == "(none)\n"
    assert ziggurat("checkpoint", "ls", job, "--json").content == []
    answer = ziggurat("checkpoint", "show", job)
    assert answer.code == 7
    assert answer.err == f"Error: There is no checkpoint `latest` in {job}. There are: none.\n"


def test_show_tells_names_shapes_and_sizes(ziggurat, trained):
    content = ziggurat("checkpoint", "show", trained, "step-00000010", "--json").content
    assert (content["step"], content["epoch"], content["scalars"]) == (10, 1, {"cost": 0.1})
    assert content["callbacks"] == ["Saver"]
    assert content["arrays"] == [
        {"name": "layer/W", "shape": [2, 3], "dtype": "float32", "size_bytes": 24},
        {"name": "layer/b", "shape": [3], "dtype": "float32", "size_bytes": 12},
        {"name": "steps", "shape": [], "dtype": "int64", "size_bytes": 8},
    ]
    text = ziggurat("checkpoint", "show", trained, "best").out
    assert text.startswith("step-00000020: step 20, epoch 2. cost 0.05\n")
    assert ziggurat("checkpoint", "show", trained).out.startswith("step-00000030: ")


def test_diff_compares_array_by_array(ziggurat, trained):
    content = ziggurat("checkpoint", "diff", trained, "step-00000010", "best", "--json").content
    assert content == [
        {"name": "layer/W", "kind": "values", "largest": 0.5, "mean": 0.5},
        {"name": "layer/b", "kind": "equal", "largest": 0.0, "mean": 0.0},
        {"name": "steps", "kind": "values", "largest": 10.0, "mean": 10.0},
    ]
    kinds = {each["name"]: each["kind"] for each in ziggurat("checkpoint", "diff", trained, "best", "--json").content}
    assert kinds == {"layer/W": "shape", "layer/b": "only_first", "steps": "only_first", "other": "only_second"}
    assert "layer/W  values      0.5" in ziggurat("checkpoint", "diff", trained, "step-00000010", "best").out


def test_diff_reaches_another_job(ziggurat, trained, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "spec.json").write_text("{}")
    save(CheckpointStore(other / "checkpoints"), 10, layer__W=np.full((2, 3), np.nan, np.float32))
    answer = ziggurat("checkpoint", "diff", trained, "step-00000010", "latest", "--other", other, "--json")
    assert answer.content[0] == {"name": "layer/W", "kind": "values", "largest": "NaN", "mean": "NaN"}


def test_remove_takes_away_what_no_name_points_at(ziggurat, trained):
    answer = ziggurat("checkpoint", "remove", trained, "step-00000010", "latest")
    assert answer.out == "Removed step-00000010\nRemoved step-00000030\n"
    assert sorted(path.name for path in (trained / "checkpoints").iterdir()) == ["names.json", "step-00000020"]
    kept = ziggurat("checkpoint", "remove", trained, "step-00000020")
    assert kept.code == 7
    assert "A checkpoint that a name points at is kept: `best` is step-00000020." in kept.err


def test_remove_waits_for_the_worker_to_end(ziggurat, trained):
    now = time.time()
    beat = Heartbeat(pid=1, host=f"not-{socket.gethostname()}", time=now, phase="training", step_began=now)
    write_heartbeat(trained / "heartbeat.json", beat)
    answer = ziggurat("checkpoint", "remove", trained, "step-00000010")
    assert answer.code == 10
    assert "; checkpoints are removed while no worker is at the job" in answer.err
    assert (trained / "checkpoints" / "step-00000010").is_dir()


def test_an_unknown_name_lists_the_known(ziggurat, trained):
    answer = ziggurat("checkpoint", "show", trained, "step-00000011")
    assert answer.code == 7
    assert answer.err.endswith("There are: step-00000010, step-00000020, step-00000030, best, latest.\n")


@pytest.mark.parametrize("words", [("show", "latest"), ("diff", "latest", "best")])
def test_a_damaged_checkpoint_is_named(ziggurat, trained, words):
    arrays = trained / "checkpoints" / "step-00000030" / "arrays.npz"
    arrays.write_bytes(arrays.read_bytes()[:40])
    verb, *names = words
    answer = ziggurat("checkpoint", verb, trained, *names)
    assert answer.code == 7
    assert f"The checkpoint {arrays.parent} is damaged: " in answer.err


def test_a_pickle_in_a_checkpoint_is_not_read(ziggurat, trained):
    np.savez(
        trained / "checkpoints" / "step-00000030" / "arrays.npz",
        names=np.array(["evil"]),
        a0=np.array([{"a": 1}], dtype=object),
    )
    answer = ziggurat("checkpoint", "diff", trained, "latest", "latest")
    assert answer.code == 7
    assert "Object arrays cannot be loaded when allow_pickle=False" in answer.err
