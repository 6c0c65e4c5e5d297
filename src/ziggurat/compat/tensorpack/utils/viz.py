"""Images in a grid, boxes on images, and images of a data flow as files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.compat.tensorpack.utils.argtools import shape2d
from ziggurat.errors import DataError, UsageError
from ziggurat.tf import logger

__all__ = [
    "draw_boxes",
    "draw_text",
    "dump_dataflow_images",
    "gen_stack_patches",
    "intensity_to_rgb",
    "interactive_imshow",
    "stack_patches",
]

_Color = int | Sequence[int]


def stack_patches(
    patch_list: Any,
    nr_row: int,
    nr_col: int,
    border: int | None = None,
    pad: bool = False,
    bgcolor: _Color = 255,
    viz: bool = False,
    lclick_cb: Callable[..., Any] | None = None,
) -> np.ndarray:
    """Return images side by side.

    Args:
        patch_list: (N, H, W) or (N, H, W, C) with C of 1 or 3, or a list of images; values in [0, 255].
        nr_row: rows of the grid.
        nr_col: columns of the grid.
        border: between two images, in pixels; a twentieth of the smaller side where it is None.
        pad: whether images of several sizes are put into the middle of fields of the largest.
        bgcolor: between the images; a gray value or (B, G, R).
        viz: whether to show the grid in a window, where there is one.
        lclick_cb: of the window; not used here.

    Returns:
        (H, W, C), uint8.

    Raises:
        DataError: where the images do not fit into the grid, or are of several sizes and ``pad`` is False.
    """
    images = _batch(_padded(patch_list, bgcolor) if pad else patch_list)
    grid = _grid(images, nr_row, nr_col, border, bgcolor)
    if viz:
        interactive_imshow(grid, lclick_cb)
    return grid


def gen_stack_patches(
    patch_list: Any,
    nr_row: int | None = None,
    nr_col: int | None = None,
    border: int | None = None,
    max_width: int = 1000,
    max_height: int = 1000,
    bgcolor: _Color = 255,
    viz: bool = False,
    lclick_cb: Callable[..., Any] | None = None,
) -> Iterator[np.ndarray]:
    """Yield grids of images until all were shown.

    Args:
        patch_list: as ``stack_patches`` takes it.
        nr_row: rows of a grid; as many as ``max_height`` has room for where it is None.
        nr_col: columns of a grid; as many as ``max_width`` has room for where it is None.
        border: between two images, in pixels.
        max_width: of a grid, in pixels.
        max_height: of a grid, in pixels.
        bgcolor: between the images.
        viz: whether to show each grid in a window, where there is one.
        lclick_cb: of the window; not used here.
    """
    images = _batch(patch_list)
    height, width = images.shape[1:3]
    gap = int(0.05 * min(height, width)) if border is None else border
    rows = nr_row or max(1, max_height // (height + gap))
    columns = nr_col or max(1, max_width // (width + gap))
    for start in range(0, len(images), rows * columns):
        grid = _grid(images[start : start + rows * columns], rows, columns, gap, bgcolor)
        if viz:
            interactive_imshow(grid, lclick_cb)
        yield grid


def dump_dataflow_images(
    df: Any,
    index: int = 0,
    batched: bool = True,
    number: int = 1000,
    output_dir: str | None = None,
    scale: float = 1,
    resize: int | Sequence[int] | None = None,
    viz: int | Sequence[int] | None = None,
    flipRGB: bool = False,
) -> None:
    """Write images of a data flow to files, ``001.jpg`` and so on.

    Args:
        df: the flow.
        index: component with the images.
        batched: whether it has several of them.
        number: images to take at most.
        output_dir: folder of the files; None for no files.
        scale: factor of the values.
        resize: (height, width), in pixels.
        viz: rows and columns of grids to show, where there is a window.
        flipRGB: whether to swap red and blue.
    """
    import cv2

    if output_dir:
        Path(output_dir).mkdir(parents=True, exist_ok=True)
    shown: list[np.ndarray] = []
    for count, image in enumerate(itertools.islice(_images_of(df, index, batched), number), start=1):
        image = image * scale if scale != 1 else image
        if resize is not None:
            height, width = shape2d(resize)  # pyright: ignore[reportArgumentType]
            image = cv2.resize(image, (width, height))
        if flipRGB:
            image = np.ascontiguousarray(image[:, :, ::-1])
        if output_dir:
            cv2.imwrite(str(Path(output_dir) / f"{count:03d}.jpg"), image)
        if viz is not None:
            rows, columns = shape2d(viz)  # pyright: ignore[reportArgumentType]
            shown.append(image)
            if len(shown) == rows * columns:
                stack_patches(shown, rows, columns, viz=True)
                shown.clear()


def intensity_to_rgb(intensity: np.ndarray, cmap: str = "cubehelix", normalize: bool = False) -> np.ndarray:
    """Return an array of intensities in colors.

    Args:
        intensity: (H, W), in [0, 1].
        cmap: color map of matplotlib; where that is not installed, a color map of OpenCV in its place.
        normalize: whether to spread the values over [0, 1] before.

    Returns:
        (H, W, 3) float32 in [0, 255], RGB.
    """
    values = np.asarray(intensity, np.float64)
    if normalize:
        values = (values - values.min()) / (np.ptp(values) or 1.0)
    try:
        import matplotlib  # pyright: ignore[reportMissingImports]
    except ImportError:
        import cv2

        logger.warning("matplotlib is not installed: %s is shown in colors of OpenCV.", cmap)
        gray = np.clip(values * 255, 0, 255).astype(np.uint8)
        return cv2.applyColorMap(gray, cv2.COLORMAP_VIRIDIS)[:, :, ::-1].astype(np.float32)
    return matplotlib.colormaps[cmap](values)[..., :3].astype(np.float32) * 255.0


def interactive_imshow(
    img: np.ndarray,
    lclick_cb: Callable[..., Any] | None = None,
    rclick_cb: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> None:
    """Write an image to a file in the folder of the training: a program that runs here opens no window.

    Args:
        img: (H, W) or (H, W, C), BGR.
        lclick_cb: not used.
        rclick_cb: not used.
        kwargs: not used.
    """
    import cv2

    folder = Path(logger.get_logger_dir() or ".")
    path = next(path for n in itertools.count(1) if not (path := folder / f"shown-{n:03d}.png").exists())
    cv2.imwrite(str(path), img)
    logger.info("A program that runs here opens no window: the image is in %s.", path)


def draw_text(
    img: np.ndarray, pos: Sequence[float], text: str, color: Sequence[int], font_scale: float = 0.4
) -> np.ndarray:
    """Return an image with a text on a colored field.

    Args:
        img: (H, W, 3) BGR in [0, 255].
        pos: (x, y) of the text's lower left corner, in pixels.
        text: the text.
        color: of the field, (B, G, R).
        font_scale: size of the letters.
    """
    import cv2

    font = cv2.FONT_HERSHEY_SIMPLEX
    image = np.ascontiguousarray(img, np.uint8).copy()
    (width, height), _ = cv2.getTextSize(text, font, font_scale, 1)
    x = max(0, min(int(pos[0]), image.shape[1] - width))
    y = max(int(1.2 * height), int(pos[1]))
    cv2.rectangle(image, (x, y - int(1.3 * height)), (x + width, y), color, -1)
    cv2.putText(image, text, (x, y - height // 4), font, font_scale, (222, 222, 222), lineType=cv2.LINE_AA)
    return image


def draw_boxes(
    im: np.ndarray, boxes: Any, labels: Sequence[str] | None = None, color: Sequence[int] | None = None
) -> np.ndarray:
    """Return an image with boxes, the largest at the back.

    Args:
        im: (H, W), (H, W, 1) or (H, W, 3) BGR in [0, 255].
        boxes: (N, 4): x1, y1, x2, y2 in pixels, inside the image.
        labels: a text for each box.
        color: (B, G, R).

    Raises:
        DataError: where a box is empty or outside, or the labels are of another number.
    """
    import cv2

    corners = np.asarray(boxes, np.int32).reshape(-1, 4)
    sizes = corners[:, 2:] - corners[:, :2] + 1
    if labels is not None and len(labels) != len(corners):
        raise DataError(f"There are {len(labels)} labels for {len(corners)} boxes.")
    is_inside = (corners >= 0).all() and (corners[:, 2:] <= (im.shape[1], im.shape[0])).all()
    if not is_inside or (sizes <= 0).any():
        raise DataError(f"A box is empty or reaches out of the image: {corners.tolist()}.")
    chosen = tuple(color or (15, 128, 15))
    image = cv2.cvtColor(im, cv2.COLOR_GRAY2BGR) if im.ndim == 2 or im.shape[2] == 1 else im.copy()
    order: list[int] = np.argsort(-sizes.prod(axis=1)).tolist()
    for number in order:
        x1, y1, x2, y2 = (int(each) for each in corners[number])
        if labels is not None:
            image = draw_text(image, (x1, y1), labels[number], chosen)
        cv2.rectangle(image, (x1, y1), (x2, y2), chosen, 1)
    return image


def _batch(patches: Any) -> np.ndarray:
    try:
        images = np.asarray(patches)
    except ValueError as error:
        raise DataError(
            f"The images of the grid differ in size: {str(error).rstrip('.')}.", advice="Give `pad=True`."
        ) from error
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in (1, 3):
        raise DataError(f"Images of shape {images.shape} are neither (N, H, W), nor (N, H, W, C) with 1 or 3 channels.")
    return images


def _padded(patches: Sequence[np.ndarray], color: _Color) -> np.ndarray:
    images = [np.repeat(each[..., None], 3, 2) if each.ndim == 2 else each for each in patches]
    images = [np.repeat(each, 3, 2) if each.shape[2] == 1 else each for each in images]
    height, width = (max(each.shape[axis] for each in images) for axis in (0, 1))
    fields = np.empty((len(images), height, width, 3), images[0].dtype)
    fields[:] = color
    for field, image in zip(fields, images, strict=True):
        top, left = (height - image.shape[0]) // 2, (width - image.shape[1]) // 2
        field[top : top + image.shape[0], left : left + image.shape[1]] = image
    return fields


def _grid(images: np.ndarray, rows: int, columns: int, border: int | None, color: _Color) -> np.ndarray:
    count, height, width, channels = images.shape
    if count > rows * columns:
        raise UsageError(f"{count} images do not fit into a grid of {rows} x {columns}.")
    gap = int(0.05 * min(height, width)) if border is None else border
    channels = max(channels, 1 if isinstance(color, int) else 3)
    grid = np.empty((rows * (height + gap) - gap, columns * (width + gap) - gap, channels), np.uint8)
    grid[:] = color
    for number, image in enumerate(images):
        top, left = (number // columns) * (height + gap), (number % columns) * (width + gap)
        grid[top : top + height, left : left + width] = image
    return grid


def _images_of(df: Any, index: int, is_batched: bool) -> Iterator[np.ndarray]:
    df.reset_state()
    while True:
        found = False
        for datapoint in df:
            images: Iterable[np.ndarray] = datapoint[index] if is_batched else [datapoint[index]]
            for image in images:
                found = True
                yield image
        if not found:
            return
