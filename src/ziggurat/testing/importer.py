"""Conformance suite for importers: one that passes is safe to offer, to scan with, and to create datasets from."""

from __future__ import annotations

import gc
import json
import multiprocessing
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.format_registry import SURE
from ziggurat.datasets.importer import Importer, Scan
from ziggurat.datasets.samples import SPLITS, Problem, Sample
from ziggurat.datasets.versions.classes import label_fault
from ziggurat.errors import ConfigurationError, DataError, DatapointError, UnknownNameError, ZigguratError
from ziggurat.records.schema import KINDS, Schema

__all__ = ["ImporterConformance"]

_FEW: Final = 6
_MANY: Final = 300
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")
_HOSTILE: Final = {
    "nothing": b"",
    "zeros": bytes(300),
    "no text": bytes(range(256)) * 3,
    "UTF-16": "7 8 9\n".encode("utf-16"),
    "Latin-1": "gr\xfc\xdfe.png 0\n".encode("latin-1"),
    "Windows": b"a b.png 1\r\n\r\n\x1a",
    "deep JSON": b'{"images": ' + b"[" * 5000,
    "numbers": b'{"images": [{"id": 1e999, "file_name": 7}], "annotations": [{"bbox": [NaN, -1, 1e400, null]}]}',
    "entities": b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><annotation>&c;</annotation>',
    "away": b"../../../../etc/passwd 0\n/etc/hostname 1\n",
    "long": b"9" * 200_000,
}
"""What a file of labels may turn out to be."""


