"""Dataset statistics: splits, classes, images, objects, masks, columns and texts."""

from ziggurat.datasets.statistics.collect import statistics_of
from ziggurat.datasets.statistics.model import (
    Bar,
    ClassStatistics,
    ColumnStatistics,
    Histogram,
    ImageStatistics,
    MaskStatistics,
    NumberStatistics,
    ObjectStatistics,
    Statistics,
    TextStatistics,
    statistics_lines,
)

__all__ = [
    "Bar",
    "ClassStatistics",
    "ColumnStatistics",
    "Histogram",
    "ImageStatistics",
    "MaskStatistics",
    "NumberStatistics",
    "ObjectStatistics",
    "Statistics",
    "TextStatistics",
    "statistics_lines",
    "statistics_of",
]
