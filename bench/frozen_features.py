"""Benchmark of the frozen epochs of fine-tuning on PyTorch: the backbone once for each sample, or in every epoch."""

from __future__ import annotations

import time

import numpy as np

from bench.parts.report import Options, Report, Row, interval

__all__ = ["run"]

_BATCH, _BATCHES, _PX, _CLASSES = 32, 8, 64, 10
_KEPT, _AGAIN = "backbone once for each sample", "backbone in every epoch"


def run(options: Options) -> Report:
    """Measure."""
    from ziggurat.backends.torch.backend import TorchBackend
    from ziggurat.engine.backend import ProgramRequest, class_arrays
    from ziggurat.engine.fine_tuning import BACKBONE_RATE, FineTuningRequest

    random = np.random.default_rng(0)
    batches = [
        [random.integers(0, 256, (_BATCH, _PX, _PX, 3), np.uint8), random.integers(0, _CLASSES, _BATCH)]
        for _ in range(_BATCHES)
    ]
    rows, programs = {}, {}
    for name in (_KEPT, _AGAIN):
        programs[name] = TorchBackend().build(
            ProgramRequest(
                network="resnet18",
                **class_arrays((_PX, _PX, 3), _CLASSES),
                fine_tuning=FineTuningRequest(head="fc."),
                pretrained={},
                batch_size=_BATCH,
                learning_rate=0.01,
            )
        )
        programs[name].set_hyperparameter(BACKBONE_RATE, 0.0)
        rows[name] = Row(name, [], [])
    first_s = 0.0
    for number in range(options.rounds + 1):
        for name, program in programs.items():
            if name == _AGAIN:
                program.load_state(program.state())  # what was kept is forgotten
            cpu_s, wall_s = time.process_time(), time.perf_counter()
            for batch in batches:
                program.step(batch, ())
            took_s = time.perf_counter() - wall_s
            if not number:  # every sample is new to both
                first_s = took_s
                continue
            rows[name].cpu_us.append(1e6 * (time.process_time() - cpu_s) / (_BATCH * _BATCHES))
            rows[name].wall_us.append(1e6 * took_s / (_BATCH * _BATCHES))
    ratio = np.array(rows[_AGAIN].wall_us) / np.array(rows[_KEPT].wall_us)
    notes = [
        f"{options.rounds} interleaved epochs of {_BATCH * _BATCHES} samples after a first one of {first_s:.1f} s",
        f"wall time, {_AGAIN} / {_KEPT}: {interval(ratio, 0)}",
    ]
    title = f"Frozen epochs of ResNet-18 on {_PX} px, batches of {_BATCH} in memory"
    return Report(title, "sample", _AGAIN, notes, list(rows.values()))
