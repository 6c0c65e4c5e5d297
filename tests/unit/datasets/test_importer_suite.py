"""Every importer that is installed passes the conformance suite; each format has a small source of its own here."""

import csv
import gzip
import io
import json
import math
import pickle
import struct
import tarfile

import cv2
import numpy as np
import pytest

from ziggurat.datasets.format_registry import importer
from ziggurat.plugins import available
from ziggurat.records.tfrecord import TFRecordWriter, index_path
from ziggurat.testing.importer import ImporterConformance

INSTALLED = [plugin.name for plugin in available("importers")]
TOOLS = ("boxes_csv", "createml", "cvat", "label_studio", "labelme", "supervisely", "via")
OPENED_PICTURES = dict.fromkeys(("coco", "dota", "kitti", "masks", "voc", "yolo", *TOOLS), math.inf)
"""YOLO's boxes are relative to the size of the image; the values of all masks say which classes there are."""


def image(number, height=12, width=16):
    """Return the content of a PNG file that no other number gives."""
    pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), np.uint8)
    return cv2.imencode(".png", pixels)[1].tobytes()


def write(path, content):
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


# ---- a source for each format: a function that fills a folder and returns what to scan


def arrays(folder, count):
    """One file of NumPy a sample."""
    for number in range(count):
        np.save(folder / f"{number:04d}.npy", np.full((2, 3), number, np.float32))
    return folder


def class_folders(folder, count):
    """A folder for each class, below one for each split."""
    for number in range(count):
        write(folder / "train" / ("big cat", "Löwe")[number % 2] / f"{number} a.png", image(number))
    return folder


def text_list(folder, count):
    """Lists of paths and classes beside the images."""
    for number in range(count):
        write(folder / "pictures" / f"{number} ü.png", image(number))
    write(folder / "train.txt", "".join(f"pictures/{number} ü.png {number % 2}\n" for number in range(count)))
    write(folder / "labels.txt", "cat\ndog\n")
    return folder


def huggingface_folder(folder, count):
    """Images with ``metadata.csv`` beside them."""
    for number in range(count):
        write(folder / "train" / f"{number}.png", image(number))
    lines = "".join(f"{number}.png,{('cat', 'dog')[number % 2]}\n" for number in range(count))
    write(folder / "train" / "metadata.csv", "file_name,label\n" + lines)
    return folder


def coco(folder, count):
    """One JSON file with images, categories and boxes."""
    for number in range(count):
        write(folder / "train2017" / f"{number}.png", image(number))
    content = {
        "images": [{"id": n, "file_name": f"{n}.png", "width": 16, "height": 12} for n in range(count)],
        "categories": [{"id": 3, "name": "car"}, {"id": 7, "name": "bus"}],
        "annotations": [
            {"id": n, "image_id": n, "category_id": (3, 7)[n % 2], "bbox": [1, 2, 5, 6], "area": 30, "iscrowd": 0}
            for n in range(count)
        ],
    }
    write(folder / "annotations" / "instances_train2017.json", json.dumps(content))
    return folder


def voc(folder, count):
    """An XML file for each image, and a list of the training split."""
    for number in range(count):
        write(folder / "JPEGImages" / f"{number}.png", image(number))
        box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>7</xmax><ymax>9</ymax></bndbox>"
        size = "<size><width>16</width><height>12</height><depth>3</depth></size>"
        one = f"<object><name>car</name><difficult>0</difficult>{box}</object>"
        text = f"<annotation><filename>{number}.png</filename>{size}{one}</annotation>"
        write(folder / "Annotations" / f"{number}.xml", text)
    write(folder / "ImageSets" / "Main" / "train.txt", "".join(f"{number}\n" for number in range(count)))
    return folder


def yolo(folder, count):
    """A text file for each image, and ``data.yaml`` with the classes."""
    for number in range(count):
        write(folder / "images" / "train" / f"{number}.png", image(number))
        write(folder / "labels" / "train" / f"{number}.txt", f"{number % 2} 0.5 0.5 0.25 0.5\n")
    write(folder / "data.yaml", "path: .\ntrain: images/train\nnames: [car, bus]\n")
    return folder


def kitti(folder, count):
    """Files of 15 columns in ``label_2``."""
    for number in range(count):
        write(folder / "training" / "image_2" / f"{number:06d}.png", image(number))
        line = "Car 0.00 0 -1.57 1.0 2.0 9.0 8.0 1.5 1.6 3.9 1.0 1.5 20.0 -1.6\n"
        write(folder / "training" / "label_2" / f"{number:06d}.txt", line)
    return folder


def labelme(folder, count):
    """A JSON file beside each image."""
    for number in range(count):
        write(folder / "day 1" / f"{number}.png", image(number))
        shape = {"label": ("cat", "Löwe")[number % 2], "points": [[1, 2], [7, 9]], "shape_type": "rectangle"}
        content = {"shapes": [shape], "imagePath": f"{number}.png", "imageHeight": 12, "imageWidth": 16}
        write(folder / "day 1" / f"{number}.json", json.dumps(content))
    return folder


