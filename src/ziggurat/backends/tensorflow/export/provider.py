"""Capabilities of the TensorFlow backend besides training, for trained networks and for imported models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.backend import build_job_graph, session_config
from ziggurat.backends.tensorflow.calls import explained
from ziggurat.backends.tensorflow.describe import describe_graph, graph_for_tensorboard
from ziggurat.backends.tensorflow.digits import CLASS_WEIGHTS
from ziggurat.backends.tensorflow.export.formats import FORMATS, ExportFormat, Runner, format_named
from ziggurat.backends.tensorflow.export.gradients import ClassGradients, layers_behind
from ziggurat.backends.tensorflow.export.serving import ServingModel, give_weights, named_outputs, serving_model
from ziggurat.backends.tensorflow.linear_head import head_input
from ziggurat.backends.tensorflow.network_file import load_network
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.backends.tensorflow.towers import (
    BuiltTower,
    TowerInput,
    build_inference_tower,
    build_tower,
    gives_class_scores,
    inference_feeds,
    make_placeholders,
)
from ziggurat.dataflow import standalone_prediction
from ziggurat.engine.backend import ArraySpec, ProgramRequest, single_arrays
from ziggurat.engine.capabilities import DescribedGraph, ExportOrder, ExportResult, TensorDescription
from ziggurat.engine.detection_parity import detection_rule
from ziggurat.engine.parity import Run, parity_report
from ziggurat.errors import ConfigurationError, DataError, NetworkCodeError, UnknownNameError, ZigguratError
from ziggurat.zoo import network_path

__all__ = ["TensorFlowTasks", "TrainedTower", "open_foreign_model"]


@dataclass(frozen=True)
class _Prediction:
    """The tower for inference, with what is fetched from it by name."""

    tower: BuiltTower
    layers: Mapping[str, Any]
    outputs: Mapping[str, Any]
    gradients: ClassGradients

    @classmethod
    def of(cls, tower: BuiltTower, shared: TowerInput, *, scores: bool) -> _Prediction:
        """Return what is fetched from a tower."""
        layers = layers_behind(tower.outputs, "inf/model/")
        outputs = named_outputs(tower, shared.classes, scores=scores)
        return cls(tower, layers, outputs, ClassGradients(layers, outputs))


class TrainedTower:
    """Evaluates and predicts; holds no optimizer, and gradients only on request.

    Args:
        request: the network, its input shape, classes and class weights; whether it started from a pretrained model.
        arrays: name → array of a checkpoint.

    Attributes:
        gives_class_scores: whether the first output holds class scores.

    Raises:
        CheckpointError: where the arrays are of another network.
        NetworkCodeError: where the user's network fails; if it is its inference, those who predict are told.
    """

    def __init__(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray]) -> None:
        self._path = request.network
        self._tuning = request.fine_tuning
        graph = tf.Graph()
        with graph.as_default():
            tf.set_random_seed(request.seed)
            if request.class_weights:
                graph.add_to_collection(CLASS_WEIGHTS, tf.constant(request.class_weights, tf.float32))
            shared = tower_input(request)
            self._x, self._y = make_placeholders(shared)
            validation = build_tower(shared, self._x, self._y, stage="val")
            predicting = build_inference_tower(shared, self._x)
            self.gives_class_scores = shared.learns_class_numbers and gives_class_scores(validation)
            self._predicting: _Prediction | NetworkCodeError = (
                predicting
                if isinstance(predicting, NetworkCodeError)
                else _Prediction.of(predicting, shared, scores=self.gives_class_scores)
            )
            cost = tf.add_n([loss.value for loss in validation.losses])
            outputs = named_outputs(validation, shared.classes, scores=self.gives_class_scores)
            self._values = {**outputs, **validation.scalars, "cost": cost}
            variables = {variable.op.name: variable for variable in tf.global_variables()}
        self._session = tf.Session(graph=graph, config=session_config(request))
        give_weights(self._session, variables, arrays)

    @property
    def _prediction(self) -> _Prediction:
        if isinstance(self._predicting, NetworkCodeError):
            raise self._predicting
        return self._predicting

    def evaluate(self, x: np.ndarray, y: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return cost, the user's scalars, and the outputs of the validation tower."""
        feeds = {self._x: x} if self._y is None else {self._x: x, self._y: y}
        return self._run(self._values, feeds)

    def inference_inputs(self) -> Mapping[str, ArraySpec]:
        """Return what ``predict`` may be given beside the samples, such as noise: name → one row of it.

        Raises:
            NetworkCodeError: where the shape of a row is not known.
        """
        return {name: _row_of(name, tensor) for name, tensor in self._prediction.tower.tower.inference_inputs.items()}

    def predict(self, x: np.ndarray, given: Mapping[str, np.ndarray] | None = None) -> Mapping[str, np.ndarray]:
        """Return the outputs of the inference tower.

        Args:
            x: (N, …) samples.
            given: name in ``inference_inputs`` → (N, …); the network's own default where one is left out.
        """
        prediction = self._prediction
        return self._run(prediction.outputs, inference_feeds(prediction.tower, x, given or {}))

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return the inputs of the head, (N, D) float32.

        Raises:
            ConfigurationError: if the head is not one product of a vector for each sample.
        """
        tower = self._prediction.tower
        fetches = {"features": head_input(tower, self._tuning)}
        return np.asarray(self._run(fetches, inference_feeds(tower, x, {}))["features"], np.float32)

    def layer_outputs(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return what each layer of the inference tower gives, in the order of the graph; the outputs come last."""
        prediction = self._prediction
        return self._run({**prediction.layers, **prediction.outputs}, inference_feeds(prediction.tower, x, {}))

    def map_layers(self) -> tuple[list[str], str]:
        """Return the layers with maps in the order of the graph, and the usual one; empty where there is none."""
        gradients = self._prediction.gradients
        return list(gradients.layers), gradients.usual

    def maps_and_gradients(self, x: np.ndarray, layer: str, class_number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's maps and the gradients of the score of a class by them, both (N, H, W, C) float32."""
        (maps, gradients), chosen = self._prediction.gradients.fetches(layer, class_number)
        found = self._run({"maps": maps, "gradients": gradients}, {self._x: x, **chosen})
        return found["maps"], found["gradients"]

    def close(self) -> None:
        """Close the session; closing twice does nothing."""
        self._session.close()

    def _run(self, fetches: Mapping[str, Any], feeds: Mapping[Any, Any]) -> Mapping[str, Any]:
        try:
            return self._session.run(fetches, feeds)
        except tf.errors.OpError as error:
            raise explained(error, self._path) from error


def _row_of(name: str, tensor: Any) -> ArraySpec:
    shape: list[Any] = tensor.shape.as_list()[1:] if tensor.shape.rank else [None]
    if None in shape:
        raise NetworkCodeError(
            "A row of what inference may be given has a known shape.",
            received=f"`{name}` of shape {tensor.shape}",
            advice="Give the placeholder a shape, such as [None, 64].",
        )
    return ArraySpec(tuple(shape), tensor.dtype.base_dtype.name)


def tower_input(request: ProgramRequest) -> TowerInput:
    """Return what the towers of a request share: its network, executed.

    Raises:
        UnknownNameError: where it names no standard network.
        NetworkCodeError: where the network file fails.
    """
    text, path = request.network_text, request.network
    if text is None:
        file = network_path(request.network, "tensorflow")
        text, path = file.read_text(encoding="utf-8"), str(file)
    return TowerInput(load_network(text, path), path, *single_arrays(request), request.pretrained is not None)


_INPUTS: Final = ("Placeholder", "PlaceholderWithDefault")
_NOT_OUTPUTS: Final = frozenset({*_INPUTS, "Assert", "Assign", "AssignVariableOp", "Const", "NoOp", "SaveV2"})
_OF_TRAINING: Final = re.compile(r"(gradients|save)(_\d+)?/")

Signature = tuple[Mapping[str, str], Mapping[str, str]]


class ForeignModel:
    """A model in a session of its own, run by the names of its operations.

    A name stands for the first output of its operation; ``name:1`` is the second one.

    Args:
        session: holds graph and weights.
        kind: ``pb``, ``checkpoint`` or ``savedmodel``.
        signatures: name → (inputs, outputs) of a SavedModel, each key → operation name.
    """

    def __init__(self, session: Any, kind: str, signatures: Mapping[str, Signature] | None = None) -> None:
        self.session = session
        self.kind = kind
        self.signatures: Mapping[str, Signature] = dict(signatures or {})

    def inputs(self) -> list[TensorDescription]:
        """Return the placeholders, in the order of the graph."""
        operations = self.session.graph.get_operations()
        return [_described(each) for each in operations if each.type in _INPUTS and not _OF_TRAINING.match(each.name)]

    def outputs(self) -> list[TensorDescription]:
        """Return what can be asked for: what a signature names, what nothing else reads, then all other numbers."""
        graph = self.session.graph
        named = [name for _, outputs in self.signatures.values() for name in outputs.values()]
        found = {name: _described(graph.get_operation_by_name(name)) for name in named if ":" not in name}
        others = [_described(each) for each in graph.get_operations() if _may_be_output(each)]
        for each in sorted(others, key=lambda each: each.readers > 0):  # stable: the order of the graph stays
            found.setdefault(each.name, each)
        return list(found.values())

    def predict(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, np.ndarray]:
        """Run the model.

        Args:
            feeds: operation name of an input → array.
            outputs: operation names.

        Raises:
            UnknownNameError: where a name is not in the graph.
            DataError: where an input that the outputs need is not fed, or has another shape.
        """
        tensors = {name: self._tensor(name, "output", self.outputs) for name in outputs}
        fed = {self._tensor(name, "input", self.inputs): value for name, value in feeds.items()}
        try:
            return self.session.run(tensors, fed)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise DataError(
                "A model is fed every input that its outputs need, in their shapes.",
                received=_reason(error),
                advice=f"Its inputs are: {', '.join(f'{each.name} {each.shape}' for each in self.inputs())}.",
            ) from error

    def close(self) -> None:
        """Free the session."""
        self.session.close()

    def _tensor(self, name: str, word: str, known: Callable[[], list[TensorDescription]]) -> Any:
        counts = {each.name: len(each.outputs) for each in self.session.graph.get_operations() if each.outputs}
        bare, _, number = name.partition(":")
        if bare not in counts or not (number or "0").isdigit() or int(number or 0) >= counts[bare]:
            raise UnknownNameError(f"{word} of this model", name, [each.name for each in known()])
        return self.session.graph.get_tensor_by_name(f"{bare}:{number or 0}")


def open_foreign_model(path: Path) -> ForeignModel:
    """Open a ``.pb`` file, a checkpoint (its ``.meta`` file, prefix or folder), or the folder of a SavedModel.

    Raises:
        DataError: where it is none of them or damaged.
    """
    try:
        if path.name == "saved_model.pb" or (path / "saved_model.pb").is_file():
            return _open_saved_model(path if path.is_dir() else path.parent)
        if path.is_dir():
            return _open_checkpoint(_newest_checkpoint(path))
        if path.suffix == ".pb":
            return _open_frozen_graph(path)
        return _open_checkpoint(str(path).removesuffix(".meta").removesuffix(".index"))
    except DataError:
        raise
    except Exception as error:  # TensorFlow raises many kinds for a damaged file
        raise DataError(
            f"The model {path} must be a frozen graph (.pb), a checkpoint (.meta and data), or a SavedModel.",
            received=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
            advice="Check the path, and that the file is whole.",
        ) from error


def _open_frozen_graph(path: Path) -> ForeignModel:
    definition = tf.GraphDef()
    definition.ParseFromString(path.read_bytes())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return ForeignModel(_session(graph), "pb")


def _newest_checkpoint(folder: Path) -> str:
    """Return the prefix of the newest checkpoint; the file ``checkpoint`` may name paths of another machine."""
    latest = tf.train.latest_checkpoint(str(folder))
    if latest is not None:
        return latest
    metagraphs = sorted(folder.glob("*.meta"), key=lambda each: each.stat().st_mtime)
    if not metagraphs:
        raise DataError(
            f"`{folder}` holds neither a saved_model.pb nor a checkpoint with its .meta file.",
            advice="Name the file itself.",
        )
    return str(metagraphs[-1]).removesuffix(".meta")


def _open_checkpoint(prefix: str) -> ForeignModel:
    graph = tf.Graph()
    with graph.as_default():
        saver = tf.train.import_meta_graph(f"{prefix}.meta", clear_devices=True)
    session = _session(graph)
    if saver is not None:  # None: the graph has no variables
        saver.restore(session, prefix)
    return ForeignModel(session, "checkpoint")


def _open_saved_model(path: Path) -> ForeignModel:
    graph = tf.Graph()
    session = _session(graph)
    with graph.as_default():
        meta = tf.saved_model.load(session, [tf.saved_model.tag_constants.SERVING], str(path))
    signatures = {name: (_names(each.inputs), _names(each.outputs)) for name, each in meta.signature_def.items()}
    return ForeignModel(session, "savedmodel", signatures)


def _session(graph: Any) -> Any:
    """Return a session that takes a GPU's memory as it needs it: a training may be at work there."""
    config = tf.ConfigProto()
    config.gpu_options.allow_growth = True
    return tf.Session(graph=graph, config=config)


def _reason(error: Exception) -> str:
    """Return what is wrong: TensorFlow may tell first where the operation was made."""
    text = re.split(r"\nNode: '[^']*'\n", str(getattr(error, "message", error)))[-1].strip()
    return text.splitlines()[0] if text else type(error).__name__


def _names(part: Mapping[str, Any]) -> dict[str, str]:
    return {key: info.name.removesuffix(":0") for key, info in part.items()}


def _may_be_output(operation: Any) -> bool:
    if len(operation.outputs) != 1 or operation.type in _NOT_OUTPUTS or not operation.inputs:
        return False
    if _OF_TRAINING.match(operation.name) or "Apply" in operation.type:
        return False
    tensor = operation.outputs[0]
    # Whole numbers in the middle of a graph are shapes and indices; at its end they are classes.
    return tensor.dtype.is_floating or (tensor.dtype.is_integer and not tensor.consumers())


def _described(operation: Any) -> TensorDescription:
    tensor = operation.outputs[0]
    shape = None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
    readers = len(tensor.consumers())
    return TensorDescription(operation.name, operation.type, tensor.dtype.base_dtype.name, shape, readers)


class TensorFlowTasks:
    """The tasks in graph mode; debugging is eager and so needs a process of its own."""

    def open_trained(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray]) -> TrainedTower:
        """Return the validation and inference towers with a checkpoint's weights."""
        return TrainedTower(request, arrays)

    def describe(self, request: ProgramRequest) -> Mapping[str, Any]:
        """Describe the network's validation tower."""
        return asdict(describe_graph(build_job_graph(request)))

    def describe_with_graph(self, request: ProgramRequest) -> DescribedGraph:
        """Describe the network's validation tower, and give the graph of the whole training."""
        built = build_job_graph(request)
        graph, problem = graph_for_tensorboard(built.graph)
        return DescribedGraph(description=asdict(describe_graph(built)), graph=graph, problem=problem)

    def open_foreign(self, path: Path) -> ForeignModel:
        """Open a frozen graph, a checkpoint with its metagraph, or a SavedModel."""
        return open_foreign_model(path)

    def export_formats(self) -> Sequence[str]:
        """Return the names of the formats."""
        return list(FORMATS)

    def export(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray], order: ExportOrder) -> ExportResult:
        """Write a model, run what was written by its own runtime, and compare."""
        chosen = format_named(order.format)
        _check_numbers(chosen, order)
        # Exports compute in float32, whatever the training did.
        with closing(TrainedTower(replace(request, precision="float32"), arrays)) as network:
            with serving_model(
                tower_input(request),
                arrays,
                order.context.preprocessing,
                scores=network.gives_class_scores,
                inside=order.inside,
                rule=detection_rule(order.context),
            ) as model:
                with _held_by(chosen):
                    path = chosen.write(model, order.folder)
                outputs = {name: _shape(tensor) for name, tensor in model.outputs.items()}
                taken, parameters = model.input, _parameters(model)
            with _held_by(chosen):
                runner = chosen.runner(path)
            report = parity_report(
                chosen.name,
                path,
                lambda samples: network.predict(order.preprocess(samples)),
                _whole(chosen, runner, order, taken.dtype.as_numpy_dtype),
                samples=order.samples,
                targets=order.targets,
                context=order.context,
            )
        return ExportResult(
            title=chosen.title,
            file=path.name,
            parity=asdict(report),
            input_shape=taken.shape.as_list(),
            input_dtype=taken.dtype.name,
            outputs=outputs,
            parameters=parameters,
            script=Path(standalone_prediction.__file__),
            packages=chosen.packages,
            framework=f"TensorFlow {tf2.__version__}",
        )


