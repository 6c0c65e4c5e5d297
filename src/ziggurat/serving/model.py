"""An exported model that answers requests, once it has proven itself on this machine."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.standalone_prediction import Reader, TaskRules
from ziggurat.dataflow.standalone_samples import check_samples
from ziggurat.errors import (
    ConfigurationError,
    DataError,
    DatapointError,
    MissingDependencyError,
    UnknownSignerError,
    UnsignedExportError,
)
from ziggurat.serving.manifest import check_export

__all__ = ["InputTensor", "ServedModel", "open_model"]

MOST_PIXELS: Final = 64_000_000
"""Of an image: a small file may hold many."""

_IMAGE_FORMATS: Final = ("Bmp", "Gif", "Jpeg", "Png", "Ppm", "Tiff", "WebP")
"""Plugins of Pillow: others start programs, or are not read by trainings."""

_KINDS: Final = {"image": "an image file", "table": "JSON with `rows`", "text": "JSON with `texts`, or plain text"}


@dataclass(frozen=True, kw_only=True)
class InputTensor:
    """What the model itself takes.

    Args:
        name: of the input.
        shape: with None for the number of samples.
        dtype: name of the NumPy type.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: str


class ServedModel:
    """A model of an export, open for requests. Threads may share it.

    Args:
        folder: of the export.
        session: of ONNX Runtime.
        provenance: from the manifest.

    Attributes:
        kind: what it takes: ``image``, ``table`` or ``text``.
        task: name of the task.
        source: what the model itself takes.
        outputs: name → shape, with None for the number of samples; None if unknown.
        run_s: median time of the self-test's samples, in seconds.
        self_test: number of samples that the self-test compared.
    """

    def __init__(self, folder: Path, session: Any, provenance: Mapping[str, Any]) -> None:
        content = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.provenance = provenance
        self.task = json.loads((folder / "task.json").read_text(encoding="utf-8"))["task"]
        self.outputs: Mapping[str, Sequence[int | None] | None] = content["outputs"]
        self.run_s = 0.0
        self.self_test = 0
        self._session = session
        (source,) = session.get_inputs()
        self.source = InputTensor(
            name=source.name, shape=tuple(content["input"]["shape"]), dtype=content["input"]["dtype"]
        )
        known = {output.name for output in session.get_outputs()}
        # TensorFlow numbers what an operation gives.
        self._fetches = [name if name in known else f"{name}:0" for name in self.outputs]
        self._reader = Reader(folder, content["preprocessing"] == "inside")
        self._rules = TaskRules(folder)
        self.kind: str = self._reader.kind
        if self.kind == "image":
            for each in _IMAGE_FORMATS:
                import_module(f"PIL.{each}ImagePlugin")

    @property
    def wanted(self) -> str:
        """What a request for people has, in words."""
        return _KINDS[self.kind]

    def run(self, batch: np.ndarray) -> dict[str, np.ndarray]:
        """Return name → output of a batch that the model itself takes."""
        return dict(zip(self.outputs, self._session.run(self._fetches, {self.source.name: batch}), strict=True))

    def read_image(self, name: str, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Return the batch of one that the model takes of an image file, and the image, (H, W, C) uint8.

        Raises:
            DatapointError: if it cannot be read, or has too many pixels.
        """
        images = import_module("PIL.Image")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with images.open(BytesIO(data), formats=[each.upper() for each in _IMAGE_FORMATS]) as opened:
                    width, height = opened.size
            if width * height > MOST_PIXELS:
                raise DatapointError(name, f"it has {width} x {height} pixels; at most {MOST_PIXELS:,} are read.")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._reader.image(data)
        except DatapointError:
            raise
        except Exception as error:  # whatever a decoder raises is about this file alone
            raise DatapointError(name, "it cannot be read as an image.", advice="Send a JPEG or PNG file.") from error

    def read_value(self, name: str, value: Any) -> np.ndarray:
        """Return the batch of one of a row or text.

        Raises:
            DatapointError: if it is not as the model needs it.
        """
        try:
            if isinstance(value, tuple):
                raise ValueError("it must be a row or a text.")
            return self._reader.encoded(value)
        except Exception as error:  # likewise
            reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}."
            raise DatapointError(name, reason) from error

    def described(self, outputs: Mapping[str, np.ndarray], top: int, picture: np.ndarray | None) -> dict[str, Any]:
        """Return the prediction for one sample as the studio gives it.

        Args:
            outputs: of the sample, without the axis of the batch.
            top: how many classes are named.
            picture: the image; None for other inputs.
        """
        return self._rules.described(outputs, top, np.zeros((0, 0, 3), np.uint8) if picture is None else picture)

    def test(self) -> None:
        """Run the samples of the export.

        Raises:
            DataError: if an output differs by more than is allowed; ``details`` has ``sample`` (from 1).
        """
        times: list[float] = []

        def run(batch: np.ndarray) -> dict[str, np.ndarray]:
            began = time.perf_counter()
            found = self.run(batch)
            times.append(time.perf_counter() - began)
            return found

        try:
            allowed, differences = check_samples(self.folder, run, self._reader.prepared)
        except (ValueError, KeyError, OSError) as error:
            raise DataError(
                f"The export `{self.folder}` has no sound samples for a self-test: {str(error).rstrip('.')}.",
                advice="Export the model again.",
            ) from error
        self.self_test, self.run_s = len(differences), sorted(times)[len(times) // 2] if times else 0.0
        for number, difference in enumerate(differences, 1):
            if not difference <= allowed:
                raise DataError(
                    f"Sample {number} of the self-test differs by {difference:.3g}; allowed is {allowed:g}.",
                    received=f"`{self.folder}`",
                    advice="The runtime computes something else on this machine: update it, or export again.",
                    details={"sample": number, "difference": difference, "allowed": allowed},
                )


def open_model(folder: Path, *, threads: int = 1, keys: Sequence[Any] | None = None) -> ServedModel:
    """Open the model of an export that is intact, and that passes its self-test here.

    Args:
        folder: of the export.
        threads: of ONNX Runtime for one batch.
        keys: public keys of which one must have signed the export; None for any export, also an unsigned one.

    Raises:
        ConfigurationError: if it is no export, or no ONNX model.
        ChangedExportError: if a file was changed.
        UnknownSignerError, UnsignedExportError: if none of the keys signed it.
        DataError: if it fails its self-test.
        MissingDependencyError: if ONNX Runtime is not installed.
    """
    found = check_export(folder, keys)
    if keys is not None and not found.fingerprint:
        raise UnsignedExportError(f"The export `{folder}` is not signed.", advice="Leave out --key.")
    if keys is not None and not found.is_known:
        raise UnknownSignerError(
            f"The export `{folder}` is signed by another key: {found.fingerprint}.",
            advice="Give the public key of the studio that made it.",
            details={"fingerprint": found.fingerprint},
        )
    content = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    if content["format"] != "onnx":
        raise ConfigurationError(
            f"`{folder}` has the format {content['format']}; only ONNX exports are served.",
            advice="Export it again with: ziggurat export JOB --format onnx.",
        )
    model = ServedModel(folder, _session(folder / content["file"], threads), found.provenance)
    model.test()
    return model


def _session(path: Path, threads: int) -> Any:
    try:
        runtime = import_module("onnxruntime")
    except ModuleNotFoundError as error:
        raise MissingDependencyError("onnxruntime", extra="serve", purpose="serving models") from error
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning threads would take the cores from the requests that are being read.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors share no class
        raise ConfigurationError(
            f"ONNX Runtime cannot load the model `{path}`: {str(error).rstrip('.')}.", advice="Update onnxruntime."
        ) from error
