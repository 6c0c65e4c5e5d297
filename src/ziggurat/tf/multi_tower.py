"""Graphs of several towers: their devices, the reduction of their gradients, and builders that need no trainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.sessions import visible_gpus
from ziggurat.tf.tower import TrainTowerContext

__all__ = [
    "AsyncMultiGPUBuilder",
    "DataParallelBuilder",
    "LeastLoadedDeviceSetter",
    "SyncMultiGPUParameterServerBuilder",
    "SyncMultiGPUReplicatedBuilder",
    "reduced_gradients",
    "tower_device",
]

Pairs = Sequence[tuple[Any, Any]]
"""(gradient, variable) pairs of one tower."""

_VARIABLES: Final = ("Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable")
_MODES: Final = (None, "cpu", "gpu", "nccl", "hierarchical", "collective")


class DataParallelBuilder(ABC):
    """Base of builders of a step over several towers; they work without a trainer, for loops of one's own.

    Args:
        towers: the number of each tower's GPU; where the machine has no such GPU, that of a processor device.

    Raises:
        ConfigurationError: where there is no tower, or a number is there twice.
    """

    def __init__(self, towers: Sequence[int]) -> None:
        self.towers = list(towers)
        if not self.towers or len(set(self.towers)) != len(self.towers):
            raise ConfigurationError(
                "Towers have devices of their own, and there is at least one.",
                received=str(self.towers),
                advice="Give the numbers of the GPUs, such as [0, 1].",
            )
        self.devices = [tower_device(number) for number in self.towers]
        """The device of each tower."""

    @staticmethod
    def call_for_each_tower(
        towers: Sequence[int],
        func: Callable[[], Any],
        devices: Sequence[Any] | None = None,
        use_vs: Sequence[bool] | None = None,
    ) -> list[Any]:
        """Call a function under the context of each tower, ``tower0`` and so on; return what it returns.

        Args:
            towers: the number of each tower's GPU.
            func: builds one tower.
            devices: of each tower, as ``tf.device`` takes them; by default, those of the numbers.
            use_vs: for each tower, whether it has variables of its own, under its name: these are local variables,
                which are no part of a checkpoint. By default all towers share the variables of the first.

        Raises:
            ConfigurationError: where a tower that shares its variables makes a trainable one.
        """
        results = []
        for index, number in enumerate(towers):
            device = tower_device(number) if devices is None else devices[index]
            has_own = use_vs is not None and use_vs[index]
            name = f"tower{index}"
            context = TrainTowerContext(name, name if has_own else "", index=index, total=len(towers))
            before = len(tf.get_collection_ref(tf.GraphKeys.GLOBAL_VARIABLES))
            with tf.device(device), context:
                results.append(func())
            if has_own:
                _make_local(before)
        return results

    @abstractmethod
    def build(self, grad_list: Sequence[Pairs], get_opt_fn: Callable[[], Any]) -> Any:
        """Add the step to the graph.

        Args:
            grad_list: for each tower, its (gradient, variable) pairs.
            get_opt_fn: returns a ``tf.train.Optimizer``.
        """


class SyncMultiGPUParameterServerBuilder(DataParallelBuilder):
    """Towers share variables; the mean of their gradients is applied once.

    Args:
        towers: the number of each tower's GPU.
        ps_device: where variables are: ``cpu``; ``gpu``: spread over the towers' devices; or a device's name. By
            default ``gpu`` for one or two towers, else ``cpu``.
    """

    def __init__(self, towers: Sequence[int], ps_device: str | None = None) -> None:
        super().__init__(towers)
        self.ps_device = ps_device or ("gpu" if len(self.towers) <= 2 else "cpu")

    def call_for_each_tower(self, tower_fn: Callable[[], Pairs]) -> list[Pairs]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Build all towers; return the (gradient, variable) pairs of each.

        Args:
            tower_fn: builds one tower and returns its pairs.
        """
        places = self.devices if self.ps_device == "gpu" else [_full_name(self.ps_device)]
        load = dict.fromkeys(places, 0)
        devices = [LeastLoadedDeviceSetter(device, places, load) for device in self.devices]
        return DataParallelBuilder.call_for_each_tower(self.towers, tower_fn, devices)

    def build(self, grad_list: Sequence[Pairs], get_opt_fn: Callable[[], Any]) -> Any:
        """Return the step: an operation."""
        with tf.name_scope("reduced_gradients"):
            pairs = reduced_gradients(grad_list, average=True)
        return get_opt_fn().apply_gradients(pairs, name="train_op")


