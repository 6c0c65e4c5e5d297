"""Request for a dataset creation as plain values, and the interface for progress reports and stop requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.datasets.splitting.rule import SplitRule
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.records.manifest import ImageForm

__all__ = ["CHECKS", "ENCODINGS", "LOSSES", "RESIZE_MODES", "STORES", "CreationRequest", "CreationStopped", "Watch"]

ENCODINGS: Final = ("original", "png", "jpeg", "raw", "reference")
RESIZE_MODES: Final = ("none", "squash", "crop", "fill", "half_crop")
STORES: Final = ("lmdb", "tfrecord")
CHECKS: Final = ("decode", "header", "none")
LOSSES: Final = ("none", "some", "any")
"""What of a source may be lost: nothing; some, but not every label of a split or a class; or anything."""


class CreationStopped(Exception):  # noqa: N818 - nothing went wrong
    """A stop was requested; finished work is kept, and the next call continues."""


class Watch:
    """Is told how far a creation is; this one keeps silent."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell that ``done`` of ``total`` samples have passed a stage; ``total`` is 0 while unknown."""

    def message(self, level: str, text: str) -> None:
        """Tell one sentence; ``level`` is ``info`` or ``warning``."""

    def stop_requested(self) -> bool:
        """Return whether to stop; asked often."""
        return False


@dataclass(frozen=True, kw_only=True)
class CreationRequest:
    """What a dataset is asked to become.

    Args:
        name: what people will call it.
        source: folder, file, archive or address.
        format: name of the importer; empty: it is guessed.
        options: of the importer.
        rule: how it is split.
        image: how images are stored; ``encoding`` may be empty: the files' own bytes where nothing is to be changed,
            else PNG.
        store: ``lmdb`` or ``tfrecord``; an export gives HDF5 and arrays.
        mean: whether the mean image of the training split is computed, where images have one size.
        near_duplicates: whether perceptual hashes are computed, for warnings of leaks; images only.
        check: how images that are stored as they are get checked: ``decode`` finds every damaged one, ``header``
            reads their first bytes only, ``none`` looks at nothing; empty: ``decode``, but ``header`` for references.
        again_of: id and name, with a blank between, of the dataset whose source this one is made of again; empty for
            none.
        losses: what of the source may be lost, one of ``LOSSES``.
        workers: processes; 0 works in this one; None takes as many as there are processors.
        spec: what the manifest keeps as the request.
    """

    name: str
    source: str
    format: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rule: SplitRule = field(default_factory=SplitRule)
    image: ImageForm = field(default_factory=lambda: ImageForm(encoding=""))
    store: str = "lmdb"
    mean: bool = True
    near_duplicates: bool = True
    check: str = ""
    losses: str = "some"
    again_of: str = ""
    workers: int | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _known("store", self.store, STORES)
        _known("check", self.check, ("", *CHECKS))
        _known("losses", self.losses, LOSSES)
        form = self.image
        _known("encoding", form.encoding, ("", *ENCODINGS))
        _known("resize mode", form.resize_mode, RESIZE_MODES)
        sized = form.height_px is not None and form.width_px is not None
        if sized != (form.resize_mode != "none"):
            raise ConfigurationError(
                "A resize mode and a size come together.",
                received=f"resize mode {form.resize_mode}, size {form.height_px} x {form.width_px}",
                advice="Give both, or neither to keep the images as they are.",
            )
        if form.encoding in ("original", "reference") and (sized or form.channels is not None):
            raise ConfigurationError(
                f"Images with encoding {form.encoding} stay as they are.",
                received=f"resize mode {form.resize_mode}, channels {form.channels}",
                advice="Choose the encoding png, jpeg or raw to change size or channels.",
            )
        if not 1 <= form.quality <= 100:
            raise ConfigurationError(
                "The quality of JPEG is from 1 to 100.", received=form.quality, advice="90 is usual."
            )

    @property
    def encoding(self) -> str:
        """The encoding that is used."""
        if self.image.encoding:
            return self.image.encoding
        changes = self.image.resize_mode != "none" or self.image.channels is not None
        return "png" if changes else "original"

    @property
    def image_check(self) -> str:
        """How images that are stored as they are get checked."""
        return self.check or ("header" if self.encoding == "reference" else "decode")


def _known(kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UnknownNameError(kind, name, [each for each in known if each])
