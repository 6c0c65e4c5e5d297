"""Dataset creation from a source to a finished folder, stage by stage; each stage runs once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat import __version__
from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.dataflow.image_codec import DEPTHS
from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.creation.assembling import INDEX_NAME, MEAN_NAME, Assembled, assemble
from ziggurat.datasets.creation.chunk import (
    CHUNK,
    ChunkPlan,
    SourcePlan,
    facts_path,
    in_processes,
    make_chunk,
    read_facts,
)
from ziggurat.datasets.creation.images import Fitting, decoded_image
from ziggurat.datasets.creation.losses import Losses, losses_of
from ziggurat.datasets.creation.request import CreationRequest, CreationStopped, Watch
from ziggurat.datasets.format_registry import guess_format, importer, is_unpacked_first
from ziggurat.datasets.hashing import NO_HASH, picture_hash
from ziggurat.datasets.importer import Importer, PartReader
from ziggurat.datasets.rules import RULES
from ziggurat.datasets.samples import SPLITS, TOLD, Problem
from ziggurat.datasets.sources import check_offered, is_remote, open_source, public_uri
from ziggurat.datasets.splitting.assign import assign_splits
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.manifest import MANIFEST_NAME, ImageForm, Manifest, Parent, SourceNote
from ziggurat.records.offered_folders import LEADS_OUT, watched, watched_source
from ziggurat.records.schema import Schema

__all__ = ["AGAIN", "create_dataset", "links_out", "scanned"]

_LOOK_EVERY: Final = 1000  # samples between two looks for a stop request

WORK_NAME: Final = "work"
AGAIN: Final = "Created again from its source."
"""What the history of a dataset says that was made by the spec of an earlier one."""

_IMAGE_PARTS: Final = ("image", "mask", "target", "image2")


def create_dataset(request: CreationRequest, folder: Path, watch: Watch | None = None) -> Manifest:
    """Make a dataset in a folder, or go on where an earlier call ended.

    Args:
        request: what it is asked to become; the same in every call for a folder.
        folder: for it alone; it need not exist.
        watch: is told of the progress.

    Raises:
        DataError: where the source cannot be used, or no sample of it.
        StorageError: where the disk is full or refuses; what was done is kept.
        CreationStopped: if a stop was requested; what was done is kept.
    """
    watch = watch or Watch()
    if (folder / MANIFEST_NAME).exists():
        return Manifest.load(folder)
    work = folder / WORK_NAME
    with storage_errors(work):
        work.mkdir(parents=True, exist_ok=True)
    for leftover in work.rglob(".*.partial"):
        leftover.unlink()
    if not is_remote(request.source):
        check_offered(request.source)
    is_unpacked = partial(is_unpacked_first, format_name=request.format)
    source = open_source(request.source, work / "source", is_unpacked=is_unpacked)
    with watched_source(source):
        return _made(request, source, folder, watch)


def _made(request: CreationRequest, source: Path, folder: Path, watch: Watch) -> Manifest:
    """Make the dataset of a source that is here."""
    work = folder / WORK_NAME
    if request.encoding == "reference" and source.is_relative_to(work):
        raise DataError(
            f"The images of `{public_uri(request.source)}` cannot stay where they are: it had to be "
            "fetched or unpacked.",
            advice="Choose another encoding, or unpack it into a folder that stays.",
        )
    scan = scanned(request, source, work / "scan.sqlite", watch)
    with Catalogue(scan.catalog) as catalog:
        losses_of(catalog, scan.schema).check(request.losses)
    source = source / scan.folder
    workers = (os.cpu_count() or 1) if request.workers is None else request.workers
    plan = _plan(request, source, scan, work)
    with storage_errors(plan.folder):
        plan.folder.mkdir(exist_ok=True)
    hashes = None
    if request.rule.method == "cluster":
        hashes = hash_all(scan, source, work / "picture-hashes", workers, watch, plan.fitting)
    splits, problems, warnings = _split(request, scan, work, hashes)
    _make_chunks(plan, splits, hashes, workers, watch)
    deep = _with_bits(plan, len(splits))
    if deep is not plan:
        plan = deep
        bits = plan.fitting.form.bits if plan.fitting is not None else 16
        watch.message("info", f"Images have 16 bits a value and use {bits}: they are read again by these {bits} bits.")
        with storage_errors(plan.folder):
            plan.folder.mkdir(exist_ok=True)
        _make_chunks(plan, splits, hashes, workers, watch)
    assembled = assemble(
        folder,
        plan,
        splits,
        store=request.store,
        problems=problems,
        warnings=warnings,
        watch=watch,
    )
    _check_usable(assembled)
    with Catalogue(folder / INDEX_NAME) as catalog:
        losses = losses_of(catalog, scan.schema)
    losses.check(request.losses)
    manifest = _manifest(request, source, scan, plan, assembled, losses, folder).save(folder)
    shutil.rmtree(work, ignore_errors=True)
    for warning in (*losses.warnings, *assembled.warnings):
        watch.message("warning", warning)
    return manifest


def scanned(request: CreationRequest, source: Path, path: Path, watch: Watch) -> ScanResult:
    """Return what is in the source of a request; its catalog is written once.

    Args:
        request: with a format, or none, which is then guessed.
        source: local folder or file.
        path: of the catalog.
        watch: is told of the progress.

    Raises:
        DataError: where the source cannot be used.
        CreationStopped: if a stop was requested.
    """
    if path.exists():
        return read_scan(path)
    name, options, folder = request.format, dict(request.options), ""
    if not name:
        guess = guess_format(source)
        name, options, folder = guess.format, {**guess.options, **options}, guess.folder
        where = f" in the folder `{folder}`, which alone holds data" if folder else ""
        watch.message("info", f"The format is taken to be {guess.format}{where}: {guess.reason}")
    return scan_source(path, source, importer(name), options, watch, folder=folder)


def _split(
    request: CreationRequest, scan: ScanResult, work: Path, hashes: np.ndarray | None
) -> tuple[np.ndarray, list[Problem], list[str]]:
    """Return the split of each sample, problems and warnings; from the file where they were found before."""
    arrays, found = work / "splits.npy", work / "splits.json"
    if not arrays.exists():
        with Catalogue(scan.catalog) as catalog:
            assignment = assign_splits(catalog, request.rule, hashes, class_names=scan.schema.class_names)
            told = dict.fromkeys(problem.reason for kind in TOLD for problem in catalog.problems(kind))
        problems = [asdict(problem) for problem in assignment.problems]
        _write(found, json.dumps({"problems": problems, "warnings": [*told, *assignment.warnings]}).encode())
        target = AtomicFile(arrays)
        with storage_errors(arrays), target.path.open("wb") as file:
            np.save(file, assignment.splits.astype(np.int8), allow_pickle=False)
        target.publish()
    said = json.loads(found.read_text())
    splits = np.load(arrays, allow_pickle=False)
    if not (splits >= 0).any():
        raise DataError("A dataset has at least one sample.", received="a split rule that leaves out every one")
    return splits, [Problem(**problem) for problem in said["problems"]], said["warnings"]


def _plan(request: CreationRequest, source: Path, scan: ScanResult, work: Path) -> ChunkPlan:
    has_images = any(part in _IMAGE_PARTS for part in scan.schema.parts)
    if not has_images and request.image != ImageForm(encoding=""):
        raise DataError(
            f"A size, channels or an encoding is set for a dataset of kind {scan.schema.kind}, which has no images.",
            advice="Leave them out.",
        )
    form = replace(request.image, encoding=request.encoding)
    plan = ChunkPlan(
        folder=work / "chunks",
        catalog=scan.catalog,
        source=source,
        format=scan.format,
        options=scan.options,
        schema=scan.schema,
        fitting=Fitting(form=form, check=request.image_check) if has_images else None,
        hashes=request.near_duplicates and has_images,
        sums=request.mean and has_images,
        max_distance=request.rule.max_distance,
    )
    # Release 0.1 made larger chunks of such images, without hashes: those of an unfinished creation must not mix in.
    return replace(plan, folder=work / "hashed-chunks") if plan.decodes_for_hashes else plan


def _make_chunks(plan: ChunkPlan, splits: np.ndarray, hashes: np.ndarray | None, workers: int, watch: Watch) -> None:
    missing = [chunk for chunk in range(plan.chunks(len(splits))) if not facts_path(plan.folder, chunk).exists()]
    done = len(splits) - sum(len(_of_chunk(plan, splits, chunk)) for chunk in missing)
    watch.progress("read", done, len(splits))
    tasks = (
        (chunk, _of_chunk(plan, splits, chunk), None if hashes is None else _of_chunk(plan, hashes, chunk))
        for chunk in _until_stopped(missing, watch)
    )
    for _, samples in in_processes(make_chunk, plan.opened, tasks, min(workers, len(missing))):
        done += samples
        watch.progress("read", done, len(splits))
    if watch.stop_requested():
        raise CreationStopped


def _with_bits(plan: ChunkPlan, samples: int) -> ChunkPlan:
    """Return the plan by the bits that images with 16 bits use in the training split; itself where they use all."""
    if plan.fitting is None:
        return plan
    highest = max((read_facts(plan.folder, chunk).highest for chunk in range(plan.chunks(samples))), default=-1)
    bits = 16 if highest < 0 else next(bits for bits in DEPTHS if not highest >> bits)
    if bits == plan.fitting.form.bits:
        return plan
    fitting = replace(plan.fitting, form=replace(plan.fitting.form, bits=bits))
    return replace(plan, fitting=fitting, folder=plan.folder.with_name(f"{plan.folder.name}-{bits}-bits"))


def _of_chunk(plan: ChunkPlan, column: np.ndarray, chunk: int) -> np.ndarray:
    return column[chunk * plan.chunk_size : (chunk + 1) * plan.chunk_size]


def _until_stopped(chunks: list[int], watch: Watch) -> Iterator[int]:
    for chunk in chunks:
        if watch.stop_requested():
            return
        yield chunk


def _check_usable(assembled: Assembled) -> None:
    if not sum(note.count for note in assembled.splits.values()):
        reasons = ", ".join(f"{kind}: {count}" for kind, count in assembled.problems.items())
        raise DataError(
            f"No sample can be read: {reasons}.",
            advice="The catalog in the folder lists them, each with its reason.",
        )


def _manifest(
    request: CreationRequest,
    source: Path,
    scan: ScanResult,
    plan: ChunkPlan,
    assembled: Assembled,
    losses: Losses,
    folder: Path,
) -> Manifest:
    height, width, channels = assembled.stored_shape
    image = None
    if plan.fitting is not None:
        image = replace(plan.fitting.form, height_px=height, width_px=width, channels=channels)
    root = source if source.is_dir() else source.parent
    return Manifest(
        name=request.name,
        schema=scan.schema,
        splits={split: assembled.splits[split] for split in SPLITS if split in assembled.splits},
        image=image,
        mean=MEAN_NAME if (folder / MEAN_NAME).exists() else "",
        pixel_mean=assembled.sums.mean_pixel(),
        index=INDEX_NAME,
        source=SourceNote(
            uri=public_uri(request.source),
            format=scan.format,
            root=str(root.resolve()) if request.encoding == "reference" else "",
            options=scan.options,
        ),
        spec=dict(request.spec) | ({"source": public_uri(request.source)} if "source" in request.spec else {}),
        problems=assembled.problems,
        losses=tuple(losses.as_json()),
        parents=_parents(request.again_of),
        release=__version__,
        rules=RULES,
    )


def _parents(again_of: str) -> tuple[Parent, ...]:
    identity, _, name = again_of.partition(" ")
    return (Parent(id=identity, name=name, changes=(AGAIN,)),) if identity else ()


def _write(path: Path, content: bytes) -> None:
    target = AtomicFile(path, replace=True)
    with storage_errors(path):
        target.path.write_bytes(content)
    target.publish()


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """What a scan found.

    Args:
        catalog: file of the samples and problems.
        schema: what the samples mean.
        format: name of the importer.
        options: of the importer, complete.
        count: samples.
        folder: below the source, where the samples were found; empty for the source itself.
    """

    catalog: Path
    schema: Schema
    format: str
    options: Mapping[str, Any]
    count: int
    folder: str = ""


def scan_source(
    path: Path, source: Path, importer: Importer, options: Mapping[str, Any], watch: Watch, *, folder: str = ""
) -> ScanResult:
    """Walk through a source and write its catalog; memory does not grow with the number of samples.

    Args:
        path: of the catalog to be written.
        source: local folder or file.
        importer: of its format.
        options: as they were given.
        watch: is told of the progress.
        folder: below the source, that is scanned; empty for the source itself.

    Raises:
        DataError: where the source cannot be used, has no samples, or two samples have one key.
        CreationStopped: if a stop was requested.
    """
    complete = importer.checked_options(options)
    scan = importer.scan(source / folder, complete)
    count, problems = 0, 0
    with CatalogueWriter(path, replace=True) as catalog:
        for found in scan:
            if isinstance(found, Problem):
                catalog.add_problem(found)
                problems += 1
            else:
                _check_split(found.key, found.split)
                catalog.add(Entry.of_sample(count, found))
                count += 1
            if (count + problems) % _LOOK_EVERY == 0:
                watch.progress("scan", count, 0)
                if watch.stop_requested():
                    raise CreationStopped
        for problem in links_out(source):
            catalog.add_problem(problem)
        for name, value in (
            ("schema", scan.schema.as_json()),
            ("format", importer.name),
            ("options", {**complete, **scan.found_options}),
            ("count", count),
            ("folder", folder),
        ):
            catalog.note(name, value)
    watch.progress("scan", count, count)
    if not count:
        raise _nothing_found(path, source, importer)
    _check_keys(path)
    return read_scan(path)


def links_out(source: Path) -> Iterator[Problem]:
    """Yield a problem for each file and folder of a watched source that was not opened, as it leads out of it."""
    found = watched()
    for path in found.refused if found is not None else ():
        key = os.path.relpath(path, source if source.is_dir() else source.parent)
        yield Problem(key=key, kind="link-outside", reason=f"It is not read: {LEADS_OUT}.", left_out=True)


def read_scan(path: Path) -> ScanResult:
    """Return the result of a scan that was done before."""
    with Catalogue(path) as catalog:
        return ScanResult(
            catalog=path,
            schema=Schema.from_json(catalog.note("schema")),
            format=catalog.note("format"),
            options=catalog.note("options"),
            count=catalog.note("count"),
            folder=catalog.note("folder") or "",
        )


def _check_split(key: str, split: str) -> None:
    if split and split not in SPLITS:
        raise DataError(f"The split {split!r} for `{key}` is not train, val or test.")


def _nothing_found(path: Path, source: Path, importer: Importer) -> DataError:
    with Catalogue(path) as catalog:
        problems = catalog.problems(limit=3)
    path.unlink()
    return DataError(
        "A dataset has at least one sample.",
        received=f"none in `{source}` as {importer.name}",
        advice=" ".join(f"{problem.key}: {problem.reason}" for problem in problems)
        or "Look whether the path and the format are right.",
    )


def _check_keys(path: Path) -> None:
    with Catalogue(path) as catalog:
        twice = catalog.repeated_keys()
    if twice:
        path.unlink()
        raise DataError(
            "Every sample of a source has a key of its own.",
            received=", ".join(f"`{key}`, which came twice" for key in twice),
            advice="That is a fault of the importer, or two files of the source describe the same sample.",
        )


def hash_all(
    scan: ScanResult, source: Path, folder: Path, workers: int, watch: Watch, fitting: Fitting | None
) -> np.ndarray:
    """Return the perceptual hash of the first part of every sample, (N) int64; ``NO_HASH`` where it cannot be read.

    Args:
        scan: of the source.
        source: local folder or file.
        folder: for the hashes of the chunks that are done.
        workers: processes; 0 for this one.
        watch: is told of the progress.
        fitting: how images are decoded; None where there are none.

    Raises:
        CreationStopped: if a stop was requested; what was done is kept.
    """
    with storage_errors(folder):
        folder.mkdir(exist_ok=True)
    plan = SourcePlan(
        folder=folder,
        catalog=scan.catalog,
        source=source,
        format=scan.format,
        options=scan.options,
        fitting=fitting,
    )
    count = -(-scan.count // CHUNK)
    missing = [chunk for chunk in range(count) if not _path(folder, chunk).exists()]
    done = count - len(missing)
    tasks = ((chunk, min(CHUNK, scan.count - chunk * CHUNK)) for chunk in missing if not watch.stop_requested())
    for _ in in_processes(_hash_chunk, plan.opened, tasks, min(workers, len(missing))):
        done += 1
        watch.progress("hash", min(done * CHUNK, scan.count), scan.count)
    if watch.stop_requested():
        raise CreationStopped
    return np.concatenate([np.load(_path(folder, chunk), allow_pickle=False) for chunk in range(count)])


def _path(folder: Path, chunk: int) -> Path:
    return folder / f"{chunk:06d}.npy"


def _hash_chunk(opened: tuple[SourcePlan, Catalogue, PartReader], chunk: int, count: int) -> int:
    plan, catalog, reader = opened
    first = chunk * CHUNK
    hashes = [
        _hash(plan.fitting, reader, entry.parts[0], entry.key) for entry in catalog.entries(range(first, first + count))
    ]
    target = AtomicFile(_path(plan.folder, chunk), replace=True)
    with storage_errors(target.final), target.path.open("wb") as file:
        np.save(file, np.array(hashes, np.int64), allow_pickle=False)
    target.publish()
    return chunk


def _hash(fitting: Fitting | None, reader: PartReader, address: str | bytes, key: str) -> int:
    if fitting is None:
        return NO_HASH
    try:
        part = address if isinstance(address, bytes) else reader.read(address)
        return picture_hash(decoded_image(part, fitting, key))
    except DatapointError:
        return NO_HASH  # it is listed as unreadable when the records are made
