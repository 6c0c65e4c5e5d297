"""TensorFlow as a library: input sources, layers, towers, trainers, callbacks, savers and predictors over graphs.

A training program takes its names from here; each is imported on first use::

    from ziggurat.tf import *

    class Model(ModelDesc): ...

    launch_train_with_config(TrainConfig(model=Model(), dataflow=ds, max_epoch=10), SimpleTrainer())

``tf`` is TensorFlow with the meaning of version 1 (graphs and sessions).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ziggurat.errors import nearest_names
from ziggurat.tf import moved

if TYPE_CHECKING:
    from ziggurat import dataflow
    from ziggurat.backends.tensorflow.runtime import tf
    from ziggurat.dataflow import imgaug
    from ziggurat.engine.callback import (
        ProxyCallback,
    )
    from ziggurat.engine.callbacks.gpu import (
        GPUMemoryTracker,
        GPUUtilizationTracker,
    )
    from ziggurat.engine.callbacks.inject_shell import (
        InjectShell,
    )
    from ziggurat.engine.callbacks.learning_rate import (
        HumanHyperParamSetter,
        LearningRateSchedule,
    )
    from ziggurat.engine.callbacks.numerics import (
        BlackBox,
    )
    from ziggurat.engine.callbacks.periods import (
        CallbackFactory,
        EnableCallbackIf,
        PeriodicCallback,
        PeriodicTrigger,
    )
    from ziggurat.engine.callbacks.progress import (
        EstimatedTimeLeft,
        ProgressBar,
    )
    from ziggurat.engine.callbacks.saving import (
        KeepBest,
    )
    from ziggurat.engine.callbacks.send_stat import (
        SendStat,
    )
    from ziggurat.engine.callbacks.setters import (
        HyperParam,
        HyperParamSetter,
        HyperParamSetterWithFunc,
        ObjAttrParam,
        ProgramParam,
        ScheduledHyperParamSetter,
        StatMonitorParamSetter,
    )
    from ziggurat.engine.callbacks.stopping import (
        DivergenceWatch,
        EarlyStopping,
        StopAtTime,
    )
    from ziggurat.engine.callbacks.summaries import (
        DumpTensors,
        LogScalars,
        ProcessTensors,
        SimpleMovingAverage,
        SummariseBatch,
    )
    from ziggurat.engine.callbacks.timing import (
        HostMemoryTracker,
        StepTimes,
        ThroughputTracker,
    )
    from ziggurat.engine.callbacks.validation import (
        BinaryClassificationStats,
        ClassificationError,
        Inferencer,
        ScalarStats,
    )
    from ziggurat.engine.capabilities import (
        HasMovingSummaries,
        HasSummaries,
    )
    from ziggurat.engine.checkpoints import (
        CheckpointInfo,
        CheckpointStore,
    )
    from ziggurat.engine.interruption import (
        StopTraining,
    )
    from ziggurat.engine.monitor import (
        Image,
        Monitor,
        Monitors,
        Scalar,
    )
    from ziggurat.engine.monitors.json_writers import (
        EventWriter,
        JSONWriter,
    )
    from ziggurat.engine.monitors.scalar_printer import (
        ScalarPrinter,
    )
    from ziggurat.engine.monitors.tensorboard import (
        TFEventWriter,
    )
    from ziggurat.engine.run_state import (
        RunState,
    )
    from ziggurat.tf import logger
    from ziggurat.tf.argument_scopes import (
        argscope,
        enable_argscope_for_function,
        enable_argscope_for_module,
        get_arg_scope,
    )
    from ziggurat.tf.callback import (
        Callback,
    )
    from ziggurat.tf.config import (
        AutoResumeTrainConfig,
        TrainConfig,
        launch_train_with_config,
    )
    from ziggurat.tf.data_parallel import (
        AsyncMultiGPUTrainer,
        QueueInputTrainer,
        SyncMultiGPUTrainer,
        SyncMultiGPUTrainerParameterServer,
        SyncMultiGPUTrainerReplicated,
    )
    from ziggurat.tf.dataset_predictors import (
        AsyncPredictorBase,
        DatasetPredictorBase,
        MultiProcessDatasetPredictor,
        MultiThreadAsyncPredictor,
        SimpleDatasetPredictor,
    )
    from ziggurat.tf.defaults import (
        DEFAULT_CALLBACKS,
        DEFAULT_MONITORS,
    )
    from ziggurat.tf.distributed import (
        DistributedTrainer,
        HorovodTrainer,
    )
    from ziggurat.tf.export import (
        ModelExporter,
    )
    from ziggurat.tf.gradients import (
        CheckGradient,
        FilterNoneGrad,
        GlobalNormClip,
        GradientProcessor,
        MapGradient,
        PrintGradient,
        ScaleGradient,
        SummaryGradient,
        filter_none,
    )
    from ziggurat.tf.graph_callbacks import (
        CheckNumerics,
        DumpParamAsImage,
        DumpTensorAsImage,
        GraphProfiler,
        GraphVarParam,
        MovingAverageWeights,
        RunOp,
        RunUpdateOps,
        SessionRunTimeout,
        StartProcOrThread,
        TensorPrinter,
    )
    from ziggurat.tf.inference import (
        DataParallelInferenceRunner,
        InferenceRunner,
        InferenceRunnerBase,
    )
    from ziggurat.tf.inputs.base import (
        FeedInput,
        InputSource,
        PlaceholderInput,
        remap_input_source,
    )
    from ziggurat.tf.inputs.dataset import (
        TFDatasetInput,
    )
    from ziggurat.tf.inputs.queue import (
        BatchQueueInput,
        QueueInput,
        ZMQInput,
    )
    from ziggurat.tf.inputs.staging import (
        StagingInput,
        staged_for,
    )
    from ziggurat.tf.inputs.tensors import (
        DummyConstantInput,
        TensorInput,
    )
    from ziggurat.tf.linear_wrap import (
        LinearWrap,
    )
    from ziggurat.tf.loading import (
        ChainInit,
        DictRestore,
        JustCurrentSession,
        LoadReport,
        SaverRestore,
        SaverRestoreRelaxed,
        SmartInit,
        get_model_loader,
    )
    from ziggurat.tf.merge_summaries import (
        MergeAllSummaries,
        MovingAverageSummary,
    )
    from ziggurat.tf.model import (
        InputDesc,
        ModelDesc,
        ModelDescBase,
    )
    from ziggurat.tf.models import (
        AvgPooling,
        BatchNorm,
        BNReLU,
        ConcatWith,
        Conv2D,
        Conv2DTranspose,
        Deconv2D,
        Dropout,
        FixedUnPooling,
        FullyConnected,
        GlobalAvgPooling,
        InstanceNorm,
        LayerNorm,
        Maxout,
        MaxPooling,
        PReLU,
        VariableHolder,
        l1_regularizer,
        l2_regularizer,
        layer_register,
        regularize_cost,
        regularize_cost_from_collection,
    )
    from ziggurat.tf.multi_tower import (
        AsyncMultiGPUBuilder,
        DataParallelBuilder,
        LeastLoadedDeviceSetter,
        SyncMultiGPUParameterServerBuilder,
        SyncMultiGPUReplicatedBuilder,
    )
    from ziggurat.tf.offline_predictors import (
        DataParallelOfflinePredictor,
        FeedfreePredictor,
        MultiTowerOfflinePredictor,
        OfflinePredictor,
    )
    from ziggurat.tf.optimizers import (
        AccumGradOptimizer,
        PostProcessOptimizer,
        ProxyOptimizer,
        VariableAssignmentOptimizer,
        apply_grad_processors,
    )
    from ziggurat.tf.predict_config import (
        PredictConfig,
    )
    from ziggurat.tf.predictors import (
        OnlinePredictor,
        PredictorBase,
        value_tensor,
    )
    from ziggurat.tf.processes import (
        Place,
        place_of,
    )
    from ziggurat.tf.savers import (
        MaxSaver,
        MinSaver,
        ModelSaver,
    )
    from ziggurat.tf.scopes import (
        auto_reuse_variable_scope,
        backup_collection,
        cached_name_scope,
        freeze_collection,
        make_global_step,
        restore_collection,
        under_name_scope,
    )
    from ziggurat.tf.sessions import (
        NewSessionCreator,
        ReuseSessionCreator,
        SessionInit,
        device_name,
        get_default_sess_config,
        get_global_step_value,
        get_global_step_var,
        visible_gpus,
    )
    from ziggurat.tf.shape_log import (
        disable_layer_logging,
    )
    from ziggurat.tf.summary import (
        add_activation_summary,
        add_moving_summary,
        add_param_summary,
        add_tensor_summary,
        create_image_summary,
        create_scalar_summary,
    )
    from ziggurat.tf.symbolic import (
        accuracy,
        batch_flatten,
        flatten,
        get_scalar_var,
        huber_loss,
        prediction_incorrect,
        print_stat,
        psnr,
        rms,
    )
    from ziggurat.tf.tower import (
        BaseTowerContext,
        PredictTowerContext,
        TowerContext,
        TowerFunc,
        TowerTensorHandle,
        TowerTensorHandles,
        TrainTowerContext,
        get_current_tower_context,
    )
    from ziggurat.tf.trainers import (
        NoOpTrainer,
        SimpleTrainer,
        SingleCostTrainer,
        TowerTrainer,
        Trainer,
    )
    from ziggurat.tf.varmanip import (
        SessionUpdate,
        dump_session_params,
        get_all_checkpoints,
        get_checkpoint_path,
        load_checkpoint_vars,
        load_chkpt_vars,
        save_checkpoint_vars,
        save_chkpt_vars,
    )
    from ziggurat.tf.varreplace import (
        custom_getter_scope,
        freeze_variables,
        remap_variables,
    )

__all__ = [
    "DEFAULT_CALLBACKS",
    "DEFAULT_MONITORS",
    "AccumGradOptimizer",
    "AsyncMultiGPUBuilder",
    "AsyncMultiGPUTrainer",
    "AsyncPredictorBase",
    "AutoResumeTrainConfig",
    "AvgPooling",
    "BNReLU",
    "BaseTowerContext",
    "BatchNorm",
    "BatchQueueInput",
    "BinaryClassificationStats",
    "BlackBox",
    "Callback",
    "CallbackFactory",
    "ChainInit",
    "CheckGradient",
    "CheckNumerics",
    "CheckpointInfo",
    "CheckpointStore",
    "ClassificationError",
    "ConcatWith",
    "Conv2D",
    "Conv2DTranspose",
    "DataParallelBuilder",
    "DataParallelInferenceRunner",
    "DataParallelOfflinePredictor",
    "DatasetPredictorBase",
    "Deconv2D",
    "DictRestore",
    "DistributedTrainer",
    "DivergenceWatch",
    "Dropout",
    "DummyConstantInput",
    "DumpParamAsImage",
    "DumpTensorAsImage",
    "DumpTensors",
    "EarlyStopping",
    "EnableCallbackIf",
    "EstimatedTimeLeft",
    "EventWriter",
    "FeedInput",
    "FeedfreePredictor",
    "FilterNoneGrad",
    "FixedUnPooling",
    "FullyConnected",
    "GPUMemoryTracker",
    "GPUUtilizationTracker",
    "GlobalAvgPooling",
    "GlobalNormClip",
    "GradientProcessor",
    "GraphProfiler",
    "GraphVarParam",
    "HasMovingSummaries",
    "HasSummaries",
    "HorovodTrainer",
    "HostMemoryTracker",
    "HumanHyperParamSetter",
    "HyperParam",
    "HyperParamSetter",
    "HyperParamSetterWithFunc",
    "Image",
    "InferenceRunner",
    "InferenceRunnerBase",
    "Inferencer",
    "InjectShell",
    "InputDesc",
    "InputSource",
    "InstanceNorm",
    "JSONWriter",
    "JustCurrentSession",
    "KeepBest",
    "LayerNorm",
    "LearningRateSchedule",
    "LeastLoadedDeviceSetter",
    "LinearWrap",
    "LoadReport",
    "LogScalars",
    "MapGradient",
    "MaxPooling",
    "MaxSaver",
    "Maxout",
    "MergeAllSummaries",
    "MinSaver",
    "ModelDesc",
    "ModelDescBase",
    "ModelExporter",
    "ModelSaver",
    "Monitor",
    "Monitors",
    "MovingAverageSummary",
    "MovingAverageWeights",
    "MultiProcessDatasetPredictor",
    "MultiThreadAsyncPredictor",
    "MultiTowerOfflinePredictor",
    "NewSessionCreator",
    "NoOpTrainer",
    "ObjAttrParam",
    "OfflinePredictor",
    "OnlinePredictor",
    "PReLU",
    "PeriodicCallback",
    "PeriodicTrigger",
    "Place",
    "PlaceholderInput",
    "PostProcessOptimizer",
    "PredictConfig",
    "PredictTowerContext",
    "PredictorBase",
    "PrintGradient",
    "ProcessTensors",
    "ProgramParam",
    "ProgressBar",
    "ProxyCallback",
    "ProxyOptimizer",
    "QueueInput",
    "QueueInputTrainer",
    "ReuseSessionCreator",
    "RunOp",
    "RunState",
    "RunUpdateOps",
    "SaverRestore",
    "SaverRestoreRelaxed",
    "Scalar",
    "ScalarPrinter",
    "ScalarStats",
    "ScaleGradient",
    "ScheduledHyperParamSetter",
    "SendStat",
    "SessionInit",
    "SessionRunTimeout",
    "SessionUpdate",
    "SimpleDatasetPredictor",
    "SimpleMovingAverage",
    "SimpleTrainer",
    "SingleCostTrainer",
    "SmartInit",
    "StagingInput",
    "StartProcOrThread",
    "StatMonitorParamSetter",
    "StepTimes",
    "StopAtTime",
    "StopTraining",
    "SummariseBatch",
    "SummaryGradient",
    "SyncMultiGPUParameterServerBuilder",
    "SyncMultiGPUReplicatedBuilder",
    "SyncMultiGPUTrainer",
    "SyncMultiGPUTrainerParameterServer",
    "SyncMultiGPUTrainerReplicated",
    "TFDatasetInput",
    "TFEventWriter",
    "TensorInput",
    "TensorPrinter",
    "ThroughputTracker",
    "TowerContext",
    "TowerFunc",
    "TowerTensorHandle",
    "TowerTensorHandles",
    "TowerTrainer",
    "TrainConfig",
    "TrainTowerContext",
    "Trainer",
    "VariableAssignmentOptimizer",
    "VariableHolder",
    "ZMQInput",
    "accuracy",
    "add_activation_summary",
    "add_moving_summary",
    "add_param_summary",
    "add_tensor_summary",
    "apply_grad_processors",
    "argscope",
    "auto_reuse_variable_scope",
    "backup_collection",
    "batch_flatten",
    "cached_name_scope",
    "create_image_summary",
    "create_scalar_summary",
    "custom_getter_scope",
    "dataflow",
    "device_name",
    "disable_layer_logging",
    "dump_session_params",
    "enable_argscope_for_function",
    "enable_argscope_for_module",
    "filter_none",
    "flatten",
    "freeze_collection",
    "freeze_variables",
    "get_all_checkpoints",
    "get_arg_scope",
    "get_checkpoint_path",
    "get_current_tower_context",
    "get_default_sess_config",
    "get_global_step_value",
    "get_global_step_var",
    "get_model_loader",
    "get_scalar_var",
    "huber_loss",
    "imgaug",
    "l1_regularizer",
    "l2_regularizer",
    "launch_train_with_config",
    "layer_register",
    "load_checkpoint_vars",
    "load_chkpt_vars",
    "logger",
    "make_global_step",
    "place_of",
    "prediction_incorrect",
    "print_stat",
    "psnr",
    "regularize_cost",
    "regularize_cost_from_collection",
    "remap_input_source",
    "remap_variables",
    "restore_collection",
    "rms",
    "save_checkpoint_vars",
    "save_chkpt_vars",
    "staged_for",
    "tf",
    "under_name_scope",
    "value_tensor",
    "visible_gpus",
]

_HOMES = {
    "ziggurat.engine.callback": ("ProxyCallback "),
    "ziggurat.engine.callbacks.gpu": ("GPUMemoryTracker GPUUtilizationTracker "),
    "ziggurat.engine.callbacks.inject_shell": ("InjectShell "),
    "ziggurat.engine.callbacks.learning_rate": ("HumanHyperParamSetter LearningRateSchedule "),
    "ziggurat.engine.callbacks.numerics": ("BlackBox "),
    "ziggurat.engine.callbacks.periods": ("CallbackFactory EnableCallbackIf PeriodicCallback PeriodicTrigger "),
    "ziggurat.engine.callbacks.progress": ("EstimatedTimeLeft ProgressBar "),
    "ziggurat.engine.callbacks.saving": ("KeepBest "),
    "ziggurat.engine.callbacks.send_stat": ("SendStat "),
    "ziggurat.engine.callbacks.setters": (
        "HyperParam HyperParamSetter HyperParamSetterWithFunc ObjAttrParam ProgramParam "
        "ScheduledHyperParamSetter StatMonitorParamSetter "
    ),
    "ziggurat.engine.callbacks.stopping": ("DivergenceWatch EarlyStopping StopAtTime "),
    "ziggurat.engine.callbacks.summaries": (
        "DumpTensors LogScalars ProcessTensors SimpleMovingAverage SummariseBatch "
    ),
    "ziggurat.engine.callbacks.timing": ("HostMemoryTracker StepTimes ThroughputTracker "),
    "ziggurat.engine.callbacks.validation": ("BinaryClassificationStats ClassificationError Inferencer ScalarStats "),
    "ziggurat.engine.capabilities": ("HasMovingSummaries HasSummaries "),
    "ziggurat.engine.checkpoints": ("CheckpointInfo CheckpointStore "),
    "ziggurat.engine.interruption": ("StopTraining "),
    "ziggurat.engine.monitor": ("Image Monitor Monitors Scalar "),
    "ziggurat.engine.monitors.json_writers": ("EventWriter JSONWriter "),
    "ziggurat.engine.monitors.scalar_printer": ("ScalarPrinter "),
    "ziggurat.engine.monitors.tensorboard": ("TFEventWriter "),
    "ziggurat.engine.run_state": ("RunState "),
    "ziggurat.tf.argument_scopes": ("argscope enable_argscope_for_function enable_argscope_for_module get_arg_scope "),
    "ziggurat.tf.callback": ("Callback "),
    "ziggurat.tf.config": ("AutoResumeTrainConfig TrainConfig launch_train_with_config "),
    "ziggurat.tf.data_parallel": (
        "AsyncMultiGPUTrainer QueueInputTrainer SyncMultiGPUTrainer "
        "SyncMultiGPUTrainerParameterServer SyncMultiGPUTrainerReplicated "
    ),
    "ziggurat.tf.dataset_predictors": (
        "AsyncPredictorBase DatasetPredictorBase MultiProcessDatasetPredictor "
        "MultiThreadAsyncPredictor SimpleDatasetPredictor "
    ),
    "ziggurat.tf.defaults": ("DEFAULT_CALLBACKS DEFAULT_MONITORS "),
    "ziggurat.tf.distributed": ("DistributedTrainer HorovodTrainer "),
    "ziggurat.tf.export": ("ModelExporter "),
    "ziggurat.tf.gradients": (
        "CheckGradient FilterNoneGrad GlobalNormClip GradientProcessor MapGradient PrintGradient "
        "ScaleGradient SummaryGradient filter_none "
    ),
    "ziggurat.tf.graph_callbacks": (
        "CheckNumerics DumpParamAsImage DumpTensorAsImage GraphProfiler GraphVarParam "
        "MovingAverageWeights RunOp RunUpdateOps SessionRunTimeout StartProcOrThread TensorPrinter "
    ),
    "ziggurat.tf.inference": ("DataParallelInferenceRunner InferenceRunner InferenceRunnerBase "),
    "ziggurat.tf.inputs.base": ("FeedInput InputSource PlaceholderInput remap_input_source "),
    "ziggurat.tf.inputs.dataset": ("TFDatasetInput "),
    "ziggurat.tf.inputs.queue": ("BatchQueueInput QueueInput ZMQInput "),
    "ziggurat.tf.inputs.staging": ("StagingInput staged_for "),
    "ziggurat.tf.inputs.tensors": ("DummyConstantInput TensorInput "),
    "ziggurat.tf.linear_wrap": ("LinearWrap "),
    "ziggurat.tf.loading": (
        "ChainInit DictRestore JustCurrentSession LoadReport SaverRestore SaverRestoreRelaxed "
        "SmartInit get_model_loader "
    ),
    "ziggurat.tf.merge_summaries": ("MergeAllSummaries MovingAverageSummary "),
    "ziggurat.tf.model": ("InputDesc ModelDesc ModelDescBase "),
    "ziggurat.tf.models": (
        "AvgPooling BNReLU BatchNorm ConcatWith Conv2D Conv2DTranspose Deconv2D Dropout "
        "FixedUnPooling FullyConnected GlobalAvgPooling InstanceNorm LayerNorm MaxPooling Maxout "
        "PReLU VariableHolder l1_regularizer l2_regularizer layer_register regularize_cost "
        "regularize_cost_from_collection "
    ),
    "ziggurat.tf.multi_tower": (
        "AsyncMultiGPUBuilder DataParallelBuilder LeastLoadedDeviceSetter "
        "SyncMultiGPUParameterServerBuilder SyncMultiGPUReplicatedBuilder "
    ),
    "ziggurat.tf.offline_predictors": (
        "DataParallelOfflinePredictor FeedfreePredictor MultiTowerOfflinePredictor OfflinePredictor "
    ),
    "ziggurat.tf.optimizers": (
        "AccumGradOptimizer PostProcessOptimizer ProxyOptimizer VariableAssignmentOptimizer apply_grad_processors "
    ),
    "ziggurat.tf.predict_config": ("PredictConfig "),
    "ziggurat.tf.predictors": ("OnlinePredictor PredictorBase value_tensor "),
    "ziggurat.tf.processes": ("Place place_of "),
    "ziggurat.tf.savers": ("MaxSaver MinSaver ModelSaver "),
    "ziggurat.tf.scopes": (
        "auto_reuse_variable_scope backup_collection cached_name_scope freeze_collection "
        "make_global_step restore_collection under_name_scope "
    ),
    "ziggurat.tf.sessions": (
        "NewSessionCreator ReuseSessionCreator SessionInit device_name get_default_sess_config "
        "get_global_step_value get_global_step_var visible_gpus "
    ),
    "ziggurat.tf.shape_log": ("disable_layer_logging "),
    "ziggurat.tf.summary": (
        "add_activation_summary add_moving_summary add_param_summary add_tensor_summary "
        "create_image_summary create_scalar_summary "
    ),
    "ziggurat.tf.symbolic": (
        "accuracy batch_flatten flatten get_scalar_var huber_loss prediction_incorrect print_stat psnr rms "
    ),
    "ziggurat.tf.tower": (
        "BaseTowerContext PredictTowerContext TowerContext TowerFunc TowerTensorHandle "
        "TowerTensorHandles TrainTowerContext get_current_tower_context "
    ),
    "ziggurat.tf.trainers": ("NoOpTrainer SimpleTrainer SingleCostTrainer TowerTrainer Trainer "),
    "ziggurat.tf.varmanip": (
        "SessionUpdate dump_session_params get_all_checkpoints get_checkpoint_path "
        "load_checkpoint_vars load_chkpt_vars save_checkpoint_vars save_chkpt_vars "
    ),
    "ziggurat.tf.varreplace": ("custom_getter_scope freeze_variables remap_variables "),
}
"""Module: the public names that it defines."""

moved.install()

_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
_MODULES = {"dataflow": "ziggurat.dataflow", "imgaug": "ziggurat.dataflow.imgaug", "logger": "ziggurat.tf.logger"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name == "tf":
        return importlib.import_module("ziggurat.backends.tensorflow.runtime").tf
    if name not in _MODULE_OF:
        nearest = nearest_names(name, __all__)
        hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{hint}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
