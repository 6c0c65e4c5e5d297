"""Creation of jobs: validate specs, expand sweeps, create folders; of several jobs all are queued, or none."""

from __future__ import annotations

import itertools
import json
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import folder_mode, private_umask
from ziggurat.entities import Job, NewJob, ResourceRequest
from ziggurat.entities.backend_info import backend_infos
from ziggurat.entities.names import check_job_texts, check_name
from ziggurat.errors import JobError, NetworkCodeError, SpecError, StorageError, UsageError, ZigguratError
from ziggurat.layout import JobFolder, other_folders
from ziggurat.records.manifest import Manifest
from ziggurat.specs import (
    SPEC_KINDS,
    DatasetSpec,
    EmbedSpec,
    EvaluateSpec,
    FileNetwork,
    InferSpec,
    ProgramSpec,
    Spec,
    TrainSpec,
    assign,
    check_named_once,
    describe_fields,
    load_train_spec,
    parse_spec,
    present_names,
    present_path,
    save_spec,
)
from ziggurat.workspace.programs import write_program
from ziggurat.workspace.training_checks import DIGITS, check_rotation_needs_square
from ziggurat.zoo.backends import with_backend

__all__ = [
    "JobMaker",
    "JobRequest",
    "claim_folder",
    "create_job",
    "create_job_in",
    "dataset_needs",
    "expand_sweep",
    "make_jobs",
    "model_needs",
    "needs_of",
    "network_name",
    "new_job_ids",
    "new_job_names",
    "program_needs",
    "telling_name",
    "train_needs",
    "train_spec",
]

_LONGEST_NAME: Final = 120
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
        files: of a program, path → content; they are written into its folder.
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
    files: Mapping[str, bytes] = field(default_factory=dict)


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
        name = " ".join(part for part in (spec.name or telling_name(spec), suffix) if part)
        need = replace(request.needs or needs(spec), datasets=_datasets_of(spec))
        planned.append((spec.model_copy(update={"name": name}), need))
    made: list[Path] = []
    try:
        for spec, _ in planned:
            folder = create_job_in(spec, jobs_folder, new_job_ids(now), apart_from=other_folders(jobs_folder))
            made.append(folder.path)
            write_program(request.files, folder)
        # A sweep is named after its first job: no other one can be.
        sweep = group or (made[0].name if len(made) > 1 else "")
        asked = zip(planned, made, strict=True)
        new = [_new_job(request, spec, folder, owner, now, need, sweep) for (spec, need), folder in asked]
        return [submit(each) for each in new]
    except BaseException:
        # Ctrl-C as well: a folder without a job in the queue would be listed by the next reindex.
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise


@dataclass(frozen=True)
class JobMaker:
    """Makes a job of a request, and puts it into the queue.

    Args:
        folder: where each job gets a folder that is named after its id.
        submit: puts a ``NewJob`` into the queue and returns the ``Job``.
        clock: seconds since 1970.
        accelerators: returns how many the machines have for jobs, in use or not.
    """

    folder: Path
    submit: Callable[[NewJob], Job]
    clock: Callable[[], float]
    accelerators: Callable[[], int] = int

    def make(self, request: JobRequest, owner: str) -> Job:
        """Return the job of a request that sweeps nothing; see ``make_jobs``."""
        needs = partial(needs_of, accelerators=self.accelerators())
        (job,) = make_jobs(request, self.folder, self.submit, owner=owner, now=self.clock(), needs=needs)
        return job


