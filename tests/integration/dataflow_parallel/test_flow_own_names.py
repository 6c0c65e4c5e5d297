"""A user's class has every name but Tensorpack's for itself: the pipeline iterates, resumes and runs in parallel."""

import itertools
import json

import numpy as np
import pytest
from parallel_samples import numbers, plain

from tests.nightly import some_nightly
from ziggurat.dataflow import BatchData, DataFlow, MapData, NumpySerializer, ProxyDataFlow, RNGDataFlow
from ziggurat.dataflow.parallel import MultiProcessMapData, PrefetchDataZMQ
from ziggurat.engine.feed import BatchCycle

pytestmark = pytest.mark.usefixtures("fork_server")

TENSORPACKS = {"reset_state", "get_data", "size", "rng", "ds"}
BASES = [DataFlow, RNGDataFlow, ProxyDataFlow]
NAMES = sorted(
    {name for base in BASES for name in dir(base) if not name.startswith(("__", "_ziggurat_"))} - TENSORPACKS
)


def yields_numbers(self):
    for number in range(12):
        yield [number, np.full(3, number)]


def other_method(self, one, two):
    raise AssertionError("Nothing of the package calls this.")


KINDS = {
    "number": 42,
    "flag": True,
    "list": ["a", "b"],
    "method": other_method,
    "property": property(other_method),
}


def with_own(name, kind, base=RNGDataFlow):
    """Return a user's flow that has ``name``, or each of several names, for itself."""
    own = {"__init__": lambda self: None, "__iter__": yields_numbers, "__len__": lambda self: 12}
    if base is ProxyDataFlow:
        own["ds"] = numbers(5)
    theirs = dict.fromkeys([name] if isinstance(name, str) else name, KINDS[kind])
    flow = type("Theirs", (base,), {**own, **theirs} if kind in ("method", "property") else own)()
    if kind not in ("method", "property"):
        vars(flow).update(theirs)
    return flow


def scaled(dp, rng):
    return [dp[0], dp[1] * rng.randint(1000)]


def in_series(flow):
    return BatchData(MapData(flow, scaled), 3)


def mapped_in_parallel(flow, workers):
    return BatchData(MultiProcessMapData(flow, workers, scaled), 3)


def run_in_parallel(flow, workers):
    return PrefetchDataZMQ(in_series(flow), workers)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_free_in_series(name, kind):
    expected = plain(in_series(with_own("own", "number")).seed(4))
    assert len(expected) == 4
    for base in BASES:
        flow = in_series(with_own(name, kind, base)).seed(4)
        assert plain(flow) == expected
        assert len(plain(flow)) == 4
        assert [row.stage for row in flow.stats()][:3] == ["BatchData", "MapData", "Theirs"]
        assert flow.error_counts() == []
        stopped, again = in_series(with_own(name, kind, base)).seed(4), in_series(with_own(name, kind, base))
        first = plain(itertools.islice(iter(stopped), 1))
        again.load_state(json.loads(json.dumps(stopped.state())))
        assert first + plain(again) == expected


@pytest.mark.parametrize("name", [pytest.param(NAMES, id="all"), *some_nightly(NAMES)])
@pytest.mark.parametrize("build", [mapped_in_parallel, run_in_parallel])
def test_a_name_is_free_in_parallel(name, build):
    expected = plain(build(with_own("own", "number"), 0).seed(4))
    for kind in ("number", "method"):
        with build(with_own(name, kind), 2).seed(4) as flow:
            items = iter(flow)
            first = plain(itertools.islice(items, 1))
            state = json.loads(json.dumps(flow.state()))
            assert first + plain(items) == expected
            flow.load_state(state)
            assert first + plain(flow) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_free_in_what_a_trainer_reads(name):
    def cycle():
        return BatchCycle(with_own(name, "number", DataFlow))

    whole, stopped, again = cycle(), cycle(), cycle()
    taken = [dp[0] for dp in itertools.islice(whole, 30)]
    assert taken == [*range(12), *range(12), *range(6)]
    first = [dp[0] for dp in itertools.islice(stopped, 17)]
    again.load_state(json.loads(json.dumps(stopped.state())))
    assert first + [dp[0] for dp in itertools.islice(again, 13)] == taken
    for each in (whole, stopped, again):
        each.close()


def test_a_subclass_of_a_stage_has_its_names():
    class Prepared(MapData):
        def __init__(self, ds):
            super().__init__(ds, self.prepare)
            self.children = ["a list of mine"]
            self.seed = 42
            self.stream = None

        def prepare(self, dp):
            return [dp[0] * 10, dp[1]]

    with PrefetchDataZMQ(BatchData(Prepared(with_own("seed", "number")), 3), 2) as flow:
        assert [batch[0].tolist() for batch in flow] == [[0, 10, 20], [30, 40, 50], [60, 70, 80], [90, 100, 110]]


def test_a_flow_with_a_seed_of_its_own_is_saved(tmp_path):
    class Drawn(DataFlow):
        def __init__(self, seed=42):
            self.seed = seed
            self.cache = []

        def reset_state(self):
            draws = np.random.RandomState(self.seed)
            self.cache = [[number, draws.rand(4)] for number in range(8)]

        def __iter__(self):
            yield from self.cache

        def __len__(self):
            return 8

    flow, path = Drawn(), str(tmp_path / "drawn.npz")
    NumpySerializer.save(flow, path)
    assert plain(NumpySerializer.load(path, shuffle=False)) == plain(flow)
    assert flow.seed == 42
