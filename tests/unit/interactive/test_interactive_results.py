"""Results of a Python session: attributes, one line of text, tables of pandas, and HTML without script."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

import ziggurat as zig
from ziggurat import interactive, program_log
from ziggurat.errors import MissingDependencyError
from ziggurat.interactive import Curves, Evaluation, Prediction, Predictions
from ziggurat.interactive.home import CurvePoints, ModelInputs
from ziggurat.interactive.markup import Line, line_chart
from ziggurat.interactive.run import predicted

EVALUATION = {
    "split": "val",
    "samples": 4,
    "skipped": 1,
    "step": 9,
    "checkpoint": "step-00000009",
    "scalars": {"cost": 0.5},
    "accuracy": 0.75,
    "top_5": 1.0,
    "confusion": [[2, 1], [0, 1]],
    "classes": [
        {"class": "<cat>", "samples": 3, "predicted": 2, "precision": 1.0, "recall": 2 / 3},
        {"class": "dog", "samples": 1, "predicted": 2, "precision": 0.5, "recall": None},
    ],
    "baselines": "",
}


def test_an_evaluation_has_its_numbers_and_shows_them():
    found = Evaluation("pets", EVALUATION)

    assert found.metrics == {"cost": 0.5, "accuracy": 0.75, "top_5": 1.0}
    assert repr(found) == "Evaluation('pets', validation split, 4 samples, accuracy 75.0\u202f%, loss 0.5)"
    html = found._repr_html_()
    assert "&lt;cat&gt;" in html
    assert "<cat>" not in html
    assert "Top-5 accuracy" in html
    assert "1 unreadable file" in html


def test_curves_are_drawn_without_what_is_not_finite():
    curves = Curves(
        "pets",
        {
            "cost": CurvePoints(steps=[1, 2, 3, 4], values=[3.0, math.nan, math.inf, 1.0], epochs=[1, 1, 2, 2]),
            "learning_rate": CurvePoints(steps=[1], values=[0.1], epochs=[1]),
        },
    )

    html = curves._repr_html_()
    assert html.count("<svg") == 1
    assert "nan" not in html
    assert repr(curves) == "Curves('pets': cost)"
    assert curves.get("nothing") is None
    assert line_chart("Loss", [Line(label="a", xs=[1], ys=[math.nan])]).count("no finite value yet") == 1


def test_a_line_has_a_gap_where_a_value_is_not_finite():
    path = line_chart("Loss", [Line(label="a", xs=[1, 2, 3, 4], ys=[1, 2, math.nan, 3])])

    assert path.split('<path d="')[-2].split('"')[0].count("M") == 2


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            {"classes": [{"class": "cat", "number": 0, "probability": 0.9}]},
            "Prediction('cat' 90.0\u202f%)",
        ),
        ({"labels": [{"class": "a", "probability": 0.9, "predicted": True}]}, "Prediction('a')"),
        ({"labels": [{"class": "a", "probability": 0.1, "predicted": False}]}, "Prediction(no label)"),
        ({"values": [{"name": "price", "value": 12.5}]}, "Prediction(price 12.5)"),
        ({"size": [4, 4], "boxes": []}, "Prediction(0 boxes)"),
        (
            {"size": [4, 4], "classes": [{"class": "sky", "share": 1.0}]},
            "Prediction(mask: sky 100.0\u202f%)",
        ),
        ({"outputs": {"output": {}}}, "Prediction(outputs)"),
    ],
)
def test_a_prediction_of_every_task_has_one_line(data, text):
    one = Prediction({"file": "1", **data}, "a <b>text</b>")

    assert repr(one) == text
    assert "a &lt;b&gt;text&lt;/b&gt;" in one._repr_html_()
    assert Predictions([one])[0] is one
    assert len(Predictions([one, one])[:1]) == 1


@pytest.mark.parametrize(
    ("package", "call"), [("pandas", "Predictions([]).to_pandas()"), ("matplotlib", "Curves('pets', {}).plot()")]
)
def test_a_missing_package_is_named(monkeypatch, package, call):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=f"Install it with: pip install {package}."):
        eval(call, {"Predictions": Predictions, "Curves": Curves})
    assert MissingDependencyError.exit_code == 8


def test_curves_are_plotted_by_matplotlib():
    matplotlib = pytest.importorskip("matplotlib", reason="a plot needs it: pip install matplotlib")
    matplotlib.use("agg")
    points = CurvePoints(steps=[1, 2], values=[0.5, 0.75], epochs=[1, 2])
    figure = Curves("pets", dict.fromkeys(("accuracy", "validation_accuracy", "cost"), points)).plot()
    loss, accuracy = figure.axes
    assert (loss.get_title(), accuracy.get_title()) == ("Loss", "Accuracy")
    assert [line.get_label() for line in accuracy.lines] == ["training", "validation"]
    assert accuracy.lines[0].get_xydata().tolist() == [[1, 0.5], [2, 0.75]]
    assert Curves("pets", {}).plot().axes[0].lines[:] == []


def test_the_names_of_the_package_are_the_same_everywhere():
    stub = ast.parse(Path(zig.__file__).with_suffix(".pyi").read_text())
    listed = next(each for each in stub.body if isinstance(each, ast.Assign))
    loaded = {each.module: [name.name for name in each.names] for each in stub.body if isinstance(each, ast.ImportFrom)}
    assert ast.literal_eval(listed.value) == zig.__all__ == sorted(["__version__", *chain(*loaded.values())])
    assert loaded["ziggurat.interactive"] == interactive.__all__
    assert set(loaded["ziggurat.program_log"]) < set(program_log.__all__)


def test_the_names_of_the_package_are_loaded_when_used():
    code = (
        "import sys, time\n"
        "began = time.process_time()\n"
        "import ziggurat as zig\n"
        "spent = time.process_time() - began\n"
        "assert 'train' in dir(zig) and 'Run' in dir(zig)\n"
        "assert 'pydantic' not in sys.modules and 'ziggurat.interactive' not in sys.modules\n"
        "zig.train, zig.Run\n"
        "assert not {'torch', 'tensorflow', 'fastapi', 'pandas', 'tqdm.auto'} & set(sys.modules)\n"
        "print(spent < 0.05, getattr(zig, 'trian', 'no such name'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout == "True no such name\n", done.stderr


def test_a_prediction_obeys_its_operating_point_or_warns():
    classes = [{"class": "cat", "number": 0, "probability": 0.6}, {"class": "dog", "number": 1, "probability": 0.4}]
    row = {"file": "1", "classes": classes}
    unused = {"predictions": [row], "failures": [], "operating_point": {"problem": "It was chosen on step-1."}}

    decided = Prediction({**row, "decision": {"class": "dog", "number": 1, "threshold": 0.3}}, "a text", None)
    with pytest.warns(UserWarning, match="chosen on step-1"):
        found = predicted(unused, ModelInputs(texts=["a text"]), is_single=True)

    assert (decided.label, found.label) == ("dog", "cat")
    undecided = Prediction({**row, "decision": {"class": None, "number": None, "threshold": 0.9}}, "a text", None)
    assert (decided.probability, repr(undecided)) == (0.4, "Prediction(undecided)")
