"""Home in a studio: its jobs and datasets over the client of its REST API."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import tempfile
import time
import weakref
import zipfile
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ziggurat.client import Client
from ziggurat.errors import DataError, MissingJobError, ZigguratError, nearest_names
from ziggurat.interactive.home import ENDED, CurvePoints, InputKind, JobState, ModelInputs, SampleImage
from ziggurat.workspace.recipes import Recipe
from ziggurat.workspace.training_checks import DIGITS, input_part

__all__ = ["StudioHome"]

_EVERY_S: Final = 0.5
_AT_ONCE: Final = 32
_LOOKED_AT: Final = 2000
"""Jobs among whose names the nearest one is looked for, newest first."""

_LONGEST_TEXT: Final = 200
"""Letters that a search for jobs takes."""

_KINDS: Final[Mapping[str, InputKind]] = {"row": "row", "text": "text"}
_PAGES: Final = {"dataset": "datasets", "train": "models"}


class StudioHome:
    """Runs and datasets of a studio.

    Args:
        client: open client of the studio.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        weakref.finalize(self, client.close)

    @property
    def title(self) -> str:
        """Address of the studio."""
        return self.client.url

    # ---- jobs

    def find(self, name: str, kind: str) -> str:
        """Return the id of a job: ``name`` is its id, its name, its page, or the name of a published model."""
        name = name.removeprefix(self.client.url).rpartition("/")[2] if "://" in name else name
        if found := self._newest(name, kind=kind):
            return found
        models = {each["name"]: each["job"] for each in self.client.models.pretrained()} if kind == "train" else {}
        if name in models:
            return models[name]
        newest = islice(self.client.jobs(kind=kind), _LOOKED_AT)
        nearest = nearest_names(name, {*models, *(each["name"] for each in newest)})
        shown = " or ".join(f"`{each}`" for each in nearest)
        raise MissingJobError(
            f"There is no {'dataset' if kind == 'dataset' else 'run'} `{name}` in the studio at {self.client.url}.",
            advice=f"Did you mean {shown}?" if shown else "List runs with: ziggurat.runs()",
            details={"nearest": nearest},
        )

    def _newest(self, name: str, **chosen: str) -> str:
        """Return the id of the newest job with an id or a name; empty if there is none.

        Args:
            name: id or name.
            chosen: further conditions, such as ``kind``.
        """
        jobs = self.client.jobs(text=name[:_LONGEST_TEXT], **chosen)
        return next((each["id"] for each in jobs if name in (each["id"], each["name"])), "")

    def ids(self, kind: str, limit: int) -> list[str]:
        """Return the ids of the newest jobs of a kind."""
        return [each["id"] for each in islice(self.client.jobs(kind=kind), limit or None)]

    def state(self, job: str) -> JobState:
        """Return the state of a job, as the studio knows it."""
        return _state_of(self.client.job(job))

    def spec(self, job: str) -> Mapping[str, Any]:
        """Return the decoded spec of a job."""
        return self.client.job(job)["spec"]

    def folder(self, job: str) -> Path:
        """Return the folder of a job on the studio's machine."""
        return Path(self.client.job(job)["folder"])

    def page(self, job: str) -> str:
        """Return the address of the page of a job."""
        return f"{self.client.url}/{_PAGES.get(self.client.job(job)['kind'], 'jobs')}/{job}"

    def log(self, job: str) -> str:
        """Return the log of a job."""
        return self.client.log(job, whole=True)

    def work(self, job: str, watch: Callable[[JobState], None]) -> None:
        """Wait until the studio has done a job; Ctrl-C stops the job there."""
        try:
            self.follow(job, watch)
        except KeyboardInterrupt:
            self._stop(job, watch)
            raise

    def follow(self, job: str, watch: Callable[[JobState], None]) -> None:
        """Return when a job has ended; Ctrl-C ends only the waiting."""
        while True:
            status = self.state(job)
            watch(status)
            if status.state in ENDED:
                return
            time.sleep(_EVERY_S)

    def _stop(self, job: str, watch: Callable[[JobState], None]) -> None:
        """Stop a job and wait until it is saved; a second Ctrl-C kills its worker."""
        with contextlib.suppress(ZigguratError):  # it has ended meanwhile
            self.client.stop(job)
        try:
            self.follow(job, watch)
        except KeyboardInterrupt:
            with contextlib.suppress(ZigguratError):
                self.client.stop(job, now=True)
            self.follow(job, watch)

    def stop(self, job: str) -> None:
        """Ask a running job to save a checkpoint and end."""
        self.client.stop(job)

    def resume(self, job: str) -> None:
        """Put a stopped or failed job back into the queue."""
        self.client.resume(job)

    # ---- trainings

    def recipe(self, data: str, network: str | None) -> Recipe | None:
        """Return the recommended recipe for a dataset of the studio."""
        found = self.client.previews.recipe(data, network=network)
        return None if found is None else Recipe(**{name: found[name] for name in Recipe.__dataclass_fields__})

    def create_training(self, content: dict[str, Any], data: str, pretrained: str, out: Path | None) -> str:
        """Put a training into the queue."""
        if data == DIGITS:
            content, dataset = {**content, "data": {**content.get("data", {}), "source": DIGITS}}, None
        else:
            dataset = data
        return self.client.train(content, dataset=dataset, model=pretrained or None)[0]["id"]

    def curves(self, job: str) -> dict[str, CurvePoints]:
        """Return tag → points of the curves of a training."""
        return {
            tag: CurvePoints(steps=each["steps"], values=each["values"], epochs=each["epochs"])
            for tag, each in self.client.curves(job).items()
        }

    # ---- models

    def input_kind(self, job: str) -> InputKind:
        """Return what the network of a training takes, by the kind of its dataset."""
        datasets = [each for each in self.client.job(job)["depends_on"] if self.client.job(each)["kind"] == "dataset"]
        if not datasets:
            return "image"
        return _KINDS.get(input_part(self.client.datasets.describe(datasets[0])["kind"]), "image")

    def predict(self, job: str, inputs: ModelInputs, top: int, checkpoint: str | None) -> dict[str, Any]:
        """Predict with the studio's warm network."""
        options = {"top": top, "checkpoint": checkpoint, "pictures": True}
        if inputs.rows or inputs.texts:
            found = self.client.models.predict(job, rows=inputs.rows, texts=inputs.texts, **options)
            return _with_bytes([found])
        with tempfile.TemporaryDirectory(prefix="ziggurat-") as folder:
            parts = []
            for start in range(0, len(inputs.images), _AT_ONCE):
                files = []
                for number, (_, content) in enumerate(inputs.images[start : start + _AT_ONCE]):
                    files.append(Path(folder) / f"{start + number}.image")
                    files[-1].write_bytes(content)
                parts.append(self.client.models.predict(job, files, **options))
        return _with_bytes(parts)

    def evaluate(self, job: str, split: str, checkpoint: str | None) -> dict[str, Any]:
        """Evaluate a model on a split."""
        return self.client.models.evaluate(job, split=split, checkpoint=checkpoint)

    def export(self, job: str, export_format: str, out: Path, checkpoint: str | None) -> None:
        """Write a model for other programs into a new folder of this machine."""
        with tempfile.TemporaryDirectory(prefix="ziggurat-") as folder:
            archive = self.client.models.export(job, export_format, Path(folder) / "model.zip", checkpoint=checkpoint)
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(out)

    # ---- datasets

    def dataset_id(self, source: str) -> str:
        """Return the id of a finished dataset that a text names: its id, or its name."""
        return self._newest(source, kind="dataset", state="done")

    def create_dataset(self, content: dict[str, Any], source: str, stamp: str) -> tuple[str, bool]:
        """Send files to the studio and have a dataset made of them, or find the one that was made of the same."""
        name = content.get("name") or Path(source).name
        made_as = json.dumps([stamp, content], sort_keys=True)
        notes = f"Made from Python, fingerprint {hashlib.sha256(made_as.encode()).hexdigest()[:12]}."
        for each in self.client.jobs(kind="dataset", state="done", text=notes) if stamp else ():
            if each["name"] == name and each["notes"] == notes:
                return each["id"], False
        place = self.client.datasets.upload(Path(source).absolute()) if stamp else source
        job = self.client.datasets.create({**content, "name": name, "source": place}, notes=notes)
        return job["id"], True

    def describe_dataset(self, dataset: str) -> dict[str, Any]:
        """Return what a dataset is."""
        return self.client.datasets.describe(dataset)

    def sample_images(self, dataset: str, count: int) -> list[SampleImage]:
        """Return a few samples of the training split."""
        found = []
        for each in self.client.datasets.samples(dataset, split="train", limit=count)["samples"]:
            try:
                picture = self.client.datasets.picture(dataset, "train", each["row"], max_side_px=160)
            except DataError:
                break
            found.append((str(each["class_name"] or ""), picture))
        return found

    def staging(self) -> Path | None:
        """Return None: what is made of arrays and rows is sent, and not kept here."""
        return None


def _state_of(job: Mapping[str, Any]) -> JobState:
    return JobState(
        name=job["name"],
        kind=job["kind"],
        state=job["state"],
        outcome=job["outcome"],
        reason=job["reason"],
        stage=job["stage"],
        epoch=job["epoch"],
        max_epoch=job["max_epoch"],
        step=job["global_step"],
        total_steps=job["total_steps"],
        scalars={tag: float(each["last"]) for tag, each in job["scalars"].items()},
        error=job["error"],
        baselines=job["baselines"],
    )


def _with_bytes(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one answer of several, with images as bytes."""
    predictions = [_decoded(each) for part in parts for each in part["predictions"]]
    failures = [each for part in parts for each in part["failures"]]
    return {**parts[0], "predictions": predictions, "failures": failures}


def _decoded(prediction: Mapping[str, Any]) -> dict[str, Any]:
    picture = prediction.get("picture")
    return {**prediction, "picture": None if picture is None else base64.b64decode(picture)}
