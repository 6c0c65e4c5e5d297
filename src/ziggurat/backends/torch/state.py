"""State of a PyTorch program as named arrays: what a checkpoint holds, and how it is taken back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from ziggurat.engine.checkpoints import AVERAGES
from ziggurat.errors import CheckpointError

if TYPE_CHECKING:
    from ziggurat.backends.torch.steps import StepProgram

__all__ = ["ProgramState", "give_weights", "weights_of"]

_MODEL: Final = "model/"
_OPTIMIZER: Final = "optimizer/"
_PRIVATE: Final = "ziggurat/"
_SCALER: Final = "ziggurat/scaler/"
_NUMBER: Final = "#"
"""Behind the name of a slot that is a plain number."""

_HALF: Final = (torch.bfloat16, torch.float16)


class ProgramState:
    """Reads and writes the state of a program.

    Names are ``model/<name>`` of weights and buffers, ``optimizer/<number>/<slot>/<name>`` of an optimizer's slots,
    ``ziggurat/averages/model/<name>``, ``ziggurat/<hyperparameter>``, ``ziggurat/step``, and
    ``ziggurat/scaler/<number>``.

    Args:
        program: whose state it is.
    """

    def __init__(self, program: StepProgram) -> None:
        self._program = program

    def arrays(self) -> dict[str, np.ndarray]:
        """Return copies of everything that decides the steps to come."""
        program = self._program
        found = weights_of(program.module)
        found |= {name: _array(slot) for name, slot in self._slots()}
        if program.averages is not None:
            pairs = zip(program.averages.parameters, program.averages.values, strict=True)
            found |= {f"{AVERAGES}{_MODEL}{program.name_of(each)}": _array(value) for each, value in pairs}
        found |= {f"{_PRIVATE}{name}": np.array(value) for name, value in program.hyperparameters().items()}
        found[f"{_PRIVATE}step"] = np.array(program.step_count, np.int64)
        if program.scaler is not None:
            kept = program.scaler.state_dict()
            found |= {f"{_SCALER}{name}": np.array(value, np.float64) for name, value in kept.items()}
        return found | program.extra_state()

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``arrays`` gave; all or nothing.

        Raises:
            CheckpointError: where names or shapes are of another network.
        """
        program = self._program
        own = {name: tuple(array.shape) for name, array in self.arrays().items() if not name.startswith(_OPTIMIZER)}
        shapes = dict(self._slot_shapes())
        given = {name: tuple(np.shape(array)) for name, array in state.items()}
        problems = [f"{name} is missing" for name in own if name not in given]
        for name, shape in given.items():
            parameter = shapes.get(name.split("/", 3)[-1]) if name.startswith(_OPTIMIZER) else own.get(name)
            if parameter is None:
                problems.append(f"{name} is unexpected")
            elif shape != parameter and not (name.startswith(_OPTIMIZER) and _is_of_slot(shape, parameter)):
                problems.append(f"{name} has shape {shape} instead of {parameter}")
        if problems:
            raise CheckpointError(
                "A checkpoint is loaded by the network that it was saved from.",
                received="; ".join(problems[:10]),
                advice="Give the network the layers it had, or start from the checkpoint as a pretrained model.",
                details={"problems": problems},
            )
        give_weights(program.module, state)
        self._load_slots(state)
        if program.averages is not None:
            for parameter, value in zip(program.averages.parameters, program.averages.values, strict=True):
                _give(value, state[f"{AVERAGES}{_MODEL}{program.name_of(parameter)}"])
        for name in program.hyperparameters():
            program.set_hyperparameter(name, float(state[f"{_PRIVATE}{name}"]))
        program.step_count = int(state[f"{_PRIVATE}step"])
        if program.scaler is not None:
            kinds = {name: type(value) for name, value in program.scaler.state_dict().items()}
            program.scaler.load_state_dict({name: kind(state[f"{_SCALER}{name}"]) for name, kind in kinds.items()})
        program.load_extra_state(state)

    def _slots(self) -> Iterator[tuple[str, torch.Tensor]]:
        program = self._program
        for number, optimizer in enumerate(program.optimizers):
            for parameter, slots in optimizer.state.items():
                for slot, value in slots.items():
                    if isinstance(value, int | float):
                        value = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)
                        slot = f"{slot}{_NUMBER}"
                    if isinstance(value, torch.Tensor):  # an optimizer may keep None where it has nothing yet
                        yield f"{_OPTIMIZER}{number}/{slot}/{program.name_of(parameter)}", value

    def _slot_shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for optimizer in self._program.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    yield self._program.name_of(parameter), tuple(parameter.shape)

    def _load_slots(self, state: Mapping[str, np.ndarray]) -> None:
        program = self._program
        for number, optimizer in enumerate(program.optimizers):
            groups = {program.name_of(each): group for group in optimizer.param_groups for each in group["params"]}
            parameters = {program.name_of(each): each for group in optimizer.param_groups for each in group["params"]}
            first = dict(optimizer.state)
            optimizer.state.clear()
            for name, array in state.items():
                head, _, rest = name.partition(f"{_OPTIMIZER}{number}/")
                if head or not rest:
                    continue
                slot, _, key = rest.partition("/")
                parameter = parameters[key]
                if slot.endswith(_NUMBER):
                    optimizer.state[parameter][slot.removesuffix(_NUMBER)] = np.asarray(array).item()
                else:
                    optimizer.state[parameter][slot] = _slot_of(array, parameter, groups[key])
            for parameter, slots in first.items():  # what an optimizer had from its making, and a state does not hold
                for slot, value in slots.items():
                    optimizer.state[parameter].setdefault(slot, value if not isinstance(value, torch.Tensor) else None)


