"""The example ``examples/detectnet.py``: DetectNet's grid of coverage and boxes learns to find shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from task_jobs import small_dataset

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.entities import EXIT_DONE
from ziggurat.events import effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.exporting import export
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest

EXAMPLE = Path(__file__).parents[2] / "examples" / "detectnet.py"


@pytest.mark.nightly
def test_detectnet_finds_shapes_and_is_exported(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    network = {"source": "file", "path": "detectnet.py", "text": EXAMPLE.read_text()}
    spec = {"kind": "train", "version": 1, "backend": "tensorflow", "network": network, "epochs": 40, "seed": 3}
    spec |= {"data": small_dataset("shapes", tmp_path / "data"), "batch_size": 16, "optimizer": {"name": "adam"}}
    spec |= {"learning_rate": 0.003, "monitors": ["events"], "machine_load_s": 0}
    JobFolder(folder).spec.write_text(json.dumps(spec))

    assert main([str(folder)], request=StopRequest()) == EXIT_DONE

    costs = [each.value for each in effective_scalars(read_events(JobFolder(folder).events)[0]) if each.tag == "cost"]
    assert costs[-1] < costs[0] / 5
    found = evaluate({"folder": str(folder)})
    assert found["task"] == "detection"
    assert found["ap50"] > 0.04
    report = export({"folder": str(folder), "format": "pb", "out": str(tmp_path / "out")})["parity"]
    assert report["holds"], report
    assert report["boxes"] > 0
