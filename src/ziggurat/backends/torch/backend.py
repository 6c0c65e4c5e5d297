"""PyTorch backend: a job's program, built fresh or from pretrained weights."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from ziggurat.backends.torch.network import MODEL, Network, make_network
from ziggurat.backends.torch.program import ProgramOptions, TorchProgram
from ziggurat.backends.torch.pth_files import read_pth
from ziggurat.backends.torch.state import give_weights, weights_of
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.restore_plan import RestorePlan, freezes, plan_restore
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.zoo.weight_files import load_weights_file

__all__ = ["TorchBackend", "device_of"]

_logger = logging.getLogger(__name__)

# Batches may lie in memory that other processes read: nothing here writes to it.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")

_OPTIONS: Final = frozenset(
    {"channels_last", "compile", "deterministic", "intra_threads", "memory_share", "prefetch_batches"}
)


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
        network = make_network(request)
        plan = None if request.pretrained is None else restore_pretrained(network, request.pretrained, request.freeze)
        program = TorchProgram(
            network, request, options, is_frozen=lambda name: freezes(name, request.pretrained, request.freeze)
        )
        for sentence in () if plan is None else plan.sentences():
            _logger.info(sentence)
        return program

    def read_checkpoint(self, path: Path) -> dict[str, Any]:
        """Return variable name → array of a file of weights.

        Args:
            path: a ``.safetensors`` file, or a ``.pt`` or ``.pth`` file that holds a ``state_dict``.

        Raises:
            CheckpointError: where it is none.
        """
        return read_weights(path)


def device_of(request: ProgramRequest) -> torch.device:
    """Return where a request computes: its one device, else the GPU where PyTorch sees one, else the CPU.

    Raises:
        ConfigurationError: where PyTorch does not see it, or there are several.
    """
    names = [name.lower().strip("/") for name in request.devices]
    if len(names) > 1:
        raise ConfigurationError(
            "The PyTorch backend trains with one device in each process.",
            received=", ".join(request.devices),
            advice="Give it one device.",
        )
    if not names:
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    kind, _, number = names[0].partition(":")
    if kind == "cpu":
        return torch.device("cpu")
    place = int(number or 0)
    if kind not in ("gpu", "cuda") or place >= torch.cuda.device_count():
        raise ConfigurationError(
            "A device is `cpu`, or a GPU that PyTorch sees, such as `gpu:0`.",
            received=f"{request.devices[0]}; PyTorch {torch.__version__} sees {torch.cuda.device_count()} GPUs",
            advice="Leave the devices out for the best there is, or install a build of PyTorch for the GPU.",
        )
    return torch.device("cuda", place)


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
    device = device_of(request)
    threads = int(options.get("intra_threads", 0))
    if threads:
        torch.set_num_threads(threads)
    if options.get("deterministic", False):
        torch.use_deterministic_algorithms(True)
    if device.type == "cuda" and "memory_share" in options:
        torch.cuda.set_per_process_memory_fraction(float(options["memory_share"]), device)
    return ProgramOptions(
        device=device,
        channels_last=bool(options.get("channels_last", True)),
        compile=bool(options.get("compile", False)),
        prefetch_batches=ahead,
    )
