"""The conformance suite of importers lets a good one pass, and finds what is wrong with each of these bad ones."""

import itertools

import pytest

from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError
from ziggurat.records.schema import Schema
from ziggurat.testing.importer import ImporterConformance


class Good(Importer):
    """Files whose classes stand in ``list.txt``."""

    name = "listed"
    title = "Listed files"
    kinds = ("image-classification",)
    options = (ImporterOption(name="most", type=int, default=None, help="At most so many."),)
    class_count = 2
    confidence = 0.9

    def guess(self, source):
        if not (source / "list.txt").is_file():
            return None
        return Guess(format=self.name, confidence=self.confidence, reason="A list.", kind=self.kinds[0])

    def scan(self, source, options):
        if not (source / "list.txt").is_file():
            raise DataError("There is a list.", received=f"`{source}`")
        return GoodScan(source, self)


class GoodScan(Scan):
    def __init__(self, source, importer):
        self.source = source
        self.importer = importer

    def __iter__(self):
        with open(self.source / "list.txt", encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file):
                yield self.item(number, line.strip())

    def item(self, number, line):
        """Return the sample of a line."""
        name, _, label = line.rpartition(" ")
        if label not in ("0", "1"):
            return Problem(key=f"list.txt:{number}", kind="bad-line", reason="It has no class.", left_out=True)
        return Sample(key=name, parts=(name,), label=int(label))

    @property
    def schema(self):
        return Schema(kind="image-classification", class_names=("a", "b")[: self.importer.class_count])


class Unsure(Good):
    confidence = 0.1


class Greedy(Good):
    def guess(self, source):
        return Guess(format=self.name, confidence=0.5, reason="Why not?", kind=self.kinds[0])


class Slow(Good):
    def guess(self, source):
        for path in source.glob("*.png") if source.is_dir() else ():
            path.read_bytes()
        return super().guess(source)


class Forgetful(Good):
    """Its labels have classes that its schema has not."""

    class_count = 1


class Other(Good):
    """Its walk is another one."""

    walk = GoodScan

    def scan(self, source, options):
        super().scan(source, options)
        return type(self).walk(source, self)


class Keeping(Other):
    class walk(GoodScan):  # noqa: N801
        def __iter__(self):
            everything = list(super().__iter__())
            yield from everything


class Looking(Other):
    class walk(GoodScan):  # noqa: N801
        def item(self, number, line):
            for path in sorted(self.source.glob("*.png"))[:1]:
                path.read_bytes()
            return super().item(number, line)


class Fickle(Other):
    numbers = itertools.count()

    class walk(GoodScan):  # noqa: N801
        def item(self, number, line):
            found = super().item(number, line)
            return Sample(key=f"{next(Fickle.numbers)}", parts=found.parts, label=found.label)


class Repeating(Other):
    class walk(GoodScan):  # noqa: N801
        def item(self, number, line):
            found = super().item(number, line)
            return Sample(key="the same", parts=found.parts, label=found.label)


class Fragile(Other):
    class walk(GoodScan):  # noqa: N801
        def item(self, number, line):
            name, label = line.split(" ")
            return Sample(key=name, parts=(name,), label=int(label))


class Lying(Other):
    class walk(GoodScan):  # noqa: N801
        def item(self, number, line):
            found = super().item(number, line)
            return Sample(key=found.key, parts=(f"elsewhere/{found.key}",), label=found.label)


class Mumbling(Good):
    options = (ImporterOption(name="most", type=int, default=None, help="at most"),)


class Suite(ImporterConformance):
    __test__ = False

    def __init__(self, kind):
        self.kind = kind

    def importer(self):
        return self.kind()

    def write_source(self, folder, count):
        for number in range(count):
            (folder / f"{number}.png").write_bytes(b"image %d" % number)
        (folder / "list.txt").write_text("".join(f"{number}.png {number % 2}\n" for number in range(count)))
        return folder


TESTS = [name for name in dir(ImporterConformance) if name.startswith("test_")]


def run(kind, name, tmp_path):
    test = getattr(Suite(kind), name)
    test(tmp_path) if "tmp_path" in test.__func__.__annotations__ else test()


@pytest.mark.parametrize("name", TESTS)
def test_a_good_one_passes(name, tmp_path):
    run(Good, name, tmp_path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Unsure, "test_it_recognises_its_own"),
        (Greedy, "test_it_leaves_others_alone"),
        (Slow, "test_a_guess_is_quick"),
        (Forgetful, "test_a_scan_gives_samples_that_fit_their_schema"),
        (Repeating, "test_a_scan_gives_samples_that_fit_their_schema"),
        (Fickle, "test_every_scan_gives_the_same"),
        (Keeping, "test_a_scan_keeps_nothing"),
        (Looking, "test_a_scan_opens_no_picture"),
        (Fragile, "test_damage_is_a_problem_or_an_error_that_says_so"),
        (Mumbling, "test_its_options_are_complete"),
    ],
)
def test_a_bad_one_is_found(kind, name, tmp_path):
    with pytest.raises(AssertionError):
        run(kind, name, tmp_path)


def test_parts_that_are_not_there_are_found(tmp_path):
    with pytest.raises(DataError, match="elsewhere"):
        run(Lying, "test_parts_are_read_in_another_process", tmp_path)
