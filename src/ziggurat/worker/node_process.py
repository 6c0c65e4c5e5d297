"""Place of this process among those of a training over several nodes, from the variables of its launcher."""

from __future__ import annotations

from collections.abc import Mapping

from ziggurat.engine.backend import ProcessPlace
from ziggurat.errors import ConfigurationError
from ziggurat.settings import RESUMED_ON_VARIABLE
from ziggurat.specs import TrainSpec

__all__ = ["device_of_process", "place_of_process"]

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def place_of_process(spec: TrainSpec, environment: Mapping[str, str]) -> ProcessPlace:
    """Return the place of this process.

    Args:
        spec: of the training, on several nodes: on one, the variables are another launcher's.
        environment: variables of the process.

    A training that resumes after nodes of it are gone has fewer processes than its spec asks for; the studio says so.

    Raises:
        ConfigurationError: if the variables do not say where it is, or fit another number of processes.
    """
    missing = [name for name in _VARIABLES if not environment.get(name, "").strip()]
    if missing:
        raise ConfigurationError(
            f"A training on {spec.nodes} nodes is started by a studio with a cluster, and this process was not: "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set.",
            advice="Submit it with `ziggurat train --studio`, or set `nodes` to 1.",
        )
    rank, size, port = (_number(name, environment) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    is_fewer = bool(environment.get(RESUMED_ON_VARIABLE)) and size < spec.towers and spec.batch_size % max(1, size) == 0
    if not (size == spec.towers or is_fewer) or not 0 <= rank < size:
        raise ConfigurationError(
            f"RANK and WORLD_SIZE do not fit a training of {spec.towers} processes.",
            received=f"{rank} of {size}",
            advice="Let the studio start it.",
        )
    return ProcessPlace(rank, size, environment["MASTER_ADDR"].strip(), port)


def device_of_process(spec: TrainSpec, environment: Mapping[str, str]) -> str:
    """Return the device of a process of a training over several nodes, as its framework numbers them.

    Raises:
        ConfigurationError: if LOCAL_RANK is no number.
    """
    return f"gpu:{_number('LOCAL_RANK', environment)}" if spec.gpus_per_node else "cpu"


def _number(name: str, environment: Mapping[str, str]) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise ConfigurationError(
            f"{name} is no whole number.", received=environment[name], advice="Let the studio start the training."
        ) from None
