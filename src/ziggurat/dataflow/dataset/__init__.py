"""Owns the readers of well-known data sets, from a folder that is given; nothing is fetched unless it is asked for."""

from ziggurat.dataflow.dataset.cifar import Cifar10, Cifar100
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.dataset.files import set_data_folder
from ziggurat.dataflow.dataset.ilsvrc import ILSVRC12, ILSVRC12Files
from ziggurat.dataflow.dataset.ilsvrc_meta import ILSVRCMeta
from ziggurat.dataflow.dataset.mnist import FashionMnist, Mnist
from ziggurat.dataflow.dataset.svhn import SVHNDigit

__all__ = [
    "ILSVRC12",
    "Cifar10",
    "Cifar100",
    "FashionMnist",
    "ILSVRC12Files",
    "ILSVRCMeta",
    "Mnist",
    "SVHNDigit",
    "SklearnDigits",
    "set_data_folder",
]