def cvat(folder, count):
    """One XML file above the folder of images."""
    items = ""
    for number in range(count):
        write(folder / "images" / f"{number} ü.png", image(number))
        shape = '<box label="cat" xtl="1" ytl="2" xbr="7.5" ybr="9" occluded="0" z_order="0"/>'
        items += f'<image id="{number}" name="{number} ü.png" width="16" height="12">{shape}</image>'
    write(folder / "annotations.xml", f"<annotations><version>1.1</version>{items}</annotations>")
    return folder


def label_studio(folder, count):
    """Tasks whose images were uploaded."""
    tasks = []
    for number in range(count):
        write(folder / "images" / f"{number}.png", image(number))
        value = {"x": 10, "y": 10, "width": 50, "height": 50, "rotation": 0, "rectanglelabels": ["cat"]}
        region = {"id": f"r{number}", "type": "rectanglelabels", "original_width": 16, "original_height": 12}
        annotation = {"completed_by": 1, "result": [{**region, "value": value}], "was_cancelled": False}
        data = {"image": f"/data/upload/1/0123abcd-{number}.png"}
        tasks.append({"id": number, "annotations": [annotation], "data": data})
    write(folder / "project.json", json.dumps(tasks))
    return folder


def boxes_csv(folder, count):
    """One box a line."""
    lines = []
    for number in range(count):
        write(folder / "images" / f"{number}.png", image(number))
        lines.append(f"{number}.png,16,12,{('cat', 'dog')[number % 2]},1,2,7,9\n")
    write(folder / "train_labels.csv", "filename,width,height,class,xmin,ymin,xmax,ymax\n" + "".join(lines))
    return folder


def via(folder, count):
    """Regions beside the images."""
    content = {}
    for number in range(count):
        write(folder / "train" / f"{number}.png", image(number))
        shape = {"name": "rect", "x": 1, "y": 2, "width": 5, "height": 6}
        region = {"shape_attributes": shape, "region_attributes": {"kind": ("cat", "dog")[number % 2]}}
        content[f"{number}.png99"] = {"filename": f"{number}.png", "size": 99, "regions": [region]}
    write(folder / "train" / "via_region_data.json", json.dumps(content))
    return folder


def createml(folder, count):
    """The middle and the size of each box."""
    entries = []
    for number in range(count):
        write(folder / "train" / f"{number}.png", image(number))
        box = {"label": "cat", "coordinates": {"x": 8, "y": 6, "width": 4, "height": 5}}
        entries.append({"image": f"{number}.png", "annotations": [box]})
    write(folder / "train" / "_annotations.createml.json", json.dumps(entries))
    return folder


def supervisely(folder, count):
    """A project with one dataset."""
    write(folder / "meta.json", json.dumps({"classes": [{"title": "cat", "shape": "rectangle"}], "tags": []}))
    for number in range(count):
        write(folder / "ds0" / "img" / f"{number}.png", image(number))
        thing = {"classTitle": "cat", "geometryType": "rectangle", "points": {"exterior": [[1, 2], [7, 9]]}}
        content = {"size": {"height": 12, "width": 16}, "objects": [thing]}
        write(folder / "ds0" / "ann" / f"{number}.png.json", json.dumps(content))
    return folder


def dota(folder, count):
    """Corners, class and difficulty of each object."""
    for number in range(count):
        write(folder / "train" / "images" / f"{number}.png", image(number))
        write(folder / "train" / "labelTxt" / f"{number}.txt", "gsd:0.1\n1 2 7 2 7 9 1 9 plane 0\n")
    return folder


