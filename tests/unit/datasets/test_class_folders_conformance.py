"""The importers of folders and lists hold the contract of importers."""

import json
import math
import shutil
from pathlib import Path

from tests.unit.datasets.folder_sets import put
from ziggurat.datasets.formats.class_folders.importer import ClassFolders
from ziggurat.datasets.formats.huggingface.importer import HuggingFaceFolder
from ziggurat.datasets.formats.text_list.importer import TextList
from ziggurat.datasets.importer import Importer
from ziggurat.testing.importer import ImporterConformance


class TestClassFolders(ImporterConformance):
    def importer(self) -> Importer:
        return ClassFolders()

    def write_source(self, folder: Path, count: int) -> Path:
        return put(folder, *(f"{'train' if n % 3 else 'val'}/{n // 3 % 2}/ü {n}.png" for n in range(max(count, 12))))


class TestExportedClassFolders(TestClassFolders):
    def write_source(self, folder: Path, count: int) -> Path:
        super().write_source(folder, count)
        classes = [{"folder": name, "name": name} for name in "01"]
        folder.joinpath("ziggurat-classes.json").write_text(json.dumps({"version": 1, "classes": classes}))
        folder.joinpath("train/0/.ziggurat-keys.jsonl").write_text('["ü 1.png", "one"]\n')
        return folder


class TestTextList(ImporterConformance):
    def importer(self) -> Importer:
        return TextList()

    def write_source(self, folder: Path, count: int) -> Path:
        put(folder, *(f"{number} ä.png" for number in range(count)))
        folder.joinpath("train.txt").write_text("".join(f"{number} ä.png {number % 2}\n" for number in range(count)))
        folder.joinpath("labels.txt").write_text("no\nyes\n")
        folder.joinpath("train.keys.jsonl").write_text('["0 ä.png", "0"]\n')
        return folder


class TestHuggingFaceFolder(ImporterConformance):
    suffix = ".jsonl"

    def importer(self) -> Importer:
        return HuggingFaceFolder()

    def write_source(self, folder: Path, count: int) -> Path:
        put(folder, *(f"{number}.png" for number in range(count)))
        rows = [{"file_name": f"{number}.png", "label": number % 2} for number in range(count)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        if self.suffix == ".csv":
            text = "file_name,label\n" + "".join(f"{row['file_name']},{row['label']}\n" for row in rows)
        folder.joinpath(f"metadata{self.suffix}").write_text(text)
        return folder


class TestHuggingFaceTable(TestHuggingFaceFolder):
    suffix = ".csv"


class TestHuggingFaceObjects(TestHuggingFaceFolder):
    most_pictures_opened = math.inf  # the header of each tells the frame of its labels

    def write_source(self, folder: Path, count: int) -> Path:
        put(folder, *(f"train/{number}.png" for number in range(count)))
        objects = {"bbox": [[0, 0, 2, 3]], "categories": ["cat"]}
        rows = [{"file_name": f"{number}.png", "objects": objects} for number in range(count)]
        folder.joinpath("train/metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        shutil.copytree(folder / "train", folder / "test")
        return folder
