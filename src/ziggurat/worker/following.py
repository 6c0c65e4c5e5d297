"""A process of rank above 0 in a training over several nodes: it computes its rows of every step of rank 0."""

from __future__ import annotations

import logging
from typing import Final

from ziggurat.engine.backend import ProcessPlace
from ziggurat.engine.capabilities import TrainsOnNodes
from ziggurat.engine.feed import BatchCycle
from ziggurat.engine.run_state import seed_global_random
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import TrainSpec
from ziggurat.worker.build import prepare_job
from ziggurat.worker.heartbeat_thread import StepClock
from ziggurat.worker.source import convert_old_stores

__all__ = ["follow_training"]

_LOG: Final = logging.getLogger(__name__)


def follow_training(
    spec: TrainSpec, folder: JobFolder, clock: StepClock, settings: Settings, place: ProcessPlace
) -> str:
    """Take part in a training until rank 0 ends it or is gone; return which, as a sentence.

    Nothing is validated or saved here. A request to stop is left to rank 0, which gets it as well.

    Args:
        spec: of the training, whose backend is known to train on nodes.
        folder: of this process alone, with the spec and what rank 0 had saved before.
        clock: notes the steps.
        settings: where pretrained weights are.
        place: of this process.

    Raises:
        ZigguratError: if data or network cannot be had here, or a step fails.
    """
    seed_global_random(spec.seed)
    convert_old_stores(spec.data.source)
    data, backend, request = prepare_job(spec, folder, settings, place)
    assert isinstance(backend, TrainsOnNodes)  # `prepare_job` has seen to it
    _LOG.info("Rank %d of %d: it computes its part of each batch. Events and checkpoints are those of rank 0.",
              place.rank, place.size)  # fmt: skip
    clock.phase = "training"
    if backend.follow(request, BatchCycle(data.train), clock.trigger_step):
        return "rank 0 has ended the training"
    text = "rank 0 has ended, or cannot be reached"  # what that means for the job is not decided here
    _LOG.warning("%s.", text.capitalize())
    return text
