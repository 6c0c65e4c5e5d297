"""The example ``examples/transformers_detector.py``: detectors of Hugging Face's transformers in our form."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from safetensors.numpy import load_file
from torch_jobs import quick_job

from tests.unit.datasets.small_task_datasets import small_dataset
from ziggurat.backends.torch.network_file import load_network
from ziggurat.errors import NetworkCodeError
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.exporting import export

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformers_detector.py"
SMALL = """
BACKBONE = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128], "layer_type": "basic", "embedding_size": 16}
CONFIG = {"encoder_in_channels": [32, 64, 128], "decoder_layers": 2, "hidden_expansion": 0.5, "num_queries": 40}
CONFIG |= {"encoder_hidden_dim": 32, "d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
CONFIG |= {"decoder_in_channels": [32] * 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
"""
HGNET = """
CONFIG["backbone_config"] = transformers.HGNetV2Config(
    stem_channels=[3, 8, 8], stage_in_channels=[8, 16, 32, 64], stage_mid_channels=[8, 8, 16, 16],
    stage_out_channels=[16, 32, 64, 128], stage_num_blocks=[1, 1, 1, 1], stage_numb_of_layers=[2, 2, 2, 2],
    embedding_size=8, hidden_sizes=[16, 32, 64, 128],
    out_features=["stage2", "stage3", "stage4"],
)
"""


def text(kind: str) -> str:
    """Return the example with a network of a kind that is small enough for a test."""
    before, rest = EXAMPLE.read_text().split("\n\n\nclass UserModel", 1)
    before = before.replace('KIND = "RTDetrV2"', f'KIND = "{kind}"')
    return f"{before}\n{SMALL}{HGNET if kind == 'DFine' else ''}\n\nclass UserModel{rest}"


@pytest.mark.parametrize("kind", ["RTDetrV2", "DFine"])
def test_a_detector_of_transformers_trains(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("scipy", reason="SciPy is not installed")
    data = small_dataset("shapes", tmp_path / "data")
    fields = {"data": data, "optimizer": {"name": "adamw"}, "learning_rate": 0.0005, "batch_size": 8}
    job = str(quick_job(tmp_path / "job", text(kind), steps=3, **fields))
    found = evaluate({"folder": job})
    assert found["task"] == "detection"
    assert 0 <= found["ap50"] <= 1
    assert found["scalars"]["cost"] > 0
    for form, place in (("safetensors", "out"), *([("pt2", "program")] if kind == "RTDetrV2" else [])):
        report = export({"folder": job, "format": form, "out": str(tmp_path / place)})["parity"]
        assert report["holds"], report
    names = {name.partition(".")[0] for name in load_file(tmp_path / "out" / "model.safetensors")}
    assert "model" in names
    assert names <= {"model", "class_embed", "bbox_embed"}  # as in the library's own files


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(NetworkCodeError, match=r"This network needs `(transformers|scipy)`. Install it: pip install"):
        load_network(EXAMPLE.read_text(), "transformers_detector.py")
