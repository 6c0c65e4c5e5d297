"""Trainings of networks of Caffe: update rule, fillers, batch normalization, several losses, and old weights."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.caffe_files import (
    LENET,
    LENET_SOLVER,
    blob,
    caffemodel,
    conv,
    detectnet,
    googlenet_with_losses,
    layer,
    siamese,
    with_input,
)
from ziggurat.backends.torch.network_file import load_network
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.importing import ImportOptions, convert, parity, write_folder
from ziggurat.compat.caffe.layers import read_network
from ziggurat.compat.caffe.running import run_network
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.compat.caffe.weights import random_arrays
from ziggurat.settings import load_settings
from ziggurat.specs import parse_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.workspace.weights import NewWeights
from ziggurat.workspace.workspace import open_folders

pytestmark = pytest.mark.torch

GRAY = LENET.replace("kernel_size: 5", "kernel_size: 3")
"""LeNet for the small digits, 8 x 8."""

RULES = "param { lr_mult: 10 } param { lr_mult: 20 decay_mult: 0 }"


def converted(folder, text, solver="", **options):
    (folder / "net.prototxt").write_text(text)
    (folder / "solver.prototxt").write_text(solver)
    files = ImportFiles(network=folder / "net.prototxt", solver=folder / "solver.prototxt" if solver else None)
    return convert(files, ImportOptions(**options))


def module(text, classes=None, shape=(3, 8, 8)) -> Any:
    torch.manual_seed(0)
    return load_network(text, "network.py")(classes, list(shape))


def test_rates_and_decays_are_those_of_caffe(tmp_path):
    text = with_input(
        (3, 8, 8),
        layer("c", "Convolution", "data", "num_output: 2 kernel_size: 3", more=RULES),
        layer("f", "InnerProduct", "c", "num_output: 2", more="param { lr_mult: 0 } param { decay_mult: 2 }"),
    )  # fmt: skip
    net = module(converted(tmp_path, text, LENET_SOLVER).file.text)
    given = [(torch.full_like(weight, 0.5), weight) for weight in net.parameters() if weight.requires_grad]
    found = {id(weight): gradient for gradient, weight in net.gradientUpdate(given)}
    for name, rate, decay in (("c.weight", 10, 1), ("c.bias", 20, 0), ("f.bias", 1, 2)):
        weight = net.get_parameter(name)
        torch.testing.assert_close(found[id(weight)], rate * (0.5 + 0.0005 * decay * weight.detach()))
    assert not net.get_parameter("f.weight").requires_grad


def test_an_adaptive_solver_leaves_rates_out_and_says_so(tmp_path):
    found = converted(tmp_path, LENET, LENET_SOLVER + 'type: "Adam" momentum2: 0.999', shape=(1, 28, 28))
    assert "RATES = {}" in found.file.text
    assert any("`lr_mult` was left out" in note for note in found.notes)


@pytest.mark.parametrize(
    ("filler", "deviation", "largest"),
    [
        ('type: "xavier"', (1 / 450) ** 0.5, (3 / 450) ** 0.5),
        ('type: "xavier" variance_norm: FAN_OUT', (1 / 360) ** 0.5, (3 / 360) ** 0.5),
        ('type: "xavier" variance_norm: AVERAGE', (1 / 405) ** 0.5, (3 / 405) ** 0.5),
        ('type: "msra"', (2 / 450) ** 0.5, 1),
        ('type: "gaussian" std: 0.01', 0.01, 1),
        ('type: "uniform" min: -0.2 max: 0.2', 0.4 / 12**0.5, 0.2),
    ],
)
def test_fillers_have_the_spread_of_caffe(tmp_path, filler, deviation, largest):
    text = with_input((50, 8, 8), conv("c", "data", f"num_output: 40 kernel_size: 3 weight_filler {{ {filler} }}"))
    weight = module(converted(tmp_path, text).file.text, shape=(50, 8, 8)).c.weight.detach()
    assert float(weight.std()) == pytest.approx(deviation, rel=0.03)
    assert float(weight.abs().max()) <= largest


def test_a_bilinear_filler_interpolates(tmp_path):
    options = (
        'num_output: 2 group: 2 kernel_size: 4 stride: 2 pad: 1 bias_term: false weight_filler { type: "bilinear" }'
    )
    text = with_input((2, 4, 4), layer("up", "Deconvolution", "data", options))
    net = module(converted(tmp_path, text).file.text, shape=(2, 4, 4))
    assert net.up.weight[0, 0, 0].tolist() == [0.0625, 0.1875, 0.1875, 0.0625]
    ramp = torch.arange(4.0).expand(1, 2, 4, 4)
    assert net(ramp)[0, 0, 3, 1:7].tolist() == [0.25, 0.75, 1.25, 1.75, 2.25, 2.75]


def test_batch_normalization_keeps_the_sums_of_caffe(tmp_path):
    net = module(
        converted(
            tmp_path, with_input((2, 3, 3), layer("b", "BatchNorm", "data", "moving_average_fraction: 0.9"))
        ).file.text
    )
    sums, count = torch.zeros(2), 0.0
    for seed in range(4):
        x = torch.randn(5, 2, 3, 3, generator=torch.Generator().manual_seed(seed)) + seed
        net(x)
        sums, count = 0.9 * sums + x.mean((0, 2, 3)), 0.9 * count + 1
    torch.testing.assert_close(net.b.running_mean, sums / count)


def test_several_losses_have_their_weights(tmp_path):
    found = converted(tmp_path, googlenet_with_losses())
    net = module(found.file.text, shape=(3, 64, 64))
    x, y = torch.rand(4, 3, 64, 64) * 255, torch.tensor([0, 3, 9, 1])
    main, side = net.train()(x)
    expected = functional.cross_entropy(main, y) + 0.3 * functional.cross_entropy(side, y)
    torch.testing.assert_close(net.loss([main, side], y), expected)
    assert isinstance(net.eval()(x), torch.Tensor)
    torch.testing.assert_close(net.loss(main, y), functional.cross_entropy(main, y))
    assert found.fields["preprocessing"] == {"crop": 64, "channels": 3}
    assert found.fields["augmentation"] == {"flip": "fliplr"}


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("EuclideanLoss", "", lambda a, y: ((a - y) ** 2).sum() / 8),
        (
            "SigmoidCrossEntropyLoss",
            "",
            lambda a, y: functional.binary_cross_entropy_with_logits(a, y, reduction="sum") / 4,
        ),
        ("L1Loss", "", lambda a, y: (a - y).abs().sum() / 4),
        ("EuclideanLoss", "loss_weight: 0.5", lambda a, y: ((a - y) ** 2).sum() / 16),
    ],
)  # fmt: skip
def test_losses_are_those_of_caffe(tmp_path, kind, more, expected):
    text = 'layer { name: "d" type: "Data" top: "data" top: "label" }' + layer(
        "f", "InnerProduct", "data", "num_output: 3"
    )
    net = module(converted(tmp_path, text + layer("l", kind, "f label", more=more), shape=(1, 2, 2)).file.text)
    a, y = torch.randn(4, 3), torch.rand(4, 3)
    torch.testing.assert_close(net.loss(a, y), expected(a, y))


def test_detectnet_without_its_python_layers(tmp_path):
    found = converted(tmp_path, detectnet("deploy"), until="coverage/sig,bbox/regressor")
    report = parity(found, run_network)
    assert report["holds"], report
    outputs = [found.graph.shapes[number] for number in found.graph.outputs]
    assert outputs == [(1, 4, 6), (4, 4, 6)]
    coverage, boxes = module(found.file.text, shape=(3, 64, 96)).eval()(torch.rand(2, 3, 64, 96) * 255)
    assert coverage.shape == (2, 1, 4, 6)
    assert boxes.shape == (2, 4, 4, 6)
    assert float(coverage.detach().min()) >= 0
    with pytest.raises(CaffeError, match="The layer `cluster` is written in Python"):
        converted(tmp_path, detectnet("deploy"))
    with pytest.raises(CaffeError, match="Line 3: The layer `train_transform` computes with the labels"):
        converted(tmp_path, detectnet("train"), until="coverage/sig,bbox/regressor")


def test_a_siamese_network_shares_its_layers(tmp_path):
    text = siamese() + layer("loss", "ContrastiveLoss", "feat feat_p sim", "margin: 2")
    text = 'layer { name: "s" type: "Data" top: "sim" }' + text
    found = converted(tmp_path, text)
    net = module(found.file.text, shape=(2, 28, 28))
    assert len(list(net.parameters())) == 6
    x = torch.rand(3, 1, 28, 28).expand(3, 2, 28, 28)
    first, second = net(x)
    torch.testing.assert_close(first, second)
    y = torch.tensor([1, 0, 1])
    far = first + 1.0
    distance = ((first - far) ** 2).sum(1).sqrt()
    expected = (y * distance**2 + (1 - y) * (2 - distance).clamp(min=0) ** 2).sum() / 6
    torch.testing.assert_close(net.loss([first, far], y), expected)


def program_of(folder, spec, weights=None):
    backend = load_backend("torch")
    return backend.build(program_request(spec, data_of(spec), backend, [weights] if weights else []))


def test_a_training_starts_from_the_weights_of_caffe(tmp_path):
    (tmp_path / "net.prototxt").write_text(GRAY)
    (tmp_path / "solver.prototxt").write_text(LENET_SOLVER)
    (tmp_path / "mean").write_bytes(blob(np.full((1, 8, 8), 7.5), old_axes=True))
    arrays = random_arrays(build_graph(read_network(GRAY), (1, 8, 8)), seed=5)
    (tmp_path / "net.caffemodel").write_bytes(caffemodel(arrays))
    names = {"network": "net.prototxt", "weights": "net.caffemodel", "mean": "mean", "solver": "solver.prototxt"}
    conversion = convert(ImportFiles(**{name: tmp_path / file for name, file in names.items()}), ImportOptions())
    write_folder(conversion, tmp_path / "out", {})
    settings = load_settings({"ZIGGURAT_WORKSPACE": str(tmp_path / "workspace"), "HOME": str(tmp_path)})
    weights = open_folders(settings).weights
    weights.add(tmp_path / "out" / "weights.safetensors", NewWeights(name="lenet"))
    content = json.loads((tmp_path / "out" / "train.json").read_text())
    content |= {"data": "digits", "pretrained": "weights:lenet"}
    spec = parse_spec(content, source="the test")
    program = program_of(tmp_path, spec, weights.folder.path)
    state = program.state()
    np.testing.assert_allclose(state["model/conv1.weight"], arrays["conv1"][0])
    np.testing.assert_allclose(state["model/ip2.bias"], arrays["ip2"][1])
    np.testing.assert_allclose(state["model/mean_image"], np.full((1, 8, 8), 7.5))
    program.close()


def test_a_last_layer_for_other_classes_starts_fresh(tmp_path):
    (tmp_path / "net.prototxt").write_text(GRAY.replace("num_output: 10 ", "num_output: 1000 "))
    graph = build_graph(read_network((tmp_path / "net.prototxt").read_text()), (1, 8, 8))
    (tmp_path / "w").write_bytes(caffemodel(random_arrays(graph)))
    files = ImportFiles(network=tmp_path / "net.prototxt", weights=tmp_path / "w")
    conversion = convert(files, ImportOptions(shape=(1, 8, 8)))
    assert conversion.state["ip2.weight"].shape == (1000, 500)
    assert "self.ip2 = nn.Linear(500, classes)" in conversion.file.text
    assert module(conversion.file.text, 10, (1, 8, 8)).ip2.out_features == 10


def test_a_short_training_learns(tmp_path):
    conversion = converted(tmp_path, GRAY, LENET_SOLVER, shape=(1, 8, 8))
    write_folder(conversion, tmp_path / "out", {})
    content = json.loads((tmp_path / "out" / "train.json").read_text()) | {"data": "digits"}
    program = program_of(tmp_path, parse_spec(content, source="the test"))
    source = np.random.default_rng(0)
    labels = np.arange(32) % 2
    images = source.uniform(0, 60, (32, 8, 8, 1)).astype(np.float32)
    images[labels == 1, :4] += 190
    costs = [float(program.step((images, labels), ["cost"])["cost"]) for _ in range(60)]
    program.close()
    assert costs[0] > 2
    assert costs[-1] < 0.3
