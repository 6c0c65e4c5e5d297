"""Trainer of a job from its spec, built here alone: data, program, callbacks, monitors, pretrained weights."""

from __future__ import annotations

import faulthandler
import gc
import json
import linecache
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Self

import numpy as np

from ziggurat.atomic import atomic_write_text
from ziggurat.dataflow.preprocessing import Augmentation
from ziggurat.engine.arithmetic import usable_cores
from ziggurat.engine.backend import Backend, ProcessPlace, ProgramRequest
from ziggurat.engine.callback import Callback, bind_folder
from ziggurat.engine.callbacks.learning_rate import HumanHyperParamSetter, LearningRateSchedule
from ziggurat.engine.callbacks.numerics import BlackBox
from ziggurat.engine.callbacks.progress import EstimatedTimeLeft, ProgressBar
from ziggurat.engine.callbacks.sample_predictions import SamplePredictionWriter, TaskSamples
from ziggurat.engine.callbacks.saving import KeepBest, ModelSaver
from ziggurat.engine.callbacks.stopping import DivergenceWatch, EarlyStopping
from ziggurat.engine.callbacks.summaries import LogScalars, SummariseBatch
from ziggurat.engine.callbacks.timing import StepTimes, ThroughputTracker
from ziggurat.engine.callbacks.validation import Inferencer, InferenceRunner, MetricStats, ScalarStats
from ziggurat.engine.capabilities import (
    ChoosesThreads,
    HasEvaluationNames,
    HasSummaries,
    SupportsCheckpoints,
    SupportsFineTuning,
    TrainsOnMixedLabels,
    TrainsOnNodes,
)
from ziggurat.engine.checkpoints import CheckpointStore, with_averages
from ziggurat.engine.fine_tuning import BACKBONE_RATE, FineTuningRequest
from ziggurat.engine.monitor import Monitor
from ziggurat.engine.program import Program
from ziggurat.engine.run_state import global_random_state, load_global_random_state
from ziggurat.engine.trainer import Trainer
from ziggurat.entities.backend_info import BackendInfo, backend_info, checkpoint_advice, open_backend
from ziggurat.entities.best_checkpoint import PRIMARY_METRIC, best_checkpoint
from ziggurat.entities.pretrained_weights import no_model_to_tune, weights_name
from ziggurat.errors import CheckpointError, ConfigurationError, MissingDependencyError, NetworkCodeError
from ziggurat.layout import FEATURES_FOLDER, JobFolder, checkpoint_step, workspace_of
from ziggurat.plugins import load
from ziggurat.records.feature_store import FeatureStore
from ziggurat.schedules.registry import make_schedule
from ziggurat.settings import Settings
from ziggurat.specs import FileNetwork, TrainSpec, save_spec
from ziggurat.tasks import AUTO_TASK, Task, TaskContext
from ziggurat.worker.batch_facts import BatchFacts
from ziggurat.worker.context import load_context, new_context, save_context, task_of
from ziggurat.worker.head_fit import FitHead, HeadSamples, check_class_numbers, check_head_fit
from ziggurat.worker.job_network import keep_network, kept_network
from ziggurat.worker.node_process import device_of_process
from ziggurat.worker.pipeline import DataOptions, JobData, prepare_data
from ziggurat.worker.pretrained_weights import read_weights, weights_folders
from ziggurat.worker.sample_choice import choose_samples
from ziggurat.worker.source import DataSource, is_dataset, open_source
from ziggurat.zoo.backends import with_backend
from ziggurat.zoo.heads import head_beginning
from ziggurat.zoo.network_task import network_task

__all__ = [
    "BuildLimit",
    "BuiltJob",
    "build_job",
    "choose_threads",
    "data_of",
    "data_options",
    "load_backend",
    "prepare_job",
    "program_request",
    "read_pretrained",
    "visible_devices",
]


_SHOWN: Final = ("cost", "accuracy", "error")


