"""Pairs of input and target images."""
