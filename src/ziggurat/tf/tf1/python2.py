"""Modules and NumPy names of Python 2's years, for scripts."""

from __future__ import annotations

import builtins
import configparser
import copyreg
import functools
import html.parser
import io
import itertools
import pickle
import queue
import socketserver
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from types import ModuleType
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.namespace.python2 import OLD_ITERTOOLS

__all__ = ["EXTENDED", "NUMPY_NAMES", "OLD_MODULES"]

# What Python 2 pickled as text is bytes for Python 3; latin1 is the encoding that NumPy's arrays are read with.
_PICKLES: Final = {
    "load": functools.partial(pickle.load, encoding="latin1"),
    "loads": functools.partial(pickle.loads, encoding="latin1"),
}

OLD_MODULES: Final[dict[str, tuple[str, ModuleType]]] = {
    "ConfigParser": ("configparser", configparser),
    "HTMLParser": ("html.parser", html.parser),
    "Queue": ("queue", queue),
    "SocketServer": ("socketserver", socketserver),
    "StringIO": ("io", io),
    "__builtin__": ("builtins", builtins),
    "cPickle": ("pickle", StandInModule("cPickle", pickle, names=_PICKLES)),
    "cStringIO": ("io", io),
    "commands": ("subprocess", subprocess),
    "copy_reg": ("copyreg", copyreg),
    "urllib2": ("urllib.request", StandInModule("urllib2", urllib.request, urllib.error)),
    "urlparse": ("urllib.parse", urllib.parse),
}
"""Module of Python 2 → name of the one that has its content today, and that module."""

EXTENDED: Final[dict[str, ModuleType]] = {
    "itertools": StandInModule("itertools", itertools, names=OLD_ITERTOOLS),
    "urllib": StandInModule("urllib", urllib, urllib.request, urllib.parse),
}
"""Module that is still there → the same with the names that it had."""

NUMPY_NAMES: Final[dict[str, tuple[str, Any]]] = {
    "Inf": ("np.inf", np.inf),
    "Infinity": ("np.inf", np.inf),
    "NaN": ("np.nan", np.nan),
    "alltrue": ("np.all", np.all),
    "asscalar": ("array.item", lambda array: array.item()),
    "bool": ("bool", bool),
    "complex": ("complex", complex),
    "complex_": ("np.complex128", np.complex128),
    "cumproduct": ("np.cumprod", np.cumprod),
    "float": ("float", float),
    "float_": ("np.float64", np.float64),
    "in1d": ("np.isin", np.isin),
    "int": ("int", int),
    "long": ("int", int),
    "mat": ("np.asmatrix", np.asmatrix),
    "object": ("object", object),
    "product": ("np.prod", np.prod),
    "row_stack": ("np.vstack", np.vstack),
    "sometrue": ("np.any", np.any),
    "str": ("str", str),
    "string_": ("np.bytes_", np.bytes_),
    "trapz": ("np.trapezoid", np.trapezoid),
    "unicode": ("str", str),
    "unicode_": ("np.str_", np.str_),
}
"""Name that NumPy no longer has → name of today, and its value."""
