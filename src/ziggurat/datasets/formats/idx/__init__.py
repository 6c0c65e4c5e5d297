"""IDX files, as MNIST has them."""
