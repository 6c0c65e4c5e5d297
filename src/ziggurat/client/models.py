"""Client methods for networks, trained models, and their evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ziggurat.client.connection import Connection, given
from ziggurat.entities.backend_info import DEFAULT_BACKEND
from ziggurat.errors import DataError, error_of_family

__all__ = [
    "EvaluationClient",
    "ModelClient",
]


class ModelClient:
    """The networks and models of a studio.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def networks(self, framework: str = DEFAULT_BACKEND) -> list[dict[str, Any]]:
        """Return the standard networks of a framework."""
        return self._connection.ask("GET", "/networks", params={"framework": framework})

    def network_text(self, name: str, framework: str = DEFAULT_BACKEND) -> str:
        """Return the source of a standard network, to be changed."""
        return self._connection.ask("GET", f"/networks/{name}", params={"framework": framework})["text"]

    def check(self, text: str, *, backend: str | None = None) -> list[dict[str, Any]]:
        """Return the mistakes in the code of a network that are found without running it, by line."""
        return self._connection.ask("POST", "/networks/check", json={"text": text, **given({"backend": backend})})[
            "findings"
        ]

    def describe(self, network: str = "", **options: Any) -> dict[str, Any]:
        """Describe a standard network, or a ``text``: layers, shapes, parameters, cost.

        With ``tensorboard=True``, its graph is kept for a while, and ``tensorboard`` in the answer has the ``address``
        of the page that opens it, None where there is none, and the ``problem``.
        """
        return self._connection.ask("POST", "/networks/describe", json={"network": network, **given(options)})

    def import_caffe(self, text: str = "", **options: Any) -> dict[str, Any]:
        """Convert a network of Caffe to a network file for PyTorch; return it as ``network``, with its comparison.

        Args:
            text: of a ``.prototxt``; empty where ``source`` names a file.
            options: paths on the studio's machine (``source``, ``weights``, ``mean``, ``labels``, ``solver``), and
                ``until``, ``classes``, ``input``, ``color``, ``compare`` and ``name``, which adds the weights to the
                studio.
        """
        return self._connection.ask("POST", "/imports/caffe", json={"text": text, **given(options)})

    def import_torch(self, text: str = "", **options: Any) -> dict[str, Any]:
        """Convert a network of Torch to a network file for PyTorch; return it as ``network``, with its comparison.

        Args:
            text: of a Lua file; empty where ``source`` names a file.
            options: paths on the studio's machine (``source``, ``weights``, ``mean``, ``labels``), and ``classes``,
                ``input``, ``color``, ``compare`` and ``name``, which adds the weights to the studio.
        """
        return self._connection.ask("POST", "/imports/torch", json={"text": text, **given(options)})

    def debug(self, network: str = "", **options: Any) -> dict[str, Any]:
        """Run a standard network, or a ``text``, eagerly on one real batch."""
        return self._connection.ask("POST", "/networks/debug", json={"network": network, **given(options)})

    def predict(
        self,
        job_id: str,
        files: Sequence[Path] = (),
        *,
        paths: Sequence[str] = (),
        url: str = "",
        rows: Sequence[Mapping[str, Any] | Sequence[Any]] = (),
        texts: Sequence[str] = (),
        **options: Any,
    ) -> dict[str, Any]:
        """Predict for images, for rows of a table, or for texts.

        Args:
            job_id: of a training.
            files: images or short videos of this machine, which are sent; a video stands for its frames.
            paths: the same, of the studio's machine.
            url: address of an image, which the studio fetches.
            rows: of a table, each column → value; then there are no images.
            texts: for a network that takes texts; then there are no images.
            options: ``top``, ``checkpoint``, ``device``; ``pictures=True`` for predictions that are images, as
                ``picture`` (PNG, base64); of one image also ``grad_cam=True``, ``grad_cam_class`` and
                ``grad_cam_layer``, see ``grad_cam``.

        Returns:
            ``predictions`` in the order of the inputs, and ``failures``.
        """
        if rows or texts:
            inputs = {"rows": list(rows)} if rows else {"texts": list(texts)}
            return self._connection.ask("POST", f"/models/{job_id}/predict", json={**inputs, **given(options)})
        with ExitStack() as opened:
            sent = [("files", (str(file), opened.enter_context(file.open("rb")))) for file in files]
            data = {"paths": list(paths), "url": url, **given(options)}
            return self._connection.ask("POST", f"/models/{job_id}/predict", files=sent or None, data=data)

    def generate(self, job_id: str, count: int = 16, **options: Any) -> dict[str, Any]:
        """Return what a network that generates makes of noise.

        Args:
            job_id: of a training.
            count: how many samples.
            options: ``seed``; ``inputs`` (input of the network → the numbers of a row, for all samples or for each);
                ``first`` (input → numbers in the place of the first ones that are drawn); ``checkpoint``, ``device``;
                ``pictures=True`` for samples that are images, as ``picture`` (PNG, base64).

        Returns:
            ``predictions``, and ``inputs``: what the network may be given, name → ``shape`` and ``dtype`` of a row.
        """
        return self._connection.ask("POST", f"/models/{job_id}/generate", json={"count": count, **given(options)})

    def activations(self, job_id: str, file: Path, *, checkpoint: str = "") -> dict[str, Any]:
        """Return what each layer makes of an image: shape, mean, deviation, histogram, images (base64)."""
        with file.open("rb") as opened:
            data = {"checkpoint": checkpoint}
            return self._connection.ask(
                "POST", f"/models/{job_id}/activations", files=[("files", (str(file), opened))], data=data
            )

    def grad_cam(
        self, job_id: str, file: Path, *, class_name: str | int = "", layer: str = "", **options: Any
    ) -> dict[str, Any]:
        """Return where in an image a model finds what speaks for a class (Grad-CAM).

        Args:
            job_id: of a training.
            file: an image of this machine, which is sent.
            class_name: number or name of a class; empty for the likeliest.
            layer: with maps; empty for the one of the last convolution.
            options: ``checkpoint``, ``device``.

        Returns:
            ``class``, ``number``, ``probability``, ``layer``, ``layers``, ``heat`` (rows of numbers from 0 to 1),
            ``largest``, ``png`` and ``heat_png`` (base64), ``colours``.

        Raises:
            DataError: where the file cannot be read as an image.
            ZigguratError: where the model has no such class or layer, or cannot tell.
        """
        asked = {"grad_cam": True, "grad_cam_class": str(class_name), "grad_cam_layer": layer, **options}
        found = self.predict(job_id, [file], **asked)
        for failure in found["failures"]:
            raise error_of_family(failure, DataError.exit_code)
        return found["grad_cam"]

    def evaluate(self, job_id: str, *, split: str = "val", checkpoint: str | None = None) -> dict[str, Any]:
        """Evaluate on every sample of a split: ``scalars``, ``accuracy``, ``confusion``, ``classes``."""
        body = {"split": split, "checkpoint": checkpoint}
        return self._connection.ask("POST", f"/models/{job_id}/evaluate", json=body)

    def export(self, job_id: str, format: str, target: Path, **options: Any) -> Path:  # noqa: A002
        """Write a zip archive of a model in a format of other programs to ``target``."""
        body = {"format": format, **given(options)}
        return self._connection.save("POST", f"/models/{job_id}/export", target, json=body)

    # ---- exports

    def exports(self, job_id: str) -> list[dict[str, Any]]:
        """Return the exports that the studio keeps of a model, newest first."""
        return self._connection.ask("GET", f"/models/{job_id}/exports")

    def start_export(
        self,
        job_id: str,
        export_format: str,
        *,
        preprocessing: str = "inside",
        checkpoint: str = "",
    ) -> dict[str, Any]:
        """Ask for an export without waiting for it; its ``name`` is what ``exports`` and ``save_export`` have."""
        body = {"format": export_format, "preprocessing": preprocessing, "checkpoint": checkpoint}
        return self._connection.ask("POST", f"/models/{job_id}/exports", json=body)

    def save_export(self, job_id: str, name: str, target: Path) -> Path:
        """Write a zip archive of an export that is done to ``target``."""
        return self._connection.save("GET", f"/models/{job_id}/exports/{name}/download", target)

    def start_serving(self, job_id: str, name: str) -> dict[str, Any]:
        """Start a server of an ONNX export on the studio's machine; return how it is, as ``serving`` does."""
        return self._connection.ask("POST", f"/models/{job_id}/exports/{name}/server")

    def serving(self, job_id: str, name: str) -> dict[str, Any] | None:
        """Return ``state`` (``loading``, ``ready``, ``failed``), ``url``, ``requests``, …; None without a server."""
        return self._connection.ask("GET", f"/models/{job_id}/exports/{name}/server")

    def stop_serving(self, job_id: str, name: str) -> None:
        """Stop the server of an export."""
        self._connection.ask("DELETE", f"/models/{job_id}/exports/{name}/server")

    def operating_point(self, job_id: str) -> dict[str, Any] | None:
        """Return the thresholds that a model obeys: ``thresholds``, ``used``, ``problem``; None if none were chosen."""
        return self._connection.ask("GET", f"/models/{job_id}/operating-point")

    def set_operating_point(
        self,
        job_id: str,
        threshold: float | None = None,
        *,
        thresholds: Mapping[str, float] | None = None,
        evaluation: str = "",
    ) -> dict[str, Any]:
        """Choose the thresholds that predictions and exports of a model obey.

        Args:
            job_id: of a training.
            threshold: of every class that ``thresholds`` does not name, from 0 to 1.
            thresholds: name of a class → its threshold.
            evaluation: id of an evaluation on the validation split; empty for the newest.
        """
        body = given({"threshold": threshold, "thresholds": thresholds, "evaluation": evaluation or None})
        return self._connection.ask("PUT", f"/models/{job_id}/operating-point", json=body)

    def clear_operating_point(self, job_id: str) -> None:
        """Remove the operating point of a model."""
        self._connection.ask("DELETE", f"/models/{job_id}/operating-point")

    def pretrained(self) -> list[dict[str, Any]]:
        """Return the published models by name: ``name``, ``job``, ``checkpoint``, ``notes``, …"""
        return self._connection.ask("GET", "/pretrained")

    def publish(self, job_id: str, name: str, *, checkpoint: str = "", notes: str = "") -> dict[str, Any]:
        """Publish a checkpoint of a training that has ended, so that others start from it by that name."""
        body = {"job": job_id, "name": name, "checkpoint": checkpoint, "notes": notes}
        return self._connection.ask("POST", "/pretrained", json=body)

    def withdraw(self, name: str) -> None:
        """Take a published model out of the list; its job stays."""
        self._connection.ask("DELETE", f"/pretrained/{name}")


