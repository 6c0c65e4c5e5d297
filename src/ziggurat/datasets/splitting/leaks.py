"""Detection of leaks: validation and test samples with a near duplicate or a member of their group in training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from ziggurat.datasets.hashing import NEAR_DISTANCE, distinct_hashes, near_distinct
from ziggurat.datasets.samples import SPLITS

__all__ = ["LeakPair", "LeakReport", "find_leaks"]

_TRAIN: Final = 0
_REASONS: Final = ("near-duplicate", "group")
_TWICE: Final = "duplicate"


@dataclass(frozen=True, kw_only=True)
class LeakPair:
    """A sample that leaks, and one of those in training by which it does.

    Args:
        number: of the sample, in the order of the hashes.
        train_number: of the sample in training.
        reason: ``near-duplicate``, ``duplicate`` or ``group``.
    """

    number: int
    train_number: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class LeakReport:
    """What leaks from training into the other splits.

    Args:
        share_of_val: part of the validation samples with a near duplicate or a mate of their group in training.
        share_of_test: the same of test.
        leaking: (M,) int64, the numbers of all these samples, in order.
        pairs: some of them with their counterpart in training.
        text: a warning with advice; empty where nothing leaks.
    """

    share_of_val: float
    share_of_test: float
    leaking: np.ndarray
    pairs: tuple[LeakPair, ...]
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values, without ``leaking``."""
        return {name: value for name, value in asdict(self).items() if name != "leaking"}


def find_leaks(
    hashes: np.ndarray,
    splits: np.ndarray,
    groups: np.ndarray | None = None,
    *,
    max_distance: int = NEAR_DISTANCE,
    most_pairs: int = 100,
    equal: str = "",
) -> LeakReport:
    """Look for samples of validation and test that have a near duplicate, or a mate of their group, in training.

    Args:
        hashes: (N,) int64 perceptual hashes, -1 for none.
        splits: (N,) index into ``SPLITS``, -1 for left out.
        groups: (N,) numbers of groups, -1 for none; None where there are none.
        max_distance: bits in which hashes of near duplicates may differ.
        most_pairs: pairs to give at most.
        equal: what samples with one hash have in common, such as ``the same text``, where the hashes are digests of the
            content; empty for perceptual hashes of images. Digests are near only where they are equal.
    """
    max_distance = 0 if equal else max_distance
    splits = np.asarray(splits)
    leaking = np.zeros(len(splits), bool)
    pairs: list[LeakPair] = []
    by_reason = []
    for reason, found in zip(
        (_TWICE, "group") if equal else _REASONS,
        (_by_hash(hashes, splits, max_distance), _by_group(groups, splits)),
        strict=True,
    ):
        before = int(leaking.sum())
        for numbers, trained in found:
            leaking[numbers] = True
            for number, train in zip(numbers.tolist(), trained.tolist(), strict=True):
                if len(pairs) >= most_pairs:
                    break
                pairs.append(LeakPair(number=number, train_number=train, reason=reason))
        by_reason.append(int(leaking.sum()) - before)
    of_val, of_test = (_share(leaking, splits == SPLITS.index(split)) for split in ("val", "test"))
    return LeakReport(
        share_of_val=of_val,
        share_of_test=of_test,
        leaking=np.flatnonzero(leaking),
        pairs=tuple(pairs),
        text=_text(of_val, of_test, by_reason, equal),
    )


def _by_hash(hashes: np.ndarray, splits: np.ndarray, max_distance: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield numbers of samples outside training, each once, with those of near duplicates in training."""
    values, inverse, _first = distinct_hashes(hashes)
    trained = np.full(len(values), -1, np.int64)  # of each hash, a training sample that has it
    own = np.flatnonzero((inverse >= 0) & (splits == _TRAIN))
    trained[inverse[own[::-1]]] = own[::-1]
    near = trained.copy()  # of each hash, a training sample with a near one
    for one, other in near_distinct(values, max_distance):
        for here, there in ((one, other), (other, one)):
            useful = (near[here] < 0) & (trained[there] >= 0)
            near[here[useful]] = trained[there[useful]]
    outside = np.flatnonzero((inverse >= 0) & (splits > _TRAIN))
    outside = outside[near[inverse[outside]] >= 0]
    yield outside, near[inverse[outside]]


def _by_group(groups: np.ndarray | None, splits: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield numbers of samples outside training, each once, with those of mates in training."""
    if groups is None:
        return
    own = np.flatnonzero((groups >= 0) & (splits == _TRAIN))
    trained = np.full(int(groups.max(initial=-1)) + 1, -1, np.int64)
    trained[groups[own[::-1]]] = own[::-1]
    outside = np.flatnonzero((groups >= 0) & (splits > _TRAIN))
    outside = outside[trained[groups[outside]] >= 0]
    yield outside, trained[groups[outside]]


def _share(leaking: np.ndarray, inside: np.ndarray) -> float:
    return float(leaking[inside].mean()) if inside.any() else 0.0


def _text(of_val: float, of_test: float, by_reason: list[int], equal: str) -> str:
    named = (("validation", of_val), ("test", of_test))
    shares = [f"{share:.1%} of the {name} samples" for name, share in named if share]
    if not shares:
        return ""
    near, mates = by_reason
    if equal and near:
        return (
            f"This split leaks: {' and '.join(shares)} have {equal} as a sample in training, so that results will look "
            "better than they are. Leave out what is there twice, on the page Check or by `ziggurat dataset exclude "
            "DATASET --problem duplicate --out NEW`."
        )
    method = "by visual similarity (`cluster`)" if near >= mates else "by group (`group`)"
    what = {(True, False): "a near duplicate", (False, True): "a sample of the same group"}.get(
        (near > 0, mates > 0), "a near duplicate or a sample of the same group"
    )
    return (
        f"This split leaks: {' and '.join(shares)} have {what} in training, so that results will look better than they "
        f"are. Keep together what belongs together: split {method}."
    )