def weights_of(module: Any) -> dict[str, np.ndarray]:
    """Return name in a checkpoint → copy, of the weights and buffers of a module."""
    return {f"{_MODEL}{name}": _array(value) for name, value in module.state_dict().items()}


def give_weights(module: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Give a module the weights and buffers of a checkpoint.

    Args:
        module: whose they are.
        arrays: name in a checkpoint → array; more names than the module has do no harm.

    Raises:
        CheckpointError: where one is missing or has another shape; nothing is changed then.
    """
    own: Mapping[str, torch.Tensor] = module.state_dict()
    problems = [f"{_MODEL}{name} is missing" for name in own if f"{_MODEL}{name}" not in arrays]
    problems += [
        f"{_MODEL}{name} has shape {np.shape(arrays[f'{_MODEL}{name}'])} instead of {tuple(value.shape)}"
        for name, value in own.items()
        if f"{_MODEL}{name}" in arrays and np.shape(arrays[f"{_MODEL}{name}"]) != tuple(value.shape)
    ]
    if problems:
        raise CheckpointError(
            f"The checkpoint is of another network: {'; '.join(problems[:10])}.",
            advice="Give the network file that the job was trained with.",
            details={"problems": problems},
        )
    for name, value in own.items():
        _give(value, arrays[f"{_MODEL}{name}"])


def _is_of_slot(shape: tuple[int, ...], parameter: tuple[int, ...]) -> bool:
    """Return whether a slot can belong to a parameter: a number, or an array that may have axes of length 1."""
    return shape == () or (
        len(shape) == len(parameter) and all(one in (1, other) for one, other in zip(shape, parameter, strict=True))
    )


def _slot_of(array: np.ndarray, parameter: torch.Tensor, group: Mapping[str, Any]) -> torch.Tensor:
    """Return the slot of a parameter, where its optimizer wants it."""
    value = torch.from_numpy(np.array(array))
    if not value.ndim:  # counters of steps stay on the CPU, but for optimizers that read them on the device
        return value.to(parameter.device) if group.get("fused") or group.get("capturable") else value
    kind = parameter.dtype if parameter.dtype in _HALF and value.dtype == torch.float32 else value.dtype
    if value.shape != parameter.shape:
        return value.to(parameter.device, kind)
    return torch.empty_like(parameter, dtype=kind).copy_(value.to(parameter.device))


def _give(tensor: torch.Tensor, array: np.ndarray) -> None:
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(np.array(array)))


def _array(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:  # NumPy has no such type
        tensor = tensor.float()
    return np.array(tensor.detach().cpu().contiguous().numpy())
