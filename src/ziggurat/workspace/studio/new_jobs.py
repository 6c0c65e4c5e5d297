"""Creation of jobs from a request: validate specs, expand sweeps, create folders; all jobs are queued, or none."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job, NewJob, ResourceRequest
from ziggurat.entities.backend_info import backend_infos
from ziggurat.entities.names import check_job_texts
from ziggurat.errors import SpecError, UsageError
from ziggurat.layout import JobFolder, other_folders
from ziggurat.specs import (
    SPEC_KINDS,
    DatasetSpec,
    EvaluateSpec,
    FileNetwork,
    InferSpec,
    Spec,
    TrainSpec,
    assign,
    check_named_once,
    describe_fields,
    load_train_spec,
    parse_spec,
    present_names,
    present_path,
)
from ziggurat.workspace.new_job import create_job_in, new_job_ids
from ziggurat.zoo.backends import with_backend

__all__ = [
    "JobRequest",
    "dataset_needs",
    "expand_sweep",
    "make_jobs",
    "model_needs",
    "needs_of",
    "network_name",
    "train_needs",
    "train_spec",
]

_MOST_JOBS: Final = 200
"""A sweep of more jobs is taken for a mistake."""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What is asked of the studio.

    Args:
        spec: decoded JSON of a spec of any version.
        sweep: path of a field → values; one job for each combination.
        dataset: id of the dataset that it trains on; it waits until that is done.
        model: id of the job whose trained weights it starts from.
        checkpoint: of that job: its name, a given name, ``best`` or ``latest``.
        project: name of a project.
        tags: words.
        notes: free text.
        priority: higher is sooner.
        needs: of the machine; found from the spec where it is not given.
        parent: id of the job that it is a clone of.
    """

    spec: Mapping[str, Any]
    sweep: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    dataset: str = ""
    model: str = ""
    checkpoint: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    notes: str = ""
    priority: int = 0
    needs: ResourceRequest | None = None
    parent: str = ""


