"""Layers on raw operations, with Tensorpack's names, defaults and variables."""

from ziggurat.tf.models.activations import ConcatWith, Maxout, PReLU
from ziggurat.tf.models.batch_norm import BatchNorm, BNReLU
from ziggurat.tf.models.convolution import Conv2D, Conv2DTranspose, Deconv2D
from ziggurat.tf.models.dropout import Dropout
from ziggurat.tf.models.fully_connected import FullyConnected
from ziggurat.tf.models.normalization import InstanceNorm, LayerNorm
from ziggurat.tf.models.pooling import AvgPooling, FixedUnPooling, GlobalAvgPooling, MaxPooling
from ziggurat.tf.models.registry import VariableHolder, layer_register
from ziggurat.tf.models.regularize import (
    l1_regularizer,
    l2_regularizer,
    regularize_cost,
    regularize_cost_from_collection,
)

__all__ = [
    "AvgPooling",
    "BNReLU",
    "BatchNorm",
    "ConcatWith",
    "Conv2D",
    "Conv2DTranspose",
    "Deconv2D",
    "Dropout",
    "FixedUnPooling",
    "FullyConnected",
    "GlobalAvgPooling",
    "InstanceNorm",
    "LayerNorm",
    "MaxPooling",
    "Maxout",
    "PReLU",
    "VariableHolder",
    "l1_regularizer",
    "l2_regularizer",
    "layer_register",
    "regularize_cost",
    "regularize_cost_from_collection",
]
