"""PyTorch backend: a job's program, built fresh or from pretrained weights."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from ziggurat.backends.torch.data_parallel import FirstProgram, ReplicaProgram
from ziggurat.backends.torch.describe import describe_network
from ziggurat.backends.torch.device_group import DeviceGroup
from ziggurat.backends.torch.devices import device_of, devices_of
from ziggurat.backends.torch.network import MODEL, Network, make_network
from ziggurat.backends.torch.node_line import NodeLine
from ziggurat.backends.torch.node_replicas import NodeReplicas, follow_rank_0
from ziggurat.backends.torch.program import ProgramOptions, TorchProgram
from ziggurat.backends.torch.pth_files import read_pth
from ziggurat.backends.torch.replicas import Replicas, ReplicaSettings
from ziggurat.backends.torch.state import give_weights, weights_of
from ziggurat.backends.torch.sync_batch_norm import synchronize_batch_norms
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.feed import BatchCycle
from ziggurat.engine.restore_plan import RestorePlan, freezes, plan_restore
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.zoo.weight_files import load_weights_file

__all__ = ["TorchBackend"]

_logger = logging.getLogger(__name__)

# Batches may lie in memory that other processes read: nothing here writes to it.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")

_OPTIONS: Final = frozenset(
    {
        "channels_last",
        "compile",
        "deterministic",
        "device_timeout_s",
        "intra_threads",
        "memory_share",
        "prefetch_batches",
        "sync_batch_norm",
    }
)
_SMALL_STEP: Final = 500_000_000
"""Multiply-adds of a forward pass below which two threads take more than 1.15 times the CPU time of one thread."""

_DEVICE_TIMEOUT_S: Final = 300.0
_PATIENCE_MORE_S: Final = 3600.0


class TorchBackend:
    """Builds programs on PyTorch."""

    name = "torch"
    trains_on_mixed_labels = True
    fine_tunes = True

    def why_not(self) -> str:
        """Return an empty string: this module would not have been loaded without PyTorch."""
        return ""

    def build(self, request: ProgramRequest) -> TorchProgram:
        """Return a program whose network has its first weights, or those of the pretrained model.

        Raises:
            ConfigurationError: where the request asks for what cannot be.
            NetworkCodeError: where the user's network fails; names file and line.
            CheckpointError: where the pretrained model does not fit.
        """
        options = _options(request)
        network, is_frozen, plan = _made(request)
        devices = devices_of(request)
        if request.place is not None:
            program = _first_of_nodes(request, options, network, is_frozen)
        elif len(devices) == 1 or getattr(network.module, "disableAutoDataParallelism", False):
            program = TorchProgram(network, request, options, is_frozen)
        else:
            group = DeviceGroup(0, len(devices), devices[0], options.device_timeout_s)
            if options.sync_batch_norm:
                synchronize_batch_norms(network.module, group)
            start = partial(_start_replicas, request, options.device_timeout_s)
            program = FirstProgram(network, request, options, is_frozen, group, start)
        for sentence in plan.sentences():
            _logger.info(sentence)
        for sentence in plan.details():
            _logger.debug(sentence)
        return program

    def build_replica(self, settings: ReplicaSettings) -> ReplicaProgram:
        """Return the program of a further process of a training.

        Raises:
            ConfigurationError: where its device cannot be had.
            NetworkCodeError: where the user's network fails here.
        """
        request = settings.request
        options = _options(request)
        network, is_frozen, _ = _made(request)
        group = DeviceGroup(settings.rank, settings.size, options.device, settings.patience_s)
        if options.sync_batch_norm:
            synchronize_batch_norms(network.module, group)
        return ReplicaProgram(network, request, options, is_frozen, group)

    def follow(self, request: ProgramRequest, batches: BatchCycle, after_step: Callable[[], None]) -> bool:
        """Compute the rows of this process in every step of rank 0; see ``TrainsOnNodes``."""
        assert request.place is not None
        line = NodeLine(request.place)
        request = replace(request, ema_decay=None)  # rank 0 has the averages
        options = _options(request)
        network, is_frozen, _ = _made(request)
        group = _node_group(request, options, network, line)
        program = ReplicaProgram(network, request, options, is_frozen, group)
        return follow_rank_0(program, line, batches, request.gradient_accumulation_steps, after_step)

    def choose_threads(self, request: ProgramRequest, most: int) -> int:
        """Return one thread for a small step: starting and joining others costs more than they save.

        Args:
            request: of the training.
            most: what the job may use.

        Raises:
            NetworkCodeError: where the user's network fails.
        """
        devices = devices_of(request)
        most = max(1, most // len(devices)) if devices[0].type == "cpu" else most
        if most == 1 or devices[0].type != "cpu":
            return most
        with torch.random.fork_rng(devices=[]):  # a network may draw at random when it is made
            sample = describe_network(request)["multiply_adds"]
        shares = len(devices) if request.place is None else request.place.size
        return 1 if sample * request.batch_size < _SMALL_STEP * shares else most

    def read_checkpoint(self, path: Path) -> dict[str, Any]:
        """Return variable name → array of a file of weights.

        Args:
            path: a ``.safetensors`` file, or a ``.pt`` or ``.pth`` file that holds a ``state_dict``.

        Raises:
            CheckpointError: where it is none.
        """
        return read_weights(path)


def restore_pretrained(network: Network, pretrained: Mapping[str, Any], freeze: tuple[str, ...] = ()) -> RestorePlan:
    """Give a network the values of a pretrained model, by name; return what happened to each.

    Raises:
        CheckpointError: where shapes differ.
    """
    own = weights_of(network.module)
    plan = plan_restore({name: array.shape for name, array in own.items()}, pretrained, freeze)
    taken = {name: pretrained[source] for name, source in {**plan.restored, **plan.frozen}.items()}
    give_weights(network.module, {**own, **taken})
    return plan


def _made(request: ProgramRequest) -> tuple[Network, Callable[[str], bool], RestorePlan]:
    """Return the network of a request, which of its weights are frozen, and what it took of its pretrained model."""
    network = make_network(request)
    plan = RestorePlan()
    if request.pretrained is not None:
        plan = restore_pretrained(network, request.pretrained, request.freeze)
    return network, lambda name: freezes(name, request.pretrained, request.freeze), plan


def _first_of_nodes(request: ProgramRequest, options: ProgramOptions, network: Network, is_frozen: Any) -> FirstProgram:
    """Return the program of rank 0, in a training over several nodes."""
    assert request.place is not None
    line, size = NodeLine(request.place), request.place.size
    group = _node_group(request, options, network, line)
    return FirstProgram(network, request, options, is_frozen, group, lambda _threads: NodeReplicas(line, size))


def _node_group(request: ProgramRequest, options: ProgramOptions, network: Network, line: NodeLine) -> DeviceGroup:
    """Return the group of this process; the network follows it where batch norms are synchronized.

    Raises:
        ConfigurationError: if the network must not be trained on several devices.
    """
    place = request.place
    assert place is not None
    if getattr(network.module, "disableAutoDataParallelism", False):
        raise ConfigurationError(
            "The network says `disableAutoDataParallelism`: it is trained on one device.",
            received=f"{place.size} processes",
            advice="Train it on one node.",
        )
    patience_s = options.device_timeout_s + (_PATIENCE_MORE_S if place.rank else 0.0)
    group = DeviceGroup(place.rank, place.size, options.device, patience_s, line.interface)
    if options.sync_batch_norm:
        synchronize_batch_norms(network.module, group)
    return group


def _start_replicas(request: ProgramRequest, patience_s: float, threads: int) -> Replicas:
    """Start a process for each device of a request but the first.

    Args:
        request: of the whole training.
        patience_s: how long the first process waits for them.
        threads: of the processor that each of them uses; 0 for PyTorch's choice.
    """
    # They wait longer than the first process: it is the one that says what went wrong.
    settings = [
        ReplicaSettings(
            request=replace(request, devices=(name,), ema_decay=None),
            rank=rank,
            size=len(request.devices),
            patience_s=patience_s + _PATIENCE_MORE_S,
            threads=threads,
            import_path=tuple(sys.path),
        )
        for rank, name in enumerate(request.devices[1:], 1)
    ]
    return Replicas(settings, request.devices[1:])


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Return name in a checkpoint → array of a ``.safetensors``, ``.pt`` or ``.pth`` file; no code of it is run.

    Raises:
        CheckpointError: where it is none, is damaged, or holds more than named tensors.
    """
    found = load_weights_file(path) if path.suffix == ".safetensors" else read_pth(path)
    return {f"{MODEL}{name}": array for name, array in found.items()}


