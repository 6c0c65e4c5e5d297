"""Every task of Ziggurat holds the contract of tasks."""

import numpy as np

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.records.schema import Column, Schema
from ziggurat.tasks import task
from ziggurat.testing.task import TaskConformance

IMAGES = Preprocessing(size=(12, 10), channels=3)
COUNT = 8


def images():
    random = np.random.default_rng(4)
    return [encode_image(random.integers(0, 256, (12, 10, 3), np.uint8), "png") for _ in range(COUNT)]


class OfImages(TaskConformance):
    """A task whose inputs are images."""

    def preprocessing(self):
        return IMAGES

    def foreign_schema(self):
        return Schema(kind="text-classification", class_names=("a", "b"))


class TestClassification(OfImages):
    def task(self):
        return task("classification")

    def schema(self):
        return Schema(kind="image-classification", class_names=("a", "b", "c"))

    def foreign_schema(self):
        return Schema(kind="segmentation", class_names=("a", "b", "c"))

    def points(self):
        return [[image, number % 3] for number, image in enumerate(images())]

    def perfect(self, batch):
        return {"probabilities": np.eye(3)[batch[1]] * 0.97 + 0.01}

    def poor(self, batch):
        return {"probabilities": np.eye(3)[np.where(np.arange(COUNT) % 2, batch[1], (batch[1] + 1) % 3)] * 0.7 + 0.1}


class TestMultiLabel(OfImages):
    def task(self):
        return task("multi-label")

    def schema(self):
        return Schema(kind="image-regression", class_names=("a", "b"))

    def foreign_schema(self):
        return Schema(kind="image-regression")

    def points(self):
        return [[image, [number % 2, number // 4]] for number, image in enumerate(images())]

    def perfect(self, batch):
        return {"output": 8 * batch[1] - 4}

    def poor(self, batch):
        return {"output": np.random.default_rng(1).normal(size=batch[1].shape)}


class TestSegmentation(OfImages):
    def task(self):
        return task("segmentation")

    def schema(self):
        return Schema(kind="segmentation", ignore_class=255)

    def points(self):
        random = np.random.default_rng(5)
        masks = [random.choice([0, 1, 2, 255], (12, 10)).astype(np.uint8) for _ in range(COUNT)]
        return [[image, encode_image(mask[..., None], "png")] for image, mask in zip(images(), masks, strict=True)]

    def perfect(self, batch):
        return {"output": np.eye(3)[np.minimum(batch[1][..., 0], 2)]}

    def poor(self, batch):
        return {"output": np.random.default_rng(1).normal(size=(*batch[1].shape[:3], 3))}


class TestDetection(OfImages):
    def task(self):
        return task("detection")

    def schema(self):
        return Schema(kind="detection", class_names=("a", "b"))

    def points(self):
        boxes = [(1, 1, 6, 7), (4, 2, 9, 11), (0, 5, 4, 12)]
        labels = [
            [{"class": place % 2, "box": box} for place, box in enumerate(boxes[: number % 4])]
            for number in range(COUNT)
        ]
        return [[image, label] for image, label in zip(images(), labels, strict=True)]

    def perfect(self, batch):
        rows = batch[1][:, 0, 1:]
        there = np.arange(rows.shape[1]) < batch[1][:, 0, :1, 0]
        scores = np.eye(2)[rows[..., 5].astype(int)] * there[..., None] * 0.9
        return {"output": np.concatenate([rows[..., :2], rows[..., :2] + rows[..., 2:4], scores], axis=-1)}

    def poor(self, batch):
        output = self.perfect(batch)["output"]
        return {"output": output + np.where(np.arange(6) < 4, 2.5, 0)}


class TestImageRegression(OfImages):
    def task(self):
        return task("regression")

    def schema(self):
        return Schema(kind="image-regression")

    def foreign_schema(self):
        return Schema(kind="image-regression", class_names=("a",))

    def points(self):
        return [[image, [number / 2, -number]] for number, image in enumerate(images())]

    def perfect(self, batch):
        return {"output": batch[1]}

    def poor(self, batch):
        return {"output": batch[1] + np.arange(COUNT)[:, None]}


class TestTableRegression(TestImageRegression):
    columns = (Column(name="size", type="number"), Column(name="price", type="number"))

    def schema(self):
        return Schema(kind="table", columns=self.columns, target="price")

    def preprocessing(self):
        return TablePreprocessing.fit(self.columns, "price", [row for row, _ in self.points()])

    def points(self):
        return [[[number**2, 3 * number + 1], 3 * number + 1] for number in range(COUNT)]


class TestImageToImage(OfImages):
    def task(self):
        return task("image-to-image")

    def schema(self):
        return Schema(kind="image-to-image")

    def points(self):
        return [[image, other] for image, other in zip(images(), reversed(images()), strict=True)]

    def perfect(self, batch):
        return {"output": batch[1]}

    def poor(self, batch):
        return {"output": batch[1] / 255.0 * 0.8}


class TestOwnTarget(TestImageToImage):
    def schema(self):
        return Schema(kind="image-classification", class_names=("a", "b"))

    def points(self):
        return [[image, 0] for image in images()]


class TestPairs(OfImages):
    def task(self):
        return task("pairs")

    def schema(self):
        return Schema(kind="image-pairs")

    def points(self):
        return [[image, image, number % 2] for number, image in enumerate(images())]

    def perfect(self, batch):
        first = np.zeros((COUNT, 4), np.float32)
        return {"output": first, "output_1": first + (1 - batch[1])[:, None]}

    def poor(self, batch):
        random = np.random.default_rng(1)
        return {"output": random.normal(size=(COUNT, 4)), "output_1": random.normal(size=(COUNT, 4))}


class TestFree(OfImages):
    def task(self):
        return task("free")

    def schema(self):
        return Schema(kind="image-classification", class_names=("a", "b"))

    def foreign_schema(self):
        return Schema(kind="generic")

    def points(self):
        return [[image, number % 2] for number, image in enumerate(images())]

    def perfect(self, batch):
        return {"output": batch[0]}

    poor = perfect