@dataclass(frozen=True)
class BuiltJob:
    """What a worker needs to execute a job.

    Args:
        trainer: ready to train or to take a state back.
        store: the job's checkpoints.
        data: its batches.
        threads: that its operations compute with; 0 for the framework's choice.
    """

    trainer: Trainer
    store: CheckpointStore
    data: JobData
    threads: int = 0


def build_job(
    spec: TrainSpec,
    folder: JobFolder,
    clock: Callback,
    settings: Settings,
    limit: AbstractContextManager[Any] | None = None,
    *,
    is_new: bool = False,
    place: ProcessPlace | None = None,
) -> BuiltJob:
    """Build everything that a spec asks for.

    Args:
        spec: what was asked.
        folder: where the job lives.
        clock: the callback that notes when steps end; it comes first.
        settings: how progress is shown.
        limit: entered while the network is built.
        is_new: whether no attempt began before: then threads that the spec leaves open are chosen and written into it.
        place: of this process, rank 0, in a training over several nodes; None elsewhere.

    Raises:
        ZigguratError: where something that was asked for cannot be.
    """
    store = CheckpointStore(folder.checkpoints)
    data, backend, request = prepare_job(spec, folder, settings, place)
    fit_head = _fits_head(spec)
    if fit_head:
        check_class_numbers(data.context)
    with limit or nullcontext():
        if is_new and spec.threads is None:
            spec = spec.model_copy(update={"threads": choose_threads(request, backend, settings)})
            save_spec(spec, folder.spec)
            atomic_write_text(folder.threads, json.dumps(spec.threads), "The threads of a job")
            request = replace(request, threads=spec.threads or 0)
        elif spec.threads is None:
            request = replace(request, threads=_chosen_before(folder))
        program = backend.build(request)
    steps = spec.steps_per_epoch or len(data.train)
    monitors, shows = _monitors(spec, settings)
    fit = [_head_fit(spec, request, program, data, folder)] if fit_head else []
    callbacks = [clock, *_callbacks(spec, program, data, store, steps, folder), *shows, *fit]
    bind_folder([*callbacks, *monitors], folder)
    trainer = Trainer(program, data.train, callbacks=callbacks, monitors=monitors, steps_per_epoch=steps)
    trainer.batches.may_run_apart = data.decodes
    return BuiltJob(trainer, store, data, request.threads)


def _chosen_before(folder: JobFolder) -> int:
    """Return the threads that the first attempt chose, on whatever node; 0 where it left them to the backend."""
    try:
        found = json.loads(folder.threads.read_text())
    except (OSError, ValueError):
        return 0  # of an earlier release, or of a killed worker that had not chosen yet
    return found if isinstance(found, int) else 0


def prepare_job(
    spec: TrainSpec, folder: JobFolder, settings: Settings, place: ProcessPlace | None = None
) -> tuple[JobData, Backend, ProgramRequest]:
    """Return the batches of a job, its backend, and what the backend builds a program of.

    Args:
        spec: what was asked.
        folder: where the job lives, which gets the context of a new job and the text of its network.
        settings: where pretrained weights are.
        place: of this process, in a training over several nodes; None elsewhere.

    Raises:
        ZigguratError: if something that was asked for cannot be.
    """
    # A job that goes on keeps the mean that it began with: data that has changed since cannot move it.
    goes_on = bool(CheckpointStore(folder.checkpoints).list())
    data = data_of(spec, load_context(folder) if goes_on else None, folder)
    if not goes_on:
        save_context(data.context, folder)
    backend = load_backend(with_backend(spec).backend)
    text = kept_network(spec, folder) if goes_on else keep_network(spec, folder)
    weights = weights_folders(folder, settings)
    request = replace(program_request(spec, data, backend, weights, standard_text=text), place=place)
    if place is not None:
        request = replace(request, devices=(device_of_process(spec, os.environ),))
    _check_nodes(request, backend)
    _check_mixing(request, backend)
    _check_fine_tuning(request, backend)
    return data, backend, request