class SyncMultiGPUReplicatedBuilder(DataParallelBuilder):
    """Towers have variables of their own, those of all but the first as local variables ``tower1/…``.

    A step adds up the gradients of all towers, updates the first tower's variables, and gives their new values to the
    others: the optimizer, with whatever it does to gradients, exists once, and towers never differ in what is trained.

    Args:
        towers: the number of each tower's GPU.
        average: apply the mean of the gradients; their sum otherwise.
        mode: where gradients are added up: ``cpu``, or on the first tower's device. Other names of Tensorpack
            (``nccl``, ``hierarchical``, ``collective``) mean the device, too.

    Raises:
        ConfigurationError: where ``mode`` is another word.
    """

    def __init__(self, towers: Sequence[int], average: bool = True, mode: str | None = None) -> None:
        super().__init__(towers)
        if mode not in _MODES:
            raise ConfigurationError(
                "`mode` says where gradients are added up.",
                received=repr(mode),
                advice=f"Choose among {', '.join(str(each) for each in _MODES)}.",
            )
        self.average = average
        self.mode = mode

    def call_for_each_tower(self, tower_fn: Callable[[], Pairs]) -> list[Pairs]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Build all towers; return the (gradient, variable) pairs of each.

        Args:
            tower_fn: builds one tower and returns its pairs.
        """
        use_vs = [index > 0 for index in range(len(self.towers))]
        return DataParallelBuilder.call_for_each_tower(self.towers, tower_fn, self.devices, use_vs)

    def build(self, grad_list: Sequence[Pairs], get_opt_fn: Callable[[], Any]) -> tuple[Any, Any]:
        """Return the step, and an operation that gives all variables of the first tower to the others.

        Run the second one after variables were initialized or loaded.

        Raises:
            ConfigurationError: where a trainable variable of a tower is not one of the first tower's.
        """
        place = "/cpu:0" if self.mode == "cpu" else self.devices[0]
        with tf.name_scope("reduced_gradients"):
            pairs = reduced_gradients(grad_list, average=self.average, device=place, prefix="tower{}/")
        with tf.device(self.devices[0]):
            updated = get_opt_fn().apply_gradients(pairs, name="update_first_tower")
        copies = self._copies()
        with tf.name_scope("replicas"):
            trained = {id(variable) for tower in grad_list[1:] for _, variable in tower}
            after = _copied([(one, other) for one, other in copies if id(other) in trained], [updated])
            sync = tf.group(*_copied(copies, []), name="sync_variables")
        return tf.group(updated, *after, name="train_op"), sync

    def _copies(self) -> list[tuple[Any, Any]]:
        """Return each variable of the other towers with its original."""
        variables = {each.op.name: each for each in [*tf.global_variables(), *tf.local_variables()]}
        trained = {each.op.name for each in tf.trainable_variables()}
        copies = []
        for index in range(1, len(self.towers)):
            prefix = f"tower{index}/"
            for name, variable in variables.items():
                if not name.startswith(prefix):
                    continue
                plain = name.removeprefix(prefix)
                original = variables.get(plain, variables.get(f"tower0/{plain}"))
                if original is not None and original.shape.is_compatible_with(variable.shape):
                    copies.append((original, variable))
                elif name in trained:
                    raise ConfigurationError(
                        "All towers have the same trainable variables.",
                        received=f"`{name}`, and no such `{plain}` in the first tower",
                        advice="Make them by `tf.get_variable`, under names that do not depend on name scopes.",
                    )
        return copies


class AsyncMultiGPUBuilder(DataParallelBuilder):
    """Towers share variables, and each applies its own gradients: no tower waits for another within a step.

    Args:
        towers: the number of each tower's GPU.
        scale_gradient: divide the gradients by the number of towers.
    """

    def __init__(self, towers: Sequence[int], scale_gradient: bool = True) -> None:
        super().__init__(towers)
        self.scale_gradient = scale_gradient

    def call_for_each_tower(self, tower_fn: Callable[[], Pairs]) -> list[Pairs]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Build all towers; return the (gradient, variable) pairs of each.

        Args:
            tower_fn: builds one tower and returns its pairs.
        """
        load = {"/cpu:0": 0}
        devices = [LeastLoadedDeviceSetter(device, ["/cpu:0"], load) for device in self.devices]
        return DataParallelBuilder.call_for_each_tower(self.towers, tower_fn, devices)

    def build(self, grad_list: Sequence[Pairs], get_opt_fn: Callable[[], Any]) -> Any:
        """Return the step: an operation, one update a tower."""
        many = len(self.towers)
        optimizer = get_opt_fn()
        updates = []
        for index, tower in enumerate(grad_list):
            with tf.name_scope(f"async_gradients{index}"):
                pairs = reduced_gradients([tower], average=False, scale=1 / many if self.scale_gradient else 1.0)
            updates.append(optimizer.apply_gradients(pairs, name=f"apply_gradients{index}"))
        return tf.group(*updates, name="train_op")


