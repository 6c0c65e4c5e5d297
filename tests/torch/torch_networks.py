"""Networks and data for the tests of the PyTorch backend."""

import numpy as np
from sklearn.datasets import load_digits

SMALL = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, height, width = input_shape
        self.conv1 = nn.Conv2d(channels, 8, 3, padding=1)
        self.fc1 = nn.Linear(8 * (height // 2) * (width // 2), nclasses)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x * 0.0125)), 2)
        return self.fc1(self.dropout(x.flatten(1)))
"""

TOWER = """
from model import Tower
from utils import model_property
import utils as digits


class UserModel(Tower):
    def build(self):
        channels, height, width = self.input_shape
        self.conv1 = nn.Conv2d(channels, 8, 3, padding=1)
        self.fc1 = nn.Linear(8 * (height // 2) * (width // 2), self.nclasses)
        self.dropout = nn.Dropout(0.3)

    @model_property
    def inference(self):
        x = F.max_pool2d(F.relu(self.conv1(self.x * 0.0125)), 2)
        return self.fc1(self.dropout(x.flatten(1)))

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(digits.scalar("accuracy", accuracy))
        self.summaries.append(digits.image("input", self.x / 255))
        self.summaries.append(digits.histogram("logits", self.inference))
        return digits.classification_loss(self.inference, self.y)
"""


def digit_images() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits: (1797, 8, 8, 1) float32 in [0, 255], and (1797,) int64."""
    x, y = load_digits(return_X_y=True)
    return (x * 15).astype(np.float32).reshape(-1, 8, 8, 1), y.astype(np.int64)


def batches(count: int, size: int) -> list[list[np.ndarray]]:
    """Return ``count`` batches of digits."""
    x, y = digit_images()
    return [[x[n * size : (n + 1) * size], y[n * size : (n + 1) * size]] for n in range(count)]
