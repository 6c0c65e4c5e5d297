"""TensorFlow as a library."""