class LeastLoadedDeviceSetter:
    """A function for ``tf.device``: variables go where the fewest bytes of them are, anything else to one device.

    Args:
        worker_device: of what is no variable.
        ps_devices: of variables.
        load: bytes on each of ``ps_devices`` so far, shared by the setters of several towers.
    """

    def __init__(self, worker_device: str, ps_devices: Sequence[str], load: dict[str, int] | None = None) -> None:
        self.worker_device = worker_device
        self.ps_devices = list(ps_devices)
        self._load = dict.fromkeys(ps_devices, 0) if load is None else load

    def __call__(self, operation: Any) -> str:
        """Return the device of an operation."""
        if operation.type not in _VARIABLES:
            return self.worker_device
        place = min(self.ps_devices, key=lambda device: self._load[device])
        self._load[place] += _variable_bytes(operation)
        return place

    def __str__(self) -> str:
        return f"LeastLoadedDeviceSetter-{self.worker_device}"


def tower_device(number: int) -> str:
    """Return the device of a tower: the GPU of that number, or a device of the processor where there is none.

    A session has several devices of the processor where its configuration says so (``device_count``); with soft
    placement they are otherwise all the first one.
    """
    return f"/gpu:{number}" if number < len(visible_gpus()) else f"/cpu:{number}"


def reduced_gradients(
    grad_list: Sequence[Pairs],
    *,
    average: bool,
    device: str | None = None,
    scale: float = 1.0,
    prefix: str = "",
) -> list[tuple[Any, Any]]:
    """Return the gradients of all towers added up, with the variables of the first tower.

    Args:
        grad_list: for each tower, its (gradient, variable) pairs, in the same order.
        average: divide the sum by the number of towers.
        device: where it is done; on the device of the variable where it is None.
        scale: factor of the sum.
        prefix: what names of variables begin with in each tower but the first, with ``{}`` for its number.

    Raises:
        ConfigurationError: where towers have gradients of different variables.
    """
    names = [
        [variable.op.name.removeprefix(prefix.format(index)) for _, variable in tower]
        for index, tower in enumerate(grad_list)
    ]
    for index, found in enumerate(names):
        if found != names[0]:
            odd = sorted(set(found) ^ set(names[0])) or found
            raise ConfigurationError(
                "All towers have gradients of the same variables, in the same order.",
                received=f"tower {index} differs in {', '.join(odd[:5])}",
                advice="Let the tower function do the same in every call.",
            )
    factor = scale / len(grad_list) if average else scale
    pairs = []
    for of_variable in zip(*grad_list, strict=True):
        variable = of_variable[0][1]
        with tf.device(device or variable.device):
            pairs.append((_total([gradient for gradient, _ in of_variable], factor), variable))
    return pairs


def _total(gradients: Sequence[Any], factor: float) -> Any:
    """Return the sum of dense or of sparse gradients, times a factor."""
    if all(isinstance(each, tf.IndexedSlices) for each in gradients):
        values = tf.concat([each.values for each in gradients], 0) if len(gradients) > 1 else gradients[0].values
        rows = tf.concat([each.indices for each in gradients], 0) if len(gradients) > 1 else gradients[0].indices
        return tf.IndexedSlices(_times(values, factor), rows, gradients[0].dense_shape)
    dense = [tf.convert_to_tensor(each) for each in gradients]
    return _times(tf.add_n(dense) if len(dense) > 1 else dense[0], factor)


def _times(tensor: Any, factor: float) -> Any:
    return tensor if factor == 1.0 else tensor * tf.cast(factor, tensor.dtype)


def _copied(pairs: Sequence[tuple[Any, Any]], after: Sequence[Any]) -> list[Any]:
    """Return operations that give variables the values that others have after some operations."""
    operations = []
    for original, variable in pairs:
        with tf.control_dependencies(after), tf.device(original.device):
            value = original.read_value()
        with tf.device(variable.device):
            operations.append(variable.assign(value, read_value=False))
    return operations


def _make_local(first: int) -> None:
    """Make the global variables from a place in their collection on local ones."""
    keys = tf.GraphKeys
    variables = tf.get_collection_ref(keys.GLOBAL_VARIABLES)
    made = variables[first:]
    del variables[first:]
    tf.get_collection_ref(keys.LOCAL_VARIABLES).extend(made)
    own = {id(each) for each in made}
    model = tf.get_collection_ref(keys.MODEL_VARIABLES)
    model[:] = [each for each in model if id(each) not in own]


def _full_name(device: str) -> str:
    return f"/{device}:0" if device == "cpu" else device


def _variable_bytes(operation: Any) -> int:
    sizes = [dimension.size for dimension in operation.get_attr("shape").dim]
    return int(np.prod([max(1, size) for size in sizes], dtype=np.int64)) * int(operation.get_attr("dtype").size)
