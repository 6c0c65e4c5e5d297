"""Backends of the training loop: one module or package per framework, independent of each other."""
