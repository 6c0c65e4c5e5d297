"""Home without a studio: job folders in a workspace, as the shell makes them, and workers of this process."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ziggurat.errors import DataError, JobError, MissingJobError, ZigguratError, nearest_names
from ziggurat.events import ScalarLogged
from ziggurat.interactive.home import ENDED, CurvePoints, InputKind, JobState, ModelInputs, SampleImage
from ziggurat.interactive.sources import changed_at
from ziggurat.layout import UPLOADS_FOLDER, JobFolder, job_folders
from ziggurat.settings import Settings
from ziggurat.specs import parse_spec, read_content
from ziggurat.workspace import JobStatus, open_folders
from ziggurat.workspace.datasets import Datasets, check_new_dataset, finished_dataset, rows, source_name, stored_source
from ziggurat.workspace.recipe_fields import local_recipe
from ziggurat.workspace.recipes import Recipe
from ziggurat.workspace.warm_networks import open_inference_pool

__all__ = ["FolderHome"]

_EVERY_S: Final = 0.3
_AT_ONCE: Final = 32
_KINDS: Final[Mapping[str, InputKind]] = {"row": "row", "text": "text"}
_IGNORED: Final = {"again_of", "name"}
"""Fields that say nothing of how a dataset is made."""


class FolderHome:
    """Runs and datasets in folders of this machine.

    Args:
        settings: settings of this process, with the workspace.
    """

    def __init__(self, settings: Settings) -> None:
        self.root = settings.workspace.expanduser().absolute()
        self._settings = settings
        self._workspace = open_folders(settings)
        self._datasets = Datasets()

    @property
    def title(self) -> str:
        """Path of the workspace."""
        return str(self.root)

    # ---- jobs

    def find(self, name: str, kind: str) -> str:
        """Return the path of a job folder: ``name`` is the path, its last part, or the name of the job."""
        folder = Path(name).expanduser()
        if JobFolder(folder).spec.is_file():
            return str(folder.absolute())
        known = {}
        for job in reversed(self.ids(kind, 0)):  # the newest of equal names is kept
            known[self._name(job)] = job
            known[Path(job).name] = job
        if name in known:
            return known[name]
        nearest = " or ".join(f"`{each}`" for each in nearest_names(name, known))
        raise MissingJobError(
            f"There is no {'dataset' if kind == 'dataset' else 'run'} `{name}` in {self.root}.",
            advice=f"Did you mean {nearest}?" if nearest else "List runs with: ziggurat.runs()",
            details={"nearest": nearest_names(name, known)},
        )

    def ids(self, kind: str, limit: int) -> list[str]:
        """Return the paths of the newest job folders of a kind; 0 as limit for all."""
        found = [each for each in job_folders(self.root) if JobFolder(each).spec.is_file()]
        found.sort(key=lambda each: JobFolder(each).spec.stat().st_mtime, reverse=True)
        chosen = [str(each) for each in found if _spec_of(each).get("kind") == kind]
        return chosen[: limit or None]

    def state(self, job: str) -> JobState:
        """Return the state of a job, from its files alone."""
        return _state_of(self._workspace.jobs.get(job))

    def spec(self, job: str) -> Mapping[str, Any]:
        """Return the decoded spec of a job."""
        return read_content(self._workspace.jobs.folder(job).spec)

    def folder(self, job: str) -> Path:
        """Return the folder of a job."""
        return Path(job)

    def page(self, job: str) -> str:
        """Return an empty text: without a studio there are no pages."""
        return ""

    def log(self, job: str) -> str:
        """Return the log of a job."""
        return b"".join(self._workspace.outputs.whole_log(job)).decode("utf-8", "replace")

    def work(self, job: str, watch: Callable[[JobState], None]) -> None:
        """Execute a job in a worker that ends with this process."""
        with tempfile.TemporaryFile() as errors:
            worker = self._workspace.jobs.attend(job, output=subprocess.DEVNULL, errors=errors)
            code = worker.wait(_every(_EVERY_S, lambda: watch(self.state(job))))
            status = self.state(job)
            watch(status)
            if code and status.state not in ENDED:  # it ended before it could record anything
                errors.seek(0)
                raise JobError(
                    f"The worker of {job} did not start.",
                    received=errors.read()[-2000:].decode("utf-8", "replace").strip() or f"exit code {code}",
                    advice="Check the installation with: ziggurat doctor",
                )

    def follow(self, job: str, watch: Callable[[JobState], None]) -> None:
        """Return when a job has ended; Ctrl-C ends only the waiting."""
        while True:
            status = self.state(job)
            watch(status)
            if status.state in (*ENDED, "queued"):
                return
            time.sleep(_EVERY_S)

    def stop(self, job: str) -> None:
        """Ask a running job to save a checkpoint and end."""
        self._workspace.jobs.stop(job)

    def resume(self, job: str) -> None:
        """Accept every job: ``work`` goes on with it."""

    def _name(self, job: str) -> str:
        return str(_spec_of(Path(job)).get("name", ""))

    # ---- trainings

    def recipe(self, data: str, network: str | None) -> Recipe | None:
        """Return the recommended recipe for data."""
        return local_recipe(data, network)

    def create_training(self, content: dict[str, Any], data: str, pretrained: str, out: Path | None) -> str:
        """Make the folder of a training."""
        whole = {**content, "data": {**content.get("data", {}), "source": data}}
        if pretrained:
            whole["pretrained"] = pretrained
        return str(self._workspace.jobs.create(parse_spec(whole, source="ziggurat.train"), out).absolute())

    def curves(self, job: str) -> dict[str, CurvePoints]:
        """Return tag → points, from the events of a job; what a resume took back is left out."""
        found: dict[str, list[ScalarLogged]] = {}
        for event in self._workspace.outputs.events(job):
            if isinstance(event, ScalarLogged):
                found.setdefault(event.tag, []).append(event)
            elif event.type == "attempt_started":
                reached = getattr(event, "global_step", 0)
                found = {tag: [each for each in points if each.step <= reached] for tag, points in found.items()}
        return {
            tag: CurvePoints(
                steps=[each.step for each in points],
                values=[each.value for each in points],
                epochs=[each.epoch for each in points],
            )
            for tag, points in found.items()
            if points
        }

    # ---- models

    def input_kind(self, job: str) -> InputKind:
        """Return what the network of a training takes, as its folder says."""
        try:
            part = json.loads(JobFolder(Path(job)).task.read_bytes())["schema"]["parts"][0]
        except (OSError, ValueError, LookupError, TypeError):
            return "image"
        return _KINDS.get(part, "image")

    def predict(self, job: str, inputs: ModelInputs, top: int, checkpoint: str | None) -> dict[str, Any]:
        """Predict with a network that stays open in a process of its own."""
        folder = Path(job)
        if inputs.rows or inputs.texts:
            values = {"rows": inputs.rows} if inputs.rows else {"texts": inputs.texts}
            return self._pool.predict_values(folder, checkpoint, values, top, drawn=True)
        found: dict[str, Any] = {"predictions": [], "failures": []}
        for start in range(0, len(inputs.images), _AT_ONCE):
            part = self._pool.predict(folder, checkpoint, inputs.images[start : start + _AT_ONCE], top, drawn=True)
            found = {
                **part,
                "predictions": [*found["predictions"], *part["predictions"]],
                "failures": [*found["failures"], *part["failures"]],
            }
        return found

    @cached_property
    def _pool(self) -> Any:
        pool = open_inference_pool(self._settings)
        weakref.finalize(self, pool.close)
        return pool

    def evaluate(self, job: str, split: str, checkpoint: str | None) -> dict[str, Any]:
        """Evaluate a model on a split."""
        return self._workspace.tasks.evaluate(Path(job), split=split, checkpoint=checkpoint)

    def export(self, job: str, export_format: str, out: Path, checkpoint: str | None) -> None:
        """Write a model for other programs into a new folder."""
        self._workspace.tasks.export(Path(job), export_format, out, checkpoint=checkpoint)

    # ---- datasets

    def dataset_id(self, source: str) -> str:
        """Return the folder of a finished dataset: ``source`` is its path, or its name in the workspace."""
        folder = Path(source).expanduser()
        try:
            self._datasets.describe(str(folder))
            return str(folder.absolute())
        except ZigguratError:
            if folder.exists():
                return ""
        return finished_dataset(self.root, source)

    def create_dataset(self, content: dict[str, Any], source: str, stamp: str) -> tuple[str, bool]:
        """Make the folder of a dataset, or find the one that was made in the same way since the files changed."""
        place = stored_source(source)
        whole = {**content, "source": place, "name": content.get("name") or source_name(place)}
        spec: Any = parse_spec(whole, source="ziggurat.dataset")
        check_new_dataset(spec)
        wanted = spec.model_dump(mode="json", exclude=_IGNORED)
        for row in rows(self.root):
            if row.state == "done" and row.name == spec.name and self._is_made_so(row.folder, wanted, place):
                return row.folder, False
        return str(self._workspace.jobs.create(spec).absolute()), True

    def _is_made_so(self, folder: str, wanted: Mapping[str, Any], source: str) -> bool:
        try:
            made = self._datasets.again(folder).model_dump(mode="json", exclude=_IGNORED)
        except ZigguratError:
            return False
        return made == wanted and changed_at(Path(source)) < JobFolder(Path(folder)).spec.stat().st_mtime

    def describe_dataset(self, dataset: str) -> dict[str, Any]:
        """Return what a dataset is."""
        return self._datasets.describe(dataset)

    def sample_images(self, dataset: str, count: int) -> list[SampleImage]:
        """Return a few samples of the training split."""
        page, names = self._datasets.explore(dataset, {"split": "train"}, limit=count)
        found = []
        for each in page.as_json(names)["samples"]:
            try:
                found.append((str(each["class_name"] or ""), self._datasets.picture(dataset, "train", each["row"])))
            except DataError:
                break
        return found

    def staging(self) -> Path | None:
        """Return the folder for files that are made of arrays and rows."""
        return self.root / UPLOADS_FOLDER


def _state_of(status: JobStatus) -> JobState:
    return JobState(
        name=status.name or Path(status.folder).name,
        kind=status.kind,
        state=status.state,
        outcome=status.outcome,
        reason=status.reason,
        stage=status.stage,
        epoch=status.epoch,
        max_epoch=status.max_epoch,
        step=status.global_step,
        total_steps=status.total_steps,
        scalars=status.scalars,
        error=status.error,
        baselines=status.baselines,
    )


def _spec_of(folder: Path) -> Mapping[str, Any]:
    try:
        return read_content(JobFolder(folder).spec)
    except ZigguratError:
        return {}


def _every(every_s: float, action: Callable[[], None]) -> Callable[[], None]:
    """Return a function that does something at most so often, and for a twentieth of the time at most."""
    next_at = [0.0]

    def watched() -> None:
        began = time.monotonic()
        if began >= next_at[0]:
            action()
            # The state is read from a file that grows with the training.
            next_at[0] = began + max(every_s, 20 * (time.monotonic() - began))

    return watched
