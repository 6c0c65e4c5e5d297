"""DIGITS's forms: parsing, fields with their defaults and limits, and conversion to specs and training requests."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from ziggurat.entities import Job
from ziggurat.entities.backend_info import DEFAULT_BACKEND, backend_infos
from ziggurat.errors import JobError, MissingJobError, UsageError
from ziggurat.specs import comma_question
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.images import PICTURE_BYTES
from ziggurat.workspace.studio.paths import Paths

__all__ = [
    "Fields",
    "Form",
    "FormError",
    "Posted",
    "checkpoint_of_epoch",
    "dataset_spec",
    "generic_dataset_spec",
    "model_request",
]


class Form:
    """A form.

    Args:
        values: field → last text, of the address and of the body, which counts more.
        lists: field → all texts.
        files: field → file.
    """

    def __init__(self, values: dict[str, str], lists: dict[str, list[str]], files: dict[str, UploadFile]) -> None:
        self.values = values
        self.lists = lists
        self.files = files

    def ids(self) -> list[str]:
        """Return the ids of jobs that it names."""
        return self.lists.get("job_ids[]") or self.lists.get("job_ids") or []

    def content(self, name: str) -> bytes | None:
        """Return the content of a file, or None where it was not sent."""
        file = self.files.get(name)
        return None if file is None else file.file.read(PICTURE_BYTES)


async def _form(request: Request) -> AsyncIterator[Form]:
    lists: dict[str, list[str]] = {}
    files: dict[str, UploadFile] = {}
    async with request.form() as sent:
        for name, value in [*request.query_params.multi_items(), *sent.multi_items()]:
            if isinstance(value, UploadFile):
                files[name] = value
            else:
                lists.setdefault(name, []).append(value)
        yield Form({name: values[-1] for name, values in lists.items()}, lists, files)


Posted = Annotated[Form, Depends(_form)]
"""The form of a request."""


_Value = TypeVar("_Value")
_OFF = ("", "0", "false", "n", "no", "off", "none")


class FormError(Exception):
    """A form is not valid.

    Args:
        errors: field → messages.
    """

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        self.errors = {name: list(messages) for name, messages in errors.items()}
        super().__init__(json.dumps(self.errors))


class Fields:
    """The fields of a form; ``check`` raises when all were read.

    Args:
        values: field → text, as it was sent.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {name: value.strip() for name, value in values.items()}
        self.errors: dict[str, list[str]] = {}

    def text(self, name: str, default: str = "", *, required: bool = False) -> str:
        """Return a text; the default where it is empty."""
        value = self._values.get(name) or default
        if required and not value:
            self.refuse(name, "This field is required.")
        return value

    def choice(self, name: str, default: str, known: Sequence[str]) -> str:
        """Return one of the known texts, whatever its case."""
        value = self.text(name, default)
        found = next((each for each in known if each.lower() == value.lower()), None)
        if found is None:
            self.refuse(name, f"Not a valid choice: {value}. Known: {', '.join(known)}.")
        return found or default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether a box is ticked; one that was not sent has the default."""
        return default if name not in self._values else self._values[name].lower() not in _OFF

    def whole(self, name: str, default: int, least: int = 0, most: int = 2**31) -> int:
        """Return a whole number."""
        return self._number(name, self._values.get(name, ""), default, (least, most), int)

    def real(self, name: str, default: float, least: float = 0.0, most: float = float("inf")) -> float:
        """Return a number."""
        return self._number(name, self._values.get(name, ""), default, (least, most), float)

    def maybe_whole(self, name: str, least: int = 1) -> int | None:
        """Return a whole number, or None where the field is empty."""
        return self.whole(name, least, least) if self._values.get(name) else None

    def wholes(self, name: str, least: int = 1) -> list[int]:
        """Return the numbers of a list such as ``8, 10`` or ``[8, 10]``; empty where the field is."""
        return [self._number(name, part, least, (least, 2**31), int) for part in self._parts(name)]

    def reals(self, name: str, default: float) -> list[float]:
        """Return the numbers of a list; the default alone where the field is empty."""
        question = comma_question(self._values.get(name, ""), "number")
        if question:
            self.refuse(name, question)
            return [default]
        parts = self._parts(name)
        return [self._number(name, part, default, (0.0, float("inf")), float) for part in parts] or [default]

    def refuse(self, name: str, message: str) -> None:
        """Note what is wrong with a field."""
        self.errors.setdefault(name, []).append(message)

    def check(self) -> None:
        """Raise where something is wrong.

        Raises:
            FormError: with all that is.
        """
        if self.errors:
            raise FormError(self.errors)

    def _parts(self, name: str) -> list[str]:
        text = self._values.get(name, "").strip("[]() ")
        return [part.strip() for part in text.split(",") if part.strip()]

    def _number(
        self, name: str, text: str, default: _Value, limits: tuple[Any, Any], kind: Callable[[str], _Value]
    ) -> _Value:
        if not text:
            return default
        try:
            value = kind(text)
        except ValueError:
            word = "integer" if kind is int else "float"
            question = comma_question(text, "integer" if kind is int else "number")
            self.refuse(name, f"Not a valid {word} value. {question}".strip())
            return default
        if not limits[0] <= value <= limits[1]:  # also refuses NaN
            self.refuse(name, f"Number must be from {limits[0]} to {limits[1]}.")
            return default
        return value


_ENCODINGS = {"png": "png", "jpg": "jpeg", "none": "raw"}


def dataset_spec(fields: Fields, paths: Paths) -> dict[str, Any]:
    """Return the spec of a classification dataset; what is wrong is noted in the fields.

    Args:
        fields: of the form; the methods ``folder`` and ``textfile`` (with files of the server) are known.
        paths: folders of the server that a form may name.
    """
    spec: dict[str, Any] = {"kind": "dataset", "version": 1, "name": fields.text("dataset_name", required=True)}
    method = fields.choice("method", "folder", ("folder", "textfile"))
    spec |= _pictures(fields)
    spec |= _folder(fields, paths) if method == "folder" else _textfile(fields, paths)
    return spec


def _pictures(fields: Fields) -> dict[str, Any]:
    if fields.choice("backend", "lmdb", ("lmdb", "hdf5")) == "hdf5":
        fields.refuse("backend", "Records are stored as `lmdb`; export the dataset as DIGITS's HDF5 when it is made.")
    encoding = fields.choice("encoding", "png", tuple(_ENCODINGS))
    if fields.choice("compression", "none", ("none", "gzip")) == "gzip":
        fields.refuse("compression", "Records are stored without compression here; leave it `none`.")
    return {
        "size": [fields.whole("resize_height", 256, 1, 65536), fields.whole("resize_width", 256, 1, 65536)],
        "resize_mode": fields.choice("resize_mode", "squash", ("squash", "crop", "fill", "half_crop")),
        "channels": 1 if fields.choice("resize_channels", "3", ("1", "3")) == "1" else 3,
        "encoding": _ENCODINGS[encoding],
        "store": "lmdb",
    }


def _folder(fields: Fields, paths: Paths) -> dict[str, Any]:
    for name in ("has_val_folder", "has_test_folder"):
        if fields.flag(name):
            fields.refuse(name, "Put the folders `train`, `val` and `test` side by side, and name the one above them.")
    val, test = fields.real("folder_pct_val", 25.0, 0, 100), fields.real("folder_pct_test", 0.0, 0, 100)
    if val + test >= 100:
        fields.refuse("folder_pct_test", "Validation and test together must leave something for training.")
        val = test = 0.0
    least = fields.whole("folder_train_min_per_class", 2, 1)
    most = fields.maybe_whole("folder_train_max_per_class")
    if most is not None and most < least:
        fields.refuse("folder_train_max_per_class", "Must not be less than the minimum per class.")
    return {
        "source": _place(fields, "folder_train", paths),
        "format": "class_folders",
        "options": {"min_per_class": 1},
        "splits": {
            "method": "share",
            "val_share": val / 100,
            "test_share": test / 100,
            "min_per_class": least,
            "max_per_class": most if most is None or most >= least else None,
        },
    }


def _textfile(fields: Fields, paths: Paths) -> dict[str, Any]:
    if not fields.flag("textfile_use_local_files"):
        fields.refuse("textfile_train_images", "Send the lists, or name files of the server.")
        return {"source": ""}
    source = _place(fields, "textfile_local_train_images", paths)
    options = {"train": source, "labels": _place(fields, "textfile_local_labels_file", paths)}
    for split, default in (("val", True), ("test", False)):
        if fields.flag(f"textfile_use_{split}", default):
            options[split] = _place(fields, f"textfile_local_{split}_images", paths)
    folder = fields.text("textfile_train_folder")
    if folder:
        options["folder"] = _place(fields, "textfile_train_folder", paths)
    return {
        "source": source.rpartition("/")[0],
        "format": "text_list",
        "options": {**options, "kind": "image-classification"},
        "splits": {"method": "source", "val_share": 0.0},
    }


def generic_dataset_spec(fields: Fields, paths: Paths) -> dict[str, Any]:
    """Return the spec of a dataset of LMDB stores that are there; what is wrong is noted in the fields.

    Args:
        fields: of the form; the method ``prebuilt`` is known.
        paths: folders of the server that a form may name.
    """
    fields.choice("method", "prebuilt", ("prebuilt",))
    if fields.text("prebuilt_mean_file"):
        fields.refuse("prebuilt_mean_file", "A training computes the mean of its samples; leave it empty.")
    stores = {"train_images": _place(fields, "prebuilt_train_images", paths)}
    for name in ("train_labels", "val_images", "val_labels"):
        if fields.text(f"prebuilt_{name}"):
            stores[name] = _place(fields, f"prebuilt_{name}", paths)
    folders = [PurePosixPath(place).parent for place in stores.values() if place]
    source = os.path.commonpath(folders) if folders else ""
    options = {name: str(PurePosixPath(place).relative_to(source)) for name, place in stores.items() if place}
    return {
        "kind": "dataset",
        "version": 1,
        "name": fields.text("dataset_name", required=True),
        "source": source,
        "format": "digits_lmdb",
        "options": {**options, "force_same_shape": fields.flag("force_same_shape", True)},
        "splits": {"method": "source", "val_share": 0.0},
    }


def _place(fields: Fields, name: str, paths: Paths) -> str:
    text = fields.text(name, required=True)
    if not text:
        return ""
    try:
        return str(paths.allowed(text))
    except UsageError as error:
        fields.refuse(name, str(error))
        return ""


_OPTIMIZERS: Final[Mapping[str, Any]] = {
    "SGD": "sgd",
    "MOMENTUM": "momentum",
    "NESTEROV": {"name": "momentum", "nesterov": True},
    "ADAM": "adam",
    "ADADELTA": "adadelta",
    "ADAGRAD": "adagrad",
    "ADAGRADDA": "adagrad_da",
    "FTRL": "ftrl",
    "RMSPROP": "rmsprop",
}
_FLIPS: Final = ("none", "fliplr", "flipud", "fliplrud")
_TURNS: Final = ("none", "rot90", "rot180", "rotall")
_USUAL_BATCH: Final = 16


def model_request(fields: Fields, studio: Studio) -> JobRequest:
    """Return the request of a training, or of a sweep; what is wrong is noted in the fields.

    Args:
        fields: of the form.
        studio: which knows datasets and earlier models.
    """
    dataset = _job(fields, studio, "dataset", "dataset")
    framework = fields.choice("framework", DEFAULT_BACKEND, tuple(backend_infos()))
    network, model, checkpoint = _network(fields, studio)
    rates, sizes = fields.reals("learning_rate", 0.01), fields.wholes("batch_size") or [_USUAL_BATCH]
    spec = {
        "kind": "train",
        "version": 1,
        "name": fields.text("model_name", required=True),
        "backend": framework,
        "network": network,
        "learning_rate": rates[0],
        "batch_size": sizes[0],
        **_solver(fields),
        "schedule": _schedule(fields),
        "preprocessing": _preprocessing(fields, dataset),
        "augmentation": _augmentation(fields),
        "devices": _devices(fields),
    }
    swept = {"learning_rate": rates, "batch_size": sizes}
    return JobRequest(
        spec=spec,
        sweep={name: values for name, values in swept.items() if len(values) > 1},
        dataset=dataset.id if dataset is not None else "",
        model=model,
        checkpoint=checkpoint,
        project=fields.text("group_name"),
    )


def checkpoint_of_epoch(studio: Studio, job_id: str, epoch: str) -> str:
    """Return the name of a job's checkpoint of an epoch; empty where no epoch is asked for.

    Raises:
        JobError: where there is none of that epoch.
    """
    if epoch in ("", "None", "0"):
        return ""
    try:
        wanted = float(epoch)
    except ValueError:
        wanted = float("nan")
    found = [each.name for each in studio.jobs.checkpoints(job_id) if each.epoch == wanted]
    if not found:
        raise MissingJobError("There is no such checkpoint.", received=f"epoch {epoch[:40]} of {job_id}")
    return found[-1]


def _solver(fields: Fields) -> dict[str, Any]:
    seed = fields.maybe_whole("random_seed", 0)
    return {
        "epochs": fields.whole("train_epochs", 30, 1),
        # DIGITS kept a snapshot at each interval and no other.
        "checkpoints": {
            "every_epochs": fields.real("snapshot_interval", 1.0),
            "keep_last": None,
            "keep_best": None,
        },
        "validation": {"every_epochs": fields.real("val_interval", 1.0)},
        "seed": seed or 0,
        "shuffle": fields.flag("shuffle", True),
        "gradient_accumulation_steps": fields.maybe_whole("batch_accumulation") or 1,
        "optimizer": _OPTIMIZERS[fields.choice("solver_type", "SGD", tuple(_OPTIMIZERS))],
    }


def _schedule(fields: Fields) -> dict[str, Any]:
    policies: dict[str, Callable[[], dict[str, Any]]] = {
        "fixed": dict,
        "step": lambda: {
            "step_percent": fields.real("lr_step_size", 33.0, 0.01, 100),
            "gamma": fields.real("lr_step_gamma", 0.1),
        },
        "multistep": lambda: {
            "at_percent": fields.text("lr_multistep_values", "50,85"),
            "gamma": fields.real("lr_multistep_gamma", 0.5),
        },
        "exp": lambda: {"gamma": fields.real("lr_exp_gamma", 0.95, 0, 1)},
        "inv": lambda: {"gamma": fields.real("lr_inv_gamma", 0.1), "power": fields.real("lr_inv_power", 0.5)},
        "poly": lambda: {"power": fields.real("lr_poly_power", 3.0)},
        "sigmoid": lambda: {
            "step_percent": fields.real("lr_sigmoid_step", 50.0, 0, 100),
            "gamma": fields.real("lr_sigmoid_gamma", 0.1),
        },
    }
    policy = fields.choice("lr_policy", "step", tuple(policies))
    return {"policy": policy, **policies[policy]()}


def _preprocessing(fields: Fields, dataset: Job | None) -> dict[str, Any]:
    spec = dataset.spec if dataset is not None else {}
    return {
        "size": spec.get("size"),
        "channels": spec.get("channels"),
        "resize_mode": spec.get("resize_mode", "squash"),
        "crop": fields.maybe_whole("crop_size"),
        "mean": fields.choice("use_mean", "image", ("none", "image", "pixel")),
        "whitening": fields.flag("aug_whitening"),
    }


def _augmentation(fields: Fields) -> dict[str, Any]:
    values: dict[str, Any] = {
        "flip": fields.choice("aug_flip", "none", _FLIPS),
        "quad_rotation": fields.choice("aug_quad_rot", "none", _TURNS),
        "rotation_deg": fields.real("aug_rot", 0.0, 0, 180),
        "scale": fields.real("aug_scale", 0.0, 0, 1),
        "noise": fields.real("aug_noise", 0.0, 0, 1),
        "contrast": fields.real("aug_contrast", 0.0, 0, 5),
    }
    if fields.flag("aug_hsv_use"):
        values["hue"] = fields.real("aug_hsv_h", 0.02, 0, 0.5)
        values["saturation"] = fields.real("aug_hsv_s", 0.04, 0, 0.5)
        values["value"] = fields.real("aug_hsv_v", 0.06, 0, 0.5)
    return values


def _devices(fields: Fields) -> list[str]:
    """Return the devices that were chosen; none leaves it to the backend, as DIGITS does without an accelerator."""
    chosen = fields.text("select_gpus_list") or fields.text("select_gpu")
    numbers = [part.strip() for part in chosen.split(",") if part.strip() not in ("", "next")]
    if not all(number.isdigit() for number in numbers):
        fields.refuse("select_gpus_list", "Devices are named by their numbers, with commas between.")
        return []
    return [f"gpu:{number}" for number in numbers]


def _network(fields: Fields, studio: Studio) -> tuple[Any, str, str]:
    """Return the network, the job whose weights it starts from, and the checkpoint; empty for fresh weights."""
    method = fields.choice("method", "standard", ("standard", "previous", "custom", "pretrained"))
    if method == "standard":
        return fields.text("standard_networks", required=True) or "none", "", ""
    if method == "custom":
        text = fields.text("custom_network", required=True)
        if fields.text("custom_network_snapshot"):
            fields.refuse("custom_network_snapshot", "Name the model by its id: method `previous`.")
        return {"source": "file", "path": "network.py", "text": text}, "", ""
    if method == "pretrained":
        fields.refuse("method", "Models that were trained elsewhere are not used here; `previous` uses those of here.")
        return "none", "", ""
    return _previous(fields, studio)


def _previous(fields: Fields, studio: Studio) -> tuple[Any, str, str]:
    job = _job(fields, studio, "previous_networks", "train")
    if job is None:
        return "none", "", ""
    network, epoch = job.spec["network"], fields.text(f"{job.id}-snapshot")
    try:
        checkpoint = checkpoint_of_epoch(studio, job.id, epoch)
    except JobError as error:
        fields.refuse(f"{job.id}-snapshot", str(error))
        return network, "", ""
    return network, job.id if checkpoint else "", checkpoint


def _job(fields: Fields, studio: Studio, name: str, kind: str) -> Job | None:
    job_id = fields.text(name, required=True)
    try:
        job = studio.jobs.get(job_id) if job_id else None
    except JobError as error:
        fields.refuse(name, str(error))
        return None
    if job is not None and job.kind != kind:
        fields.refuse(name, f"Not a valid choice: {job_id}, of kind {job.kind}.")
        return None
    return job
