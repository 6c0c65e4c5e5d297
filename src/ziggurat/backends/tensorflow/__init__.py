"""TensorFlow backend: graph mode on TensorFlow 2.21, with the network contract of DIGITS's users.

Importing this package does not import TensorFlow; ``runtime`` does.
"""
