"""Perceptual hashes of the samples of a finished dataset: from its catalog, or computed from what it stores."""

from __future__ import annotations

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.hashing import NO_HASH, picture_hash
from ziggurat.errors import DataError, DatapointError

__all__ = ["stored_hashes"]


def stored_hashes(dataset: Dataset, *, compute: bool) -> np.ndarray:
    """Return the perceptual hash of each sample in the order of the catalog, (N,) int64; ``NO_HASH`` for none.

    Release 0.1 kept none of images that stay in their source, and a person may ask for none.

    Args:
        dataset: it.
        compute: whether images without a hash are read and get one. Images that were fitted are hashed as they are
            stored, for what they were made of is not there.

    Raises:
        DataError: where the catalog cannot be read.
    """
    catalogue = dataset.catalogue
    hashes = catalogue.column("picture_hash")
    missing = np.flatnonzero(hashes == NO_HASH)
    if not compute or dataset.manifest.image is None or not len(missing):
        return hashes
    for place, entry in zip(missing.tolist(), catalogue.entries(catalogue.column("number")[missing].tolist())):
        if entry.row is None:
            continue
        try:
            hashes[place] = picture_hash(dataset.picture(entry.split, entry.row))
        except (DatapointError, DataError):  # a damaged image is found by other checks
            continue
    return hashes
