"""Glossary words: what public names must not use, the replacements, and the allowed exceptions."""

from __future__ import annotations

__all__ = ["ALLOWED", "CLASS_WORDS", "NEEDS_UNIT", "OTHERS", "PROSE", "WORDS"]

WORDS = {
    # one thing, one word
    "snapshot": "checkpoint",
    "snapshots": "checkpoints",
    "ckpt": "checkpoint",
    "iteration": "step",
    "iterations": "steps",
    "iter": "step",
    "iters": "steps",
    "minibatch": "batch",
    "mini_batch": "batch",
    "example": "sample",
    "examples": "samples",
    "directory": "folder",
    "dir": "folder",
    "db": "store",
    # whole words
    "hparam": "hyperparameter",
    "hparams": "hyperparameters",
    "hyper_param": "hyperparameter",
    "hyper_params": "hyperparameters",
    "lr": "learning_rate",
    "img": "image",
    "imgs": "images",
    "idx": "index",
    "idxs": "indices",
    "cfg": "config",
    "conf": "config",
    "ctx": "context",
    "cnt": "a plural (`workers`), which is a count",
    "num": "a plural (`workers`), which is a count",
    "nr": "a plural (`workers`), which is a count",
    "proc": "process or worker",
    "procs": "processes or workers",
    "msg": "message",
    "opt": "option or optimizer",
    "opts": "options",
    "fn": "function",
    "buf": "buffer",
    "tmp": "temporary",
    "sz": "size",
    # a unit has one spelling
    "secs": "`_s`",
    "seconds": "`_s`",
    "sec": "`_s`",
    "millis": "`_ms`",
    "msec": "`_ms`",
    "nbytes": "`_bytes`",
    "mb": "`_bytes`",
}
"""Wrong word → right word. A wrong word may have several parts."""

CLASS_WORDS = {"hook": "Callback (its methods are the hooks)", "hooks": "Callback (its methods are the hooks)"}
"""The same, for names of classes only."""

NEEDS_UNIT = {"timeout", "duration", "elapsed", "delay", "latency"}
"""Last words of arguments and fields that would leave the reader guessing between seconds and milliseconds."""

_TENSORPACK = """
    bbox_dir data_dir dir dir_structure epoch_num get_num_towers guess_dir_structure HookToCallback
    HumanHyperParamSetter HyperParamSetter HyperParamSetterWithFunc idx idxs img img_index index_img label_idx
    logger_dir max_iter meta_dir nr_eval nr_gpu nr_prefetch nr_proc nr_thread nr_tower num num_classes
    num_output num_prefetch num_proc num_reuse num_thread num_towers sample_idx ScheduledHyperParamSetter
    StatMonitorParamSetter
    auto_set_dir checkpoint_dir get_cost_fn get_logger_dir get_opt_fn get_tensor_fn nr_stage num_unit opt
    set_logger_dir StartProcOrThread tower_fn
"""

OTHERS = ("ziggurat.compat.tensorpack", "ziggurat.compat.tf1.estimator", "ziggurat.compat.tf1.kmeans")
"""Packages that speak another library's language: programs written for it look its names up there."""

ALLOWED = {
    **dict.fromkeys(_TENSORPACK.split(), "Tensorpack's users and the tutorial know it under this name"),
    "HyperParam": "Tensorpack's users know it under this name",
    "fn": "Tensorpack's name of the argument of ProcessTensors",
    "ctx": "click's name in the methods of it that we override",
    "read_idx": "the name of MNIST's file format, IDX",
    "export_idx": "the name of MNIST's file format, IDX",
    "lr": "the name of the argument in every optimizer of PyTorch",
    "num_examples": "the name that the readers of TensorFlow's tutorials give it",
    "train_dir": "the name that the readers of TensorFlow's tutorials give it",
    "tmp_path": "pytest's name for a test's folder, in the shipped conformance suites",
}
"""Name → why it may stay. An entry allows the whole name, never a word."""

_ISE = "normal initial serial optim summar synchron general organ visual custom final minim maxim recogn"

PROSE = {
    "data sets?": "dataset",
    "pictures?": "image",
    r"behaviours?|colour\w*|grey|neighbours?|catalogues?|centres?|licences?": "the American spelling",
    rf"(?:{_ISE.replace(' ', '|')})is(?:e|es|ed|ing|ation)": "the American spelling (-ize)",
    "owns": "a noun phrase that says what the module contains",
    "take away|taken away": "export",
    "tick jobs": "select jobs",
    "processors only": "CPU only",
    "surest": "highest confidence",
    "what became of": "outcome",
    "course of the learning rate": "learning-rate schedule",
    "who did what": "audit log",
}
"""Pattern of wrong words in comments, docstrings, texts of pages and documentation → what is written instead."""
