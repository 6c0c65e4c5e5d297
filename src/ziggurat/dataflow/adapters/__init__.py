"""Conversions from and to other libraries' datasets; each function imports its library when it is called."""

from ziggurat.dataflow.adapters.huggingface import from_huggingface, to_huggingface
from ziggurat.dataflow.adapters.tf_data import dataflow_to_dataset, from_tf_dataset, to_tf_dataset
from ziggurat.dataflow.adapters.torch_data import from_torch, to_torch

__all__ = [
    "dataflow_to_dataset",
    "from_huggingface",
    "from_tf_dataset",
    "from_torch",
    "to_huggingface",
    "to_tf_dataset",
    "to_torch",
]
