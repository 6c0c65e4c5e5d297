"""Import of networks of Caffe: read as text and weights, written as a network file for PyTorch, proven to agree."""
