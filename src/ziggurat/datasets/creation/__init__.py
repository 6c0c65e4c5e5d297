"""Dataset creation: scan, split, parallel reading and encoding, and assembly; resumable at every point."""

from ziggurat.datasets.creation.create import create_dataset
from ziggurat.datasets.creation.request import CreationRequest, CreationStopped, Watch

__all__ = ["CreationRequest", "CreationStopped", "Watch", "create_dataset"]
