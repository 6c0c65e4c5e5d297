"""Programs in all of Tensorpack's ages run unchanged: they train, validate, save and load again."""

import textwrap
from dataclasses import dataclass

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tensorpack.run_tensorpack import run_tensorpack


@dataclass
class Ran:
    """What a program left: its exit code and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path, capfd, monkeypatch):
    """Run a program in this process, in a graph of its own and in an empty folder."""

    def call(text: str, *arguments: str, name: str = "program") -> Ran:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), "utf-8")
        monkeypatch.chdir(tmp_path)
        capfd.readouterr()
        with tf.Graph().as_default():
            code = run_tensorpack(str(tmp_path / f"{name}.py"), arguments)
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


NEWER = """\
    import sys
    import numpy as np
    from tensorpack import *
    from tensorpack import tfv1 as tf
    from tensorpack.tfutils import summary
    from tensorpack.tfutils.summary import add_moving_summary

    class Points(RNGDataFlow):
        def __len__(self):
            return 32

        def __iter__(self):
            for _ in range(32):
                x = self.rng.uniform(-1, 1, 2).astype('float32')
                yield [x, int(x.sum() > 0)]

    class Model(ModelDesc):
        def inputs(self):
            return [tf.TensorSpec([None, 2], tf.float32, 'x'), tf.TensorSpec([None], tf.int32, 'y')]

        def build_graph(self, x, y):
            with argscope(FullyConnected, activation=tf.nn.relu):
                h = FullyConnected('hidden', x, 8)
            logits = FullyConnected('logits', h, 2)
            cost = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y), name='cost')
            wrong = tf.reduce_mean(1 - tf.cast(tf.nn.in_top_k(logits, y, 1), tf.float32), name='wrong')
            add_moving_summary(cost, wrong)
            summary.add_param_summary(('.*/W', ['rms']))
            decay = regularize_cost('.*/W', l2_regularizer(1e-4), name='decay')
            return tf.add_n([cost, decay], name='total')

        def optimizer(self):
            lr = tf.get_variable('learning_rate', initializer=0.1, trainable=False)
            return tf.train.MomentumOptimizer(lr, 0.9)

    if __name__ == '__main__':
        logger.set_logger_dir('log', action='d')
        launch_train_with_config(TrainConfig(
            model=Model(), data=QueueInput(BatchData(Points(), 8)), steps_per_epoch=10, max_epoch=3,
            session_init=SmartInit(sys.argv[1]) if len(sys.argv) > 1 else None,
            callbacks=[
                ModelSaver(),
                InferenceRunner(BatchData(Points(), 5, remainder=True), ScalarStats(['cost', 'wrong'])),
                MinSaver('validation_wrong'),
                ScheduledHyperParamSetter('learning_rate', [(1, 0.1), (3, 0.01)]),
            ]), SimpleTrainer())
        pred = OfflinePredictor(PredictConfig(
            model=Model(), session_init=SmartInit('log/checkpoint'), input_names=['x'], output_names=['logits/output']))
        print('predicted', pred(np.zeros((3, 2), 'float32'))[0].shape)