def expand_sweep(request: JobRequest) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the spec of each job, with what its name gets, such as ``learning_rate=0.01``; one where nothing is swept.

    Raises:
        UsageError: where a field has no value, or there would be too many jobs.
    """
    for path, values in request.sweep.items():
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise UsageError("A sweep gives each field a list of values.", received=f"`{path}`: {values!r}")
    count = 1
    for values in request.sweep.values():
        count *= len(values)
    if count > _MOST_JOBS:
        raise UsageError(f"A sweep has at most {_MOST_JOBS} jobs.", received=str(count), advice="Sweep fewer values.")
    # A kind that there is not is refused when the spec is read.
    model = SPEC_KINDS.get(str(request.spec.get("kind", "train")), TrainSpec)
    fields = {field.path: field for field in describe_fields(model)}
    check_named_once(request.sweep)
    paths = [present_path(path) for path in request.sweep]
    for chosen in itertools.product(*request.sweep.values()):
        content = _deep_copy(present_names(request.spec) if paths else request.spec)
        for path, value in zip(paths, chosen, strict=True):
            assign(content, path, value, fields)
        yield content, " ".join(f"{path}={value}" for path, value in zip(paths, chosen, strict=True))


def make_jobs(
    request: JobRequest,
    jobs_folder: Path,
    submit: Callable[[NewJob], Job],
    *,
    owner: str,
    now: float,
    needs: Callable[[Spec], ResourceRequest],
    group: str = "",
) -> list[Job]:
    """Check every spec first, then make the folders and put the jobs into the queue; all of them, or none.

    Args:
        request: what is asked, its spec complete with the places of dataset and weights.
        jobs_folder: where each job gets a folder that is named after its id.
        submit: puts a ``NewJob`` into the queue and returns the ``Job``.
        owner: name of who asks.
        now: seconds since 1970.
        needs: finds a spec's ``ResourceRequest``.
        group: id of the sweep; a new one where there are several jobs.

    Raises:
        SpecError: where a spec is not valid; nothing was made.
        StorageError: where a folder cannot be made; nothing stays.
    """
    check_job_texts(project=request.project, tags=request.tags, notes=request.notes)
    planned: list[tuple[Spec, ResourceRequest]] = []
    for content, suffix in expand_sweep(request):
        spec = parse_spec(content, source="the request")
        spec = with_backend(spec) if isinstance(spec, TrainSpec) else spec
        name = " ".join(part for part in (spec.name or spec.kind, suffix) if part)
        planned.append((spec.model_copy(update={"name": name}), request.needs or needs(spec)))
    made: list[Path] = []
    try:
        for spec, _ in planned:
            made.append(create_job_in(spec, jobs_folder, new_job_ids(now), apart_from=other_folders(jobs_folder)).path)
        # A sweep is named after its first job: no other one can be.
        sweep = group or (made[0].name if len(made) > 1 else "")
        asked = zip(planned, made, strict=True)
        new = [_new_job(request, spec, folder, owner, now, need, sweep) for (spec, need), folder in asked]
        return [submit(each) for each in new]
    except BaseException:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def train_spec(content: Mapping[str, Any]) -> TrainSpec:
    """Return the spec of a training.

    Args:
        content: decoded JSON; its kind and version may be left out.

    Raises:
        SpecError: where it is not valid, or of another kind.
    """
    spec = parse_spec({"kind": "train", "version": 1, **content}, source="the request")
    if not isinstance(spec, TrainSpec):
        raise SpecError("A training has a spec of kind train.", received=spec.kind)
    return spec


def train_needs(spec: Spec, *, accelerators: int = 0) -> ResourceRequest:
    """Return what a training needs.

    Args:
        spec: its devices say it, where it names some.
        accelerators: of the machine; where the spec leaves the choice open and there are any, it is one of them.
    """
    if not isinstance(spec, TrainSpec):
        raise SpecError("A training has a spec of kind train.", received=spec.kind)
    info = backend_infos().get(spec.backend)
    if accelerators and not spec.devices and info is not None and info.accelerators:
        return ResourceRequest(devices=1, slot="device")
    indices = [device.rpartition(":")[2] for device in spec.devices if "gpu" in device.lower()]
    if not indices:
        return ResourceRequest(slot="cpu")
    numbers = tuple(sorted({int(index) for index in indices if index.isdigit()}))
    return ResourceRequest(devices=len(indices), device_indices=numbers, slot="device")


def dataset_needs(_spec: Spec) -> ResourceRequest:
    """Return what making a dataset needs."""
    return ResourceRequest(slot="dataset")


def model_needs(spec: EvaluateSpec | InferSpec) -> ResourceRequest:
    """Return what using a model needs: what its training needs, as far as the spec of that can be read."""
    try:
        return train_needs(load_train_spec(JobFolder(Path(spec.model)).spec))
    except SpecError:
        return ResourceRequest(slot="cpu")


def needs_of(spec: Spec) -> ResourceRequest:
    """Return what a job of any kind needs."""
    if isinstance(spec, EvaluateSpec | InferSpec):
        return model_needs(spec)
    return dataset_needs(spec) if isinstance(spec, DatasetSpec) else train_needs(spec)


def network_name(spec: Spec) -> str:
    """Return the name of the network of a training, or of its file; empty for other kinds."""
    if not isinstance(spec, TrainSpec):
        return ""
    network = spec.network
    return Path(network.path).name if isinstance(network, FileNetwork) else network.name


def _new_job(
    request: JobRequest, spec: Spec, folder: Path, owner: str, now: float, needs: ResourceRequest, sweep: str
) -> NewJob:
    return NewJob(
        id=folder.name,
        kind=spec.kind,
        name=spec.name,
        folder=str(folder),
        spec=spec.model_dump(mode="json"),
        project=request.project,
        owner=owner,
        group=sweep,
        parent=request.parent,
        depends_on=tuple(each for each in (request.dataset, request.model) if each),
        needs=needs,
        priority=request.priority,
        framework=spec.backend if isinstance(spec, TrainSpec) else "",
        network=network_name(spec),
        created=now,
        tags=request.tags,
        notes=request.notes,
    )


def _deep_copy(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _deep_copy(value) for name, value in content.items()}
    return [_deep_copy(value) for value in content] if isinstance(content, list) else content