def expand_sweep(request: JobRequest) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the spec of each job, with what its name gets, such as ``learning_rate=0.01``; one where nothing is swept.

    Raises:
        UsageError: where a field has no value, or there would be too many jobs.
    """
    for path, values in request.sweep.items():
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise UsageError(f"`{path}` has no list of values to sweep: {values!r}.")
    count = 1
    for values in request.sweep.values():
        count *= len(values)
    if count > _MOST_JOBS:
        raise UsageError(f"The sweep has {count} jobs; {_MOST_JOBS} is the most.", advice="Sweep fewer values.")
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


def train_spec(content: Mapping[str, Any]) -> TrainSpec:
    """Return the spec of a training.

    Args:
        content: decoded JSON; its kind and version may be left out.

    Raises:
        SpecError: where it is not valid, or of another kind.
    """
    spec = parse_spec({"kind": "train", "version": 1, **content}, source="the request")
    if not isinstance(spec, TrainSpec):
        raise SpecError(f"The spec is of kind {spec.kind}, and a training has one of kind train.")
    return spec


def train_needs(spec: Spec, *, accelerators: int = 0) -> ResourceRequest:
    """Return what a training needs.

    Args:
        spec: its devices say it, where it names some.
        accelerators: of all machines; where the spec leaves the choice open and there are any, it is one of them.
    """
    if not isinstance(spec, TrainSpec):
        raise SpecError(f"The spec is of kind {spec.kind}, and a training has one of kind train.")
    if spec.nodes > 1:
        slot = "device" if spec.gpus_per_node else "cpu"
        return ResourceRequest(devices=spec.gpus_per_node, slot=slot, nodes=spec.nodes)
    info = backend_infos().get(spec.backend)
    if accelerators and not spec.devices and info is not None and info.accelerators:
        # The spec leaves the choice open: one accelerator, whichever is free first.
        return ResourceRequest(devices=1, slot="device")
    indices = [device.rpartition(":")[2] for device in spec.devices if "gpu" in device.lower()]
    if not indices:
        return ResourceRequest(slot="cpu")
    numbers = tuple(sorted({int(index) for index in indices if index.isdigit()}))
    return ResourceRequest(devices=len(indices), device_indices=numbers, slot="device")


def _datasets_of(spec: Spec) -> tuple[str, ...]:
    """Return the hash of the dataset that a job reads; none if it is not finished yet, or there is no dataset."""
    try:
        if isinstance(spec, EvaluateSpec):
            spec = load_train_spec(JobFolder(Path(spec.model)).spec)
        if isinstance(spec, TrainSpec | EmbedSpec):
            source = spec.data.source if isinstance(spec, TrainSpec) else spec.dataset
            return (Manifest.load(Path(source)).id,)
    except (ZigguratError, OSError, ValueError):
        pass  # a preference alone: what is wrong with it is said when the job begins
    return ()


def dataset_needs(_spec: Spec) -> ResourceRequest:
    """Return what making a dataset needs."""
    return ResourceRequest(slot="dataset")


def model_needs(spec: EvaluateSpec | InferSpec | EmbedSpec, *, accelerators: int = 0) -> ResourceRequest:
    """Return what using a model needs: what its training needs on one node, as far as the spec of that can be read."""
    try:
        trained = load_train_spec(JobFolder(Path(spec.model)).spec)
    except SpecError:
        return ResourceRequest(slot="cpu")
    if trained.nodes > 1:
        return ResourceRequest(devices=1, slot="device") if trained.gpus_per_node else ResourceRequest(slot="cpu")
    return train_needs(trained, accelerators=accelerators)


def needs_of(spec: Spec, *, accelerators: int = 0) -> ResourceRequest:
    """Return what a job of any kind needs; ``accelerators`` as in ``train_needs``."""
    if isinstance(spec, EvaluateSpec | InferSpec) or (isinstance(spec, EmbedSpec) and spec.model):
        return model_needs(spec, accelerators=accelerators)
    if isinstance(spec, EmbedSpec):
        return ResourceRequest(slot="cpu")
    if isinstance(spec, ProgramSpec):
        return program_needs(spec)
    return dataset_needs(spec) if isinstance(spec, DatasetSpec) else train_needs(spec, accelerators=accelerators)


def program_needs(spec: ProgramSpec) -> ResourceRequest:
    """Return what a program needs: what its spec asks for."""
    slot = "device" if spec.gpus else "cpu"
    memory_bytes = round(spec.memory_gb * 1e9)
    return ResourceRequest(devices=spec.gpus, memory_bytes=memory_bytes, slot=slot, nodes=spec.nodes)


def network_name(spec: Spec) -> str:
    """Return the name of the network of a training, or of its file; the script of a program; else an empty text."""
    if isinstance(spec, ProgramSpec):
        return Path(spec.script).name
    if not isinstance(spec, TrainSpec):
        return ""
    network = spec.network
    return Path(network.path).name if isinstance(network, FileNetwork) else network.name


def telling_name(spec: Spec) -> str:
    """Return the default name of a job, such as ``resnet18 on clothing``."""
    if isinstance(spec, TrainSpec):
        network = network_name(spec).removesuffix(".py")
        return f"{network} on {_data_name(spec.data.source)}"[:_LONGEST_NAME]
    if isinstance(spec, DatasetSpec):
        place = re.split(r"[?#]", spec.source)[0] if "://" in spec.source else spec.source  # a query may hold a secret
        return (Path(place).name or spec.kind)[:_LONGEST_NAME]
    if isinstance(spec, ProgramSpec):
        return (Path(spec.script).stem or spec.kind)[:_LONGEST_NAME]
    return spec.kind


def _data_name(source: str) -> str:
    """Return the name of the dataset in a folder, else the name of the folder."""
    folder = JobFolder(Path(source))
    for file in (folder.record, folder.spec):
        try:
            name = json.loads(file.read_bytes()).get("name", "")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(name, str) and name.strip():
            return name.strip()
    return Path(source).name or source


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


def new_job_ids(now: float) -> Iterator[str]:
    """Yield ids for a new job, such as ``20261121-160512-9f3ac21e``; they sort by time.

    Args:
        now: seconds since 1970.
    """
    stem = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    while True:
        yield f"{stem}-{secrets.token_hex(4)}"


def new_job_names(name: str, now: float) -> Iterator[str]:
    """Yield names for the folder of a new job: its name and the time, such as ``lenet-20261121-160512``.

    Args:
        name: what people call the job.
        now: seconds since 1970.
    """
    word = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "job"
    stem = f"{word}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}"
    yield stem
    for number in itertools.count(2):
        yield f"{stem}-{number}"


def claim_folder(parent: Path, names: Iterable[str], *, apart_from: Iterable[Path] = ()) -> Path:
    """Make a folder that was not there, and return it; no other process can get the same one.

    Args:
        parent: where; it is made where it is not there.
        names: the first one that is free is taken.
        apart_from: further folders in which the name must be free, such as those of datasets for a training.

    Raises:
        StorageError: where the folder cannot be made.
    """
    try:
        parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        parent.mkdir(exist_ok=True, mode=folder_mode(parent.parent))
        for name in names:
            folder = parent / name
            try:
                folder.mkdir(mode=folder_mode(parent))
            except FileExistsError:
                continue
            # After the folder is made: of two processes that take one name in two places, at least one sees the other.
            if any((place / name).exists() for place in apart_from):
                folder.rmdir()
                continue
            return folder
    except OSError as error:
        raise _not_made(parent, error) from error
    raise StorageError(f"No name for a new job is free in {parent}.", advice="Try again.")


def create_job(spec: Spec, path: Path) -> JobFolder:
    """Write the spec into a folder that a person chose; a network file is taken in: later edits do not change the job.

    Raises:
        JobError: where a job is there already.
        ConfigurationError: where its name has control characters.
        SpecError: where images that are no squares would be turned by quarters.
        NetworkCodeError: where the network file cannot be read.
        StorageError: where the folder cannot be made.
    """
    folder = JobFolder(path)
    if folder.spec.exists():
        raise JobError(
            f"{path} already contains a job; a new one must get a folder of its own.",
            advice=f"Go on with that one by: ziggurat resume {path}. Or choose another folder.",
        )
    complete = _complete(spec)
    try:
        path.mkdir(parents=True, exist_ok=True, mode=folder_mode(path.parent))
    except OSError as error:
        raise _not_made(path, error) from error
    _write(complete, folder)
    return folder


def create_job_in(spec: Spec, parent: Path, names: Iterable[str], *, apart_from: Iterable[Path] = ()) -> JobFolder:
    """Make a new folder by one of the names, and write the spec; see ``create_job`` and ``claim_folder``."""
    complete = _complete(spec)  # first: what cannot be made leaves no folder
    folder = JobFolder(claim_folder(parent, names, apart_from=apart_from))
    try:
        _write(complete, folder)
    except BaseException:
        folder.path.rmdir()
        raise
    return folder


def _write(spec: Spec, folder: JobFolder) -> None:
    save_spec(spec, folder.spec)
    folder.spec.chmod(0o666 & ~private_umask(folder.path))


def _complete(spec: Spec) -> Spec:
    check_name(spec.name, "The name of a job")
    if not isinstance(spec, TrainSpec):
        return spec
    check_rotation_needs_square(spec)
    return _with_absolute_data(_with_network_text(spec))


def _with_absolute_data(spec: TrainSpec) -> TrainSpec:
    """Return a spec whose data is found from any folder: evaluations and exports of the job start in others."""
    source = spec.data.source
    if source == DIGITS or not Path(source).exists():
        return spec
    return spec.model_copy(update={"data": spec.data.model_copy(update={"source": str(Path(source).absolute())})})


def _not_made(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"The job folder {path} cannot be made: {error.strerror} (errno {error.errno}).",
        advice="Choose another folder, or mend the rights of this one.",
    )


def _with_network_text(spec: TrainSpec) -> TrainSpec:
    network = spec.network
    if not isinstance(network, FileNetwork) or network.text is not None:
        return spec
    path = Path(network.path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkCodeError(
            f"The network file {path} cannot be read as Python text: {str(error).rstrip('.')}.",
            advice="Check the path; a relative one starts at the current folder.",
            details={"file": str(path)},
        ) from None
    taken = network.model_copy(update={"path": str(path.resolve()), "text": text})
    return spec.model_copy(update={"network": taken})
