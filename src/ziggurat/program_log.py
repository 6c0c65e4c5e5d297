"""Curves and images of any program: ``ziggurat.log`` and ``ziggurat.log_image``, which do nothing outside of a job.

A job names a folder in an environment variable, so that child processes find it, too. Each process appends JSON lines
to a file of its own there; the worker copies them into the events of the job (``ziggurat.worker.program_curves``). Only
the standard library is imported: this is loaded by programs that know nothing else of Ziggurat.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import math
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["FOLDER_VARIABLE", "IMAGES", "MOST_NAMES", "finish", "log", "log_image"]

FOLDER_VARIABLE: Final = "_ZIGGURAT_PROGRAM_LOG"
"""Environment variable with the folder of these files, which is in the folder of the job; unset outside of a job."""

IMAGES: Final = "images"
"""Folder of the images, beside the folder of the files."""

MOST_NAMES: Final = 1000
"""Names of one process; further ones are left out."""

_MOST_LETTERS: Final = 200
_MOST_NOTICES: Final = 20
_MOST_STEPS: Final = 2**53
_MOST_PIXELS: Final = 2048
_RANKS: Final = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def log(
    values: Mapping[str, Any] | None = None,
    /,
    *,
    step: int | None = None,
    epoch: int | None = None,
    every_rank: bool = False,
    **named: Any,
) -> None:
    """Add one point to each named curve of the job that runs this program; outside of a job, do nothing.

    ``ziggurat.log(loss=0.3)`` and ``ziggurat.log({"val/loss": 0.3}, step=100)`` are the same call in two forms. A value
    that is no number is left out, and the log of the job says so once for each name. 2,000 calls are taken at once and
    100 a second after that; of faster ones, the newest value of each name is kept.

    Args:
        values: name → number, or a mapping of further names, which are joined by ``/``. A number is anything with one
            element: an int, a float, an array, a tensor. NaN and infinities are shown as such.
        step: x-coordinate, a whole number from 0; default: one more than in the last call.
        epoch: epoch of the point, from 1; default: unknown.
        every_rank: also log in the processes of a distributed training whose rank is above 0, as ``rank1/loss``.
        named: further values, by names that are Python words.
    """
    writer = _writer(every_rank)
    if writer is not None:
        writer.log({**(values or {}), **named}, step, epoch)


def log_image(
    name: str, image: Any, *, step: int | None = None, epoch: int | None = None, every_rank: bool = False
) -> None:
    """Add one image to the job that runs this program; outside of a job, do nothing.

    What is no image is left out, and the log of the job says so once for each name. 100 images are taken at once, and
    one a second after that. An image of more than 2048 pixels a side is made smaller.

    Args:
        name: of the image; the page of the job shows the newest one of each name.
        image: an array or tensor (height, width), (height, width, channels) or (channels, height, width) with 1, 3 or 4
            channels, of bytes or of floats in [0, 1] (another range is stretched to it); a PIL image, a Matplotlib
            figure, or the path of an image file.
        step: a whole number from 0; default: that of the last point.
        epoch: epoch of the image, from 1; default: unknown.
        every_rank: also log in the processes of a distributed training whose rank is above 0.
    """
    writer = _writer(every_rank)
    if writer is not None:
        writer.log_image(name, image, step, epoch)


def finish() -> None:
    """Write what this process still holds back, as at its end."""
    if _own is not None:
        _own.finish()


class _Allowance:
    """So many calls at once, and so many a second afterwards."""

    def __init__(self, burst: int, per_s: float) -> None:
        self._burst, self._per_s = float(burst), per_s
        self._left, self._at = float(burst), time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class _Writer:
    """The file of one process."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder, self.pid = folder, os.getpid()
        self._prefix = prefix
        self._path = folder / f"{socket.gethostname()}-{self.pid}.jsonl"
        self._descriptor = -1
        self._lock = threading.RLock()  # a signal may interrupt a call, and its handler may log
        self._step = 0
        self._names: dict[str, str] = {}
        self._waiting: dict[str, dict[str, Any]] = {}
        self._points, self._images = _Allowance(2000, 100.0), _Allowance(100, 1.0)
        self._told: set[str] = set()

    def log(self, values: Mapping[Any, Any], step: Any, epoch: Any) -> None:
        with self._lock:
            self._step = self._step + 1 if step is None else self._whole("step", step, self._step + 1)
            place = {"step": self._step, "epoch": 0 if epoch is None else self._whole("epoch", epoch, 0)}
            for name, value in _flat(values):
                number = self._number(name, value)
                tag = None if number is None else self._tag(name)
                if tag is not None:
                    self._waiting[tag] = {**place, "time": time.time(), "value": _json_number(number)}
            if self._points.take():
                self._write_waiting()
            else:
                self._tell("fast", "points come faster than 100 a second: of each name, the newest is kept")

    def log_image(self, name: Any, image: Any, step: Any, epoch: Any) -> None:
        with self._lock:
            tag = self._tag(str(name))
            if tag is None:
                return
            if not self._images.take():
                self._tell("images", "images come faster than one a second; these are left out")
                return
            at = self._step if step is None else self._whole("step", step, self._step)
            word = re.sub(r"[^A-Za-z0-9._-]+", "-", tag).strip("-.")[:80] or "image"
            path = f"{IMAGES}/{word}-{at:08d}.png"
            try:
                _replace(self.folder.parent / path, _png(image))
            except OSError as error:
                self._tell("disk", f"images cannot be written: {error.strerror or error}")
            except Exception as error:
                self._tell(f"image {name}", f"the image {_short(name)} is left out: {error}")
            else:
                noted = 0 if epoch is None else self._whole("epoch", epoch, 0)
                self._write([{"type": "image", "tag": tag, "path": path, "step": at, "epoch": noted}])

    def finish(self) -> None:
        with self._lock:
            self._write_waiting()

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if waiting:
            self._write([{"type": "scalar", "tag": tag, **point} for tag, point in waiting.items()])

    def _write(self, lines: list[dict[str, Any]]) -> None:
        now = time.time()
        data = "".join(json.dumps({"version": 1, "time": now, **line}) + "\n" for line in lines).encode()
        try:
            if self._descriptor < 0:
                self.folder.mkdir(parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self._path, flags, 0o644)
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self._tell("disk", f"points cannot be written: {error.strerror or error}; the program goes on")

    def _tag(self, name: str) -> str | None:
        if name not in self._names:
            if len(self._names) >= MOST_NAMES:
                self._tell("names", f"there are more than {MOST_NAMES} names; {_short(name)} and others are left out")
                return None
            self._names[name] = self._prefix + _bounded(name)
        return self._names[name]

    def _number(self, name: str, value: Any) -> float | None:
        try:
            if isinstance(value, str | bytes):
                raise TypeError
            item: Any = getattr(value, "item", None)  # of arrays and tensors with one element
            number: Any = item() if callable(item) else value
            return float(number)
        except Exception:  # whatever the number of a stranger raises
            self._tell(f"value {name}", f"{_short(name)} is left out: {type(value).__name__} is no number")
            return None

    def _whole(self, name: str, value: Any, otherwise: int) -> int:
        try:
            whole = int(value)
            if whole == value and 0 <= whole < _MOST_STEPS:
                return whole
        except Exception:  # whatever the number of a stranger raises
            pass
        self._tell(name, f"`{name}` is a whole number from 0, and not {_short(value)}; {otherwise} is taken instead")
        return otherwise

    def _tell(self, key: str, text: str) -> None:
        if key not in self._told and len(self._told) < _MOST_NOTICES:
            self._told.add(key)
            sys.stderr.write(f"ziggurat.log: {text}.\n")


