"""Table of Tensorpack's modules: which names each has, where ours are, and what is left out."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import ziggurat
from ziggurat.compat.tensorpack.left_out import left_out_class
from ziggurat.compat.tensorpack.notes import LEFT_OUT, NOTES
from ziggurat.errors import UnknownNameError

__all__ = ["MODULES", "Module", "Name", "all_names", "resolve", "star_names"]

_OWN: Final = "ziggurat.compat.tensorpack"
_ROOT: Final = Path(ziggurat.__file__).parent


@dataclass(frozen=True)
class Module:
    """One module of Tensorpack.

    Args:
        names: what ``import *`` gives, in one text.
        inner: what only an import by name gives.
        homes: our modules, searched in this order.
        members: modules whose names a package gives too.
        modules: other modules that ``import *`` of a package gives, by their short names.
    """

    names: str = ""
    inner: str = ""
    homes: tuple[str, ...] = ()
    members: tuple[str, ...] = field(default=())
    modules: str = ""


@dataclass(frozen=True)
class Name:
    """One name of Tensorpack.

    Args:
        module: of Tensorpack, such as ``tensorpack.dataflow.common``.
        name: in it.
        ours: our module; empty where it is left out.
        note: what is different, or what to use instead; empty where it is the same.
    """

    module: str
    name: str
    ours: str
    note: str

    @property
    def state(self) -> str:
        """``same``, ``changed`` or ``left out``."""
        if not self.ours:
            return "left out"
        return "changed" if self.note else "same"


_FLOWS: Final = (f"{_OWN}.flows", "ziggurat.dataflow")
_AUGMENTORS: Final = (f"{_OWN}.augmentors", "ziggurat.dataflow.imgaug")
_DATASETS: Final = (f"{_OWN}.datasets", "ziggurat.dataflow.dataset", "ziggurat.dataflow.dataset.cifar")
_CALLBACKS: Final = (
    f"{_OWN}.callbacks",
    "ziggurat.tf.callback",
    "ziggurat.tf.graph_callbacks",
    "ziggurat.tf.inference",
    "ziggurat.tf.savers",
    "ziggurat.tf.merge_summaries",
    "ziggurat.tf.summary",
    "ziggurat.callbacks",
)
_MONITORS: Final = (f"{_OWN}.monitors", "ziggurat.callbacks")
_MODELS: Final = (
    f"{_OWN}.layers",
    "ziggurat.tf.models",
    "ziggurat.tf.models.registry",
    "ziggurat.tf.shape_log",
    "ziggurat.tf.linear_wrap",
    "ziggurat.tf.argument_scopes",
    "ziggurat.tf.symbolic",
    f"{_OWN}.symbolic",
)
_TRAIN: Final = (
    f"{_OWN}.training",
    "ziggurat.tf.trainers",
    "ziggurat.tf.data_parallel",
    "ziggurat.tf.multi_tower",
    "ziggurat.tf.distributed",
    "ziggurat.tf.config",
    "ziggurat.tf.defaults",
    "ziggurat.tf.model",
    "ziggurat.callbacks",
)
_INPUTS: Final = (
    "ziggurat.tf.inputs.base",
    "ziggurat.tf.inputs.queue",
    "ziggurat.tf.inputs.tensors",
    "ziggurat.tf.inputs.dataset",
    "ziggurat.tf.inputs.staging",
)
_PREDICT: Final = (
    "ziggurat.tf.predictors",
    "ziggurat.tf.offline_predictors",
    "ziggurat.tf.dataset_predictors",
    "ziggurat.tf.predict_config",
)


def _utils(name: str, names: str, inner: str = "") -> Module:
    return Module(names, inner, (f"{_OWN}.utils.{name}",))


MODULES: Final[Mapping[str, Module]] = {
    "tensorpack": Module(
        "tfv1 InputDesc __version__",
        homes=(f"{_OWN}.compat", "ziggurat.tf.model"),
        members=("utils", "dataflow", "models", "callbacks", "tfutils", "train", "input_source", "predict"),
        modules="utils dataflow models callbacks tfutils train graph_builder input_source predict compat libinfo",
    ),
    "tensorpack.libinfo": Module("__version__", homes=(f"{_OWN}.compat",)),
    "tensorpack.compat": Module("", "tfv1 is_tfv2", (f"{_OWN}.compat",)),
    "tensorpack.compat.tensor_spec": Module("", "TensorSpec", (f"{_OWN}.compat",)),
    # ---- data
    "tensorpack.dataflow": Module(
        members=("base", "common", "format", "image", "parallel", "parallel_map", "raw", "remote", "serialize"),
        modules="imgaug dataset dftools",
    ),
    "tensorpack.dataflow.base": Module(
        "DataFlow ProxyDataFlow RNGDataFlow DataFlowTerminated", "DataFlowReentrantGuard", _FLOWS
    ),
    "tensorpack.dataflow.common": Module(
        "TestDataSpeed PrintData BatchData BatchDataByShape FixedSizeData MapData MapDataComponent RepeatedData "
        "RepeatedDataPoint RandomChooseData RandomMixData JoinData ConcatData SelectComponent LocallyShuffleData "
        "CacheData",
        homes=_FLOWS,
    ),
    "tensorpack.dataflow.format": Module(
        "HDF5Data LMDBData LMDBDataDecoder LMDBDataPoint TFRecordData CaffeLMDB SVMLightData", homes=_FLOWS
    ),
    "tensorpack.dataflow.image": Module(
        "ImageFromFile AugmentImageComponent AugmentImageCoordinates AugmentImageComponents", homes=_FLOWS
    ),
    "tensorpack.dataflow.parallel": Module(
        "PrefetchData MultiProcessPrefetchData MultiProcessRunner PrefetchDataZMQ MultiProcessRunnerZMQ "
        "MultiThreadPrefetchData MultiThreadRunner PrefetchOnGPUs",
        "PlasmaPutData PlasmaGetData",
        _FLOWS,
    ),
    "tensorpack.dataflow.parallel_map": Module(
        "ThreadedMapData MultiThreadMapData MultiProcessMapData MultiProcessMapDataZMQ MultiProcessMapAndBatchData "
        "MultiProcessMapAndBatchDataZMQ",
        "MultiProcessMapDataComponentSharedArray",
        _FLOWS,
    ),
    "tensorpack.dataflow.prefetch": Module(
        "PrefetchData PrefetchDataZMQ PrefetchOnGPUs ThreadedMapData MultiThreadMapData MultiProcessMapData "
        "MultiProcessMapDataZMQ",
        homes=_FLOWS,
    ),
    "tensorpack.dataflow.raw": Module(
        "FakeData DataFromQueue DataFromList DataFromGenerator DataFromIterable", homes=_FLOWS
    ),
    "tensorpack.dataflow.remote": Module("send_dataflow_zmq RemoteDataZMQ", "dump_dataflow_to_process_queue", _FLOWS),
    "tensorpack.dataflow.serialize": Module(
        "LMDBSerializer NumpySerializer TFRecordSerializer HDF5Serializer", "DiskCacheSerializer", _FLOWS
    ),
    "tensorpack.dataflow.dftools": Module(
        "dump_dataflow_to_lmdb dump_dataflow_to_tfrecord dump_dataflow_to_process_queue", homes=_FLOWS
    ),
    "tensorpack.dataflow.dataset": Module(
        members=("bsds500", "caltech101", "cifar", "ilsvrc", "mnist", "places", "svhn")
    ),
    "tensorpack.dataflow.dataset.bsds500": Module("BSDS500", homes=_DATASETS),
    "tensorpack.dataflow.dataset.caltech101": Module("Caltech101Silhouettes", homes=_DATASETS),
    "tensorpack.dataflow.dataset.cifar": Module("CifarBase Cifar10 Cifar100", homes=_DATASETS),
    "tensorpack.dataflow.dataset.ilsvrc": Module("ILSVRCMeta ILSVRC12 ILSVRC12Files TinyImageNet", homes=_DATASETS),
    "tensorpack.dataflow.dataset.mnist": Module("Mnist FashionMnist", homes=_DATASETS),
    "tensorpack.dataflow.dataset.places": Module("Places365Standard", homes=_DATASETS),
    "tensorpack.dataflow.dataset.svhn": Module("SVHNDigit", homes=_DATASETS),
    "tensorpack.dataflow.imgaug": Module(
        members=(
            "base",
            "convert",
            "crop",
            "deform",
            "external",
            "geometry",
            "imgproc",
            "meta",
            "misc",
            "noise",
            "paste",
            "transform",
        )
    ),
    "tensorpack.dataflow.imgaug.base": Module(
        "Augmentor ImageAugmentor AugmentorList PhotometricAugmentor", homes=_AUGMENTORS
    ),
    "tensorpack.dataflow.imgaug.convert": Module("ColorSpace Grayscale ToUint8 ToFloat32", homes=_AUGMENTORS),
    "tensorpack.dataflow.imgaug.crop": Module(
        "RandomCrop CenterCrop RandomCropRandomShape GoogleNetRandomCropAndResize RandomCutout RandomCropAroundBox",
        "perturb_BB",
        _AUGMENTORS,
    ),
    "tensorpack.dataflow.imgaug.deform": Module("GaussianDeform", homes=_AUGMENTORS),
    "tensorpack.dataflow.imgaug.external": Module("IAAugmentor Albumentations", homes=_AUGMENTORS),
    "tensorpack.dataflow.imgaug.geometry": Module("Shift Rotation RotationAndCropValid Affine", homes=_AUGMENTORS),
    "tensorpack.dataflow.imgaug.imgproc": Module(
        "Hue Brightness BrightnessScale Contrast MeanVarianceNormalize GaussianBlur Gamma Clip Saturation Lighting "
        "MinMaxNormalize",
        homes=_AUGMENTORS,
    ),
    "tensorpack.dataflow.imgaug.meta": Module(
        "RandomChooseAug MapImage Identity RandomApplyAug RandomOrderAug", homes=_AUGMENTORS
    ),
    "tensorpack.dataflow.imgaug.misc": Module(
        "Flip Resize RandomResize ResizeShortestEdge Transpose", homes=_AUGMENTORS
    ),
    "tensorpack.dataflow.imgaug.noise": Module("JpegNoise GaussianNoise SaltPepperNoise", homes=_AUGMENTORS),
    "tensorpack.dataflow.imgaug.paste": Module(
        "CenterPaste BackgroundFiller ConstantBackgroundFiller RandomPaste", homes=_AUGMENTORS
    ),
    "tensorpack.dataflow.imgaug.transform": Module(
        "Transform ResizeTransform CropTransform FlipTransform TransformList TransformFactory",
        "NoOpTransform PhotometricTransform TransposeTransform WarpAffineTransform BaseTransform ImageTransform "
        "TransformAugmentorBase",
        _AUGMENTORS,
    ),
    # ---- layers
    "tensorpack.models": Module(
        members=(
            "batch_norm",
            "common",
            "conv2d",
            "fc",
            "image_sample",
            "layer_norm",
            "linearwrap",
            "nonlin",
            "pool",
            "regularize",
            "shapes",
            "softmax",
        )
    ),
    "tensorpack.models.batch_norm": Module("BatchNorm BatchRenorm", homes=_MODELS),
    "tensorpack.models.common": Module(
        "layer_register disable_layer_logging VariableHolder rename_tflayer_get_variable", homes=_MODELS
    ),
    "tensorpack.models.conv2d": Module("Conv2D Deconv2D Conv2DTranspose", homes=_MODELS),
    "tensorpack.models.fc": Module("FullyConnected", "batch_flatten", _MODELS),
    "tensorpack.models.image_sample": Module("ImageSample", homes=_MODELS),
    "tensorpack.models.layer_norm": Module("LayerNorm InstanceNorm", homes=_MODELS),
    "tensorpack.models.linearwrap": Module("LinearWrap", homes=_MODELS),
    "tensorpack.models.nonlin": Module("Maxout PReLU BNReLU LeakyReLU", homes=_MODELS),
    "tensorpack.models.pool": Module(
        "MaxPooling FixedUnPooling AvgPooling GlobalAvgPooling BilinearUpSample", homes=_MODELS
    ),
    "tensorpack.models.registry": Module("layer_register disable_layer_logging", "get_registered_layer", homes=_MODELS),
    "tensorpack.models.regularize": Module(
        "regularize_cost regularize_cost_from_collection l2_regularizer l1_regularizer Dropout", homes=_MODELS
    ),
    "tensorpack.models.shape_utils": Module("", "StaticDynamicAxis StaticDynamicShape", (f"{_OWN}.shapes",)),
    "tensorpack.models.shapes": Module("ConcatWith", homes=_MODELS),
    "tensorpack.models.softmax": Module("SoftMax", homes=_MODELS),
    "tensorpack.models.tflayer": Module("", "rename_get_variable rename_tflayer_get_variable", _MODELS),
    "tensorpack.models.utils": Module("", "VariableHolder", _MODELS),
    # ---- graphs
    "tensorpack.tfutils": Module(
        "get_current_tower_context TowerContext",
        homes=("ziggurat.tf.tower",),
        members=("common", "sessinit", "argscope"),
        modules="sessinit summary optimizer sesscreate gradproc varreplace symbolic_functions tower",
    ),
    "tensorpack.tfutils.argscope": Module(
        "argscope get_arg_scope enable_argscope_for_module enable_argscope_for_function", homes=_MODELS
    ),
    "tensorpack.tfutils.collect_env": Module("", "collect_env_info", (f"{_OWN}.compat",)),
    "tensorpack.tfutils.collection": Module(
        "backup_collection restore_collection freeze_collection", homes=("ziggurat.tf.scopes",)
    ),
    "tensorpack.tfutils.common": Module(
        "get_default_sess_config get_global_step_value get_global_step_var get_tf_version_tuple collect_env_info",
        "get_tf_version_number get_op_tensor_name get_tensors_by_names get_op_or_tensor_by_name "
        "gpu_available_in_session",
        (f"{_OWN}.compat", f"{_OWN}.graphs", "ziggurat.tf.sessions"),
    ),
    "tensorpack.tfutils.dependency": Module("dependency_of_targets dependency_of_fetches", homes=(f"{_OWN}.graphs",)),
    "tensorpack.tfutils.distributed": Module("", "get_distributed_session_creator"),
    "tensorpack.tfutils.distributions": Module(
        "Distribution CategoricalDistribution GaussianDistribution ProductDistribution",
    ),
    "tensorpack.tfutils.export": Module("ModelExporter ModelExport", homes=("ziggurat.tf.export",)),
    "tensorpack.tfutils.gradproc": Module(
        "GradientProcessor FilterNoneGrad GlobalNormClip MapGradient SummaryGradient PrintGradient CheckGradient "
        "ScaleGradient",
        homes=("ziggurat.tf.gradients",),
    ),
    "tensorpack.tfutils.model_utils": Module("", "describe_trainable_vars get_shape_str", (f"{_OWN}.graphs",)),
    "tensorpack.tfutils.optimizer": Module(
        "apply_grad_processors ProxyOptimizer PostProcessOptimizer VariableAssignmentOptimizer AccumGradOptimizer",
        homes=(f"{_OWN}.gradients", "ziggurat.tf.optimizers"),
    ),
    "tensorpack.tfutils.scope_utils": Module(
        "auto_reuse_variable_scope cached_name_scope under_name_scope", "under_variable_scope", ("ziggurat.tf.scopes",)
    ),
    "tensorpack.tfutils.sesscreate": Module(
        "NewSessionCreator ReuseSessionCreator SessionCreatorAdapter", homes=("ziggurat.tf.sessions",)
    ),
    "tensorpack.tfutils.sessinit": Module(
        "SessionInit ChainInit SaverRestore SaverRestoreRelaxed DictRestore JustCurrentSession get_model_loader "
        "SmartInit TryResumeTraining",
        "CheckpointReaderAdapter MismatchLogger",
        homes=(f"{_OWN}.loading", "ziggurat.tf.loading", "ziggurat.tf.sessions"),
    ),
    "tensorpack.tfutils.summary": Module(
        "add_tensor_summary add_param_summary add_activation_summary add_moving_summary",
        "create_scalar_summary create_image_summary",
        ("ziggurat.tf.summary",),
    ),
    "tensorpack.tfutils.symbolic_functions": Module(
        "get_scalar_var prediction_incorrect flatten batch_flatten print_stat rms huber_loss",
        "accuracy psnr shapeless_placeholder class_balanced_cross_entropy class_balanced_sigmoid_cross_entropy "
        "saliency_map guided_relu",
        _MODELS,
    ),
    "tensorpack.tfutils.tower": Module(
        "get_current_tower_context BaseTowerContext TowerContext TowerFuncWrapper TowerFunc TowerTensorHandle "
        "TowerTensorHandles",
        "TrainTowerContext PredictTowerContext",
        (f"{_OWN}.compat", "ziggurat.tf.tower"),
    ),
    "tensorpack.tfutils.varmanip": Module(
        "SessionUpdate dump_session_params dump_chkpt_vars load_chkpt_vars save_chkpt_vars save_checkpoint_vars "
        "load_checkpoint_vars get_checkpoint_path get_all_checkpoints",
        "get_savename_from_varname is_training_name",
        (f"{_OWN}.loading", "ziggurat.tf.varmanip"),
    ),
    "tensorpack.tfutils.varreplace": Module(
        "custom_getter_scope freeze_variables remap_variables", homes=("ziggurat.tf.varreplace",)
    ),
    # ---- training
    "tensorpack.callbacks": Module(
        members=(
            "base",
            "concurrency",
            "graph",
            "group",
            "hooks",
            "inference",
            "inference_runner",
            "misc",
            "monitor",
            "param",
            "prof",
            "saver",
            "stats",
            "steps",
            "summary",
            "trigger",
        )
    ),
    "tensorpack.callbacks.base": Module("Callback ProxyCallback CallbackFactory", homes=_CALLBACKS),
    "tensorpack.callbacks.concurrency": Module("StartProcOrThread", homes=_CALLBACKS),
    "tensorpack.callbacks.graph": Module(
        "RunOp RunUpdateOps ProcessTensors DumpTensors DumpTensor DumpTensorAsImage DumpParamAsImage CheckNumerics",
        homes=_CALLBACKS,
    ),
    "tensorpack.callbacks.group": Module("Callbacks", homes=_CALLBACKS),
    "tensorpack.callbacks.hooks": Module("CallbackToHook HookToCallback TFLocalCLIDebugHook", homes=_CALLBACKS),
    "tensorpack.callbacks.inference": Module(
        "ScalarStats Inferencer ClassificationError BinaryClassificationStats", homes=_CALLBACKS
    ),
    "tensorpack.callbacks.inference_runner": Module(
        "InferenceRunnerBase InferenceRunner DataParallelInferenceRunner", homes=_CALLBACKS
    ),
    "tensorpack.callbacks.misc": Module("SendStat InjectShell EstimatedTimeLeft", homes=_CALLBACKS),
    "tensorpack.callbacks.monitor": Module(
        "MonitorBase Monitors TFEventWriter JSONWriter ScalarPrinter SendMonitorData CometMLMonitor TrainingMonitor "
        "TFSummaryWriter",
        homes=_MONITORS,
    ),
    "tensorpack.callbacks.param": Module(
        "HyperParam GraphVarParam ObjAttrParam HyperParamSetter HumanHyperParamSetter ScheduledHyperParamSetter "
        "StatMonitorParamSetter HyperParamSetterWithFunc",
        homes=_CALLBACKS,
    ),
    "tensorpack.callbacks.prof": Module(
        "GPUUtilizationTracker GraphProfiler PeakMemoryTracker GPUMemoryTracker HostMemoryTracker ThroughputTracker",
        homes=_CALLBACKS,
    ),
    "tensorpack.callbacks.saver": Module("ModelSaver MinSaver MaxSaver", homes=_CALLBACKS),
    "tensorpack.callbacks.stats": Module("SendStat DumpParamAsImage InjectShell", homes=_CALLBACKS),
    "tensorpack.callbacks.steps": Module(
        "StepTensorPrinter TensorPrinter ProgressBar SessionRunTimeout", homes=_CALLBACKS
    ),
    "tensorpack.callbacks.summary": Module(
        "MovingAverageSummary MergeAllSummaries SimpleMovingAverage", homes=_CALLBACKS
    ),
    "tensorpack.callbacks.trigger": Module(
        "PeriodicTrigger PeriodicRunHooks EnableCallbackIf PeriodicCallback", homes=_CALLBACKS
    ),
    "tensorpack.train": Module(members=("base", "config", "interface", "model_desc", "tower", "trainers")),
    "tensorpack.train.base": Module(
        "Trainer StopTraining", "TrainConfig DEFAULT_CALLBACKS DEFAULT_MONITORS TrainLoop", _TRAIN
    ),
    "tensorpack.train.config": Module(
        "TrainConfig AutoResumeTrainConfig DEFAULT_CALLBACKS DEFAULT_MONITORS", homes=_TRAIN
    ),
    "tensorpack.train.interface": Module("launch_train_with_config apply_default_prefetch", homes=_TRAIN),
    "tensorpack.train.model_desc": Module(
        "ModelDesc ModelDescBase", "InputDesc TensorSpec", homes=(*_TRAIN, f"{_OWN}.compat")
    ),
    "tensorpack.train.tower": Module("SingleCostTrainer TowerTrainer", homes=_TRAIN),
    "tensorpack.train.trainers": Module(
        "NoOpTrainer SimpleTrainer QueueInputTrainer SyncMultiGPUTrainer SyncMultiGPUTrainerReplicated "
        "SyncMultiGPUTrainerParameterServer AsyncMultiGPUTrainer DistributedTrainerParameterServer "
        "DistributedTrainerReplicated HorovodTrainer BytePSTrainer",
        homes=_TRAIN,
    ),
    "tensorpack.trainv1": Module(members=("base", "config", "interface", "multigpu", "simple")),
    "tensorpack.trainv1.base": Module("Trainer StopTraining", homes=_TRAIN),
    "tensorpack.trainv1.config": Module("TrainConfig", homes=_TRAIN),
    "tensorpack.trainv1.interface": Module("launch_train_with_config", homes=_TRAIN),
    "tensorpack.trainv1.multigpu": Module(
        "SyncMultiGPUTrainer SyncMultiGPUTrainerReplicated SyncMultiGPUTrainerParameterServer AsyncMultiGPUTrainer",
        homes=_TRAIN,
    ),
    "tensorpack.trainv1.simple": Module("SimpleTrainer QueueInputTrainer", homes=_TRAIN),
    "tensorpack.graph_builder": Module(members=("model_desc", "training", "utils")),
    "tensorpack.graph_builder.model_desc": Module("InputDesc ModelDesc ModelDescBase", homes=_TRAIN),
    "tensorpack.graph_builder.training": Module(
        "GraphBuilder DataParallelBuilder SyncMultiGPUParameterServerBuilder SyncMultiGPUReplicatedBuilder "
        "AsyncMultiGPUBuilder",
        homes=_TRAIN,
    ),
    "tensorpack.graph_builder.utils": Module(
        "LeastLoadedDeviceSetter allreduce_grads", "average_grads aggregate_grads", _TRAIN
    ),
    "tensorpack.input_source": Module(members=("input_source", "input_source_base")),
    "tensorpack.input_source.input_source": Module(
        "PlaceholderInput FeedInput FeedfreeInput QueueInput BatchQueueInput DummyConstantInput TensorInput "
        "ZMQInput TFDatasetInput StagingInputWrapper StagingInput",
        homes=_INPUTS,
    ),
    "tensorpack.input_source.input_source_base": Module("InputSource remap_input_source", homes=_INPUTS),
    "tensorpack.predict": Module(members=("base", "concurrency", "config", "dataset", "feedfree", "multigpu")),
    "tensorpack.predict.base": Module(
        "PredictorBase AsyncPredictorBase OnlinePredictor OfflinePredictor", homes=_PREDICT
    ),
    "tensorpack.predict.concurrency": Module(
        "MultiProcessPredictWorker MultiProcessQueuePredictWorker MultiThreadAsyncPredictor", homes=_PREDICT
    ),
    "tensorpack.predict.config": Module("PredictConfig", homes=_PREDICT),
    "tensorpack.predict.dataset": Module(
        "DatasetPredictorBase SimpleDatasetPredictor MultiProcessDatasetPredictor", homes=_PREDICT
    ),
    "tensorpack.predict.feedfree": Module("FeedfreePredictor", homes=_PREDICT),
    "tensorpack.predict.multigpu": Module("MultiTowerOfflinePredictor DataParallelOfflinePredictor", homes=_PREDICT),
    "tensorpack.contrib": Module(modules="keras"),
    "tensorpack.contrib.keras": Module(
        "KerasPhaseCallback setup_keras_trainer KerasModel", "KerasModelCaller", (f"{_OWN}.keras",)
    ),
    # ---- helpers
    "tensorpack.utils": Module(
        "change_gpu get_nr_gpu", "get_num_gpu", homes=(f"{_OWN}.utils.gpu",), members=("utils",), modules="logger"
    ),
    "tensorpack.utils.logger": Module(
        "auto_set_dir get_logger_dir set_logger_dir",
        "info warn warning error exception debug critical setLevel _logger LOG_DIR",
        (f"{_OWN}.utils.logger", "ziggurat.tf.logger"),
    ),
    "tensorpack.utils.argtools": _utils(
        "argtools",
        "map_arg memoized memoized_method graph_memoized shape2d shape4d memoized_ignoreargs log_once call_only_once",
        "get_data_format",
    ),
    "tensorpack.utils.compatible_serialize": _utils("serialize", "loads dumps"),
    "tensorpack.utils.concurrency": _utils(
        "concurrency",
        "StoppableThread LoopThread ShareSessionThread ensure_proc_terminate start_proc_mask_signal DIE mask_sigint "
        "OrderedContainer",
        "enable_death_signal is_main_thread subproc_call OrderedResultGatherProc",
    ),
    "tensorpack.utils.debug": _utils("debug", "", "enable_call_trace"),
    "tensorpack.utils.develop": _utils(
        "develop",
        "",
        "HIDE_DOC building_rtfd create_dummy_class create_dummy_func deprecated log_deprecated",
    ),
    "tensorpack.utils.fs": _utils("fs", "mkdir_p download recursive_walk get_dataset_path normpath"),
    "tensorpack.utils.globvars": _utils("globvars", "globalns GlobalNS"),
    "tensorpack.utils.gpu": _utils("gpu", "change_gpu get_nr_gpu get_num_gpu"),
    "tensorpack.utils.loadcaffe": Module("load_caffe get_caffe_pb"),
    "tensorpack.utils.naming": Module("", "MOVING_SUMMARY_OPS_KEY", (f"{_OWN}.compat",)),
    "tensorpack.utils.nvml": _utils("nvml", "NVMLContext", "NvidiaDevice"),
    "tensorpack.utils.palette": _utils("palette", "PALETTE_RGB", "PALETTE_HEX"),
    "tensorpack.utils.rect": _utils("rect", "IntBox FloatBox"),
    "tensorpack.utils.serialize": _utils("serialize", "loads dumps", "loads_once dumps_once PickleSerializer"),
    "tensorpack.utils.stats": _utils("stats", "StatCounter BinaryStatistics RatioCounter Accuracy OnlineMoments"),
    "tensorpack.utils.timer": _utils("timer", "total_timer timed_operation print_total_timer IterSpeedCounter Timer"),
    "tensorpack.utils.utils": _utils(
        "general",
        "change_env get_rng fix_rng_seed get_tqdm execute_only_once humanize_time_delta",
        "get_tqdm_kwargs find_library_full_path",
    ),
    "tensorpack.utils.viz": _utils(
        "viz",
        "interactive_imshow stack_patches gen_stack_patches dump_dataflow_images intensity_to_rgb draw_boxes",
        "draw_text",
    ),
}
"""Every module of Tensorpack that a program may import, by its whole name."""


@cache
def star_names(module: str) -> tuple[str, ...]:
    """Return what ``from module import *`` gives, packages with the names of their members.

    Args:
        module: whole name.
    """
    entry = MODULES[module]
    found = [*entry.names.split(), *entry.modules.split()]
    for member in entry.members:
        found += star_names(f"{module}.{member}")
    return tuple(dict.fromkeys(found))


@cache
def resolve(module: str, name: str) -> Any:
    """Return what a name of a module stands for: our object, or a class that says why there is none.

    Raises:
        UnknownNameError: where Tensorpack has no such name either.
    """
    home = home_of(module, name)
    if home is not None:
        return getattr(importlib.import_module(home), name)
    if name in LEFT_OUT:
        return left_out_class(name, LEFT_OUT[name])
    raise UnknownNameError(f"name of {module}", name, [*star_names(module), *MODULES[module].inner.split()])


@cache
def home_of(module: str, name: str) -> str | None:
    """Return our module with a name of one of Tensorpack's; None where there is none."""
    entry = MODULES[module]
    if name in entry.names.split() or name in entry.inner.split():
        for home in entry.homes:
            if name in _public(home):
                return home
        return None
    for member in entry.members:
        found = home_of(f"{module}.{member}", name)
        if found is not None:
            return found
    return None


@cache
def _public(home: str) -> frozenset[str]:
    """Return the ``__all__`` of a module from its source: the table is made without TensorFlow too."""
    path = _ROOT.joinpath(*home.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    raise AssertionError(home)


def all_names() -> Iterator[Name]:
    """Yield every name of every module that is no package: the table of the documentation."""
    for module, entry in MODULES.items():
        for name in [*entry.names.split(), *entry.inner.split()]:
            home = home_of(module, name) or ""
            yield Name(module, name, home, NOTES.get(name, "") if home else LEFT_OUT[name])
