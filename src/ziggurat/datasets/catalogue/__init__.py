"""Dataset catalog: one SQLite file that indexes every sample and problem, with paged queries.

All SQL of the dataset library lives here. Training never opens the catalog.
"""

from ziggurat.datasets.catalogue.entries import Entry, SampleFilter
from ziggurat.datasets.catalogue.reader import Catalogue
from ziggurat.datasets.catalogue.writer import CatalogueWriter

__all__ = ["Catalogue", "CatalogueWriter", "Entry", "SampleFilter"]
