"""TensorBoard processes."""
