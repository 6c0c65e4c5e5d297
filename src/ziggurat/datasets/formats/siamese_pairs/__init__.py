"""Pairs of images of the same or of different classes."""
