"""Owns writing a data set in the formats of others; one module a format."""