def choose_threads(request: ProgramRequest, backend: Backend, settings: Settings) -> int | None:
    """Return how many threads a training computes with; None where the backend or its options decide.

    Args:
        request: of the training.
        backend: of the training.
        settings: how many threads it may choose.

    Raises:
        NetworkCodeError: where the user's network fails.
    """
    if request.threads or "intra_threads" in request.options or not isinstance(backend, ChoosesThreads):
        return request.threads or None
    before = global_random_state()
    try:
        return backend.choose_threads(request, settings.most_threads or usable_cores())
    finally:
        load_global_random_state(before)  # the code of the network may have drawn from it


def data_of(spec: TrainSpec, context: TaskContext | None = None, folder: JobFolder | None = None) -> JobData:
    """Return the batches that a spec asks for.

    Args:
        spec: what was asked.
        context: that of the job where it has begun; None to make one, fitted on the training split.
        folder: of the job, which keeps the splits of a bare folder; None where there is no job yet.
    """
    source = open_source(spec.data.source, spec.data.options, spec.seed, folder)
    takes_uint8 = backend_info(with_backend(spec).backend).takes_uint8
    options = replace(data_options(spec), uint8_images=takes_uint8)
    data = prepare_data(source, options, context or new_context(source, options, learned_task(spec, source)))
    for flow in data.evaluation.values():
        flow.seed(spec.seed)  # the position of a flow is in the checkpoint, and its seed with it
    return data


def learned_task(spec: TrainSpec, source: DataSource) -> Task:
    """Return the task of a job: the one that its spec names, else that of its network, else the default of its data.

    Raises:
        DataError: where the data has not what the task needs.
    """
    name = "" if spec.task == AUTO_TASK else spec.task
    return task_of(source, name or network_task(spec, source.schema))


def data_options(spec: TrainSpec) -> DataOptions:
    """Return in plain values what a spec asks of its data."""
    before, loading = spec.preprocessing, spec.loading
    return DataOptions(
        batch_size=spec.batch_size * spec.gradient_accumulation_steps,
        size=None if before.size is None else (before.size[0], before.size[1]),
        channels=before.channels,
        resize_mode=before.resize_mode,
        crop=before.crop,
        mean=before.mean,
        whitening=before.whitening,
        numbers=before.numbers,
        text_length=before.text_length,
        vocabulary_size=before.vocabulary_size,
        augmentation=Augmentation(**spec.augmentation.model_dump()),
        shuffle=spec.shuffle,
        seed=spec.seed,
        workers=loading.workers,
        worker_kind=loading.worker_kind,
        prefetch=loading.prefetch,
        decode=loading.decode,
        oversample_below=spec.oversample_below,
    )


def load_backend(name: str) -> Backend:
    """Return a backend by name.

    Raises:
        UnknownNameError: where there is none of that name.
        MissingDependencyError: where its framework is not installed.
        ConfigurationError: where this version does not have it.
    """
    backend: Backend = open_backend(name)
    reason = backend.why_not()
    if reason:
        raise MissingDependencyError(name, extra=name, purpose=f"the backend {name} ({reason})")
    return backend


def program_request(
    spec: TrainSpec,
    data: JobData,
    backend: Backend | None = None,
    weights: Sequence[Path] = (),
    *,
    standard_text: str | None = None,
) -> ProgramRequest:
    """Return in plain values what a backend builds a program of.

    Args:
        spec: what was asked.
        data: its batches.
        backend: reads a pretrained model of its framework; None where the spec asks for none.
        weights: folders with the pretrained weights that a spec may name.
        standard_text: of the standard network of the job; None for a file, and for what the name stands for today.
    """
    context = data.context
    target = context.task.target(context)
    network = spec.network
    if isinstance(network, FileNetwork):
        name, text = network.path, network.text
    else:
        name, text = network.name if standard_text is None else f"{network.name}.py", standard_text
    return ProgramRequest(
        network=name,
        network_text=text,
        inputs={"x": context.task.input(context)},
        targets={} if target is None else {"y": target},
        mixes_labels=data.mixes_labels,
        class_weights=tuple(spec.class_weights),
        batch_size=spec.batch_size * spec.gradient_accumulation_steps,
        optimizer=spec.optimizer.name,
        optimizer_options=spec.optimizer.model_dump(exclude={"name"}),
        learning_rate=spec.learning_rate,
        weight_decay=spec.weight_decay,
        gradient_clip=spec.gradient_clip,
        gradient_accumulation_steps=spec.gradient_accumulation_steps,
        ema_decay=spec.ema_decay,
        precision=spec.precision,
        devices=visible_devices(spec.devices, os.environ),
        threads=spec.threads or 0,
        freeze=tuple(spec.freeze),
        pretrained=_pretrained(spec, data, backend, weights),
        fine_tuning=_fine_tuning(spec),
        seed=spec.seed,
        options=spec.backend_options,
    )


