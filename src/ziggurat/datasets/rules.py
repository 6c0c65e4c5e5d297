"""Rules by which importers read a source, by number, and what was read otherwise before."""

from __future__ import annotations

from typing import Final

__all__ = ["RULES", "changes_of"]

RULES: Final = 1
"""Number of the rules of today; the manifest of a dataset says by which it was made, and says nothing (0) of the first.

It is raised, with a line in ``_CHANGES``, when a source would become another dataset than before.
"""

_FRAMES: Final = frozenset(("coco", "kitti", "tfrecord", "voc", "webdataset", "yolo"))
_CHANGES: Final[tuple[tuple[int, frozenset[str], str], ...]] = (
    (1, _FRAMES, "boxes, outlines and masks of images that EXIF turns"),
    (1, frozenset(("coco", "kitti", "voc", "yolo")), "images that the labels name in another way than their files"),
    (1, frozenset(("coco",)), "ids as numbers or texts, masks without boxes, and images that are listed twice"),
    (1, frozenset(("yolo",)), "splits by their synonyms, key points, and labels beside images"),
    (1, frozenset(("masks", "voc")), "values of masks with gaps, and soft edges"),
    (1, frozenset(("table", "huggingface_folder")), "types of columns, repeated headers, and dates"),
    (1, frozenset(("table", "text", "text_list", "siamese_pairs")), "texts in other encodings than UTF-8"),
)
"""Rules since which it holds, formats, and what is read otherwise since."""


def changes_of(format_name: str, rules: int) -> tuple[str, ...]:
    """Return what a format reads otherwise today than by earlier rules.

    Args:
        format_name: of the importer.
        rules: by which a dataset was made.
    """
    return tuple(text for since, formats, text in _CHANGES if since > rules and format_name in formats)
