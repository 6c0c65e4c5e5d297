"""Fields of the dataset form: titles, hints, choices and groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ziggurat.specs import DatasetSpec, FieldDescription, describe_fields

__all__ = ["CHOICES", "FIELDS", "HINTS", "LISTS", "METHODS", "SAID", "SHARED_METHODS", "TITLES"]

METHODS: Final = (
    ("source", "Use existing splits", "Missing ones by share"),
    ("share", "Random", "By share, reproducible"),
    ("group", "By group", "Patient, session, …"),
    ("stem", "By file name", "Frames of a video"),
    ("time", "By time", "Train on the oldest"),
    ("cluster", "By visual similarity", "No near duplicates"),
    ("list", "By lists", "Text files with names"),
)
"""Methods of splitting: value, name, and what it does."""

CHOICES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "resize_mode": (
        ("squash", "Squash (ignores the aspect ratio)"),
        ("crop", "Crop (fills the size, cuts off the rest)"),
        ("fill", "Fill (keeps everything, adds a frame)"),
        ("half_crop", "Half crop, half fill"),
    ),
    "channels": (("", "Keep"), ("3", "Color"), ("1", "Gray")),
    "encoding": (
        ("auto", "Automatic"),
        ("original", "Unchanged (bytes of the files)"),
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
    "losses": (
        ("none", "Refuse any loss"),
        ("some", "Refuse the loss of a whole split or class"),
        ("any", "Accept any loss"),
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
    "check": "Verification",
    "workers": "Processes",
    "splits.stratify": "Same class shares in each split",
    "splits.min_per_class": "Minimum samples per class",
    "splits.max_per_class": "Maximum samples per class",
    "near_duplicates": "Find near duplicates",
    "mean": "Compute the mean image",
    "hung_after_s": "Hung after",
}
"""Field → its label, where the spec's own title is too short for a page."""

HINTS: Final[Mapping[str, str]] = {
    "source": "",
    "resize_mode": "How images of another size are resized.",
    "channels": "Whether all images become gray or color; default: each image keeps its own.",
    "encoding": "Automatic keeps the bytes of the files if nothing is changed, else it is PNG.",
    "check": "How unchanged images are verified; decoding finds every damaged one, headers most.",
    "losses": "What is to happen where labels, samples or names of the source cannot be taken over.",
    "store": "Kind of file that holds the records; LMDB is the fastest.",
    "splits.min_per_class": "Classes with fewer samples are skipped; default 0 keeps all.",
    "splits.max_per_class": "Random subset of this size from each larger class; leave empty for all.",
    "splits.pattern": "Regular expression whose first group names what belongs together, as in (.+)_[0-9]+; "
    "default: the name without the number at its end.",
    "splits.max_distance": "Bits in which the hashes of similar images may differ; typical: 4 to 8.",
    "splits.lists.train": "Text file with keys or file names, one per line; default: all others.",
    "splits.lists.val": "Text file with keys or file names, one per line.",
    "splits.lists.test": "Text file with keys or file names, one per line.",
    "size": "Side in pixels as in 256, or height x width as in 240x320; default: images keep their size.",
    "seed": "Determines the random split; any whole number.",
    "workers": "Processes that read images; default: one per CPU.",
    "name": "",
    "hung_after_s": "Seconds without progress before the job is reported as hung; typical: 300 to 1800.",
    "heartbeat_s": "Seconds between two heartbeats of the worker; typical: 1 to 5.",
}
"""Field → its hint, where the spec's own is written for the command line."""

FIELDS: Final[Mapping[str, FieldDescription]] = {
    field.path: field for field in describe_fields(DatasetSpec) if field.kind != "object" and field.path != "again_of"
}
"""Path → field of the spec, without those that have parts of their own, and without what nobody types."""

LISTS: Final = ("splits.lists.train", "splits.lists.val", "splits.lists.test")
"""Names of the fields for text files with the names of samples."""

SHARED_METHODS: Final = ("share", "group", "stem", "time", "cluster")
"""Methods that divide all samples by shares."""

SAID: Final = ("project", "tags", "notes", "priority", "parent")
"""Fields that describe the job; they are not part of the spec."""