"""


def test_a_program_of_0_11_trains_validates_saves_and_loads(run, tmp_path) -> None:
    ran = run(NEWER)
    assert ran.code == 0, ran.err[-3000:]
    assert "predicted (3, 2)" in ran.out
    assert (tmp_path / "log" / "model-30.index").is_file()
    assert "validation_wrong" in ran.out
    (tmp_path / "log").rename(tmp_path / "first")
    again = run(NEWER, str(tmp_path / "first" / "model-30"))
    assert again.code == 0, again.err[-3000:]


OLDER = """\
    import argparse
    import numpy as np
    import tensorflow as tf
    from tensorpack.dataflow.base import DataFlow
    from tensorpack.dataflow.common import BatchData, MapDataComponent
    from tensorpack.models import *
    from tensorpack.callbacks import *
    from tensorpack.train import *
    from tensorpack.graph_builder import InputDesc, ModelDesc
    from tensorpack.tfutils import get_current_tower_context
    from tensorpack.tfutils.sessinit import get_model_loader
    from tensorpack.tfutils.summary import add_moving_summary
    import tensorpack.tfutils.symbolic_functions as symbf
    from tensorpack.utils import logger
    from tensorpack.utils.gpu import get_nr_gpu

    class Squares(DataFlow):
        def get_data(self):
            rng = np.random.RandomState(1)
            for _ in range(24):
                yield [rng.rand(6, 6, 1), rng.randint(3)]

        def size(self):
            return 24

    class Model(ModelDesc):
        def _get_inputs(self):
            return [InputDesc(tf.float32, (None, 6, 6, 1), 'image'), InputDesc(tf.int32, (None,), 'label')]

        def _build_graph(self, inputs):
            image, label = inputs
            is_training = get_current_tower_context().is_training
            logits = (LinearWrap(image)
                      .Conv2D('conv0', out_channel=4, kernel_shape=3, nl=BNReLU)
                      .MaxPooling('pool0', shape=2)
                      .FullyConnected('fc0', out_dim=8, nl=tf.nn.relu)
                      .Dropout('drop', 0.5)
                      .FullyConnected('fc1', out_dim=3, nl=tf.identity)())
            wrong = symbf.prediction_incorrect(logits, label, name='wrong_vector')
            add_moving_summary(tf.reduce_mean(wrong, name='train_error'))
            cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
            self.cost = tf.reduce_mean(cost, name='cost')

        def _get_optimizer(self):
            lr = tf.train.exponential_decay(
                learning_rate=1e-2, global_step=tf.train.get_or_create_global_step(), decay_steps=10, decay_rate=0.9,
                name='learning_rate')
            return tf.train.AdamOptimizer(lr)

    if __name__ == '__main__':
        parser = argparse.ArgumentParser()
        parser.add_argument('--load')
        args = parser.parse_args()
        logger.auto_set_dir('d')
        data = BatchData(MapDataComponent(Squares(), lambda x: x * 2 - 1), 4, use_list=False)
        config = TrainConfig(
            model=Model(), dataflow=data, steps_per_epoch=6, max_epoch=2, nr_tower=max(get_nr_gpu(), 1),
            session_init=get_model_loader(args.load) if args.load else None,
            callbacks=[ModelSaver(), InferenceRunner(
                BatchData(Squares(), 5, remainder=True), [ScalarStats('cost'), ClassificationError('wrong_vector')])])
        TRAINER(config).train()
"""


@pytest.mark.parametrize("trainer", ["SimpleTrainer", "QueueInputTrainer", "SyncMultiGPUTrainer"])
def test_a_program_of_0_8_trains_by_its_trainer_with_config(run, tmp_path, trainer) -> None:
    ran = run(OLDER.replace("TRAINER", trainer))
    assert ran.code == 0, ran.err[-3000:]
    assert "validation_cost" in ran.out
    saved = tmp_path / "train_log" / "program" / "model-12"
    assert saved.with_suffix(".index").is_file()
    (tmp_path / "train_log").rename(tmp_path / "first")
    again = run(OLDER.replace("TRAINER", trainer), "--load", str(tmp_path / "first" / "program" / "model-12"))
    assert again.code == 0, again.err[-3000:]


def test_no_gpu_of_get_nr_gpu_is_one_tower_on_the_cpu(run, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    ran = run(OLDER.replace("TRAINER", "SyncMultiGPUTrainer").replace("max(get_nr_gpu(), 1)", "0"))
    assert ran.code == 0, ran.err[-3000:]


TWO_COSTS = """\
    import numpy as np
    import tensorflow as tf
    from tensorpack import *
    from tensorpack.tfutils.summary import add_moving_summary
    from tensorpack.tfutils.tower import TowerContext, TowerFuncWrapper
    from tensorpack.utils.argtools import memoized

    class Pair(ModelDescBase):
        def _get_inputs(self):
            return [InputDesc(tf.float32, (None, 2), 'real')]

        def _build_graph(self, inputs):
            z = tf.random_uniform([4, 3], name='z')
            with tf.variable_scope('gen'):
                fake = FullyConnected('fc', z, 2, nl=tf.identity)
            with tf.variable_scope('discrim'):
                a = FullyConnected('fc', inputs[0], 1, nl=tf.identity)
            with tf.variable_scope('discrim', reuse=True):
                b = FullyConnected('fc', fake, 1, nl=tf.identity)
            self.d_loss = tf.reduce_mean(tf.nn.softplus(-a) + tf.nn.softplus(b), name='d_loss')
            self.g_loss = tf.reduce_mean(tf.nn.softplus(-b), name='g_loss')
            self.g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, 'gen')
            self.d_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, 'discrim')
            add_moving_summary(self.d_loss, self.g_loss)

        @memoized
        def get_optimizer(self):
            return tf.train.AdamOptimizer(1e-3)

    class Alternating(TowerTrainer):
        def __init__(self, input, model):
            super(Alternating, self).__init__()
            specs = model.get_inputs_desc()
            self.register_callback(input.setup(specs))
            self.tower_func = TowerFuncWrapper(model.build_graph, specs)
            with TowerContext('', is_training=True):
                self.tower_func(*input.get_input_tensors())
            opt = model.get_optimizer()
            self.d_min = opt.minimize(model.d_loss, var_list=model.d_vars, name='d_min')
            self.g_min = opt.minimize(model.g_loss, var_list=model.g_vars, name='g_min')

        def run_step(self):
            if self.global_step % 2 == 0:
                self.hooked_sess.run(self.d_min)
            else:
                self.hooked_sess.run(self.g_min)
            self.hooked_sess.run(self.g_min)

    class Sampled(Callback):
        def _setup_graph(self):
            self.predict = self.trainer.get_predictor(['real'], ['gen/fc/output'])

        def _trigger_epoch(self):
            print('sampled', self.predict(np.zeros((1, 2), 'float32'))[0].shape)

    logger.auto_set_dir()
    ds = BatchData(FakeData([[2]], 64, random=True), 4)
    Alternating(QueueInput(ds), Pair()).train_with_defaults(
        callbacks=[ModelSaver(), Sampled()], steps_per_epoch=8, max_epoch=2)
