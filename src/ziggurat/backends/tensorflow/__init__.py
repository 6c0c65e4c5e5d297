"""Owns the TensorFlow backend: graph mode on TensorFlow 2.21, with the network contract of DIGITS's users.

Importing this package starts no framework; ``runtime`` does.
"""