def _check_nodes(request: ProgramRequest, backend: Backend) -> None:
    """Refuse several processes where each would train a network of its own."""
    if request.place is not None and not isinstance(backend, TrainsOnNodes):
        raise ConfigurationError(
            f"The backend `{backend.name}` does not train on several nodes.",
            received=f"{request.place.size} processes",
            advice="Set `nodes` to 1, or use another backend.",
        )


def _check_mixing(request: ProgramRequest, backend: Backend) -> None:
    """Refuse mixed labels where the backend would leave the second ones out."""
    if request.mixes_labels and not isinstance(backend, TrainsOnMixedLabels):
        raise ConfigurationError(
            f"The backend `{backend.name}` cannot train on mixed labels, and `augmentation.mixup` or "
            "`augmentation.cutmix` is above 0.",
            advice="Set both to 0, or use another backend.",
        )


def _check_fine_tuning(request: ProgramRequest, backend: Backend) -> None:
    """Refuse fine-tuning without a model to start from, and where the backend would train everything at one rate."""
    if request.fine_tuning is None:
        return
    if request.pretrained is None:
        raise no_model_to_tune()
    if not isinstance(backend, SupportsFineTuning):
        raise ConfigurationError(
            f"The backend `{backend.name}` has no rates of their own for backbone and head.",
            received="`fine_tuning`",
            advice="Leave it out, or use another backend.",
        )


def _fits_head(spec: TrainSpec) -> bool:
    return spec.fine_tuning is not None and spec.fine_tuning.fit_head


def _head_fit(spec: TrainSpec, request: ProgramRequest, program: Program, data: JobData, folder: JobFolder) -> FitHead:
    """Return the callback that fits the head; it stands behind all others, whose epoch has begun then."""
    check_head_fit(program, spec.backend)
    workspace = workspace_of(folder.path)
    return FitHead(
        HeadSamples(
            open=lambda: open_source(spec.data.source, spec.data.options, spec.seed, folder),
            options=data_options(spec),
            context=data.context,
            class_weights=tuple(spec.class_weights),
        ),
        request,
        spec.backend,
        spec.seed,
        None if workspace is None else FeatureStore(workspace / FEATURES_FOLDER),
    )


def _fine_tuning(spec: TrainSpec) -> FineTuningRequest | None:
    """Return what the backend is told; a published network names its head, others end in it."""
    rates, network = spec.fine_tuning, spec.network
    if rates is None:
        return None
    head = "" if isinstance(network, FileNetwork) else head_beginning(network.name)
    return FineTuningRequest(head=head, backbone_rate=rates.backbone_rate, layer_decay=rates.layer_decay)


def _pretrained(
    spec: TrainSpec, data: JobData, backend: Backend | None, weights: Sequence[Path]
) -> dict[str, np.ndarray] | None:
    if spec.pretrained is None:
        return None
    if weights_name(spec.pretrained):
        network = "" if isinstance(spec.network, FileNetwork) else spec.network.name
        names = {"network": network, "backend": with_backend(spec).backend}
        return read_weights(spec.pretrained, weights, classes=data.class_names, **names)
    return read_pretrained(Path(spec.pretrained), backend, backend_info(with_backend(spec).backend))


