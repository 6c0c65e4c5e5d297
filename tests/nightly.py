"""Cases of a parametrized test of which the build server runs some, and ``make test-nightly`` the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["some_nightly"]


def some_nightly(
    cases: Iterable[Any], *, nightly: Collection[Any] | None = None, but: Collection[Any] = ()
) -> list[Any]:
    """Return the cases for ``pytest.mark.parametrize``, some of them marked ``nightly``.

    Args:
        cases: all of them; a tuple has a value for each of several parameters.
        nightly: those that are marked; all but ``but`` where none is given.
        but: those that are not.
    """
    cases = [case if isinstance(case, tuple) else (case,) for case in cases]

    def is_nightly(values: tuple[Any, ...]) -> bool:
        case = values if len(values) > 1 else values[0]
        return case not in but if nightly is None else case in nightly

    return [pytest.param(*values, marks=pytest.mark.nightly if is_nightly(values) else ()) for values in cases]