def cifar(folder, count):
    """Two batches for training, one for the test."""
    for place, name in enumerate(("data_batch_1", "data_batch_2", "test_batch")):
        share = max(1, count // 3)
        data = np.random.default_rng(place).integers(0, 256, (share, 3072), np.uint8)
        write(folder / name, pickle.dumps({b"data": data, b"labels": [each % 2 for each in range(share)]}, protocol=2))
    write(folder / "batches.meta", pickle.dumps({b"label_names": [b"cat", b"dog"]}, protocol=2))
    return folder


def masks(folder, count):
    """Masks of class numbers with the names of the images."""
    for number in range(count):
        write(folder / "images" / f"{number}.png", image(number))
        mask = np.random.default_rng(number).integers(0, 3, (12, 16), np.uint8)
        write(folder / "masks" / f"{number}.png", cv2.imencode(".png", mask)[1].tobytes())
    write(folder / "classes.txt", "sky\nroad\ncar\n")
    return folder


def image_pairs(folder, count):
    """Two folders with the same names."""
    for number in range(count):
        write(folder / "input" / f"{number}.png", image(number))
        write(folder / "target" / f"{number}.png", image(number + 10_000))
    return folder


def siamese_pairs(folder, count):
    """A list of pairs, with 1 for those that show the same."""
    for number in range(count + 1):
        write(folder / "pictures" / f"{number}.png", image(number))
    lines = [f"pictures/{number}.png pictures/{number + 1}.png {number % 2}\n" for number in range(count)]
    write(folder / "pairs.txt", "".join(lines))
    return folder


def idx(folder, count):
    """The files of MNIST, one of them compressed."""
    pixels = np.random.default_rng(0).integers(0, 256, (count, 4, 5), np.uint8)
    write(folder / "train-images-idx3-ubyte", struct.pack(">4BIII", 0, 0, 8, 3, *pixels.shape) + pixels.tobytes())
    labels = struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(number % 10 for number in range(count))
    write(folder / "train-labels-idx1-ubyte.gz", gzip.compress(labels))
    return folder


def table(folder, count):
    """A CSV file."""
    with (folder / "flowers.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["length", "colour", "species"])
        rows.writerows(
            [number * 1.5, ("red", "blue")[number % 2], ("rose", "iris")[number % 2]] for number in range(count)
        )
    return folder / "flowers.csv"


def text(folder, count):
    """Labeled texts in a file, as a table of two columns."""
    lines = [f"{('ham', 'spam')[n % 2]}\tthis is the long text of message number {n}, grüße\n" for n in range(count)]
    write(folder / "messages.tsv", "".join(lines))
    return folder / "messages.tsv"


def tfrecord(folder, count):
    """Shards of ``tf.train.Example`` messages."""
    for shard in range(2):
        path = folder / f"train-{shard:05d}-of-00002"
        with TFRecordWriter(path) as records:
            for number in range(shard, count, 2):
                records.append(None, example(number))
        index_path(path).unlink()
    return folder


def webdataset(folder, count):
    """Shards that are tar files."""
    for shard in range(2):
        with tarfile.open(folder / f"train-{shard:06d}.tar", "w") as archive:
            for number in range(shard, count, 2):
                for suffix, content in (("png", image(number)), ("cls", str(number % 2).encode())):
                    about = tarfile.TarInfo(f"{number:06d}.{suffix}")
                    about.size = len(content)
                    archive.addfile(about, io.BytesIO(content))
    return folder


def digits_lmdb(folder, count):
    """Databases of Caffe's ``Datum`` messages, as DIGITS made them."""
    import lmdb

    environment = lmdb.open(str(folder / "train_db"), map_size=1 << 24)
    with environment.begin(write=True) as transaction:
        for number in range(count):
            datum = (1, 3), (2, 12), (3, 16), (4, image(number)), (5, number % 2), (7, 1)
            transaction.put(f"{number:08d}_{number % 2}".encode(), message(*datum))
    environment.close()
    (folder / "train_db" / "lock.mdb").unlink()
    write(folder / "labels.txt", "cat\ndog\n")
    return folder


def digits_hdf5(folder, count):
    """Files with ``data`` and ``label``, and a list of them."""
    import h5py

    (folder / "train_db").mkdir()
    with h5py.File(folder / "train_db" / "0.h5", "w") as file:
        pixels = np.random.default_rng(0).integers(0, 256, (count, 3, 4, 5))
        file.create_dataset("data", data=pixels.astype(np.float32))
        file.create_dataset("label", data=np.arange(count, dtype=np.float32) % 2)
    write(folder / "train_db" / "list.txt", "train_db/0.h5\n")
    write(folder / "labels.txt", "cat\ndog\n")
    return folder


def message(*fields):
    """Return a Protocol Buffers message; fields are (number, value): integers, or bytes."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(varint(number << 3) + varint(value))
        else:
            parts.append(varint(number << 3 | 2) + varint(len(value)) + value)
    return b"".join(parts)


def varint(value):
    """Return a number in 7 bits a byte."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def example(number):
    """Return a ``tf.train.Example`` of an image and its class."""
    features = {
        "image/encoded": message((1, message((1, image(number))))),
        "image/format": message((1, message((1, b"png")))),
        "image/filename": message((1, message((1, f"{number}.png".encode())))),
        "image/class/label": message((3, message((1, varint(number % 2))))),
        "image/class/text": message((1, message((1, (b"cat", b"dog")[number % 2])))),
    }
    entries = [(1, message((1, name.encode()), (2, feature))) for name, feature in features.items()]
    return message((1, message(*entries)))


SOURCES = {
    each.__name__: each
    for each in (
        arrays, boxes_csv, cifar, class_folders, coco, createml, cvat, digits_hdf5, digits_lmdb, dota,
        huggingface_folder, idx, image_pairs, kitti, label_studio, labelme, masks, siamese_pairs, supervisely, table,
        text, text_list, tfrecord, via, voc, webdataset, yolo,
    )
}  # fmt: skip


class TestInstalledImporters(ImporterConformance):
    """All that is installed and has a source here."""

    @pytest.fixture(autouse=True, params=[name for name in INSTALLED if name in SOURCES])
    def _format(self, request):
        self.format = request.param
        self.most_pictures_opened = OPENED_PICTURES.get(self.format, 0)

    def importer(self):
        return importer(self.format)

    def write_source(self, folder, count):
        return SOURCES[self.format](folder, count)


def test_every_built_in_importer_has_a_source_here():
    built_in = {plugin.name for plugin in available("importers") if plugin.is_built_in}
    assert built_in - set(SOURCES) == set()
