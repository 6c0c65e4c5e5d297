"""Train a character-level language model on a text file, and write text with it.

``python char_rnn.py --text FILE`` trains; ``--sample 300 --load train_log/char_rnn`` writes.
"""

from __future__ import annotations

import argparse
import codecs
import this  # the text that is taken where none is given; it prints itself
from pathlib import Path

import numpy as np

from ziggurat.dataflow import BatchData, RNGDataFlow
from ziggurat.tf import (
    AutoResumeTrainConfig,
    FullyConnected,
    GlobalNormClip,
    ModelDesc,
    ModelSaver,
    OfflinePredictor,
    PredictConfig,
    SaverRestore,
    ScheduledHyperParamSetter,
    SimpleTrainer,
    add_moving_summary,
    apply_grad_processors,
    auto_reuse_variable_scope,
    launch_train_with_config,
    logger,
    tf,
)

LENGTH, UNITS = 32, 128


class Text(RNGDataFlow):
    """[characters: (LENGTH,) int32, next characters: (LENGTH,) int32] from random places of a text."""

    def __init__(self, text, known, count):
        self.numbers = np.array([known.index(each) for each in text], np.int32)
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            start = self.rng.randint(len(self.numbers) - LENGTH - 1)
            part = self.numbers[start : start + LENGTH + 1]
            yield [part[:-1], part[1:]]


class Model(ModelDesc):
    def __init__(self, known):
        self.known = known

    def inputs(self):
        return [tf.TensorSpec((None, LENGTH), tf.int32, "text"), tf.TensorSpec((None, LENGTH), tf.int32, "next")]

    @auto_reuse_variable_scope
    def cell(self, x, state):
        """Return output and state of one step of an LSTM (Hochreiter and Schmidhuber, 1997)."""
        hidden, memory = state
        gates = FullyConnected("gates", tf.concat([x, hidden], 1), 4 * UNITS)
        keep, write, read, new = tf.split(gates, 4, axis=1)
        memory = tf.sigmoid(keep + 1) * memory + tf.sigmoid(write) * tf.tanh(new)
        hidden = tf.sigmoid(read) * tf.tanh(memory)
        return hidden, (hidden, memory)

    def build_graph(self, text, following):
        table = tf.get_variable("embedding", [len(self.known), 32])
        steps = tf.unstack(tf.nn.embedding_lookup(table, text), LENGTH, axis=1)
        zero = tf.zeros([tf.shape(text)[0], UNITS])
        state, outputs = (zero, zero), []
        for step in steps:
            output, state = self.cell(step, state)
            outputs.append(output)
        logits = FullyConnected("logits", tf.reshape(tf.stack(outputs, 1), [-1, UNITS]), len(self.known))
        tf.nn.softmax(tf.reshape(logits, [-1, LENGTH, len(self.known)])[:, -1], name="probabilities")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(following, [-1]), logits=logits)
        cost = tf.reduce_mean(losses, name="cost")
        add_moving_summary(cost, tf.exp(cost, name="perplexity"))
        return cost

    def optimizer(self):
        rate = tf.get_variable("learning_rate", initializer=4e-3, trainable=False)
        return apply_grad_processors(tf.train.AdamOptimizer(rate), [GlobalNormClip(5)])


def sample(model, checkpoint, start, count):
    """Return a text that begins with ``start`` and goes on for ``count`` characters."""
    predict = OfflinePredictor(
        PredictConfig(
            model=model,
            session_init=SaverRestore(checkpoint),
            input_names=["text"],
            output_names=["probabilities"],
        )
    )
    random, text = np.random.RandomState(0), start.rjust(LENGTH)
    for _ in range(count):
        numbers = [[max(0, model.known.find(each)) for each in text[-LENGTH:]]]
        shares = predict(np.array(numbers, np.int32))[0][0].astype(float)
        text += model.known[random.choice(len(shares), p=shares / shares.sum())]
    return text.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a text file; the Zen of Python where it is left out")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=50, help="steps in an epoch")
    parser.add_argument("--out", default="train_log/char_rnn")
    parser.add_argument("--sample", type=int, metavar="N", help="write N characters instead of training")
    parser.add_argument("--start", default="Beautiful", help="how the text that is written begins")
    options = parser.parse_args()
    text = options.text.read_text() if options.text else codecs.decode(this.s, "rot13") * 4
    model = Model("".join(sorted(set(text))))
    if options.sample:
        print(sample(model, options.out, options.start, options.sample))
        return
    logger.set_logger_dir(options.out)
    batch = 32
    config = AutoResumeTrainConfig(
        model=model,
        dataflow=BatchData(Text(text, model.known, batch * options.steps), batch).seed(1),
        callbacks=[ModelSaver(), ScheduledHyperParamSetter("learning_rate", [(options.epochs // 2, 1e-3)])],
        max_epoch=options.epochs,
    )
    launch_train_with_config(config, SimpleTrainer())


if __name__ == "__main__":
    main()
