"""Helper processes of the studio: inference pool and TensorBoard."""
