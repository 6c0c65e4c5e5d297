"""Benchmark of reading records in random order: dataset, LMDB, WebDataset, TFRecord and single files."""

from __future__ import annotations

import statistics
from pathlib import Path

from bench.parts.created import dataset
from bench.parts.reading_sides import TAKE, make_copies
from bench.parts.report import Options, Report, Row
from bench.parts.rounds import Side, measure

__all__ = ["run"]

_BATCHES = 16
_OTHERS = {
    "lmdb, raw gets": "lmdb_gets",
    "WebDataset": "webdataset_shards",
    "tf.data, TFRecord": "tf_data",
    "single files": "files",
}
_OURS = "RecordData"


def run(options: Options) -> Report:
    """Measure."""
    folder = dataset(options.detail).parent
    make_copies(folder)
    sizes = [path.stat().st_size for path in (folder / "files").iterdir()]
    report = Report(
        "Records of a dataset, in random order",
        "record",
        f"{_OURS}, decoded",
        [
            f"{len(sizes)} JPEG files of 256 x 256 px and {sum(sizes) / len(sizes) / 1000:.0f} KB, in the page cache",
            "one thread each; WebDataset and tf.data shuffle in a buffer of 1000, the others have any record at once",
            "only RecordData and tf.data compare checksums",
            f"{options.rounds} interleaved rounds of {_BATCHES * TAKE} records a side, warm-up dropped; medians",
        ],
    )
    for decoded in (False, True):
        part = measure(Report("", "", ""), _sides(folder, decoded), options, batches=_BATCHES, batch_size=TAKE)
        report.rows += part.rows
        report.left_out |= part.left_out
        ours, *others = part.rows
        report.notes += [_sentence(ours, other) for other in others]
    return report


def _sides(folder: Path, decoded: bool) -> list[Side]:
    at = {"folder": str(folder), "decoded": decoded}
    form = "decoded" if decoded else "encoded"
    module = "bench.parts.reading_sides"
    sides = [Side(f"{_OURS}, {form}", f"{module}:record_data", at)]
    sides += [Side(f"{name}, {form}", f"{module}:{function}", at) for name, function in _OTHERS.items()]
    return [*sides, Side("decoder", f"{module}:memory", at, is_limit=True)] if decoded else sides


def _sentence(ours: Row, other: Row) -> str:
    """Return how ours compares, from the ratios of the same rounds."""
    ratios = [one / mine for one, mine in zip(other.cpu_us, ours.cpu_us)]
    return (
        f"{ours.side}: {1e6 / ours.median_cpu_us:.0f} records a second of CPU time, "
        f"{statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f}) those of {other.side}"
    )