class EvaluationClient:
    """The evaluations of a studio.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(
        self, model_id: str, *, split: str = "val", checkpoint: str = "", after_training: bool = False
    ) -> dict[str, Any]:
        """Put the evaluation of a model on a split into the queue; return the job.

        With ``after_training``, it waits until the training is done.
        """
        body = {"split": split, "checkpoint": checkpoint, "after_training": after_training}
        return self._connection.ask("POST", f"/models/{model_id}/evaluations", json=body)

    def create_many(self, model_id: str, source: str, **options: Any) -> dict[str, Any]:
        """Put predicting for many images into the queue; return the job.

        Args:
            model_id: of a training.
            source: folder of images or text list, on the studio's machine; ``datasets.upload`` sends one there.
            options: ``checkpoint``, ``image_folder``, ``top`` (1 to 5), ``limit``.
        """
        return self._connection.ask("POST", f"/models/{model_id}/inferences", json={"source": source, **given(options)})

    def of_model(self, model_id: str) -> list[dict[str, Any]]:
        """Return the jobs that used a model, of both kinds, newest first."""
        return self._connection.ask("GET", f"/models/{model_id}/evaluations")["jobs"]

    def summary(self, job_id: str) -> dict[str, Any]:
        """Return what was found: ``count``, ``failures``, ``accuracy``, ``confusion``, ``per_class``, …"""
        return self._connection.ask("GET", f"/evaluations/{job_id}")

    def samples(self, job_id: str, **chosen: Any) -> dict[str, Any]:
        """Return ``total`` and ``samples`` of a filter.

        Args:
            job_id: of the evaluation.
            chosen: ``label``, ``predicted``, ``only`` (``wrong``, ``right``), ``order`` (``hardest``, ``surest_wrong``,
                ``row``, ``easiest``), ``min_score``, ``max_score``, ``offset``, ``limit``; ``choose``: a list of
                ``NAME=VALUE``, fields of the task, which the answer lists as ``fields``.
        """
        return self._connection.ask("GET", f"/evaluations/{job_id}/samples", params=given(chosen))

    def curves(self, job_id: str, class_index: int, *, points: int = 200) -> dict[str, Any]:
        """Return precision, recall, false and true positive rates of a class over its thresholds."""
        return self._connection.ask("GET", f"/evaluations/{job_id}/curves/{class_index}", params={"points": points})

    def at_threshold(self, job_id: str, threshold: float) -> dict[str, Any]:
        """Return the figures where samples below a score count as undecided."""
        return self._connection.ask("GET", f"/evaluations/{job_id}/at-threshold", params={"threshold": threshold})

    def top_of_class(self, job_id: str, class_index: int, limit: int = 10) -> list[dict[str, Any]]:
        """Return the samples with the highest score of a class, the most confident first."""
        return self._connection.ask("GET", f"/evaluations/{job_id}/top/{class_index}", params={"limit": limit})

    def differences(self, first_job_id: str, second_job_id: str, **chosen: Any) -> dict[str, Any]:
        """Return how a second evaluation differs: ``counts``, ``accuracy`` with its difference, ``samples`` of a list.

        Args:
            first_job_id: of an evaluation.
            second_job_id: of one of the same split, also of another version of the dataset.
            chosen: ``offset``, ``limit`` and ``which``: ``fixed``, ``broken``, ``still_wrong``; where the network does
                not classify ``better``, ``worse``, ``equal``, and also ``margin``; of two versions also
                ``label_changed``, ``only_first``, ``only_second``.
        """
        path = f"/evaluations/{first_job_id}/differences/{second_job_id}"
        return self._connection.ask("GET", path, params=given(chosen))

    def retrain(self, model_id: str, dataset: str, **options: Any) -> dict[str, Any]:
        """Repeat a training on another version of its dataset, with an evaluation behind it.

        Args:
            model_id: of the training.
            dataset: id of the version.
            options: ``split`` of the evaluations; ``evaluation``, with which the new one is compared.

        Returns:
            The jobs ``former``, ``model``, ``former_evaluation`` and ``evaluation``; ``is_new``, False where that
            training was there already. ``differences`` of both evaluations says what changed, once they are done.
        """
        body = {"dataset": dataset, **given(options)}
        return self._connection.ask("POST", f"/models/{model_id}/retrain", json=body)

    def picture(self, job_id: str, row: int, *, max_side_px: int = 1024) -> bytes:
        """Return an image that was predicted for as PNG."""
        return self._connection.content(f"/evaluations/{job_id}/pictures/{row}", params={"max_side_px": max_side_px})

    def table(self, job_id: str, target: Path) -> Path:
        """Write the predictions for all samples to ``target``: JSON where it ends in ``.json``, else CSV."""
        table_format = "json" if target.suffix == ".json" else "csv"
        return self._connection.save("GET", f"/evaluations/{job_id}/table", target, params={"format": table_format})
