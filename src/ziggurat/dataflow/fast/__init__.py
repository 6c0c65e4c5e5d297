"""Fast path for photographs: batches of crops, prepared records, and the choice of the JPEG decoder."""

from ziggurat.dataflow.fast.batches import JpegCropBatches
from ziggurat.dataflow.fast.boxes import CenterResizedCrop, CropPolicy, RandomResizedCrop, ScaledRandomCrop
from ziggurat.dataflow.fast.engines import EngineName, EngineReport, engine
from ziggurat.dataflow.fast.prepare import PixelFlow, PixelWriter, prepare_pixels, prepare_records, tiled_jpeg

__all__ = [
    "CenterResizedCrop",
    "CropPolicy",
    "EngineName",
    "EngineReport",
    "JpegCropBatches",
    "PixelFlow",
    "PixelWriter",
    "RandomResizedCrop",
    "ScaledRandomCrop",
    "engine",
    "prepare_pixels",
    "prepare_records",
    "tiled_jpeg",
]
