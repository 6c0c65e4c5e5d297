"""Modules of Python 2's years, for scripts."""

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
from typing import Final

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.namespace.python2 import OLD_ITERTOOLS

__all__ = ["EXTENDED", "OLD_MODULES"]

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
