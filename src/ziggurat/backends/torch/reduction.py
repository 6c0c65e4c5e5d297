"""Gradients of all devices of a step, added up in a few messages, the first of them while others are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn

from ziggurat.backends.torch.device_group import DeviceGroup

__all__ = ["GradientSum"]

_MESSAGE_BYTES: Final = 25 << 20
"""Size of a message: large enough that a GPU's links are used well, small enough that several are under way."""


class _Message:
    """The gradients of some parameters of one type, in one flat tensor.

    Args:
        parameters: whose gradients they are.
        places: of the parameters among all that are trained.
        beside: further numbers at the end.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], places: Sequence[int], beside: int = 0) -> None:
        first = parameters[0]
        self.parameters = list(parameters)
        self.places = list(places)
        count = sum(each.numel() for each in parameters)
        self.flat = torch.zeros(count + beside, dtype=first.dtype, device=first.device)
        self.beside = self.flat[count:]
        self.views: list[torch.Tensor] = []
        start = 0
        for each in parameters:
            # As the parameter lies in memory, so that the optimizer walks through both alike.
            stride = each.stride() if _is_dense(each) else each.contiguous().stride()
            self.views.append(torch.as_strided(self.flat, each.shape, stride, start))
            start += each.numel()
        self.missing = 0
        self.work: Any = None

    def take(self) -> None:
        """Copy the gradients into the message; those that are not there are zeros."""
        given: list[torch.Tensor] = []
        targets: list[torch.Tensor] = []
        for parameter, view in zip(self.parameters, self.views, strict=True):
            gradient = parameter.grad
            if gradient is None:
                view.zero_()
            else:
                given.append(gradient.to_dense() if gradient.is_sparse else gradient)
                targets.append(view)
        if given:
            torch._foreach_copy_(targets, given)  # pyright: ignore[reportPrivateImportUsage]


class GradientSum:
    """Adds up the gradients of the processes of a group, and some numbers with them.

    Messages leave in one order in every process, whatever the order in which gradients are complete: the last layers
    first. The last message has the gradients of the first layers, a flag for each parameter that has a gradient, and
    the numbers.

    Args:
        group: of processes.
        parameters: all that are trained.
        numbers: how many numbers there are.
        limit_bytes: size of a message.
    """

    def __init__(
        self,
        group: DeviceGroup,
        parameters: Sequence[nn.Parameter],
        numbers: int,
        limit_bytes: int = _MESSAGE_BYTES,
    ) -> None:
        self._group = group
        self._parameters = list(parameters)
        parts = _parts(parameters, limit_bytes)
        beside = len(self._parameters) + numbers
        messages = [_Message([parameters[place] for place in part], part) for part in parts[:-1]]
        # The flags and numbers are float32; a network of another type sends them in a message of their own.
        last = [parameters[place] for place in parts[-1]]
        if last[0].dtype == torch.float32:
            messages.append(_Message(last, parts[-1], beside))
            self._beside = messages[-1].beside
        else:
            messages.append(_Message(last, parts[-1]))
            self._beside = torch.zeros(beside, device=last[0].device)
        self._messages = messages
        self._own_beside = self._beside is not messages[-1].beside
        self._next = len(messages)
        if len(messages) > 1:
            for message in messages[:-1]:
                for parameter in message.parameters:
                    parameter.register_post_accumulate_grad_hook(self._hook(message))

    def begin(self) -> None:
        """Send each message as soon as its gradients are complete: the next backward pass is the last of the step."""
        self._next = 0
        for message in self._messages:
            message.missing = len(message.parameters)

    def finish(self, numbers: Mapping[int, torch.Tensor]) -> torch.Tensor:
        """Replace each gradient by its sum over all processes, and return the sums of the numbers.

        A parameter that has no gradient in any process has none afterwards.

        Args:
            numbers: place → this process's part of the number; others are 0.

        Returns:
            float32, valid until the next call.

        Raises:
            LostProcessError: where another process does not answer.
        """
        if self._next == len(self._messages):  # `begin` was not called: this process had no rows
            self._next = 0
        has = [each.grad is not None for each in self._parameters]
        self._write_beside(has, numbers)
        while self._next < len(self._messages):
            self._send(self._messages[self._next])
        works = [message.work for message in self._messages]
        if self._own_beside:
            works.append(self._group.begin_sum(self._beside))
        for work in works:
            self._group.wait(work)
        used = has if all(has) else (self._beside[: len(has)] > 0).tolist()
        for message in self._messages:
            message.work = None
            for place, parameter, view in zip(message.places, message.parameters, message.views, strict=True):
                parameter.grad = view if used[place] else None
        return self._beside[len(has) :]

    def _write_beside(self, has: Sequence[bool], numbers: Mapping[int, torch.Tensor]) -> None:
        flags = self._beside[: len(has)]
        if all(has):
            flags.fill_(1.0)
        else:
            flags.copy_(torch.tensor(has, dtype=torch.float32))
        sums = self._beside[len(has) :]
        sums.zero_()
        for place, value in numbers.items():
            sums[place] = value

    def _hook(self, message: _Message) -> Any:
        def complete(_parameter: torch.Tensor) -> None:
            if message.missing:
                message.missing -= 1
                # The last message has the numbers, too, which are not there yet.
                while self._next < len(self._messages) - 1 and not self._messages[self._next].missing:
                    self._send(self._messages[self._next])

        return complete

    def _send(self, message: _Message) -> None:
        message.take()
        message.missing = 0
        message.work = self._group.begin_sum(message.flat)
        self._next += 1


def _parts(parameters: Sequence[nn.Parameter], limit_bytes: int) -> list[list[int]]:
    """Return places of parameters, the last one first, in parts of one type and at most so many bytes."""
    parts: list[list[int]] = []
    filled = 0
    for place in reversed(range(len(parameters))):
        each = parameters[place]
        size = each.numel() * each.element_size()
        is_alike = bool(parts) and parameters[parts[-1][0]].dtype == each.dtype
        if not is_alike or filled + size > limit_bytes:
            parts.append([])
            filled = 0
        parts[-1].append(place)
        filled += size
    return parts


def _is_dense(tensor: torch.Tensor) -> bool:
    """Return whether a tensor fills one piece of memory, in whatever order of its axes."""
    expected = 1
    for size, stride in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda each: each[1]):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True
