"""Ziggurat: a web studio and a Python engine for training deep networks.

``import ziggurat as zig`` gives ``zig.train``, ``zig.load``, ``zig.dataset``, ``zig.runs`` and ``zig.connect``. The
package itself imports nothing, so that it costs no time: these names are loaded when they are used first. Import what
else you need from its doors: ``ziggurat.dataflow`` (data loading), ``ziggurat.callbacks`` (callbacks and monitors),
``ziggurat.testing`` (conformance suites).

Type checkers read ``__init__.pyi`` beside it.
"""

__all__ = [
    "Box",
    "ClassScore",
    "Connection",
    "Curves",
    "Dataset",
    "Evaluation",
    "ExportedModel",
    "Prediction",
    "Predictions",
    "Run",
    "Runs",
    "__version__",
    "connect",
    "dataset",
    "load",
    "runs",
    "train",
]

__version__ = "0.2.0.dev0"


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'ziggurat' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("ziggurat.interactive"), name)


def __dir__():
    return sorted({*globals(), *__all__})
