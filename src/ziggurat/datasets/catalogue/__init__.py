"""Owns the catalogue of a data set: one SQLite file that knows every sample and problem, and finds them by page.

It is the only home of SQL in the data set library. Training never opens it.
"""

from ziggurat.datasets.catalogue.entries import Entry, SampleFilter
from ziggurat.datasets.catalogue.reader import Catalogue
from ziggurat.datasets.catalogue.writer import CatalogueWriter

__all__ = ["Catalogue", "CatalogueWriter", "Entry", "SampleFilter"]