def _options(request: ProgramRequest) -> ProgramOptions:
    """Check the options of a request, and set what holds for the whole process.

    Raises:
        UnknownNameError: where an option is not known.
        ConfigurationError: where one cannot be.
    """
    options = request.options
    for name in options:
        if name not in _OPTIONS:
            raise UnknownNameError("option of the PyTorch backend", name, _OPTIONS)
    ahead = options.get("prefetch_batches", 0)
    if not isinstance(ahead, int) or ahead < 0:
        raise ConfigurationError(
            "`prefetch_batches` must be a whole number, 0 or more.", received=ahead, advice="2 is usual; 0 is off."
        )
    patience_s = options.get("device_timeout_s", _DEVICE_TIMEOUT_S)
    if not isinstance(patience_s, int | float) or not patience_s > 0:
        raise ConfigurationError(
            f"`device_timeout_s` is {patience_s}, not a number of seconds above 0.", advice="300 is the default."
        )
    device = device_of(request)
    threads = int(options.get("intra_threads", 0)) or request.threads
    if threads:
        torch.set_num_threads(threads)
    if options.get("deterministic", False):
        if device.type == "cuda":  # read when the first product is computed
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    if device.type == "cuda" and "memory_share" in options:
        torch.cuda.set_per_process_memory_fraction(float(options["memory_share"]), device)
    return ProgramOptions(
        device=device,
        channels_last=bool(options.get("channels_last", True)),
        compile=bool(options.get("compile", False)),
        prefetch_batches=ahead,
        intra_threads=threads,
        sync_batch_norm=bool(options.get("sync_batch_norm", False)),
        device_timeout_s=float(patience_s),
    )
