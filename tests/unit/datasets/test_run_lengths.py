"""Masks in run lengths: any mask comes back, in the very text that another program writes; nothing else is taken."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ziggurat.records.run_lengths import (
    mask_area,
    mask_outlines,
    mask_part,
    mask_pixels,
    read_run_lengths,
    run_lengths,
)

ANY = settings(max_examples=150, deadline=None)
MASKS = arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=14), elements=st.integers(0, 1))


def lengths_of(mask: np.ndarray) -> list[int]:
    """Return the lengths of the runs, counted one pixel after the other."""
    lengths, last = [0], 0
    for pixel in (value for column in mask.T.tolist() for value in column):
        if pixel != last:
            lengths.append(0)
            last = pixel
        lengths[-1] += 1
    return lengths


def text_of(lengths: list[int]) -> str:
    """Return the short text, written bit by bit."""
    text = ""
    for place, length in enumerate(lengths):
        number = length - lengths[place - 2] if place > 2 else length
        bits = format(number & (1 << 60) - 1, "060b")  # in two's complement
        groups = [bits[at : at + 5] for at in range(55, -1, -5)]
        while len(groups) > 1 and groups[-1] == groups[-2][0] * 5:
            groups.pop()
        text += "".join(chr(48 + 32 + int(group, 2)) for group in groups[:-1]) + chr(48 + int(groups[-1], 2))
    return text


@ANY
@given(MASKS)
def test_any_mask_comes_back(mask: np.ndarray) -> None:
    found = run_lengths(mask)
    assert found == {"size": list(mask.shape), "counts": text_of(lengths_of(mask))}
    assert np.array_equal(mask_pixels(found), mask)
    assert mask_area(found) == mask.sum()
    assert read_run_lengths(found) == found
    assert read_run_lengths({"size": list(mask.shape), "counts": lengths_of(mask)}) == found


@ANY
@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=30))
def test_any_lengths_come_back_also_those_of_nothing(lengths: list[int]) -> None:
    size = [1, max(1, sum(lengths))]
    lengths = [*lengths, 1] if not sum(lengths) else lengths
    found = read_run_lengths({"size": size, "counts": lengths})
    assert found == {"size": size, "counts": text_of(lengths)}
    assert read_run_lengths(found) == found
    assert mask_area(found) == sum(lengths[1::2])


@ANY
@given(MASKS)
def test_outlines_hold_what_is_in_a_mask_and_nothing_else(mask: np.ndarray) -> None:
    outlines = mask_outlines(run_lengths(mask))
    rows, columns = np.mgrid[: mask.shape[0], : mask.shape[1]]
    crossed = np.zeros(mask.shape, int)
    for points, _ in outlines:
        for (x, y), (next_x, next_y) in zip(points, np.roll(points, -1, axis=0), strict=True):
            assert (x == next_x) != (y == next_y)
            crossed += (x == next_x) & (columns >= x) & (rows >= min(y, next_y)) & (rows < max(y, next_y))
    assert np.array_equal(crossed % 2, mask)
    holes = cv2.connectedComponents(np.pad(1 - mask, 1, constant_values=1), connectivity=8)[0] - 2
    whole = cv2.connectedComponents(mask, connectivity=4)[0] - 1
    assert (sum(is_hole for _, is_hole in outlines), len(outlines)) == (holes, holes + whole)


@ANY
@given(MASKS)
def test_the_part_of_a_mask_that_has_all_of_it(mask: np.ndarray) -> None:
    part, left, top = mask_part(run_lengths(mask))
    height, width = part.shape
    assert np.array_equal(mask[top : top + height, left : left + width], part)
    assert part.sum() == mask.sum()
    assert not part.size or (part[0].any() and part[-1].any() and part[:, 0].any() and part[:, -1].any())


@pytest.mark.parametrize(
    "value",
    [
        {}, {"size": [2, 2]}, {"counts": "4"}, {"size": [2, 2], "counts": None}, {"size": "22", "counts": "4"},
        {"size": [2, 2], "counts": "5"}, {"size": [2, 2], "counts": ""}, {"size": [2, 2], "counts": "o"},
        {"size": [2, 2], "counts": "T"}, {"size": [2, 2], "counts": " 4"}, {"size": [2, 2], "counts": "p"},
        {"size": [2, 2], "counts": "4\x00"}, {"size": [2, 2], "counts": "\u00e9"},
        {"size": [2, 2], "counts": "PPPPPPPPPP4"},
        {"size": [2, 2], "counts": [5, -1]}, {"size": [2, 2], "counts": [3]}, {"size": [2, 2], "counts": [2.0, 2]},
        {"size": [2, 2], "counts": [True, 3]}, {"size": [2, 2], "counts": []}, {"size": [2, 2], "counts": [1 << 80]},
        {"size": [0, 2], "counts": [0]}, {"size": [-2, -2], "counts": [4]}, {"size": [4], "counts": [4]},
        {"size": [True, 4], "counts": [4]}, {"size": [2.0, 2], "counts": [4]},
        {"size": [1 << 20, 1 << 20], "counts": [1 << 40]},
    ],
)  # fmt: skip
def test_what_is_no_mask_is_none_and_no_accident(value: dict) -> None:
    assert read_run_lengths(value) is None
    for read in (mask_pixels, mask_area, mask_part, mask_outlines):
        with pytest.raises(ValueError, match=r"The run lengths of a mask add up to its size\."):
            read(value)


@ANY
@given(st.text(max_size=12) | st.text("".join(map(chr, range(48, 112))), max_size=12), st.integers(1, 9))
def test_any_text_is_a_mask_or_none(text: str, side: int) -> None:
    found = read_run_lengths({"size": [side, side], "counts": text})
    assert found is None or mask_pixels(found).shape == (side, side)
