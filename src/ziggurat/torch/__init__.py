"""PyTorch as a library: a trainer for modules, with callbacks, monitors, savers and exact resume.

A training program takes its names from here; each is imported on first use::

    from ziggurat.torch import *

    program = ModuleProgram(module, torch.optim.SGD(module.parameters(), 0.1), torch.nn.functional.cross_entropy)
    Trainer(program, loader, callbacks=[ModelSaver()], folder="train_log").train(max_epoch=10, resume=True)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ziggurat.errors import MissingDependencyError, nearest_names

if TYPE_CHECKING:
    from ziggurat.callbacks import (
        SCHEDULES,
        BinaryClassificationStats,
        BlackBox,
        Callback,
        CallbackFactory,
        CheckNumerics,
        CheckpointInfo,
        CheckpointStore,
        ClassificationError,
        Cosine,
        DivergenceWatch,
        DumpTensors,
        EarlyStopping,
        EnableCallbackIf,
        EstimatedTimeLeft,
        EventWriter,
        Exponential,
        Fixed,
        GPUMemoryTracker,
        GPUUtilizationTracker,
        HasMovingSummaries,
        HasSummaries,
        HostMemoryTracker,
        HumanHyperParamSetter,
        HyperParam,
        HyperParamSetter,
        HyperParamSetterWithFunc,
        Image,
        Inferencer,
        InferenceRunner,
        InjectShell,
        Inverse,
        JSONWriter,
        KeepBest,
        LearningRateSchedule,
        Linear,
        LogScalars,
        MaxSaver,
        MergeAllSummaries,
        MinSaver,
        ModelSaver,
        Monitor,
        Monitors,
        MovingAverageSummary,
        MultiStep,
        ObjAttrParam,
        OneCycle,
        PeriodicCallback,
        PeriodicTrigger,
        Piecewise,
        Polynomial,
        ProcessTensors,
        ProgramParam,
        ProgressBar,
        ProxyCallback,
        RunState,
        Scalar,
        ScalarPrinter,
        ScalarStats,
        ScheduledHyperParamSetter,
        SendStat,
        Sigmoid,
        SimpleMovingAverage,
        StatMonitorParamSetter,
        Step,
        StepTimes,
        StopAtTime,
        StopTraining,
        SummariseBatch,
        TFEventWriter,
        ThroughputTracker,
        WarmUp,
        bind_folder,
        default_monitors,
        make_schedule,
        preview,
    )
    from ziggurat.torch.callbacks import FiniteLoss
    from ziggurat.torch.processes import Processes, join_processes
    from ziggurat.torch.program import ModuleProgram, Options
    from ziggurat.torch.schedulers import TorchScheduler
    from ziggurat.torch.trainer import Trainer, default_callbacks
    from ziggurat.torch.weights import load_weights, save_weights, seed_everything

__all__ = [
    "SCHEDULES",
    "BinaryClassificationStats",
    "BlackBox",
    "Callback",
    "CallbackFactory",
    "CheckNumerics",
    "CheckpointInfo",
    "CheckpointStore",
    "ClassificationError",
    "Cosine",
    "DivergenceWatch",
    "DumpTensors",
    "EarlyStopping",
    "EnableCallbackIf",
    "EstimatedTimeLeft",
    "EventWriter",
    "Exponential",
    "FiniteLoss",
    "Fixed",
    "GPUMemoryTracker",
    "GPUUtilizationTracker",
    "HasMovingSummaries",
    "HasSummaries",
    "HostMemoryTracker",
    "HumanHyperParamSetter",
    "HyperParam",
    "HyperParamSetter",
    "HyperParamSetterWithFunc",
    "Image",
    "InferenceRunner",
    "Inferencer",
    "InjectShell",
    "Inverse",
    "JSONWriter",
    "KeepBest",
    "LearningRateSchedule",
    "Linear",
    "LogScalars",
    "MaxSaver",
    "MergeAllSummaries",
    "MinSaver",
    "ModelSaver",
    "ModuleProgram",
    "Monitor",
    "Monitors",
    "MovingAverageSummary",
    "MultiStep",
    "ObjAttrParam",
    "OneCycle",
    "Options",
    "PeriodicCallback",
    "PeriodicTrigger",
    "Piecewise",
    "Polynomial",
    "ProcessTensors",
    "Processes",
    "ProgramParam",
    "ProgressBar",
    "ProxyCallback",
    "RunState",
    "Scalar",
    "ScalarPrinter",
    "ScalarStats",
    "ScheduledHyperParamSetter",
    "SendStat",
    "Sigmoid",
    "SimpleMovingAverage",
    "StatMonitorParamSetter",
    "Step",
    "StepTimes",
    "StopAtTime",
    "StopTraining",
    "SummariseBatch",
    "TFEventWriter",
    "ThroughputTracker",
    "TorchScheduler",
    "Trainer",
    "WarmUp",
    "bind_folder",
    "default_callbacks",
    "default_monitors",
    "join_processes",
    "load_weights",
    "make_schedule",
    "preview",
    "save_weights",
    "seed_everything",
]

_HOMES = {
    "ziggurat.torch.callbacks": "FiniteLoss ",
    "ziggurat.torch.processes": "Processes join_processes ",
    "ziggurat.torch.program": "ModuleProgram Options ",
    "ziggurat.torch.schedulers": "TorchScheduler ",
    "ziggurat.torch.trainer": "Trainer default_callbacks ",
    "ziggurat.torch.weights": "load_weights save_weights seed_everything ",
}
"""Module: the public names that it defines; all others are those of ``ziggurat.callbacks``."""

_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        nearest = nearest_names(name, __all__)
        hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{hint}")
    try:
        home = importlib.import_module(_MODULE_OF.get(name, "ziggurat.callbacks"))
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError("torch", extra="torch", purpose="`ziggurat.torch`") from error
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
