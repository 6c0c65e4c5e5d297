"""Job configuration: the versioned ``spec.json`` of a job, its fields, its errors, its upgrades."""

from ziggurat.specs.dataset import DatasetSpec
from ziggurat.specs.describe import FieldDescription, assign, describe_fields
from ziggurat.specs.embedding import EmbedSpec
from ziggurat.specs.evaluation import EvaluateSpec, InferSpec
from ziggurat.specs.files import (
    RENAMED,
    SPEC_KINDS,
    UPGRADES,
    Spec,
    check_named_once,
    former_names,
    known_paths,
    load_spec,
    load_train_spec,
    parse_spec,
    present_names,
    present_path,
    read_content,
    save_spec,
    spec_json,
    upgrade,
)
from ziggurat.specs.flags import dataset_spec_from_flags, spec_from_flags
from ziggurat.specs.parts import FileNetwork, PluginUse, ZooNetwork
from ziggurat.specs.problems import comma_question
from ziggurat.specs.program import ProgramSpec
from ziggurat.specs.train import TrainSpec

__all__ = [
    "RENAMED",
    "SPEC_KINDS",
    "UPGRADES",
    "DatasetSpec",
    "EmbedSpec",
    "EvaluateSpec",
    "FieldDescription",
    "FileNetwork",
    "InferSpec",
    "PluginUse",
    "ProgramSpec",
    "Spec",
    "TrainSpec",
    "ZooNetwork",
    "assign",
    "check_named_once",
    "comma_question",
    "dataset_spec_from_flags",
    "describe_fields",
    "former_names",
    "known_paths",
    "load_spec",
    "load_train_spec",
    "parse_spec",
    "present_names",
    "present_path",
    "read_content",
    "save_spec",
    "spec_from_flags",
    "spec_json",
    "upgrade",
]
