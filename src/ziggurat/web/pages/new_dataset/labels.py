"""Texts of the dataset form: the meaning of each choice in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["CHOICES", "HINTS", "METHODS", "TITLES"]

METHODS: Final = (
    ("source", "As the source says", "Keeps the splits of the source and takes missing ones by share."),
    ("share", "By share", "Chooses at random by the shares below; the same seed gives the same splits."),
    ("group", "By group", "Keeps samples of one group together, such as all images of a patient."),
    ("stem", "By file name", "Keeps files together whose names begin alike, such as the frames of a video."),
    ("time", "By time", "Trains on the oldest samples and tests on the newest."),
    ("cluster", "By likeness", "Keeps images that look alike together, so that no near duplicate leaks."),
    ("list", "By lists", "Text files name the samples of each split, one a line."),
)
"""Methods of splitting: value, name, and what it does."""

CHOICES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "resize_mode": (
        ("squash", "Squash (ignores the aspect ratio)"),
        ("crop", "Crop (fills the size, cuts off the rest)"),
        ("fill", "Fill (keeps everything, adds a frame)"),
        ("half_crop", "Half crop, half fill"),
    ),
    "channels": (("", "As each image has"), ("3", "Color (3)"), ("1", "Gray (1)")),
    "encoding": (
        ("auto", "Automatic"),
        ("original", "As they are (bytes of the files)"),
        ("png", "PNG (lossless)"),
        ("jpeg", "JPEG (small)"),
        ("raw", "None (fast to read, large)"),
        ("reference", "Train straight from the files"),
    ),
    "check": (
        ("auto", "Automatic"),
        ("decode", "Decode every image"),
        ("header", "Read headers only"),
        ("none", "None"),
    ),
    "store": (("lmdb", "LMDB"), ("tfrecord", "TFRecord")),
}
"""Field → its choices: value, and what it is called."""

TITLES: Final[Mapping[str, str]] = {
    "splits.lists.train": "List of training samples",
    "splits.lists.val": "List of validation samples",
    "splits.lists.test": "List of test samples",
    "source": "Folder, file or archive",
    "encoding": "Stored as",
    "workers": "Processes",
}
"""Field → its label, where the spec's own title is too short for a page."""

HINTS: Final[Mapping[str, str]] = {
    "source": "A path of the machine that runs the studio, or the address of an archive (https, s3, …).",
    "resize_mode": "How an image of another shape gets to that size.",
    "channels": "Whether all images become gray or color.",
    "encoding": "Automatic keeps the files' bytes where nothing is changed, else it is PNG.",
    "check": "How unchanged images are tested; decoding finds every damaged one, headers most.",
    "store": "Kind of file that holds the records; LMDB is the fastest.",
    "splits.max_per_class": "A random choice of so many; empty for all.",
    "splits.pattern": "Regular expression whose first group names what belongs together, as in (.+)_[0-9]+; "
    "empty: the name without the number at its end.",
    "splits.max_distance": "Bits in which the hashes of images that look alike may differ; typical: 4 to 8.",
    "splits.lists.train": "Text file with keys or file names, one a line; default: all others.",
    "splits.lists.val": "Text file with keys or file names, one a line.",
    "splits.lists.test": "Text file with keys or file names, one a line.",
    "size": "Side in pixels as in 256, or height x width as in 240x320; empty: images keep theirs.",
    "seed": "Decides which sample gets into which split; any whole number.",
    "workers": "Processes that read images; empty: one for each processor.",
    "name": "What people call the dataset; empty: the last part of the source.",
    "hung_after_s": "Seconds without progress before the job is reported as hung; typical: 300 to 1800.",
    "heartbeat_s": "Seconds between two signs of life of the worker; typical: 1 to 5.",
}
"""Field → its hint, where the spec's own is written for the command line."""