"""


def test_a_trainer_with_two_costs_finds_its_input_by_itself(run, tmp_path) -> None:
    ran = run(TWO_COSTS)
    assert ran.code == 0, ran.err[-3000:]
    assert ran.out.count("sampled (4, 2)") == 2
    assert "d_loss" in ran.out


def test_the_summary_tells_what_is_different(run) -> None:
    ran = run("""\
        from tensorpack.dataflow import LMDBSerializer, BatchData
        from tensorpack import BytePSTrainer
    """)
    assert ran.code == 0
    assert "3 names of Tensorpack with a difference" in ran.err
    assert "LMDBSerializer: Pickled values are read" in ran.err


def test_an_error_of_data_ends_the_program_with_it(run) -> None:
    broken = NEWER.replace("yield [x, int(x.sum() > 0)]", "yield [x, {}['missing']]")
    ran = run(broken)
    assert ran.code == 1
    assert "missing" in ran.err


WITH_WORKERS = """\
    import numpy as np
    from tensorpack.dataflow import PrefetchDataZMQ
    from own_flow import Doubled, Numbers

    if __name__ == '__main__':
        ds = PrefetchDataZMQ(Doubled(Numbers()), nr_proc=1)
        ds.reset_state()
        print('got', sorted(int(dp[0]) for dp in ds))
"""

OWN_FLOW = """\
from tensorpack import ProxyDataFlow, DataFlow
from tensorpack.utils import logger

class Numbers(DataFlow):
    def __iter__(self):
        for k in range(4):
            yield [k]

    def __len__(self):
        return 4

class Doubled(ProxyDataFlow):
    def get_data(self):
        for dp in self.ds.get_data():
            yield [dp[0] * 2]
"""


def test_workers_find_tensorpack_in_modules_of_the_program(run, tmp_path) -> None:
    (tmp_path / "own_flow.py").write_text(OWN_FLOW, "utf-8")
    ran = run(WITH_WORKERS)
    assert ran.code == 0, ran.err[-3000:]
    assert "got [0, 2, 4, 6]" in ran.out


def test_a_name_that_is_none_is_told_with_the_nearest(run) -> None:
    ran = run("from tensorpack import Trainconfig\n")
    assert ran.code == 1
    assert "ImportError: `Trainconfig` is not a known name of tensorpack. Did you mean `TrainConfig`" in ran.err
    assert run("from tensorpack.dataflow import *\nfrom tensorpack import dataflow\nBatchData\n").code == 0


def test_workers_find_the_names_that_numpy_had(run) -> None:
    text = """\
        import numpy as np
        from tensorpack.dataflow import *

        if __name__ == '__main__':
            ds = MultiProcessMapDataZMQ(DataFromList([[1], [2]]), 1, lambda dp: [np.asarray(dp[0], dtype=np.float)])
            ds.reset_state()
            print(sorted(float(dp[0]) for dp in ds))
    """
    ran = run(text)
    assert ran.code == 0, ran.err
    assert ran.out == "[1.0, 2.0]\n"
