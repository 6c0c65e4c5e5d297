"""Samples of a network that generates, in an inference process: from a seed, and from numbers that are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ziggurat.engine.capabilities import HasInferenceInputs
from ziggurat.errors import UsageError
from ziggurat.worker.commands.given_inputs import generated_count, given_inputs
from ziggurat.worker.commands.prediction import generated_outputs
from ziggurat.worker.inference.handlers import AT_ONCE, PredictedSample, PredictRequest, WarmModel, prediction_of

__all__ = ["generate"]


def generate(model: WarmModel, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a network makes without any sample.

    Args:
        model: the open network.
        request: ``count``; ``seed``, ``inputs`` and ``first`` as ``ziggurat.worker.commands.given_inputs`` has them;
            ``drawn`` as for ``predict``.

    Returns:
        ``inputs`` (what the network may be given beside samples: name → ``shape`` and ``dtype`` of a row),
        ``predictions`` as those of ``predict``, ``file`` a number from 1, and what describes the checkpoint.

    Raises:
        UsageError, UnknownNameError, ConfigurationError: as ``given_inputs``.
    """
    network: object = model.network
    count = generated_count(request)
    if not count:
        raise UsageError("`count` says how many samples a network makes.", received="nothing")
    given = given_inputs(model.network, request, count)
    asked = PredictRequest([], drawn=bool(request.get("drawn")))
    predictions = []
    for start in range(0, count, AT_ONCE):
        beside = {name: rows[start : start + AT_ONCE] for name, rows in given.items()}
        size = min(AT_ONCE, count - start)
        outputs = generated_outputs(model.job, model.network, size, beside)
        for row in range(size):
            one = {name: each[row] for name, each in outputs.items()}
            predictions.append(prediction_of(PredictedSample(str(start + row + 1), one), asked, model.job.context))
    declared = network.inference_inputs() if isinstance(network, HasInferenceInputs) else {}
    return {
        **model.job.summary(),
        "inputs": {name: {"shape": list(spec.shape), "dtype": spec.dtype} for name, spec in declared.items()},
        "predictions": predictions,
    }
