"""The operating point of a trained network: the thresholds that its predictions obey, and where they were chosen."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.errors import StorageError
from ziggurat.layout import CheckpointFiles, JobFolder

__all__ = ["OperatingPoint", "checkpoint_digest", "read_operating_point", "write_operating_point"]

_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """Thresholds of a network, chosen on an evaluation of the validation split.

    Args:
        names: what has a threshold: names of classes, or ``confidence`` for the most probable one of many classes.
        thresholds: one number from 0 to 1 for each name.
        checkpoint: name of the checkpoint that was evaluated; no other one obeys them.
        step: global step of that checkpoint.
        digest: ``checkpoint_digest`` of it.
        dataset: SHA-256 of the dataset's manifest, hexadecimal; empty for data that is no dataset.
        evaluation: id of the evaluation.
        created: when they were chosen, in seconds since 1970.
        owner: name of who chose them.
    """

    names: tuple[str, ...]
    thresholds: tuple[float, ...]
    checkpoint: str
    step: int
    digest: str
    dataset: str = ""
    evaluation: str = ""
    created: float = field(default=0.0)
    owner: str = ""

    def __post_init__(self) -> None:
        is_sound = all(math.isfinite(each) and 0 <= each <= 1 for each in self.thresholds)
        if not self.names or len(self.names) != len(self.thresholds) or not is_sound:
            raise ValueError("one threshold from 0 to 1 for each name")

    def problem(self, checkpoint: str, digest: str) -> str:
        """Return why a checkpoint does not obey it, in one sentence; empty if it does.

        Args:
            checkpoint: its name.
            digest: ``checkpoint_digest`` of it.
        """
        if checkpoint != self.checkpoint:
            return (
                f"The operating point was chosen on {self.checkpoint} and is not used for {checkpoint}: "
                "choose it again on an evaluation of this checkpoint."
            )
        if digest != self.digest:
            return (
                f"The operating point was chosen before {checkpoint} was written again and is not used: "
                "evaluate it again, and choose anew."
            )
        return ""

    def document(self, problem: str) -> dict[str, Any]:
        """Return what answers say of it, as JSON values: ``thresholds`` (name → number), ``used``, ``problem``, …

        Args:
            problem: why it is not used; empty if it is.
        """
        return {
            "thresholds": dict(zip(self.names, self.thresholds, strict=True)),
            "used": not problem,
            "problem": problem,
            "checkpoint": self.checkpoint,
            "step": self.step,
            "dataset": self.dataset,
            "evaluation": self.evaluation,
        }


def checkpoint_digest(job: JobFolder, name: str) -> str:
    """Return the SHA-256 of the state file of a checkpoint, which has the checksums of its other files.

    Empty if the file cannot be read.
    """
    try:
        return hashlib.sha256(CheckpointFiles(job.checkpoints / name).state.read_bytes()).hexdigest()
    except OSError:
        return ""


def read_operating_point(job: JobFolder) -> OperatingPoint | None:
    """Return the operating point of a job; None if none was chosen.

    Raises:
        StorageError: if its file is damaged: predictions without it would look as if they obeyed it.
    """
    try:
        content = json.loads(job.operating_point.read_bytes())
        if not isinstance(content, dict) or content.pop("version") != _VERSION:
            raise ValueError("of another version of Ziggurat")
        names, thresholds = _texts(content.pop("names")), [float(each) for each in content.pop("thresholds")]
        return OperatingPoint(names=names, thresholds=tuple(thresholds), **content)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise StorageError(
            f"The operating point in {job.operating_point} cannot be read.",
            received=str(error),
            advice="Choose it again, or delete the file.",
        ) from error


def write_operating_point(job: JobFolder, point: OperatingPoint | None) -> None:
    """Write the operating point of a job; None removes it.

    Raises:
        StorageError: if it cannot be written.
    """
    path: Path = job.operating_point
    if point is None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be removed.", received=str(error)) from error
        return
    text = json.dumps({"version": _VERSION, **asdict(point)}, indent=1) + "\n"
    atomic_write_text(path, text, "The operating point")


def _texts(names: Sequence[Any]) -> tuple[str, ...]:
    if not all(isinstance(each, str) for each in names):
        raise ValueError("a name is no text")
    return tuple(names)
