"""Client methods for datasets and dataset uploads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ziggurat.client.connection import Connection, given
from ziggurat.errors import DataError

__all__ = ["DatasetClient"]

_BATCH_BYTES: Final = 8 << 20
_BATCH_FILES: Final = 200
_BLOCK_BYTES: Final = 1 << 20


class DatasetClient:
    """The datasets of a studio.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def formats(self) -> list[dict[str, Any]]:
        """Return every format: what it reads, its options, and whether it can be written."""
        return self._connection.ask("GET", "/dataset-formats")

    def upload(self, path: Path) -> str:
        """Send an archive, a file or a folder to the studio; return what the spec of a dataset names as its source.

        Raises:
            DataError: where there is nothing.
        """
        root = path if path.is_dir() else path.parent
        files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        if not files or not path.exists():
            raise DataError(f"The upload `{path}` has no file.")
        upload: dict[str, Any] = {"id": "", "source": ""}
        for some in _batches(files):
            if len(some) == 1:
                params = {"name": some[0].relative_to(root).as_posix(), "id": upload["id"]}
                upload = self._connection.ask("POST", "/uploads", params=params, content=_blocks(some[0]))
            else:
                parts = [("files", (each.relative_to(root).as_posix(), each.read_bytes())) for each in some]
                upload = self._connection.ask("POST", "/uploads/files", params={"id": upload["id"]}, files=parts)
        return upload["source"]

    def uploads(self) -> list[dict[str, Any]]:
        """Return the uploads, the newest first: ``id``, ``name``, ``source``, ``files``, ``size_bytes``."""
        return self._connection.ask("GET", "/uploads")

    def delete_upload(self, upload_id: str, *, forever: bool = False) -> None:
        """Delete an upload; it can be restored for some days.

        Args:
            upload_id: of the upload; with ``forever`` also the id or name of a deleted one.
            forever: remove it from the disk at once.
        """
        self._connection.ask("DELETE", f"/uploads/{upload_id}", params={"forever": forever})

    def restore_upload(self, upload_id: str) -> dict[str, Any]:
        """Put a deleted upload, named by id or name, back, and return it."""
        return self._connection.ask("POST", f"/uploads/{upload_id}/restore")

    def guess(self, source: str) -> list[dict[str, Any]]:
        """Return what every importer thinks of a source, the most confident first."""
        return self._connection.ask("POST", "/dataset-guesses", json={"source": source})

    def create(self, spec: Mapping[str, Any], **request: Any) -> dict[str, Any]:
        """Put a dataset into the queue; return the job.

        Args:
            spec: of a dataset, such as ``{"source": client.datasets.upload(Path("pets.zip")), "name": "pets"}``.
            request: ``project``, ``tags``, ``notes``, ``priority``.
        """
        whole = {"kind": "dataset", "version": 1, **spec}
        return self._connection.ask("POST", "/datasets", json={"spec": whole, **given(request)})

    def describe(self, job_id: str) -> dict[str, Any]:
        """Return what a dataset that is done is."""
        return self._connection.ask("GET", f"/datasets/{job_id}")

    def samples(self, job_id: str, **chosen: Any) -> dict[str, Any]:
        """Return some of the samples that a filter leaves: ``split``, ``class_name``, ``text``, ``order``, …"""
        return self._connection.ask("GET", f"/datasets/{job_id}/samples", params=given(chosen))

    def picture(self, job_id: str, split: str, row: int, *, max_side_px: int = 1024) -> bytes:
        """Return an image of a sample as PNG."""
        params = {"max_side_px": max_side_px}
        return self._connection.content(f"/datasets/{job_id}/pictures/{split}/{row}", params=params)

    def original(self, job_id: str, split: str, row: int) -> bytes:
        """Return the source file of a sample, or the stored image if the file is missing or has changed."""
        return self._connection.content(f"/datasets/{job_id}/pictures/{split}/{row}", params={"original": True})

    def problems(self, job_id: str, **chosen: Any) -> list[dict[str, Any]]:
        """Return some of the problems that were found: ``kind``, ``offset``, ``limit``."""
        return self._connection.ask("GET", f"/datasets/{job_id}/problems", params=given(chosen))

    def statistics(self, job_id: str) -> dict[str, Any]:
        """Return counts, sizes and distributions."""
        return self._connection.ask("GET", f"/datasets/{job_id}/statistics")

    def check(self, job_id: str, *, verify: bool = False) -> dict[str, Any]:
        """Return what may spoil a training."""
        return self._connection.ask("POST", f"/datasets/{job_id}/check", json={"verify": verify})

    def versions(self, job_id: str) -> list[dict[str, Any]]:
        """Return a dataset and all that it came from, newest first."""
        return self._connection.ask("GET", f"/datasets/{job_id}/versions")

    def create_again(self, job_id: str, *, name: str = "") -> dict[str, Any]:
        """Put a dataset into the queue that is made from the same source by the same spec; its parent is this one."""
        return self._connection.ask("POST", f"/datasets/{job_id}/again", json={"name": name})

    def relabel(self, job_id: str, samples: Sequence[str], label: Any, *, name: str = "") -> dict[str, Any]:
        """Make a version in which samples (``SPLIT/ROW`` or key) have another label."""
        body = {"samples": list(samples), "label": label, "name": name}
        return self._connection.ask("POST", f"/datasets/{job_id}/relabel", json=body)

    def correct(self, job_id: str, labels: Mapping[str, Any], excluded: Sequence[str] = (), **body: Any) -> Any:
        """Make one version of many corrections: ``SPLIT/ROW`` or key → label, and samples that are left out."""
        content = {"labels": dict(labels), "excluded": list(excluded), **body}
        return self._connection.ask("POST", f"/datasets/{job_id}/corrections", json=content)

    def boxes(self, job_id: str, sample: str) -> dict[str, Any]:
        """Return the boxes of an image, ``SPLIT/ROW``, as they stand: ``version``, ``objects``, …"""
        return self._connection.ask("GET", f"/datasets/{job_id}/boxes/{sample}")

    def save_boxes(
        self, job_id: str, sample: str, objects: Sequence[Mapping[str, Any]], *, version: int
    ) -> dict[str, Any]:
        """Replace the boxes of an image, ``SPLIT/ROW``; they become a dataset by ``make_boxes_version``.

        Args:
            job_id: of the dataset.
            sample: ``SPLIT/ROW``.
            objects: ``class`` (number or name), ``box`` (left, top, right, bottom in px), ``source`` as it was read.
            version: as it was read; a save on an outdated one is refused.
        """
        body = {"version": version, "objects": [_object(each) for each in objects]}
        return self._connection.ask("PUT", f"/datasets/{job_id}/boxes/{sample}", json=body)

    def undo_boxes(self, job_id: str, sample: str, *, version: int) -> dict[str, Any]:
        """Bring the boxes back that an image had before the newest change."""
        return self._connection.ask("POST", f"/datasets/{job_id}/boxes/{sample}/undo", json={"version": version})

    def discard_boxes(self, job_id: str, sample: str, *, version: int) -> dict[str, Any]:
        """Take the boxes of the dataset again; Undo brings the corrections back."""
        return self._connection.ask("DELETE", f"/datasets/{job_id}/boxes/{sample}", params={"version": version})

    def pending_boxes(self, job_id: str) -> list[dict[str, Any]]:
        """Return the images with corrected boxes that are not a version yet."""
        return self._connection.ask("GET", f"/datasets/{job_id}/boxes")

    def make_boxes_version(self, job_id: str, *, samples: Sequence[str] = (), name: str = "") -> dict[str, Any]:
        """Make a version of the corrected boxes of some images, or of all."""
        body = {"samples": list(samples), "name": name}
        return self._connection.ask("POST", f"/datasets/{job_id}/boxes/versions", json=body)

    def proposed_boxes(self, job_id: str, sample: str, *, source: str = "") -> dict[str, Any]:
        """Return boxes that a detection model finds in an image: ``sources`` and ``proposals``."""
        params = {"source": source}
        return self._connection.ask("GET", f"/datasets/{job_id}/boxes/{sample}/proposals", params=params)

    def exclude(self, job_id: str, samples: Sequence[str] = (), **body: Any) -> dict[str, Any]:
        """Make a version without some samples, or without those that have a ``problem``."""
        return self._connection.ask("POST", f"/datasets/{job_id}/exclude", json={"samples": list(samples), **body})

    def change_classes(self, job_id: str, **changes: Any) -> dict[str, Any]:
        """Make a version with other classes: ``rename``, ``merge``, ``drop``, ``keep``, ``names``, ``colours``."""
        return self._connection.ask("POST", f"/datasets/{job_id}/classes", json=changes)

    def merge(self, job_ids: Sequence[str], *, name: str = "") -> dict[str, Any]:
        """Make one dataset of several."""
        return self._connection.ask("POST", "/dataset-merges", json={"datasets": list(job_ids), "name": name})

    def create_map(self, job_id: str, **options: Any) -> dict[str, Any]:
        """Put a map of a dataset into the queue; return the job.

        Args:
            job_id: of the dataset.
            options: ``features`` (``backbone``, ``model`` or ``own``), ``model``, ``checkpoint``, ``tsne``,
                ``perplexity``, ``folds``, ``limit``, ``seed``.
        """
        return self._connection.ask("POST", f"/datasets/{job_id}/maps", json=given(options))

    def maps(self, job_id: str) -> list[dict[str, Any]]:
        """Return the jobs that make maps of a dataset, the newest first."""
        return self._connection.ask("GET", f"/datasets/{job_id}/maps")

    def similar(self, job_id: str, sample: str, *, limit: int = 24, map_id: str = "") -> dict[str, Any]:
        """Return the samples that are most similar to one (``SPLIT/ROW`` or key), with the cosine of their features."""
        params = given({"sample": sample, "limit": limit, "map": map_id})
        return self._connection.ask("GET", f"/datasets/{job_id}/similar", params=params)

    def findings(self, job_id: str, which: str, **chosen: Any) -> dict[str, Any]:
        """Return samples that a map makes doubtful: ``which`` is ``label-errors`` or ``near-duplicates``."""
        return self._connection.ask("GET", f"/datasets/{job_id}/findings/{which}", params=given(chosen))

    def export(self, job_id: str, format: str, target: Path, **options: Any) -> Path:  # noqa: A002
        """Write a zip archive of a dataset in a format of others to ``target``."""
        body = {"format": format, "options": options}
        return self._connection.save("POST", f"/datasets/{job_id}/export", target, json=body)


def _object(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is sent of an object; the studio knows the rest."""
    return {name: content[name] for name in ("class", "box", "source") if name in content}


def _batches(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield files in groups that are sent together: small ones, or a large one alone."""
    some: list[Path] = []
    size_bytes = 0
    for file in files:
        more_bytes = file.stat().st_size
        if some and (size_bytes + more_bytes > _BATCH_BYTES or len(some) == _BATCH_FILES):
            yield some
            some, size_bytes = [], 0
        some.append(file)
        size_bytes += more_bytes
    if some:
        yield some


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block