class ImporterConformance(ABC):
    """Subclass it in a test file (as ``class TestMyImporter(ImporterConformance)``) and give it the two methods."""

    options: Mapping[str, Any] = {}
    """What the importer must be told to read the source of ``write_source``."""

    most_pictures_opened: float = 0
    """How many images a scan may look into; ``math.inf`` where labels depend on the size of each."""

    most_opened: int = 64
    """How many files ``guess`` may open, however large the source is."""

    @abstractmethod
    def importer(self) -> Importer:
        """Return the importer."""

    @abstractmethod
    def write_source(self, folder: Path, count: int) -> Path:
        """Write a source of the format with about ``count`` samples, all good; return what to scan.

        Args:
            folder: empty; its name has blanks and letters that are not ASCII.
            count: of samples.
        """

    # ---- what it says of itself

    def test_it_is_described_for_people(self) -> None:
        """Name, title and kinds can be shown, and its name can be typed."""
        importer = self.importer()
        assert re.fullmatch(r"[a-z][a-z0-9_-]*", importer.name), importer.name
        assert importer.title.strip() == importer.title != ""
        assert importer.kinds
        assert set(importer.kinds) <= set(KINDS)

    def test_its_options_are_complete(self) -> None:
        """Every option has a type, a sentence, and a default that it would accept itself and that JSON can hold."""
        importer = self.importer()
        names = [option.name for option in importer.options]
        assert len(set(names)) == len(names)
        for option in importer.options:
            assert re.fullmatch(r"[a-z][a-z0-9_]*", option.name), option.name
            assert option.type in (str, int, float, bool, list, dict), option.name
            assert option.help.endswith("."), option.name
            assert option.default is None or isinstance(option.default, option.type), option.name
            assert not option.choices or option.default is None or option.default in option.choices, option.name
            assert json.loads(json.dumps(option.default)) == option.default, option.name
        assert importer.checked_options({}) == {option.name: option.default for option in importer.options}

    def test_wrong_options_are_refused(self) -> None:
        """A name that it does not know and a value of the wrong type are errors that help."""
        importer = self.importer()
        _error_of(UnknownNameError, lambda: importer.checked_options({"no such option": 1}))
        for option in importer.options:
            wrong = {option.name: object()}
            error = _error_of(ConfigurationError, lambda wrong=wrong: importer.checked_options(wrong))
            assert option.name in str(error)

    # ---- guessing

    def test_it_recognises_its_own(self, tmp_path: Path) -> None:
        """Its guess is one that can be acted on."""
        source, importer = self._source(tmp_path), self.importer()
        guess = importer.guess(source)
        assert guess is not None
        assert guess.format == importer.name
        assert SURE <= guess.confidence <= 1
        assert guess.kind in importer.kinds
        assert guess.reason.strip()
        assert importer.checked_options(guess.options)
        scan = importer.scan(source, importer.checked_options({**guess.options, **self.options}))
        assert any(isinstance(each, Sample) for each in scan)

    def test_it_leaves_others_alone(self, tmp_path: Path) -> None:
        """An empty folder, and files that mean nothing, are not its own: it says so, and raises nothing."""
        (tmp_path / "empty").mkdir()
        foreign = tmp_path / "foreign"
        (foreign / "deeper" / "still").mkdir(parents=True)
        (foreign / "notes.odt").write_bytes(b"PK\x03\x04 nothing")
        (foreign / "program").write_bytes(b"\x7fELF" + bytes(100))
        (foreign / "deeper" / "core").write_bytes(b"")
        (foreign / "gone").symlink_to(tmp_path / "nowhere")
        for source in (tmp_path / "empty", foreign, foreign / "notes.odt", foreign / "program"):
            guess = self.importer().guess(source)
            assert guess is None or guess.confidence < SURE, f"{source.name}: {guess}"

    def test_a_guess_is_quick(self, tmp_path: Path) -> None:
        """Nobody waits for a million files to be opened before the first page is shown."""
        source = self._source(tmp_path, _MANY)
        with _opened_files(source) as opened:
            self.importer().guess(source)
        assert len(opened) <= self.most_opened

    # ---- scanning

    def test_a_scan_gives_samples_that_fit_their_schema(self, tmp_path: Path) -> None:
        """Keys are unique, splits are known, and labels are as the kind says."""
        samples, problems, schema = self._scanned(self._source(tmp_path))
        assert len(samples) >= 2
        assert not [problem for problem in problems if problem.left_out], problems
        assert schema.kind in self.importer().kinds
        assert len({sample.key for sample in samples}) == len(samples)
        for sample in samples:
            assert sample.key
            assert sample.split in ("", *SPLITS), sample
            assert 1 <= len(sample.parts) <= len(schema.parts), sample
            assert not label_fault(schema, sample.label), f"{sample.key}: {label_fault(schema, sample.label)}"
        assert Schema.from_json(json.loads(json.dumps(schema.as_json()))) == schema
        assert json.loads(json.dumps([sample.label for sample in samples])) == [sample.label for sample in samples]

    def test_every_scan_gives_the_same(self, tmp_path: Path) -> None:
        """Samples, problems and schema come again, in the same order."""
        source = self._source(tmp_path)
        assert self._scanned(source) == self._scanned(source)

    def test_a_scan_keeps_nothing(self, tmp_path: Path) -> None:
        """However many samples there are, few are in memory at a time."""
        scan, seen, alive = self._scan(self._source(tmp_path, _MANY)), 0, 0
        for each in scan:
            seen += isinstance(each, Sample)
            if seen % 100 == 99:
                alive = max(alive, sum(type(other) is Sample for other in gc.get_objects()))
        assert seen >= _MANY // 2
        assert alive <= _MANY // 4, f"{alive} of {seen} samples were in memory at once"

    def test_a_scan_opens_no_picture(self, tmp_path: Path) -> None:
        """A million images are listed in seconds because none is read."""
        source = self._source(tmp_path)
        with _opened_files(source) as opened:
            self._scanned(source)
        assert len({name for name in opened if name.lower().endswith(_PICTURES)}) <= self.most_pictures_opened

    def test_an_empty_source_is_an_error_or_nothing(self, tmp_path: Path) -> None:
        """Where nothing is, there are no samples, and nothing but a ``DataError`` is raised."""
        (tmp_path / "empty").mkdir()
        (tmp_path / "empty file").write_bytes(b"")
        for source in (tmp_path / "empty", tmp_path / "empty file"):
            samples = [each for each in self._outcome(source) if isinstance(each, Sample)]
            assert samples == []

    def test_damage_is_a_problem_or_an_error_that_says_so(self, tmp_path: Path) -> None:
        """Whatever a file of labels holds, the scan goes on, or ends with a ``DataError``; so does a guess."""
        source = self._source(tmp_path)
        files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
        for path in files:
            if path.suffix.lower() in _PICTURES:
                continue
            content = path.read_bytes()
            half = {"half": content[: len(content) // 2]}
            for name, hostile in {**_HOSTILE, **half}.items():
                path.write_bytes(hostile)
                self._outcome(source, f"{path.relative_to(source.parent)} with {name}")
            path.write_bytes(content)

    def test_links_to_nowhere_do_no_harm(self, tmp_path: Path) -> None:
        """A link whose target is gone is no reason to stop."""
        source = self._source(tmp_path)
        if source.is_file():
            return
        for folder in [source, *(path for path in source.rglob("*") if path.is_dir())]:
            for name in ("gone.png", "gone.txt", "gone"):
                (folder / name).symlink_to(tmp_path / "nowhere")
        assert any(isinstance(each, Sample) for each in self._outcome(source, "dangling links"))

    # ---- reading

    def test_parts_are_read_in_another_process(self, tmp_path: Path) -> None:
        """The processes of a creation read what the scan said, by themselves."""
        source = self._source(tmp_path)
        importer, options = self.importer(), self._checked_options()
        addresses = self._addresses(source)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            lengths = pool.submit(_read_all, importer, source, options, addresses).result(timeout=60)
        assert len(lengths) == len(addresses)
        assert all(lengths)

    def test_files_that_are_their_part_alone_are_named(self, tmp_path: Path) -> None:
        """What ``file()`` names may be linked or referenced in place of what ``read()`` gives."""
        source = self._source(tmp_path)
        addresses = self._addresses(source)
        with self.importer().reader(source, self._checked_options()) as reader:
            for address in addresses:
                path = reader.file(address)
                assert path is None or path.read_bytes() == reader.read(address), address

    def test_a_part_that_is_gone_is_an_error_of_its_sample(self, tmp_path: Path) -> None:
        """What was deleted after the scan is a ``DatapointError``: the sample is left out, and the others are used."""
        source = self._source(tmp_path)
        addresses = self._addresses(source)
        source.rename(source.with_name("moved"))
        if not addresses:
            return
        try:
            with self.importer().reader(source, self._checked_options()) as reader:
                reader.read(addresses[0])
        except DataError:
            return
        raise AssertionError(f"{addresses[0]} was read, and it is not there")

    # ---- helpers

    def _source(self, tmp_path: Path, count: int = _FEW) -> Path:
        folder = tmp_path / "Größe 1" / "my data"
        folder.mkdir(parents=True)
        return self.write_source(folder, count)

    def _checked_options(self) -> dict[str, Any]:
        return self.importer().checked_options(self.options)

    def _scan(self, source: Path) -> Scan:
        return self.importer().scan(source, self._checked_options())

    def _scanned(self, source: Path) -> tuple[list[Sample], list[Problem], Schema]:
        scan = self._scan(source)
        everything = list(scan)
        samples = [each for each in everything if isinstance(each, Sample)]
        return samples, [each for each in everything if isinstance(each, Problem)], scan.schema

    def _addresses(self, source: Path) -> list[str]:
        return [part for sample in self._scanned(source)[0] for part in sample.parts if isinstance(part, str)]

    def _outcome(self, source: Path, about: str = "") -> list[Sample | Problem]:
        """Guess and scan; return what came before the first ``DataError``."""
        found: list[Sample | Problem] = []
        try:
            self.importer().guess(source)
        except Exception as error:
            raise AssertionError(f"guess of {about or source.name}: {type(error).__name__}: {error}") from error
        try:
            scan = self._scan(source)
            found.extend(scan)
            assert scan.schema.kind in KINDS
        except Exception as error:
            if isinstance(error, DataError) and not isinstance(error, DatapointError):
                return found
            raise AssertionError(f"scan of {about or source.name}: {type(error).__name__}: {error}") from error
        return found


def _read_all(importer: Importer, source: Path, options: dict[str, Any], addresses: list[str]) -> list[int]:
    """Return the size of each part; runs in another process."""
    with importer.reader(source, options) as reader:
        contents = [reader.read(address) for address in addresses]
    return [content.nbytes if isinstance(content, np.ndarray) else len(content) for content in contents]


def _error_of(kind: type[ZigguratError], action: Callable[[], object]) -> ZigguratError:
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


class _Watcher:
    """Knows which files below a folder are opened by Python code; an audit hook stays for good, so there is one."""

    def __init__(self) -> None:
        self.below: str | None = None
        self.opened: list[str] = []
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.below is not None and event == "open" and isinstance(arguments[0], str | bytes | Path):
            name = str(arguments[0], "utf-8", "replace") if isinstance(arguments[0], bytes) else str(arguments[0])
            if name.startswith(self.below):
                self.opened.append(name)


_watchers: list[_Watcher] = []


@contextmanager
def _opened_files(source: Path) -> Iterator[list[str]]:
    """Yield a list that gets the path of each file below a source that is opened in the ``with`` block."""
    if not _watchers:
        _watchers.append(_Watcher())
    watcher = _watchers[0]
    watcher.below, watcher.opened = str(source), []
    try:
        yield watcher.opened
    finally:
        watcher.below = None
