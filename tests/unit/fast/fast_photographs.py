"""Images made on the spot, and their files."""

import io

import numpy as np
from PIL import Image


def smooth_image(height, width, seed=0):
    """Return (height, width, 3) uint8: colored slopes and soft blobs, as photographs are made of."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(20, 235, (max(2, height // 24), max(2, width // 24), 3), dtype=np.uint8)
    fine = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    return np.clip(fine + rng.integers(-6, 7, (height, width, 1)), 0, 255).astype(np.uint8)


def encoded(picture, file_format="JPEG", **options):
    """Return the file of an image."""
    buffer = io.BytesIO()
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    image.save(buffer, file_format, **({"quality": 92} if file_format == "JPEG" else {}), **options)
    return buffer.getvalue()
