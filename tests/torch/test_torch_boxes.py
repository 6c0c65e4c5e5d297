"""Operations on boxes in PyTorch equal plain loops, and programs can hold them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch

from tests.box_oracle import ROI_CASES, aligned_rois, kept_boxes, random_boxes, random_output, roi_case
from ziggurat.backends.torch import digits
from ziggurat.backends.torch.export.nms_operator import kept_by_operator, onnx_translations
from ziggurat.backends.torch.standalone_boxes import best_detections
from ziggurat.errors import UsageError
from ziggurat.tasks import detection_boxes

LIMITS = {"least_score": 0.001, "iou": 0.65, "most": 100}


@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_nms_keeps_what_plain_loops_keep(count: int) -> None:
    rng = np.random.default_rng(count)
    boxes, scores = random_boxes(rng, count), rng.choice(np.linspace(0, 1, 40), count).astype(np.float32)
    expected = kept_boxes(boxes, scores, 0.4)
    given = torch.from_numpy(boxes), torch.from_numpy(scores)
    assert digits.nms(*given, 0.4).tolist() == expected
    assert digits.nms(*given, 0.4, most=20).tolist() == [*expected, *([-1] * 20)][:20]


def test_nms_compares_blocks_of_boxes() -> None:
    rng = np.random.default_rng(5)
    boxes, scores = random_boxes(rng, 3000, 1000), rng.uniform(0, 1, 3000).astype(np.float32)
    found = digits.nms(torch.from_numpy(boxes), torch.from_numpy(scores), 0.3)
    assert found.tolist() == detection_boxes.nms(boxes, scores, 0.3).tolist()


@pytest.mark.parametrize("options", ROI_CASES)
def test_roi_align_gives_what_plain_loops_give(options: dict) -> None:
    x, boxes = roi_case(np.random.default_rng(0))
    found = digits.roi_align(torch.from_numpy(x).permute(0, 3, 1, 2), torch.from_numpy(boxes), (3, 2), **options)
    np.testing.assert_allclose(found.permute(0, 2, 3, 1), aligned_rois(x, boxes, (3, 2), **options), atol=1e-5)


def test_roi_align_has_gradients_of_features() -> None:
    x = torch.rand(1, 2, 6, 6, dtype=torch.float64, requires_grad=True)
    boxes = torch.tensor([[0, 1.0, 1.0, 5.0, 4.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda features: digits.roi_align(features, boxes, 2), x)


def test_operations_refuse_other_shapes() -> None:
    with pytest.raises(UsageError, match=r"takes boxes \(K, 4\) and scores \(K\).*\(2, 5\) and \(2,\)"):
        digits.nms(torch.zeros(2, 5), torch.zeros(2))
    with pytest.raises(UsageError, match="Put the number of its image before each box"):
        digits.roi_align(torch.zeros(1, 1, 4, 4), torch.zeros(2, 4), 2)


class Operations(torch.nn.Module):
    """What a network file may do."""

    def forward(self, x: torch.Tensor, boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return digits.nms(boxes[:, 1:], boxes[:, 0], 0.5, most=5), digits.roi_align(x, boxes * 0, 2)


def test_programs_hold_nms_and_roi_align() -> None:
    x, boxes = torch.rand(1, 2, 6, 6), torch.rand(9, 5)
    shapes = (None, {0: torch.export.Dim.DYNAMIC})
    program = torch.export.export(Operations(), (x, boxes), dynamic_shapes=shapes, strict=False).module()
    for count in (9, 6):
        for found, expected in zip(program(x, boxes[:count]), Operations()(x, boxes[:count]), strict=True):
            torch.testing.assert_close(found, expected)


class Detections(torch.nn.Module):
    """The end of an export."""

    def forward(self, output: torch.Tensor) -> torch.Tensor:
        return best_detections(output, **LIMITS)


class Operator(torch.nn.Module):
    """The end of an export to ONNX."""

    def forward(self, output: torch.Tensor) -> torch.Tensor:
        return best_detections(output, **LIMITS, kept=kept_by_operator)


@pytest.mark.filterwarnings("ignore")  # of what PyTorch's exporter itself calls
@pytest.mark.parametrize("rows", [336, 12])
def test_detections_are_those_of_numpy(rows: int, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    output = random_output(np.random.default_rng(0), rows=rows)
    given, shapes = (torch.from_numpy(output),), ({0: torch.export.Dim.DYNAMIC},)
    expected = detection_boxes.best_detections(output, **LIMITS)
    np.testing.assert_array_equal(Detections()(*given), expected)
    program = torch.export.export(Operator(), given, dynamic_shapes=shapes, strict=False)
    file = tmp_path / "model.onnx"
    options = {"external_data": False, "verbose": False, "custom_translation_table": onnx_translations()}
    torch.onnx.export(program, given, file, opset_version=18, dynamo=True, **options)
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (source,) = session.get_inputs()
    for part in (output, output[1:2]):
        (found,) = session.run(None, {source.name: part})
        np.testing.assert_array_equal(found, detection_boxes.best_detections(part, **LIMITS))
