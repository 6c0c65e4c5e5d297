"""Public API of the framework-independent parts of training: trainer, callbacks, monitors, schedules."""

from ziggurat.engine.callback import Callback, ProxyCallback, bind_folder
from ziggurat.engine.callbacks.defaults import (
    DEFAULT_CALLBACKS,
    DEFAULT_MONITORS,
    default_callbacks,
    default_monitors,
)
from ziggurat.engine.callbacks.gpu import GPUMemoryTracker, GPUUtilizationTracker
from ziggurat.engine.callbacks.inject_shell import InjectShell
from ziggurat.engine.callbacks.learning_rate import HumanHyperParamSetter, LearningRateSchedule
from ziggurat.engine.callbacks.numerics import BlackBox, CheckNumerics
from ziggurat.engine.callbacks.periods import CallbackFactory, EnableCallbackIf, PeriodicCallback, PeriodicTrigger
from ziggurat.engine.callbacks.progress import EstimatedTimeLeft, ProgressBar
from ziggurat.engine.callbacks.saving import KeepBest, MaxSaver, MinSaver, ModelSaver
from ziggurat.engine.callbacks.send_stat import SendStat
from ziggurat.engine.callbacks.setters import (
    HyperParam,
    HyperParamSetter,
    HyperParamSetterWithFunc,
    ObjAttrParam,
    ProgramParam,
    ScheduledHyperParamSetter,
    StatMonitorParamSetter,
)
from ziggurat.engine.callbacks.stopping import DivergenceWatch, EarlyStopping, StopAtTime
from ziggurat.engine.callbacks.summaries import (
    DumpTensors,
    LogScalars,
    MergeAllSummaries,
    MovingAverageSummary,
    ProcessTensors,
    SimpleMovingAverage,
    SummariseBatch,
)
from ziggurat.engine.callbacks.timing import HostMemoryTracker, StepTimes, ThroughputTracker
from ziggurat.engine.callbacks.validation import (
    BinaryClassificationStats,
    ClassificationError,
    Inferencer,
    InferenceRunner,
    ScalarStats,
)
from ziggurat.engine.capabilities import HasMovingSummaries, HasSummaries
from ziggurat.engine.checkpoints import CheckpointInfo, CheckpointStore
from ziggurat.engine.interruption import StopTraining
from ziggurat.engine.monitor import Image, Monitor, Monitors, Scalar
from ziggurat.engine.monitors.json_writers import EventWriter, JSONWriter
from ziggurat.engine.monitors.scalar_printer import ScalarPrinter
from ziggurat.engine.monitors.tensorboard import TFEventWriter
from ziggurat.engine.run_state import RunState
from ziggurat.engine.trainer import Trainer
from ziggurat.schedules.curves import (
    Cosine,
    Exponential,
    Fixed,
    Inverse,
    Linear,
    MultiStep,
    OneCycle,
    Piecewise,
    Polynomial,
    Sigmoid,
    Step,
    WarmUp,
)
from ziggurat.schedules.registry import SCHEDULES, make_schedule, preview

__all__ = [
    "DEFAULT_CALLBACKS",
    "DEFAULT_MONITORS",
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
    "Monitor",
    "Monitors",
    "MovingAverageSummary",
    "MultiStep",
    "ObjAttrParam",
    "OneCycle",
    "PeriodicCallback",
    "PeriodicTrigger",
    "Piecewise",
    "Polynomial",
    "ProcessTensors",
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
    "Trainer",
    "WarmUp",
    "bind_folder",
    "default_callbacks",
    "default_monitors",
    "make_schedule",
    "preview",
]
