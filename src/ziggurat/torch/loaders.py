"""Passes of a PyTorch ``DataLoader`` that are resumed exactly, although the loader itself has no state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch

from ziggurat.engine.run_state import global_random_state, load_global_random_state

__all__ = ["LoaderPasses"]


class LoaderPasses:
    """Repeats a ``DataLoader``; each pass is decided by the seed and its number.

    The order and what workers draw come from PyTorch's generator, which is seeded at the beginning of each pass (and so
    is the loader's own generator). To resume within a pass, it is begun again, and what was taken is passed over. That
    is exact for datasets that draw from ``torch``, ``random`` or ``numpy.random`` in their workers; without workers,
    for those that draw from ``random`` and ``numpy.random``, or from ``torch``, whose generator each step seeds.

    Args:
        loader: the loader.
        seed: of all passes.
    """

    def __init__(self, loader: Any, seed: int) -> None:
        self.loader = loader
        self._seed = seed
        self._pass = 0
        self._taken = 0
        self._is_loaded = False
        self._random: Any = None
        self._base = 0

    def __len__(self) -> int:
        """Return the batches of a pass.

        Raises:
            TypeError: where the dataset has no length.
        """
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of the next pass, or the rest of the one that was loaded."""
        skip = self._skip()
        if not skip:
            self._random = global_random_state()
        now = global_random_state() if skip else None
        if skip:
            load_global_random_state(self._random)
        self._taken = skip
        self._seed_pass()
        batches = iter(self.loader)
        for _ in range(skip):
            next(batches, None)
        if now is not None:  # what was drawn meanwhile was drawn before, too
            load_global_random_state(now)
        # Without workers the data draws from the generator that steps seed: for each batch by its number.
        draws_here = getattr(self.loader, "num_workers", 0) == 0
        if skip and draws_here:
            self._seed_batch(skip)
        for number, batch in enumerate(batches, start=skip + 1):
            self._taken = number
            yield batch
            if draws_here:
                self._seed_batch(number)

    def arithmetic(self) -> dict[str, int]:
        """Return the number of workers, on which datasets depend that draw at random or share their samples."""
        return {"loader_workers": getattr(self.loader, "num_workers", 0)}

    def state(self) -> dict[str, Any]:
        """Return where the passes stand, as JSON values."""
        return {"seed": self._seed, "pass": self._pass, "taken": self._taken, "random": self._random}

    def load_state(self, state: dict[str, Any]) -> None:
        """Let the next iteration go on where ``state()`` was called."""
        self._seed, self._pass, self._taken = int(state["seed"]), int(state["pass"]), int(state["taken"])
        self._random = state["random"]
        self._is_loaded = True

    def _skip(self) -> int:
        """Begin the next pass, or go on with the loaded one; return how many batches of it were taken."""
        goes_on, self._is_loaded = self._is_loaded and self._pass > 0, False
        if goes_on:
            try:
                is_over = self._taken >= len(self.loader)
            except TypeError:
                is_over = False
            if not is_over:
                return self._taken
        self._pass += 1
        return 0

    def _seed_pass(self) -> None:
        seed = self._base = self._pass_seed()
        torch.default_generator.manual_seed(seed)
        samplers = (self.loader, getattr(self.loader, "sampler", None), getattr(self.loader, "batch_sampler", None))
        for each in samplers:
            generator = getattr(each, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(seed)
            if callable(getattr(each, "set_epoch", None)):
                each.set_epoch(self._pass - 1)  # pyright: ignore[reportOptionalMemberAccess]

    def _seed_batch(self, number: int) -> None:
        torch.default_generator.manual_seed(self._base + number)

    def _pass_seed(self) -> int:
        digest = hashlib.blake2b(repr((self._seed, self._pass)).encode(), digest_size=7).digest()
        return int.from_bytes(digest, "little")
