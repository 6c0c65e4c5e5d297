"""Upper limits of decoding: the decoder alone, in one thread, on files in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.parts.photo_sides import BATCH


def decode(folder: str, part: str) -> Iterator[int]:
    """Decode and forget, by ``part``: "whole", "half" (reduced by 2), "crop", or "reduced crop"."""
    from ziggurat.dataflow.fast.boxes import RandomResizedCrop, denominators, grid_boxes
    from ziggurat.dataflow.fast.engines import EngineUnavailableError, NativeEngine
    from ziggurat.dataflow.fast.tiles import read_jpeg_header

    try:
        engine = NativeEngine()
    except EngineUnavailableError as error:
        raise NotImplementedError(str(error)) from error
    files = [path.read_bytes() for path in sorted(Path(folder).rglob("*.jpg"))]
    headers = [read_jpeg_header(data) for data in files]
    sizes = np.array([(header.width, header.height) for header in headers if header], np.int32)
    crop = RandomResizedCrop()
    rng = np.random.RandomState(0)
    while True:
        rows = rng.randint(0, len(files), BATCH)
        boxes = np.column_stack([np.zeros_like(sizes[rows]), sizes[rows]])
        reduction = np.full(BATCH, 2 if part == "half" else 1)
        if part in ("crop", "reduced crop"):
            boxes = crop.boxes(rng.random_sample((BATCH, crop.numbers)), sizes[rows])[0]
            reduction = denominators(boxes, crop.shape) if part == "reduced crop" else reduction
            boxes = grid_boxes(boxes, sizes[rows], reduction)
        plans = np.column_stack([np.arange(BATCH), boxes, reduction, np.zeros(BATCH)]).astype(np.int32)
        done = engine.decode_only([files[row] for row in rows], plans, 10_000)
        assert done == BATCH
        yield done
