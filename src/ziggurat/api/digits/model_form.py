"""Conversion of DIGITS's form for a classification model to a training request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ziggurat.api.digits.fields import Fields
from ziggurat.entities import Job
from ziggurat.entities.backend_info import DEFAULT_BACKEND, backend_infos
from ziggurat.errors import JobError, MissingJobError
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio

__all__ = ["checkpoint_of_epoch", "model_request"]

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
