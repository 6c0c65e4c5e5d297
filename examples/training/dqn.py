"""Train a deep Q network (Mnih et al., 2015) on a small game: simulators in processes of their own fill a queue.

A ball falls through a field of 8 x 8 cells, and a paddle below must catch it. A random player catches about a quarter.
"""

from __future__ import annotations

import argparse
import threading
from collections import deque

import numpy as np

from ziggurat.dataflow import DataFlow, MultiProcessRunner
from ziggurat.tf import (
    Callback,
    Conv2D,
    LinearWrap,
    ModelDesc,
    ModelSaver,
    QueueInput,
    ScheduledHyperParamSetter,
    SimpleTrainer,
    TrainConfig,
    add_moving_summary,
    argscope,
    auto_reuse_variable_scope,
    huber_loss,
    launch_train_with_config,
    logger,
    tf,
)

SIZE, ACTIONS, DISCOUNT, BATCH = 8, 3, 0.95, 64


class Catch:
    """The game. An episode ends when the ball is down: reward 1 where it was caught, else -1."""

    def __init__(self, seed=None):
        self.random = np.random.RandomState(seed)
        self.reset()

    def reset(self):
        """Begin an episode; return the field (SIZE, SIZE) float32."""
        self.row, self.column = 0, int(self.random.randint(SIZE))
        self.paddle = int(self.random.randint(SIZE))
        return self.field()

    def field(self):
        """Return what a player sees."""
        field = np.zeros((SIZE, SIZE), np.float32)
        field[self.row, self.column] = 1
        field[SIZE - 1, self.paddle] = -1
        return field

    def step(self, action):
        """Move the paddle by -1, 0 or 1; return field, reward and whether the episode has ended."""
        self.paddle = int(np.clip(self.paddle + action - 1, 0, SIZE - 1))
        self.row += 1
        is_over = self.row == SIZE - 1
        reward = (1.0 if self.paddle == self.column else -1.0) if is_over else 0.0
        return self.field(), np.float32(reward), is_over


class RandomPlay(DataFlow):
    """Endless experiences [field, action, reward, next field, is over] of a player that explores at random."""

    def __init__(self, seed):
        self.game_seed = seed

    def __iter__(self):
        game = Catch(self.game_seed)
        before = game.field()
        while True:
            action = int(game.random.randint(ACTIONS))
            field, reward, is_over = game.step(action)
            yield [before, np.int32(action), reward, field, np.float32(is_over)]
            before = game.reset() if is_over else field


class Replay(DataFlow):
    """Batches drawn from the newest experiences: those of the simulators, and those of the network's own play."""

    def __init__(self, simulators, memory=20_000):
        self.simulators = simulators
        self.memory = deque(maxlen=memory)
        self.lock = threading.Lock()

    def add(self, experience):
        """Remember an experience; the thread that plays calls it."""
        with self.lock:
            self.memory.append(experience)

    def __iter__(self):
        source = iter(self.simulators)
        while True:
            for _ in range(BATCH // 8 if len(self.memory) >= 1000 else 1000):
                self.add(next(source))
            with self.lock:
                places = self.rng_of().randint(len(self.memory), size=BATCH)
                chosen = [self.memory[place] for place in places]
            yield [np.stack(column) for column in zip(*chosen, strict=True)]

    def rng_of(self):
        """Return the generator of the draws."""
        if not hasattr(self, "_random"):
            self._random = np.random.RandomState(0)
        return self._random


class Model(ModelDesc):
    def inputs(self):
        field = (None, SIZE, SIZE)
        return [
            tf.TensorSpec(field, tf.float32, "field"),
            tf.TensorSpec((None,), tf.int32, "action"),
            tf.TensorSpec((None,), tf.float32, "reward"),
            tf.TensorSpec(field, tf.float32, "next_field"),
            tf.TensorSpec((None,), tf.float32, "is_over"),
        ]

    @auto_reuse_variable_scope
    def values(self, field):
        """Return the value of each action: (N, ACTIONS)."""
        with argscope(Conv2D, kernel_size=3, activation=tf.nn.relu):
            return (
                LinearWrap(tf.expand_dims(field, 3))
                .Conv2D("conv0", 16)
                .Conv2D("conv1", 16, strides=2)
                .FullyConnected("fc0", 64, activation=tf.nn.relu)
                .FullyConnected("values", ACTIONS)()
            )

    def build_graph(self, field, action, reward, next_field, is_over):
        values = tf.identity(self.values(field), name="action_values")
        with tf.variable_scope("target"):
            following = tf.stop_gradient(tf.reduce_max(self.values(next_field), 1))
        target = reward + (1 - is_over) * DISCOUNT * following
        chosen = tf.reduce_sum(values * tf.one_hot(action, ACTIONS), 1)
        cost = tf.reduce_mean(huber_loss(target - chosen), name="cost")
        add_moving_summary(cost, tf.reduce_mean(tf.reduce_max(values, 1), name="value"))
        return cost

    def optimizer(self):
        rate = tf.get_variable("learning_rate", initializer=1e-3, trainable=False)
        return tf.train.AdamOptimizer(rate)


class CopyToTarget(Callback):
    """Gives the target network the weights of the network that is trained, every so many steps."""

    def __init__(self, every):
        self.every = every

    def _setup_graph(self):
        with self.graph.as_default():
            by_name = {each.op.name: each for each in tf.global_variables()}
            pairs = [(by_name[name], each) for name, each in by_name.items() if f"target/{name}" in by_name]
            self.copy = tf.group(*(by_name[f"target/{each.op.name}"].assign(each) for each, _ in pairs))

    def _before_train(self):
        self.trainer.sess.run(self.copy)

    def _trigger_step(self):
        if self.global_step % self.every == 0:
            self.trainer.sess.run(self.copy)


class Play(Callback):
    """Plays with the network after each epoch, puts the share of caught balls, and remembers what happened."""

    def __init__(self, replay, episodes=100):
        self.replay, self.episodes = replay, episodes

    def _setup_graph(self):
        self.predict = self.trainer.get_predictor(["field"], ["action_values"])

    def _trigger_epoch(self):
        caught, game = 0, Catch(self.epoch_num)
        for _ in range(self.episodes):
            field, is_over = game.reset(), False
            while not is_over:
                action = int(np.argmax(self.predict(field[None])[0][0]))
                following, reward, is_over = game.step(action)
                self.replay.add([field, np.int32(action), reward, following, np.float32(is_over)])
                field = following
            caught += reward > 0
        self.trainer.monitors.put_scalar("caught", caught / self.episodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200, help="steps in an epoch")
    parser.add_argument("--simulators", type=int, default=2, help="processes that play")
    parser.add_argument("--out", default="train_log/dqn")
    options = parser.parse_args()
    logger.set_logger_dir(options.out)
    replay = Replay(MultiProcessRunner(RandomPlay(seed=None), 200, options.simulators))
    config = TrainConfig(
        model=Model(),
        data=QueueInput(replay),
        callbacks=[
            ModelSaver(),
            CopyToTarget(every=100),
            Play(replay),
            ScheduledHyperParamSetter("learning_rate", [(options.epochs * 2 // 3, 2e-4)]),
        ],
        steps_per_epoch=options.steps,
        max_epoch=options.epochs,
    )
    launch_train_with_config(config, SimpleTrainer())


if __name__ == "__main__":
    main()
