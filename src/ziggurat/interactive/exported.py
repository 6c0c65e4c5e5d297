"""Exported models: folders of a model for other programs, opened again for predictions."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ziggurat.errors import DataError, JobError, StorageError
from ziggurat.formatting import as_number, plural
from ziggurat.interactive.home import InputKind, ModelInputs
from ziggurat.interactive.inputs import model_inputs
from ziggurat.interactive.markup import block, facts
from ziggurat.interactive.prediction import Prediction, Predictions

__all__ = ["ExportedModel", "is_export"]

_MODEL, _TASK, _PARITY, _SCRIPT = "model.json", "task.json", "parity.json", "predict.py"


def is_export(folder: Path) -> bool:
    """Return whether a folder holds an exported model."""
    return (folder / _MODEL).is_file() and (folder / _SCRIPT).is_file()


class ExportedModel:
    """A model in a format of other programs, in a folder with everything that a prediction needs.

    Args:
        folder: folder of the export.

    Attributes:
        folder: the same.

    Raises:
        StorageError: if the folder is no export, or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._about = self._read(_MODEL)

    def __fspath__(self) -> str:
        """Return the path of the folder."""
        return str(self.folder)

    @property
    def format(self) -> str:
        """Format, such as ``onnx``."""
        return str(self._about["format"])

    @property
    def file(self) -> Path:
        """File or folder of the model itself."""
        return self.folder / str(self._about["file"])

    @property
    def files(self) -> list[Path]:
        """Everything in the folder."""
        return sorted(self.folder.iterdir())

    @property
    def parity(self) -> dict[str, Any]:
        """Comparison with the trained network on real samples: ``holds``, and the differences."""
        return self._read(_PARITY)

    def predict(self, inputs: Any, *, top: int = 5) -> Any:
        """Predict in a process of its own; arguments and answer as those of ``Run.predict``.

        Args:
            inputs: what the model takes.
            top: number of classes in the answer.

        Raises:
            UsageError: if the model takes something else.
            DataError: if an input cannot be read.
            JobError: if the runtime of the format is not installed, or fails.
        """
        kind = self._input_kind()
        read, is_single = model_inputs(kind, inputs)
        with tempfile.TemporaryDirectory(prefix="ziggurat-") as place:
            folder = Path(place)
            answer = self._run(_written(read, folder), folder, top)
            failures = answer.get("failures") or []
            if failures:
                raise DataError(str(failures[0]["message"]), details={"failures": failures})
            items = [_prediction(row, given) for row, given in zip(answer["predictions"], _given(read), strict=True)]
        return items[0] if is_single else Predictions(items)

    def __repr__(self) -> str:
        holds = "gives the same" if self.parity.get("holds") else "does NOT give the same"
        return f"ExportedModel({str(self.folder)!r}, {self.format}, {holds})"

    def _repr_html_(self) -> str:
        report = self.parity
        holds = "gives the same" if report.get("holds") else "does NOT give the same"
        pairs = [
            ("Parity", f"{holds} on {plural(report.get('samples', 0), 'sample')}"),
            ("Largest difference", as_number(report.get("largest_difference"))),
            ("Folder", str(self.folder)),
            ("Files", ", ".join(path.name for path in self.files)),
        ]
        return block(f"Exported model, {self.format}", facts(pairs))

    def _input_kind(self) -> InputKind:
        part = self._read(_TASK)["schema"]["parts"][0]
        return part if part in ("row", "text") else "image"

    def _run(self, files: list[Path], folder: Path, top: int) -> dict[str, Any]:
        command = [sys.executable, str(self.folder / _SCRIPT), *map(str, files), "--json", "--top", str(top)]
        done = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True, check=False)
        try:
            return json.loads(done.stdout)
        except ValueError:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise JobError(
                f"The exported model in {self.folder} could not predict.",
                received=said[-1] if said else f"exit code {done.returncode}",
                advice="Its format needs a runtime, such as onnxruntime.",
            ) from None

    def _read(self, name: str) -> dict[str, Any]:
        try:
            return json.loads((self.folder / name).read_bytes())
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{self.folder / name} cannot be read: {error}.", advice="Export the model again."
            ) from None


def _written(inputs: ModelInputs, folder: Path) -> list[Path]:
    """Write inputs as the script of an export takes them."""
    if inputs.rows:
        (folder / "rows.json").write_text(json.dumps(list(inputs.rows)), encoding="utf-8")
        return [folder / "rows.json"]
    if inputs.texts:
        lines = "".join(f"{' '.join(text.split())}\n" for text in inputs.texts)
        (folder / "texts.txt").write_text(lines, encoding="utf-8")
        return [folder / "texts.txt"]
    files = [folder / f"{number}.image" for number in range(len(inputs.images))]
    for file, (_, content) in zip(files, inputs.images):
        file.write_bytes(content)
    return files


def _given(inputs: ModelInputs) -> list[tuple[str, Any]]:
    if inputs.images:
        return list(inputs.images)
    return [(str(number), each) for number, each in enumerate([*inputs.rows, *inputs.texts], 1)]


def _prediction(row: dict[str, Any], given: tuple[str, Any]) -> Prediction:
    picture = row.pop("picture", None)
    return Prediction({**row, "file": given[0]}, given[1], Path(picture).read_bytes() if picture else None)
