"""Use cases of the operations: who may, what is done, and what the audit log says of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from ziggurat.operations.table import Operation, find_operation
from ziggurat.workspace.accounts import check_permission

if TYPE_CHECKING:
    from ziggurat.entities import Identity
    from ziggurat.workspace.studio import Studio

__all__ = ["USE_CASES", "Call", "UseCase", "use_case"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Call:
    """One use of an operation.

    Args:
        operation: that is used.
        studio: in which.
        who: asks for it; their permission was checked.
    """

    operation: Operation
    studio: Studio
    who: Identity

    def note(self, target: str = "", *, action: str = "", **details: Any) -> None:
        """Write what was done to the audit log.

        Args:
            target: what it was done to, such as the id of a job.
            action: one of the operation's; empty for the usual one.
            details: JSON values without secrets.
        """
        named = action or self.operation.actions[0]
        assert named in self.operation.actions, f"{self.operation.name} does not name {named}"
        self.studio.people.note(self.who, named, target, **details)


class UseCase(Generic[P, R]):
    """What an operation does. It is called with the studio and who asks, and then with what ``run`` takes.

    Args:
        operation: as the table has it.
        run: does it, and notes it.
    """

    def __init__(self, operation: Operation, run: Callable[Concatenate[Call, P], R]) -> None:
        self.operation = operation
        self.run = run
        functools.update_wrapper(self, run, updated=())

    def __call__(self, studio: Studio, who: Identity, /, *arguments: P.args, **named: P.kwargs) -> R:
        """Do it.

        Raises:
            ForbiddenError: if the role or the token's scope is too low; nothing was done.
        """
        check_permission(who, self.operation.role, self.operation.scope)
        return self.run(Call(self.operation, studio, who), *arguments, **named)


USE_CASES: Final[dict[str, UseCase[..., Any]]] = {}
"""Name of an operation → what it does, of the modules that were imported."""


def use_case(name: str) -> Callable[[Callable[Concatenate[Call, P], R]], UseCase[P, R]]:
    """Bind a function to an operation of the table. It takes a ``Call``, notes what it did, and returns its result.

    Args:
        name: of the operation.
    """

    def bind(run: Callable[Concatenate[Call, P], R]) -> UseCase[P, R]:
        made = UseCase(find_operation(name), run)
        USE_CASES[name] = made
        return made

    return bind
