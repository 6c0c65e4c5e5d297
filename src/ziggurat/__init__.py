"""Ziggurat: a web studio and a Python engine for training deep networks.

``import ziggurat as zig`` gives ``zig.train``, ``zig.load``, ``zig.dataset``, ``zig.runs`` and ``zig.connect``;
``zig.log`` and ``zig.log_image`` give any program curves and images. The package itself imports nothing, so that it
costs no time: these names are loaded when they are used first. Import what else you need from its doors:
``ziggurat.dataflow`` (data loading), ``ziggurat.callbacks`` (callbacks and monitors), ``ziggurat.testing`` (conformance
suites).

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
    "log",
    "log_image",
    "runs",
    "train",
]

__version__ = "0.2.0"

_OF_PROGRAMS = ("log", "log_image")
"""What a program calls while it runs; its module imports nothing heavy."""


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'ziggurat' has no attribute {name!r}")
    from importlib import import_module

    found = import_module("ziggurat.program_log" if name in _OF_PROGRAMS else "ziggurat.interactive")
    globals()[name] = getattr(found, name)
    return globals()[name]


def __dir__():
    return sorted({*globals(), *__all__})
