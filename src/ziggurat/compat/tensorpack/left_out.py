"""Stand-ins for names of Tensorpack that are left out: they import, and say why when they are used."""

from __future__ import annotations

from typing import Any

from ziggurat.errors import UsageError

__all__ = ["left_out_class"]


class _Refusing(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refusal(cls)

    def __call__(cls, *_arguments: Any, **_options: Any) -> Any:
        raise _refusal(cls)


def left_out_class(name: str, reason: str) -> type:
    """Return a class of that name: calling it, and asking it for an attribute, raises a ``UsageError``.

    Args:
        name: of Tensorpack.
        reason: why it is left out, or what to use in its place.
    """
    return _Refusing(name, (), {"reason_": reason})


def _refusal(cls: Any) -> UsageError:
    return UsageError(f"Tensorpack's `{cls.__name__}` is left out.", received="a use of it", advice=cls.reason_)
