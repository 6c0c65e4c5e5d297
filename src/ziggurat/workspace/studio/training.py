"""Use cases of a training before it is queued: previews, pre-flight check, the same job as text, creation."""

from __future__ import annotations

import dataclasses
import functools
import json
import pprint
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from ziggurat.entities import Job, JobFilter
from ziggurat.entities.pretrained_weights import weights_name
from ziggurat.errors import JobError, SpecError, UsageError, ZigguratError
from ziggurat.jobs import Supervisor
from ziggurat.layout import JOBS_FOLDER, JobFolder
from ziggurat.specs import FieldDescription, TrainSpec, ZooNetwork, describe_fields, spec_from_flags, spec_json
from ziggurat.workspace.checkpoints import checkpoint_details
from ziggurat.workspace.new_jobs import JobRequest, expand_sweep, make_jobs, train_needs, train_spec
from ziggurat.workspace.previews import draft_of_training
from ziggurat.workspace.recipes import Recipe, recommend
from ziggurat.workspace.studio.batch_trials import TEST_BATCH_LIMIT_S, StudioTestBatches
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.machine import Machine
from ziggurat.workspace.studio.measurements import Measurements
from ziggurat.workspace.studio.preflight import Preflight
from ziggurat.workspace.studio.recipes import CardFigures, NetworkCard, better_run, network_cards
from ziggurat.workspace.tasks import Tasks
from ziggurat.workspace.training_checks import DIGITS, KnownData, Pending, known_data, obstacle_of
from ziggurat.workspace.training_estimates import with_times
from ziggurat.workspace.weights import Weights
from ziggurat.zoo.backends import with_backend

__all__ = ["Training", "command_line", "short_content", "spec_document"]

_EARLIER_JOBS: Final = 200
"""So many of the newest trainings are looked at to tell how long one takes."""

_ENDED: Final = ("done", "failed")
"""States of a job that will bring nothing further."""

_PREVIEW_LIMIT_S: Final = 120.0
_MOST_IMAGES: Final = 100
_COLUMNS: Final = 100


