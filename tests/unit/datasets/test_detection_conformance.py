"""The importers of detection formats hold the contract of importers; their sources are what the exporters write."""

import math

from detection_sources import box, dataset

from ziggurat.datasets.formats.coco.exporter import export_coco
from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.datasets.formats.kitti.exporter import export_kitti
from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.datasets.formats.voc.exporter import export_voc
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.datasets.formats.yolo.exporter import export_yolo
from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.testing.importer import ImporterConformance


def pets(count):
    """Return a dataset of two splits; each image has a cat, every third a dog too."""
    pictures = {"train": {}, "val": {}}
    for number in range(count):
        objects = [box(0, 1.0, 2.0, 9.0, 8.0)] + [box(1, 3.0, 3.0, 5.5, 6.5)] * (number % 3 == 0)
        pictures["val" if number % 4 == 3 else "train"][f"ä {number:03d}.png"] = ((10, 12), objects)
    return dataset(["cat", "dog"], pictures)


class TestCoco(ImporterConformance):
    most_pictures_opened = math.inf  # the header of each tells the frame of its labels

    def importer(self):
        return CocoImporter()

    def write_source(self, folder, count):
        export_coco(pets(count), folder)
        return folder


class TestVoc(ImporterConformance):
    most_pictures_opened = math.inf  # the header of each tells the frame of its labels

    def importer(self):
        return VocImporter()

    def write_source(self, folder, count):
        export_voc(pets(count), folder)
        (folder / "classes.txt").unlink()  # so that classes are found
        return folder


class TestYolo(ImporterConformance):
    most_pictures_opened = math.inf  # the header of each tells the frame of its labels

    def importer(self):
        return YoloImporter()

    def write_source(self, folder, count):
        export_yolo(pets(count), folder)
        return folder


class TestKitti(ImporterConformance):
    most_pictures_opened = math.inf  # the header of each tells the frame of its labels

    def importer(self):
        return KittiImporter()

    def write_source(self, folder, count):
        export_kitti(pets(count), folder)
        (folder / "classes.txt").unlink()
        return folder