@contextmanager
def _held_by(chosen: ExportFormat) -> Iterator[None]:
    """Turn what a converter or runtime raises into the reason why a format cannot hold a network."""
    try:
        yield
    except (ZigguratError, OSError, MemoryError):
        raise
    except Exception as error:  # each of them has errors of its own
        others = [each for each in FORMATS if each != chosen.name]
        raise ConfigurationError(
            f"The format `{chosen.name}` cannot hold this network: {_conversion_problem(error).rstrip('.')}.",
            advice=f"Choose another one: {', '.join(others)}.",
        ) from error


_UNKNOWN_OPERATION: Final = re.compile(
    r"(?:Tensorflow op \[[^\]]*: |\(Flex|: Flex|No Op registered for |default value for )(\w+)"
)
"""How converters and runtimes name an operation that they do not have."""


def _conversion_problem(error: Exception) -> str:
    """Return the operations that a format does not have, or else the first line of what was raised."""
    text = str(error).strip()
    names = list(dict.fromkeys(_UNKNOWN_OPERATION.findall(text)))
    if names:
        return f"it has none for {', '.join(names[:5])}"
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


def _check_numbers(chosen: ExportFormat, order: ExportOrder) -> None:
    if order.inside and order.samples.dtype == np.float64 and not chosen.has_float64:
        raise ConfigurationError(
            f"A model of the format `{chosen.name}` calculates in float32.",
            received="preprocessing in float64, which the numbers of a table need, inside the model",
            advice="Take the preprocessing beside the model: --preprocessing beside. `predict.py` does it then.",
        )


def _whole(chosen: ExportFormat, runner: Runner, order: ExportOrder, dtype: Any) -> Run:
    """Return a runner that takes decoded inputs, whatever the model itself takes."""

    def run(samples: np.ndarray) -> Mapping[str, np.ndarray]:
        taken = samples if order.inside else order.preprocess(samples)
        with _held_by(chosen):
            return runner(taken.astype(dtype, copy=False))

    return run


def _shape(tensor: Any) -> list[int | None] | None:
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def _parameters(model: ServingModel) -> int:
    shapes = [variable.shape.as_list() for name, variable in model.variables.items() if name.startswith("model/")]
    return sum(int(np.prod(shape)) for shape in shapes)
