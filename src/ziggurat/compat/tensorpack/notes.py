"""What is different from Tensorpack, and why some of its names are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["LEFT_OUT", "NOTES"]

_ANY_ORDER: Final = (
    "Datapoints come in the order of the flow inside, each once a pass; an error in a worker ends the program."
)
_COPIES: Final = "An error in a worker ends the program, and no worker outlives it."
_FILES: Final = "Nothing is downloaded: put the files into the folder of the dataset, below `$TENSORPACK_DATASET`."
_PICKLES: Final = "Pickled values are read: use files that you trust."
_GPUS: Final = "Without a GPU the towers are on the processor."
_BUILDERS: Final = "Use a trainer: `SyncMultiGPUTrainerReplicated`, or `TowerTrainer` with a `run_step` of your own."
_CLUSTER: Final = "Start one process a device by `torchrun`-style variables, and use `HorovodTrainer`."
_HOOKS: Final = "Write a callback with `_before_run` and `_after_run`."
_CAFFE: Final = "Convert the weights to an npz file with Caffe, and load that by `SmartInit`."
_IMAGES: Final = "Write an `ImageAugmentor` that calls the other library."
_DATASET: Final = "Read the images by `ImageFolder` of `ziggurat.dataflow`."
_ARROW: Final = "The library behind it is gone. Use `MultiProcessRunnerZMQ`, which has shared memory."

NOTES: Final[Mapping[str, str]] = {
    "AccumGradOptimizer": "As in Tensorpack, gradients are summed; `ziggurat.tf` takes their mean.",
    "AsyncMultiGPUTrainer": _GPUS,
    "BatchData": "An error of stacking ends the program, in place of None in the batch; bytes stay bytes.",
    "BatchDataByShape": "As in Tensorpack, what fills no batch waits for the next pass; not so in `ziggurat.dataflow`.",
    "CacheData": "A pass that was broken off is not taken for the whole data.",
    "Cifar10": _FILES,
    "Cifar100": _FILES,
    "BSDS500": _FILES,
    "DumpTensors": "Written at once and whole; what was there stays.",
    "FashionMnist": _FILES,
    "ILSVRC12": _FILES,
    "ILSVRCMeta": _FILES,
    "InferenceRunner": "Each sample of a pass counts once, the last, smaller batch too.",
    "JSONWriter": "`stats.json` has one JSON object a line; the program itself reads it as a list by `json.load`.",
    "JoinData": "A flow that is given twice is copied.",
    "KerasPhaseCallback": "Does nothing: layers know from their tower whether they train.",
    "LMDBDataPoint": _PICKLES,
    "LMDBSerializer": _PICKLES,
    "Mnist": _FILES,
    "ModelSaver": "Also saves the state of the training, so that it is resumed exactly.",
    "MultiProcessMapAndBatchData": _ANY_ORDER,
    "MultiProcessMapAndBatchDataZMQ": _ANY_ORDER,
    "MultiProcessMapData": _ANY_ORDER,
    "MultiProcessMapDataZMQ": _ANY_ORDER,
    "MultiProcessPrefetchData": _COPIES,
    "MultiProcessRunner": _COPIES,
    "MultiProcessRunnerZMQ": _COPIES,
    "MultiTowerOfflinePredictor": "`get_predictor(n)` returns one predictor, as its documentation said, and no list.",
    "MultiThreadMapData": _ANY_ORDER,
    "MultiThreadPrefetchData": _COPIES,
    "MultiThreadRunner": _COPIES,
    "NumpySerializer": _PICKLES,
    "PeakMemoryTracker": "Puts `GPUMemory/<device> (GB)`, which is asked for once a second.",
    "PrefetchData": _COPIES,
    "PrefetchDataZMQ": _COPIES,
    "QueueInput": "An error of the data ends the training with that error, and not as if it were done.",
    "RandomChooseData": "Probabilities need not sum to exactly 1.",
    "SVHNDigit": _FILES,
    "SendStat": "Values are passed in the environment of the command.",
    "SyncMultiGPUTrainer": _GPUS,
    "SyncMultiGPUTrainerParameterServer": _GPUS,
    "SyncMultiGPUTrainerReplicated": _GPUS,
    "TFRecordSerializer": _PICKLES,
    "ThreadedMapData": _ANY_ORDER,
    "auto_set_dir": "Never asks: a folder that is in use is kept, and the training writes on there.",
    "download": "Downloads nothing: the file must be there.",
    "fix_rng_seed": "Each generator and each worker gets a stream of its own.",
    "get_model_loader": "Tells what was loaded, what is missing and what has another shape.",
    "interactive_imshow": "Writes the image to a file in place of a window.",
    "set_logger_dir": "Never asks: a folder that is in use is kept, and the training writes on there.",
}
"""Name → what is different, as a sentence."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "Albumentations": _IMAGES,
    "BatchRenorm": "It never worked. Use `BatchNorm`, with `virtual_batch_size` for small groups.",
    "BytePSTrainer": _CLUSTER,
    "CaffeLMDB": "Read it by `LMDBDataDecoder` with a function for Caffe's records.",
    "CallbackToHook": _HOOKS,
    "Callbacks": "Pass a list of callbacks.",
    "Caltech101Silhouettes": _DATASET,
    "CategoricalDistribution": "Use `tf.distributions.Categorical`.",
    "CometMLMonitor": "Write a `MonitorBase` that sends the numbers.",
    "DiskCacheSerializer": "Use `LMDBSerializer`.",
    "Distribution": "Use `tf.distributions`.",
    "DistributedTrainerParameterServer": _CLUSTER,
    "DistributedTrainerReplicated": _CLUSTER,
    "DumpTensor": "Use `DumpTensors`.",
    "FeedfreeInput": "Derive from `InputSource`.",
    "GaussianDistribution": "Use `tf.distributions.Normal`.",
    "GraphBuilder": _BUILDERS,
    "HookToCallback": _HOOKS,
    "IAAugmentor": _IMAGES,
    "ModelExport": "Use `ModelExporter`.",
    "MultiProcessMapDataComponentSharedArray": "Use `MultiProcessMapDataZMQ`, which has shared memory.",
    "MultiProcessPredictWorker": "Use `MultiThreadAsyncPredictor`.",
    "MultiProcessQueuePredictWorker": "Use `MultiThreadAsyncPredictor`.",
    "OrderedResultGatherProc": "Use `MultiProcessMapDataZMQ`, which keeps the order.",
    "PeriodicRunHooks": "Use `PeriodicCallback`.",
    "Places365Standard": _DATASET,
    "PlasmaGetData": _ARROW,
    "PlasmaPutData": _ARROW,
    "PrefetchOnGPUs": "Use `MultiProcessRunnerZMQ`.",
    "ProductDistribution": "Use `tf.distributions`.",
    "RandomCropAroundBox": "Use `RandomCropRandomShape`.",
    "SVMLightData": "Read it by scikit-learn, and give its rows to `DataFromList`.",
    "SendMonitorData": "Use `SendStat`.",
    "SessionCreatorAdapter": "Derive from `NewSessionCreator`.",
    "StagingInputWrapper": "Use `StagingInput`.",
    "TFLocalCLIDebugHook": "Use `ziggurat debug`, or `CheckNumerics`.",
    "TinyImageNet": _DATASET,
    "TrainLoop": "The trainer has its counters itself.",
    "aggregate_grads": _BUILDERS,
    "allreduce_grads": _BUILDERS,
    "average_grads": _BUILDERS,
    "dump_dataflow_to_process_queue": "Use `MultiProcessRunnerZMQ`.",
    "get_caffe_pb": _CAFFE,
    "get_distributed_session_creator": _CLUSTER,
    "load_caffe": _CAFFE,
    "perturb_BB": "Use `RandomCropRandomShape`.",
    "under_variable_scope": "Use `tf.variable_scope`.",
}
"""Name → what to do in its place, as a sentence."""
