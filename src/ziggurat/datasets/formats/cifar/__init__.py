"""Batches of CIFAR."""