class Training:
    """Trainings that are asked for.

    Args:
        jobs: of every kind.
        supervisor: takes new jobs.
        tasks: short processes around a training.
        clock: seconds since 1970.
        machine: what it has.
        kept: what descriptions and test batches found.
        weights: pretrained weights of the workspace.
    """

    def __init__(
        self,
        jobs: Jobs,
        supervisor: Supervisor,
        tasks: Tasks,
        clock: Callable[[], float],
        machine: Machine,
        kept: Measurements,
        weights: Weights,
    ) -> None:
        self._jobs = jobs
        self._supervisor = supervisor
        self._tasks = tasks
        self._folder = weights.folder.path.parent / JOBS_FOLDER  # where each training gets its folder
        self._clock = clock
        self._machine = machine
        self._kept = kept
        self._weights_folder = weights
        self._preflight = Preflight(tasks, machine, supervisor.accelerators, self._finished, kept)
        self.test_batches = StudioTestBatches(tasks, machine, kept)

    # ---- before one is started

    def augmented(
        self,
        dataset_id: str,
        spec: Mapping[str, Any],
        *,
        row: int | None = None,
        split: str = "train",
        count: int = 12,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Show images of a dataset exactly as the network will get them, before a mean is taken off.

        Args:
            dataset_id: of a dataset that is done.
            spec: of the training; network and data may still be missing.
            row: of the split; None for several, in the order of the first epoch.
            split: ``val`` and ``test`` are never varied.
            count: how often the one row is shown, or how many rows are.
            seed: of the training; the same seed gives the same bytes.

        Returns:
            ``seed``, ``sentence``, ``second`` (what the second images are, empty for none) and ``pictures``: ``row``,
            ``label``, ``label_name``, ``original_png`` and ``augmented_png`` (one for each epoch from the first on),
            ``mask_png`` and ``second_png`` (as many, or none), all PNG in base64; ``mixed``: for each augmented image
            its classes (``label``, ``label_name``, ``share``), or none.

        Raises:
            JobError: where the dataset is not done.
            SpecError: where the spec is not valid; it names the field.
            DataError: where networks are not trained on such data.
        """
        if not 1 <= count <= _MOST_IMAGES:
            raise UsageError(f"{count} images are asked for; from 1 to {_MOST_IMAGES} are shown.")
        if not 0 <= seed < 2**32:
            raise UsageError(f"The seed {seed} is not a whole number from 0.")
        dataset = self._jobs.get(dataset_id)
        if dataset.kind != "dataset" or dataset.state != "done":
            received = f"{dataset_id}, of kind {dataset.kind}, {dataset.state}"
            raise JobError("Images are shown of a dataset that is done.", received=received)
        draft = draft_of_training(spec).model_dump(mode="json")
        draft["data"]["source"] = dataset.folder
        found = self._tasks.augmented(
            draft, row=row, split=split, count=count, seed=seed, time_limit_s=_PREVIEW_LIMIT_S
        )
        known = {name: found[name] for name in ("second", "pictures")}
        return {"seed": seed, **known, "sentence": _sentence(found, split)}

    def preflight(self, request: JobRequest, *, describe: bool = True) -> dict[str, Any]:
        """Find out what a training will take, before it is started.

        Args:
            request: as for ``create``.
            describe: whether the data is measured and the network built, in processes of their own; takes seconds.

        Returns:
            ``findings``: ``name`` (``memory``, ``time``, ``data``, ``network``, ``disk``, ``classes``, ``loading``,
            ``rate``, ``batch`` or ``device``), ``level`` (``ok``, ``unknown``, ``warning`` or ``error``), ``title``,
            ``value`` (a few words), ``sentence``, ``field`` (of the spec, empty for none), perhaps ``fix`` (``title``
            and ``fields``: path → value) and its numbers; a name may come several times. ``steps``,
            ``steps_per_epoch`` and ``parameters``, None if unknown.

        Raises:
            SpecError: where the spec is not valid; it names the field.
            JobError: where the dataset or the model is not there, or of the wrong kind.
        """
        complete = self._complete(request)
        obstacle, specs = self._obstacle(complete), _specs(complete)
        if obstacle is not None:
            return self._preflight.refuse(specs[0], jobs=len(specs), problems=obstacle.details["problems"])
        dataset = self._jobs.get(complete.dataset) if complete.dataset else None
        return self._preflight.check(with_backend(specs[0]), jobs=len(specs), dataset=dataset, describe=describe)

    def test_batch(
        self,
        request: JobRequest,
        *,
        find_rate: bool = True,
        ticket: str = "",
        time_limit_s: float = TEST_BATCH_LIMIT_S,
    ) -> dict[str, Any]:
        """Train some steps of a training in a process of its own, and measure them; nothing is kept but the figures.

        Args:
            request: as for ``create``; of a sweep, the first training.
            find_rate: whether learning rates are tried, too.
            ticket: by which ``trials.cancel`` ends it; empty for none.
            time_limit_s: how long it may take.

        Returns:
            ``steps_per_epoch``, ``epoch_s`` and ``total_s`` of the training, and what
            ``ziggurat.worker.commands.batch_trial`` finds.

        Raises:
            SpecError: where the spec is not valid; it names the field.
            JobError: where the dataset is not done, or it was canceled.
            TooBusyError: where another one runs.
            ZigguratError: where the training cannot succeed.
        """
        if request.dataset and (dataset := self._jobs.of_kind(request.dataset, "dataset")).state != "done":
            raise JobError(f"The dataset {dataset.id} is {dataset.state}; a test batch needs one that is done.")
        complete = self._complete(request)
        self._refuse(complete)
        spec = with_backend(_specs(complete)[0])
        self._weights_folder.add_named(spec.pretrained)
        return self.test_batches.run(spec, find_rate=find_rate, ticket=ticket, time_limit_s=time_limit_s)

    def measured(self, request: JobRequest) -> dict[str, Any] | None:
        """Return what a test batch of a training found, with the times of the training as it is asked for now.

        The number of epochs, the learning rate and the like may be others than in the test batch.

        Args:
            request: as for ``create``; of a sweep, the first training.

        Returns:
            As ``test_batch`` does; None if there was no test batch of it.

        Raises:
            SpecError: where the spec is not valid; it names the field.
        """
        spec = with_backend(_specs(self._complete(request))[0])
        found = self._preflight.kept.test_batch(spec)
        return None if found is None else with_times(found, spec)

    def recipe(self, dataset_id: str, *, network: str | None = None) -> Recipe | None:
        """Return what a training on a dataset should begin with; None where it is not known, or cannot be trained on.

        Args:
            dataset_id: of a dataset, or ``digits``.
            network: that is chosen already, as ``backend/name``; empty for a file; None for the recommended one.

        Raises:
            JobError: where there is no such dataset.
        """
        source, data = self._known(dataset_id)
        known = self._weights_folder.names()
        found = None if data is None else recommend(data, network=network, weights=known)
        if data is None or found is None or network is not None:
            return found
        return recommend(data, earlier=better_run(self._finished(), source, found.network), weights=known)

    def cards(self, dataset_id: str | None, batch_size: int) -> list[NetworkCard]:
        """Return the standard networks with what each takes on a dataset, the recommended one first.

        Args:
            dataset_id: of a dataset, or ``digits``; None where none is chosen.
            batch_size: for which memory and time are said.

        Raises:
            JobError: where there is no such dataset.
        """
        source, data = ("", None) if dataset_id is None else self._known(dataset_id)
        known = self._weights_folder.names()
        chosen = None if data is None else recommend(data, weights=known)
        if data is None or chosen is None:
            return network_cards(data, {})
        figures = CardFigures(self._kept, self._machine.memory_bytes, self._finished())
        starts = chosen.network if weights_name(chosen.fields.get("pretrained")) else ""
        return network_cards(data, figures.all(data, source, batch_size), chosen.network, pretrained=starts)

    def _known(self, dataset_id: str) -> tuple[str, KnownData | None]:
        """Return the source of a dataset, and what is known of it; None where it is not done."""
        if dataset_id == DIGITS:
            return DIGITS, known_data(DIGITS, {})
        dataset = self._jobs.of_kind(dataset_id, "dataset")
        return dataset.folder, known_data(dataset.folder, {}) if dataset.state == "done" else None

    def as_text(self, request: JobRequest, *, url: str = "http://127.0.0.1:5000") -> dict[str, str]:
        """Return the same training as command line, JSON and Python.

        Args:
            request: as for ``create``.
            url: of the studio.

        Returns:
            ``cli``: a line for a shell of this machine for each training; ``json``: the whole spec (with a sweep, what
            the REST API takes); ``python``: a program that asks the studio for it.

        Raises:
            SpecError: where the spec is not valid; it names the field.
            JobError: where the dataset or the model is not there, or of the wrong kind.
        """
        complete = self._complete(request)
        specs = _specs(complete)
        first = train_spec(next(expand_sweep(complete))[0])
        content = _swept(short_content(first), first, request.sweep)
        if request.dataset:
            content = _without_source(content)
        if request.model:
            # The program names the model by its id: the studio finds its place when the program runs.
            content.pop("pretrained", None)
        values = {
            "sweep": {path: list(each) for path, each in request.sweep.items()},
            "tags": list(request.tags),
            **{
                name: getattr(request, name)
                for name in ("dataset", "model", "checkpoint", "project", "notes", "priority")
            },
        }
        return {
            "cli": "\n".join(command_line(spec) for spec in specs),
            "json": spec_document(first if complete.sweep else with_backend(first), complete.sweep),
            "python": python_program(content, {name: value for name, value in values.items() if value}, url),
        }

    # ---- training

    def create(self, request: JobRequest, owner: str = "") -> list[Job]:
        """Put a training, or a sweep of several, into the queue.

        Raises:
            SpecError: where the spec is not valid; it names the field.
            JobError: where the dataset or the model is not there, or of the wrong kind.
            ZigguratError: where the training cannot succeed, see ``obstacle_of``; nothing was made.
        """
        complete, now = self._complete(request), self._clock()
        self._refuse(complete)
        for pretrained in dict.fromkeys(content.get("pretrained") for content, _ in expand_sweep(complete)):
            self._weights_folder.add_named(pretrained, added_by=owner)
        needs = functools.partial(train_needs, accelerators=sum(self._supervisor.accelerators().values()))
        return make_jobs(complete, self._folder, self._supervisor.submit, owner=owner, now=now, needs=needs)

    def check(self, request: JobRequest) -> None:
        """Refuse a training, or a sweep, that cannot succeed; ``create`` raises the same before it makes anything."""
        self._refuse(self._complete(request))

    def _refuse(self, complete: JobRequest) -> None:
        obstacle = self._obstacle(complete)
        if obstacle is not None:
            raise obstacle

    def _obstacle(self, complete: JobRequest) -> ZigguratError | None:
        """Return what is wrong with the first training that cannot succeed; None where all can."""
        waits_for: tuple[tuple[str, Pending], ...] = ((complete.dataset, "data"), (complete.model, "pretrained"))
        pending: set[Pending] = {
            what for job_id, what in waits_for if job_id and self._jobs.get(job_id).state not in _ENDED
        }
        root = self._folder.parent
        specs = (train_spec(content) for content, _ in expand_sweep(complete))
        found = (obstacle_of(spec, pending=pending, workspace=root) for spec in specs)
        return next((each for each in found if each is not None), None)

    def _complete(self, request: JobRequest) -> JobRequest:
        """Return a request whose spec has the places of dataset and weights, and which has their ids for names."""
        content = dict(request.spec)
        request = dataclasses.replace(
            request,
            dataset=self._jobs.id_of(request.dataset, ("dataset",)),
            model=self._jobs.id_of(request.model, ("train",)),
        )
        if not request.dataset:
            self._refuse_id(content.get("data"))
        if request.dataset:
            data = content.get("data")
            content["data"] = {
                **(data if isinstance(data, Mapping) else {}),
                "source": self._jobs.of_kind(request.dataset, "dataset").folder,
            }
        if request.model:
            content["pretrained"] = self._weights(request.model, request.checkpoint)
        return dataclasses.replace(request, spec=content)

    def _refuse_id(self, data: Any) -> None:
        """Refuse the id of a dataset where a folder must stand: the worker would look for a folder of that name."""
        source = data.get("source") if isinstance(data, Mapping) else data
        if isinstance(source, str) and self._jobs.some([source]):
            raise JobError(
                "`data` is a folder or `digits`; a dataset of the studio is named apart from it.",
                received=f"the id {source} as `data`",
                advice=f"Give it as the dataset: `--dataset {source}` in the shell, `dataset` in a request.",
            )

    def _finished(self) -> Sequence[Job]:
        """Return trainings that are done, the newest first."""
        return self._jobs.page(JobFilter(kinds=("train",), states=("done",), limit=_EARLIER_JOBS)).jobs

    def _weights(self, job_id: str, checkpoint: str) -> str:
        """Return the place of weights; without a name, the job's best or newest when the training begins."""
        job = self._jobs.of_kind(job_id, "train")
        if not checkpoint:
            return job.folder
        folder = JobFolder(Path(job.folder))
        return str(folder.checkpoints / checkpoint_details(folder, checkpoint).summary.name)


def _specs(request: JobRequest) -> list[TrainSpec]:
    """Return the specs of all trainings of a sweep, named as the jobs will be."""
    specs = []
    for content, suffix in expand_sweep(request):
        spec = train_spec(content)
        specs.append(spec.model_copy(update={"name": f"{spec.name or spec.kind} {suffix}"}) if suffix else spec)
    return specs


def _swept(content: dict[str, Any], spec: TrainSpec, sweep: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the content of a spec, some of whose fields a sweep sets: where it sets parts, the whole is spelt out."""
    for path in sweep:
        field, _, part = path.partition(".")
        if part:
            content[field] = spec.model_dump(mode="json")[field]
        else:
            content.pop(field, None)
    return content


def _without_source(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a spec whose dataset is named beside it."""
    data = content.pop("data", None)
    rest = {name: value for name, value in data.items() if name != "source"} if isinstance(data, Mapping) else {}
    return {**content, "data": rest} if rest else content


def _sentence(found: Mapping[str, Any], split: str) -> str:
    if split != "train":
        return "Images of this split are never varied: the network gets each of them like this, in every epoch."
    if not found["varied"]:
        return "Nothing is varied: the network gets each image like this, in every epoch."
    return (
        f"What the network gets of each image, epoch by epoch, in a training with the seed {found['seed']}; a mean "
        "that is taken off and whitening are not shown."
    )


def short_content(spec: TrainSpec) -> dict[str, Any]:
    """Return the content of a spec without what has its default; parsed again, it is the same spec."""
    content = _changed(spec)
    for field in describe_fields(TrainSpec):
        part = content.get(field.path) if field.is_top else None
        if isinstance(part, dict) and field.short_form and set(part) == {field.short_form}:
            content[field.path] = part[field.short_form]
    if isinstance(spec.network, ZooNetwork):
        content["network"] = spec.network.name
    return content


def command_line(spec: TrainSpec) -> str:
    """Return the line for a shell that trains by a spec: ``ziggurat train`` with a flag for each field that differs."""
    content = short_content(spec)
    fields = {field.path: field for field in describe_fields(TrainSpec)}
    flags: dict[str, str] = {}
    assignments: list[str] = []
    for name, value in content.items():
        if name not in ("kind", "version"):
            _add(fields[name], value, flags, assignments)
    if not _means(spec, flags, assignments):  # a part reads as something else there: whole fields as JSON
        whole = {name: value for name, value in content.items() if isinstance(value, dict)}
        flags = {name: text for name, text in flags.items() if name not in whole}
        assignments = [f"{name}={_json(value)}" for name, value in whole.items()]
    return shlex.join(["ziggurat", "train", *_words(flags, assignments)])


def spec_document(spec: TrainSpec, sweep: Mapping[str, Sequence[Any]]) -> str:
    """Return JSON: the whole spec, as ``ziggurat train FILE`` takes it; with a sweep, what the REST API takes."""
    if not sweep:
        return spec_json(spec)
    body = {"spec": spec.model_dump(mode="json"), "sweep": {path: list(values) for path, values in sweep.items()}}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def python_program(content: Mapping[str, Any], request: Mapping[str, Any], url: str) -> str:
    """Return a program that asks a studio for the training.

    Args:
        content: of the spec.
        request: the other arguments of ``Client.train``.
        url: address of the studio.
    """
    arguments = [_literal(dict(content)), *(f"{name}={_literal(value)}" for name, value in request.items())]
    lines = "".join(f"        {argument.replace(chr(10), chr(10) + '        ')},\n" for argument in arguments)
    return (
        "from ziggurat.client import Client\n\n"
        f"with Client({url!r}) as client:\n"
        f"    jobs = client.train(\n{lines}    )\n"
        '    print([job["id"] for job in jobs])\n'
    )


def _changed(model: BaseModel) -> dict[str, Any]:
    """Return the fields that differ from their defaults, and the words that tell what the others belong to."""
    content: dict[str, Any] = {}
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        is_word = info.title is None  # `kind`, `version`, `policy` and the like
        if is_word or info.is_required() or value != info.get_default(call_default_factory=True):
            content[name] = _changed(value) if isinstance(value, BaseModel) else _plain(value)
    return content


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_changed(each) if isinstance(each, BaseModel) else each for each in value]
    return value


def _add(field: FieldDescription, value: Any, flags: dict[str, str], assignments: list[str]) -> None:
    """Add what says a field's value: its flag, and an assignment for each part."""
    name = field.path
    if isinstance(value, dict) and name != "network" and field.kind == "object" and field.title != "Backend options":
        rest = dict(value)
        if field.short_form in rest:
            flags[name] = str(rest.pop(field.short_form))
        assignments += [f"{name}.{part}={_text(below)}" for part, below in rest.items()]
    elif isinstance(value, dict):
        assignments.append(f"{name}={_json(value)}")
    else:
        flags[name] = _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _means(spec: TrainSpec, flags: Mapping[str, str], assignments: Sequence[str]) -> bool:
    try:
        return spec_from_flags(flags, assignments=assignments) == spec
    except SpecError:
        return False


def _words(flags: Mapping[str, str], assignments: Sequence[str]) -> Iterator[str]:
    for name, text in flags.items():
        flag = "--" + name.replace("_", "-")
        yield from (f"{flag}={text}",) if text.startswith("-") else (flag, text)
    for assignment in assignments:
        yield from ("--set", assignment)


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=_COLUMNS, sort_dicts=False)