_own: _Writer | None = None
_is_registered = False
"""Whether forks and the end of the process are watched: from the first call in a job on."""


def _writer(every_rank: bool) -> _Writer | None:
    """Return the writer of this process; None outside of a job, and where a rank above 0 is silent."""
    global _own, _is_registered
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    rank = _rank()
    if rank and not every_rank:
        return None
    if _own is None or _own.pid != os.getpid() or str(_own.folder) != folder:
        _own = _Writer(Path(folder), f"rank{rank}/" if rank else "")
    if not _is_registered:
        os.register_at_fork(after_in_child=_forget_parent)
        atexit.register(finish)
        _is_registered = True
    return _own


def _rank() -> int:
    """Return the number of this process in a distributed training; 0 outside of one."""
    distributed: Any = sys.modules.get("torch.distributed")  # a program that has not imported it has one process
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    for name in _RANKS:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return 0


def _forget_parent() -> None:
    global _own
    _own = None  # its lock may be held by a thread that the child does not have


def _flat(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def _bounded(name: str) -> str:
    """Return a name of at most 200 letters without control characters; long ones stay apart by a checksum."""
    name = "".join(each if each.isprintable() else " " for each in name).strip() or "value"
    if len(name) <= _MOST_LETTERS:
        return name
    return f"{name[: _MOST_LETTERS - 9]}…{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _json_number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically: readers see the old or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.write_bytes(content)
    written.replace(path)


# ---- images


def _png(image: Any) -> bytes:
    """Return an image as a PNG file.

    Raises:
        ValueError: for what is none.
        OSError: for a file that cannot be read.
    """
    from PIL import Image

    if hasattr(image, "savefig"):  # a figure of Matplotlib
        file = io.BytesIO()
        image.savefig(file, format="png")
        return file.getvalue()
    if isinstance(image, str | os.PathLike):
        with Image.open(image) as opened:
            return _encoded(opened.copy())
    return _encoded(image if isinstance(image, Image.Image) else Image.fromarray(_pixels(image)))


def _encoded(picture: Any) -> bytes:
    if picture.mode not in ("L", "LA", "RGB", "RGBA"):
        picture = picture.convert("RGBA" if picture.mode in ("P", "PA") else "RGB")
    if max(picture.size) > _MOST_PIXELS:
        picture.thumbnail((_MOST_PIXELS, _MOST_PIXELS))
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return file.getvalue()


def _pixels(image: Any) -> Any:
    """Return bytes (height, width) or (height, width, channels)."""
    import numpy as np

    is_torch = type(image).__module__.partition(".")[0] == "torch"
    if is_torch:
        image = image.detach().cpu()
        image = image.float() if image.is_floating_point() else image  # bfloat16 is none of NumPy's
    values = np.asarray(image)
    if values.ndim not in (2, 3) or not values.size or values.dtype.kind not in "biuf":
        raise ValueError(f"shape {values.shape} of {values.dtype} is no image")
    values = _channels_last(values, is_torch)
    if values.dtype.kind == "f":
        values = np.nan_to_num(values.astype(np.float64), posinf=1.0, neginf=0.0)
        low, high = values.min(), values.max()
        if low < 0 or high > 1:
            values = (values - low) / max(high - low, 1e-12)
        values = np.rint(values * 255)
    elif values.dtype.kind == "b":
        values = values * 255
    return values.clip(0, 255).astype(np.uint8)


def _channels_last(values: Any, is_torch: bool) -> Any:
    if values.ndim == 2:
        return values
    moves = (values, values.transpose(1, 2, 0))
    for moved in reversed(moves) if is_torch else moves:
        if moved.shape[2] in (1, 3, 4):
            return moved[:, :, 0] if moved.shape[2] == 1 else moved
    raise ValueError(f"shape {values.shape} has neither first nor last 1, 3 or 4 channels")
