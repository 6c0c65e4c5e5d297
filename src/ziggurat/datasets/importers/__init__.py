"""Owns reading data sets in the formats of others; one module a format."""