def _callbacks(
    spec: TrainSpec, program: Program, data: JobData, store: CheckpointStore, steps: int, folder: JobFolder
) -> list[Callback]:
    """Return the callbacks; each line says why it stands where it does."""
    logged = _logged(program)
    return [
        *_learning_rate(spec),  # before the step that it is for
        *_frozen_epochs(spec),
        *[
            HumanHyperParamSetter(name, every_k_steps=max(1, steps // 10))  # a person overrules a schedule
            for name in _rates(spec)
        ],
        BlackBox(
            ["cost"], describe=BatchFacts(data, data_options(spec))
        ),  # before anything is made of a cost that is not finite
        *_plugins("callbacks", spec.callbacks),
        LogScalars(
            logged,
            spec.log_every_steps,
            per_epoch=_points(steps) if spec.log_every_steps is None else 1,
            mean=True,
            hyperparameters=_rates(spec),
            per_doubling=_POINTS_PER_DOUBLING if spec.log_every_steps is None else None,
        ),
        SummariseBatch(),  # costs nothing where the network has no summaries or no monitor takes them
        *_validation(spec, program, data, logged),  # what follows sees its numbers
        *_samples(spec, program, data, folder),  # after the validation, which uses the same weights
        DivergenceWatch(),  # behind those whose numbers it judges
        *_early_stopping(spec),
        *_savers(spec, store, data.context.task),
        ThroughputTracker(spec.batch_size * spec.gradient_accumulation_steps),
        StepTimes(),
        EstimatedTimeLeft(),  # behind those that measure
    ]


_POINTS_PER_DOUBLING: Final = 32
"""Additional points of the training curves each time the number of steps doubles: a new training has points at once,
and a long one has a few hundred more."""


def _points(steps: int) -> int:
    """Return how many points of a curve an epoch gets: long ones several, so that one sees it move."""
    return 8 if steps >= 64 else 1


def _logged(program: Program) -> list[str]:
    """Return the single numbers of a program that every job logs: the cost and what the user summarizes."""
    known = program.names()
    names = program.summary_names() if isinstance(program, HasSummaries) else [each for each in _SHOWN if each in known]
    return list(dict.fromkeys(["cost", *names]))


def _learning_rate(spec: TrainSpec) -> list[Callback]:
    options = spec.schedule.model_dump(exclude={"policy"})
    return [LearningRateSchedule(make_schedule(spec.schedule.policy, **options), spec.learning_rate)]


def _rates(spec: TrainSpec) -> tuple[str, ...]:
    """Return the hyperparameters that a person may set, and that are logged."""
    return ("learning_rate",) if spec.fine_tuning is None else ("learning_rate", BACKBONE_RATE)


def _frozen_epochs(spec: TrainSpec) -> list[Callback]:
    if spec.fine_tuning is None:
        return []
    # Exact where an epoch ends: the quotients of both sides are the same number, and rounded alike.
    end = spec.fine_tuning.frozen_epochs / spec.epochs
    return [LearningRateSchedule(lambda progress: 0.0 if progress < end else 1.0, 1.0, BACKBONE_RATE)]


def _offered(program: Program) -> Sequence[str]:
    """Return the values that an evaluation can give."""
    return program.evaluation_names() if isinstance(program, HasEvaluationNames) else program.names()


def _validation(spec: TrainSpec, program: Program, data: JobData, logged: Sequence[str]) -> list[Callback]:
    every = spec.validation.every_epochs
    if every == 0 or "val" not in data.evaluation:
        return []
    offered = _offered(program)
    names = [name for name in dict.fromkeys([*logged, "error"]) if name in offered]
    inferencers: list[Inferencer] = [ScalarStats(names)]
    context = data.context
    if context.task.validation_metrics(context) and all(name in offered for name in context.task.outputs):
        inferencers.append(MetricStats(lambda: context.task.validation_metrics(context), context.task.outputs))
    return [
        InferenceRunner(data.evaluation["val"], inferencers, before_train=not _fits_head(spec), every_k_epochs=every)
    ]


def _samples(spec: TrainSpec, program: Program, data: JobData, folder: JobFolder) -> list[Callback]:
    every, shown = spec.validation.every_epochs, TaskSamples(data.context)
    if not spec.sample_predictions or not every or data.source is None:
        return []
    offered, known = _offered(program), program.names()
    if not all(name in offered and name in known for name in shown.names()):
        return []  # such as an embedding where classes are learned
    chosen = choose_samples(data.source, data.context)
    if chosen is None:
        return []
    if chosen.are_shown_fitted or not is_dataset(Path(spec.data.source)):
        chosen.save_images(folder)
    batch_size = spec.batch_size * spec.gradient_accumulation_steps  # that of a validation
    return [
        SamplePredictionWriter(
            shown,
            chosen.batch,
            chosen.samples,
            every_k_epochs=every,
            before_train=not _fits_head(spec),
            batch_size=batch_size,
        )
    ]


def _early_stopping(spec: TrainSpec) -> list[Callback]:
    rule = spec.early_stopping
    return [] if rule is None else [EarlyStopping(rule.tag, rule.patience, rule.min_delta, rule.direction)]


def _savers(spec: TrainSpec, store: CheckpointStore, learned: Task) -> list[Callback]:
    rule = spec.checkpoints
    saver = ModelSaver(
        store,
        max_to_keep=rule.keep_last,
        keep_checkpoint_every_n_hours=rule.keep_checkpoint_every_n_hours,
        every_k_epochs=rule.every_epochs or None,
        every_k_steps=rule.every_steps,
        every_minutes=rule.every_minutes,
        save_on_stop=spec.on_stop == "save",
    )
    best, validated = rule.best_rule, spec.validation.every_epochs or None
    if best is None or (best.tag == PRIMARY_METRIC and not learned.has_best):
        return [saver]
    # It judges when the validation has just run, which may be within an epoch.
    return [saver, KeepBest(best.tag, mode=best.direction, store=store, every_k_epochs=validated)]


def _plugins(group: str, uses: Sequence[Any]) -> list[Any]:
    made = []
    for use in uses:
        kind = load(group, use.name)
        try:
            made.append(kind(**use.options))
        except TypeError as error:
            raise ConfigurationError(
                f"The options of `{use.name}` do not fit: {str(error).rstrip('.')}.",
                advice="Look at its page in the reference.",
            ) from error
    return made


def _monitors(spec: TrainSpec, settings: Settings) -> tuple[list[Monitor], list[Callback]]:
    """Return the monitors, and what stands under monitors in a spec but shows instead of keeping: the progress bar."""
    monitors: list[Monitor] = []
    shows: list[Callback] = []
    for use in spec.monitors:
        if use.name == "progress":
            mode = {"none": "off"}.get(settings.progress, settings.progress)
            shows.append(ProgressBar(("cost",), **{"mode": mode, **use.options}))
            continue
        (made,) = _plugins("monitors", [use])
        (monitors if isinstance(made, Monitor) else shows).append(made)
    return monitors, shows


def read_pretrained(path: Path, backend: object, info: BackendInfo) -> dict[str, np.ndarray]:
    """Return variable name → array; of weights that were averaged, the averages.

    Args:
        path: a job folder (its best checkpoint, or its newest), one of its checkpoints, or a checkpoint of the
            backend's framework, such as the prefix ``model.ckpt`` of TensorFlow's.
        backend: that of the job.
        info: what is known of it.

    Raises:
        CheckpointError: where there is none.
    """
    if checkpoint_step(path.name) is not None:
        return with_averages(CheckpointStore(path.parent, writable=False).load(path.name).arrays)
    if JobFolder(path).checkpoints.is_dir():
        store = CheckpointStore(JobFolder(path).checkpoints, writable=False)
        best = best_checkpoint(JobFolder(path))
        if best is not None and best.basis != "newest":
            return with_averages(store.load(best.checkpoint.name).arrays)
        newest = store.latest()
        if newest is not None:
            return with_averages(newest[1].arrays)
    if info.has_checkpoint(path) and isinstance(backend, SupportsCheckpoints):
        return dict(backend.read_checkpoint(path))
    raise CheckpointError(
        "`pretrained` must be a job folder with a checkpoint, or a checkpoint of the backend's framework.",
        received=str(path),
        advice=checkpoint_advice(),
    )


def visible_devices(devices: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return devices as the framework of this process numbers them.

    People and the studio's queue number accelerators as the driver does. A worker of the studio sees those that its job
    was given, and a framework numbers what it sees from 0: ``gpu:3`` of the machine is ``gpu:0`` there. Where the
    numbers are not all among those that are visible, they were chosen by hand, and stay.

    Args:
        devices: of a spec, such as ``gpu:3``.
        environment: variables of the process; ``CUDA_VISIBLE_DEVICES`` lists the driver's numbers.
    """
    visible = [part.strip() for part in environment.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    wanted = [name.rpartition(":")[2] for name in devices if "gpu" in name.lower() and ":" in name]
    if not wanted or any(number not in visible for number in wanted):
        return tuple(devices)
    return tuple(_renumbered(name, visible) for name in devices)


def _renumbered(name: str, visible: Sequence[str]) -> str:
    head, colon, number = name.rpartition(":")
    return f"{head}{colon}{visible.index(number)}" if "gpu" in name.lower() and colon else name


_LEAST_SHARE: Final = 0.1
"""Part of the limit that a loop without an end computes at least; a process with less processor time had to wait."""

_BACKSTOP_S: Final = 15
"""How much later the process is ended where a call of C lets no other thread run."""


def _frame_of_main_thread() -> FrameType | None:
    # A collection while Python lists the frames may let another thread go on, which then waits for that list for ever
    # (Python 3.11).
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(threading.main_thread().ident or 0)
    finally:
        if collects:
            gc.enable()


class BuildLimit:
    """A time limit for what is done inside of it, by the main thread; use it as a context manager.

    Args:
        limit_s: how long it may take; 0 for no limit.
        network: file name of the network.
        end: ends the process; called by a thread of its own with the error and the stack of the main thread.
    """

    def __init__(self, limit_s: float, network: str, end: Callable[[NetworkCodeError, str], None]) -> None:
        self._limit_s = limit_s
        self._network = network
        self._end = end
        self._lock = threading.Lock()
        self._is_over = False
        self._began_s = 0.0
        self._timer = threading.Timer(limit_s, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._began_s = time.process_time()
        if self._limit_s:
            self._timer.start()
            # A thread of C: it needs no turn of Python to write the stacks and to end the process.
            faulthandler.dump_traceback_later(self._limit_s + _BACKSTOP_S, exit=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True
        self._timer.cancel()
        faulthandler.cancel_dump_traceback_later()

    def _expire(self) -> None:
        with self._lock:
            if self._is_over:
                return
            stack = traceback.extract_stack(_frame_of_main_thread())
            self._end(self._error(stack), "".join(traceback.format_list(stack)))

    def _error(self, stack: traceback.StackSummary) -> NetworkCodeError:
        users = [each for each in stack if each.filename == self._network]
        place = users[-1] if users else stack[-1]
        line = place.lineno or 0
        source = linecache.getline(place.filename, line).strip()
        where = f"it was still at {place.filename}, line {line}" + (f": {source}" if source else "")
        used_s = time.process_time() - self._began_s
        advice = "Look for a loop without an end there; where it needs more time, raise the setting `build_limit_s`."
        if used_s < self._limit_s * _LEAST_SHARE:
            where += f"; it got {used_s:.0f} s of processor time"
            advice = (
                "The machine is full, or the code waits for something: try it again when less is running, or raise "
            )
            advice += "the setting `build_limit_s`."
        return NetworkCodeError(
            f"Building the network did not end within `build_limit_s`, {self._limit_s:g} s: {where}.",
            advice=advice,
            details={"file": place.filename, "line": line, "source": source},
        )
