"""Random numbers of the data library: a single root seed determines all of them.

A *stream* belongs to one stage of a pipeline. It is moved to a place, (pass, index), before each draw, so that the
numbers for a datapoint depend only on the root seed, the stage, the pass and the index, and never on which worker
draws them or on earlier draws. The generator is the counter-based Philox of Salmon et al., "Parallel random numbers:
as easy as 1, 2, 3" (SC 2011): the cost of a move does not grow with the distance.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np

__all__ = ["RandomStream", "fix_rng_seed", "fresh_seed"]

_fixed_seed: int | None = None
_MASK = (1 << 64) - 1


def fix_rng_seed(seed: int | None) -> None:
    """Make ``seed`` the root seed of every pipeline that is not given one of its own; None undoes it.

    Different stages, passes and datapoints still draw different numbers.
    """
    global _fixed_seed
    _fixed_seed = None if seed is None else int(seed)


def fresh_seed() -> int:
    """Return the root seed for a pipeline that was given none: the fixed one, or 63 bits from the system."""
    return secrets.randbits(63) if _fixed_seed is None else _fixed_seed


class RandomStream:
    """The random numbers of one stage.

    ``rng`` is a ``numpy.random.RandomState``: its numbers are frozen over NumPy's versions, and it has the methods that
    programs of Tensorpack's users call.

    Args:
        seed: the root seed.
        path: the place of the stage in the pipeline, from the root down.
    """

    def __init__(self, seed: int, path: tuple[int | str, ...] = ()) -> None:
        self.seed = int(seed)
        self.path = path
        digest = hashlib.blake2b(repr((int(seed), *path)).encode(), digest_size=16).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest, "little"))
        self.rng = np.random.RandomState(self._bits)
        self._fresh: Any = self._bits.state
        self._counter = self._fresh["state"]["counter"]
        self.seek(0, 0)

    def seek(self, pass_index: int, index: int = 0) -> np.random.RandomState:
        """Move to a place and return ``rng`` (always the same object).

        Args:
            pass_index: number of the pass over the data, from 0.
            index: number of the datapoint in the pass, from 0; the pass itself is place 0 of no datapoint.
        """
        counter = self._counter
        counter[0] = 0
        counter[1] = 0
        counter[2] = index & _MASK
        counter[3] = pass_index & _MASK
        self.rng.set_state(self._fresh)  # also forgets the second half of a pair of normal numbers
        return self.rng

    def state(self) -> dict[str, Any]:
        """Return where the stream stands, as JSON values."""
        state: Any = self.rng.get_state(legacy=False)
        return {
            "counter": [int(word) for word in state["state"]["counter"]],
            "buffer": [int(word) for word in state["buffer"]],
            "buffer_pos": int(state["buffer_pos"]),
            "has_uint32": int(state["has_uint32"]),
            "uinteger": int(state["uinteger"]),
            "has_gauss": int(state["has_gauss"]),
            "gauss": float(state["gauss"]),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to where ``state()`` was called."""
        whole: Any = self.rng.get_state(legacy=False)
        whole["state"]["counter"][:] = state["counter"]
        whole["buffer"][:] = state["buffer"]
        for name in ("buffer_pos", "has_uint32", "uinteger", "has_gauss", "gauss"):
            whole[name] = state[name]
        self.rng.set_state(whole)

    def __reduce__(self) -> tuple[Any, ...]:
        return RandomStream, (self.seed, self.path), self.state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.load_state(state)
