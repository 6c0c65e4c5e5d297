"""TensorFlow backend: a job's graph and program, built fresh or from pretrained weights."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.backends.tensorflow.digits import CLASS_WEIGHTS
from ziggurat.backends.tensorflow.graph import GraphOptions, JobGraph, build_graph
from ziggurat.backends.tensorflow.network_file import load_network
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import TowerInput
from ziggurat.engine.backend import ProgramRequest, single_arrays
from ziggurat.engine.restore_plan import RestorePlan, freezes, plan_restore
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.zoo import network_path

__all__ = [
    "TensorFlowBackend",
    "build_job_graph",
    "session_config",
]

_OPTIONS: Final = frozenset(
    {"log_device_placement", "intra_threads", "inter_threads", "memory_share", "prefetch_batches"}
)
_logger = logging.getLogger(__name__)


class TensorFlowBackend:
    """Builds graph-mode programs on TensorFlow 2.21."""

    name = "tensorflow"
    trains_on_mixed_labels = True
    fine_tunes = True

    def why_not(self) -> str:
        """Return an empty string: this module would not have been loaded without TensorFlow."""
        return ""

    def build(self, request: ProgramRequest) -> TensorFlowProgram:
        """Return a program whose graph is open until ``declare``; its session begins with the pretrained weights.

        Raises:
            ConfigurationError: where the request asks for what cannot be.
            NetworkCodeError: where the user's network fails; names file and line.
            CheckpointError: where the pretrained model does not fit.
        """
        graph = build_job_graph(request)
        program = TensorFlowProgram(
            graph,
            batch_parts=request.gradient_accumulation_steps,
            config=session_config(request),
            prefetch=_prefetch(request),
            fine_tuning=request.fine_tuning,
        )
        if request.pretrained is not None:
            plan = restore_pretrained(program, request.pretrained, request.freeze)
            for sentence in plan.sentences():
                _logger.info(sentence)
            for sentence in plan.details():
                _logger.debug(sentence)
        return program

    def choose_threads(self, request: ProgramRequest, most: int) -> int:
        """Return all threads that the job may use: they sleep when idle, and cost a small step little.

        Args:
            request: of the training.
            most: what the job may use.
        """
        return most

    def read_checkpoint(self, path: Path) -> dict[str, Any]:
        """Return variable name → array of a TensorFlow checkpoint.

        Args:
            path: its prefix, such as ``model.ckpt``.
        """
        reader = tf.train.load_checkpoint(str(path))
        return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def build_job_graph(request: ProgramRequest) -> JobGraph:
    """Build the graph of a request, seeded, in a graph of its own.

    Raises:
        ConfigurationError, NetworkCodeError: as ``TensorFlowBackend.build``.
    """
    if request.precision == "fp16":
        raise ConfigurationError(
            "`precision` must be float32 or bf16 with the TensorFlow backend.",
            received=request.precision,
            advice="Use bf16.",
        )
    text, path = _backend_source(request)
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(request.seed)
        if request.class_weights:
            graph.add_to_collection(CLASS_WEIGHTS, tf.constant(request.class_weights, tf.float32))
        shared = TowerInput(load_network(text, path), path, *single_arrays(request), request.pretrained is not None)
        options = GraphOptions(
            batch_size=request.batch_size,
            devices=request.devices,
            optimizer=request.optimizer,
            optimizer_options=request.optimizer_options,
            learning_rate=request.learning_rate,
            weight_decay=request.weight_decay,
            gradient_clip=request.gradient_clip,
            gradient_accumulation_steps=request.gradient_accumulation_steps,
            ema_decay=request.ema_decay,
            mixes_labels=request.mixes_labels,
            fine_tuning=request.fine_tuning,
        )
        return build_graph(shared, options, is_frozen=lambda name: freezes(name, request.pretrained, request.freeze))


def _prefetch(request: ProgramRequest) -> int:
    """Return how many batches a thread makes ahead; 0 for none.

    Raises:
        ConfigurationError: where the option is no whole number from 0 on.
    """
    count = request.options.get("prefetch_batches", 0)
    if not isinstance(count, int) or count < 0:
        raise ConfigurationError(
            "`prefetch_batches` must be a whole number, 0 or more.", received=count, advice="2 is usual; 0 is off."
        )
    return count


def session_config(request: ProgramRequest) -> Any:
    """Return the ``tf.ConfigProto`` of a request: its devices, threads, memory and precision."""
    for name in request.options:
        if name not in _OPTIONS:
            raise UnknownNameError("option of the TensorFlow backend", name, _OPTIONS)
    processors = [int(name.rsplit(":", 1)[1]) for name in request.devices if "cpu" in name.lower() and ":" in name]
    counts = {"CPU": max(processors, default=0) + 1}
    if request.devices and not any("gpu" in name.lower() for name in request.devices):
        counts["GPU"] = 0  # none was requested, so none is touched: other jobs may need its memory
    config = tf.ConfigProto(
        device_count=counts,
        allow_soft_placement=True,
        log_device_placement=bool(request.options.get("log_device_placement", False)),
        intra_op_parallelism_threads=int(request.options.get("intra_threads", 0)) or request.threads,
        inter_op_parallelism_threads=int(request.options.get("inter_threads", 0)),
    )
    config.gpu_options.allow_growth = True
    if "memory_share" in request.options:
        config.gpu_options.per_process_gpu_memory_fraction = float(request.options["memory_share"])
    rewrites = config.graph_options.rewrite_options
    # It makes one operation of a chain of additions, and that adds in an order that depends on timing.
    rewrites.arithmetic_optimization = type(rewrites).OFF
    if request.precision == "bf16":
        rewrites.auto_mixed_precision_onednn_bfloat16 = type(rewrites).ON
    return config


def restore_pretrained(
    program: TensorFlowProgram, pretrained: Mapping[str, Any], freeze: tuple[str, ...] = ()
) -> RestorePlan:
    """Give the variables of a program the values of a pretrained model, by name; return what happened to each.

    Raises:
        CheckpointError: where shapes differ.
    """
    graph = program.graph.graph
    trainable = {variable.op.name for variable in graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
    weights = {
        variable.op.name: tuple(variable.shape.as_list())
        for variable in graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
        # A slot of the optimizer has the name of its variable and one part more.
        if variable.op.name.startswith("model/") and variable.op.name.rsplit("/", 1)[0] not in trainable
    }
    plan = plan_restore(weights, pretrained, freeze)
    program.assign({name: pretrained[source] for name, source in {**plan.restored, **plan.frozen}.items()})
    program.start_averages()
    return plan


def _backend_source(request: ProgramRequest) -> tuple[str, str]:
    if request.network_text is not None:
        return request.network_text, request.network
    path = Path(request.network)
    if not path.suffix:
        path = network_path(request.network, "tensorflow")
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except OSError as error:
        raise ConfigurationError(
            "`network` must be the name of a standard network or a readable file.",
            received=f"{request.network} ({error.strerror})",
            advice="Check the path.",
        ) from error
