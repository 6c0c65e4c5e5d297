"""Owns making a data set: scan, split, read and encode in parallel, put together; resumable at every point."""

from ziggurat.datasets.creation.create import create_dataset
from ziggurat.datasets.creation.request import CreationRequest, CreationStopped, Watch

__all__ = ["CreationRequest", "CreationStopped", "Watch", "create_dataset"]
