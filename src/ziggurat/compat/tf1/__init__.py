"""Execution of TensorFlow 1 scripts: their names, their modules, Python 2, and a report on what was adapted."""
