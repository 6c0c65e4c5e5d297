"""Modules of Torch: the network file gives what the definition of each module gives, and whole networks do, too."""

import numpy as np
import pytest
import torch

from tests.torch7_files import ALEXNET, GOOGLENET, GRAPH, LENET, SEGMENTATION, SIAMESE, TEXT
from ziggurat.backends.torch.network_file import load_network
from ziggurat.compat.caffe.importing import ImportOptions, parity
from ziggurat.compat.caffe.running import run_network
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.compat.torch7.importing import convert_torch

pytestmark = pytest.mark.torch
pytest.importorskip("lupa")


def converted(folder, text, shape, **options):
    path = folder / "model.lua"
    path.write_text(text)
    return convert_torch(ImportFiles(network=path), ImportOptions(shape=shape, color="RGB"), **options)


MODULES = [
    ("SpatialConvolution(4, 6, 3, 2, 2, 1, 1, 0)", (4, 9, 8)),
    ("SpatialConvolutionMM(4, 6, 3, 3)", (4, 9, 8)),
    ("SpatialDilatedConvolution(4, 6, 3, 3, 1, 1, 2, 2, 2, 2)", (4, 9, 8)),
    ("SpatialFullConvolution(4, 6, 4, 4, 2, 2, 1, 1)", (4, 5, 6)),
    ("SpatialConvolution(4, 6, 3, 3):noBias()", (4, 9, 8)),
    ("SpatialMaxPooling(3, 2, 2, 2)", (2, 8, 8)),
    ("SpatialMaxPooling(3, 3, 2, 2, 1, 1):ceil()", (2, 8, 8)),
    ("SpatialMaxPooling(2, 2)", (2, 7, 7)),
    ("SpatialAveragePooling(3, 3, 2, 2, 1, 1)", (2, 8, 8)),
    ("SpatialAveragePooling(3, 3, 2, 2, 1, 1):ceil():setCountExcludePad()", (2, 8, 8)),
    ("SpatialAdaptiveMaxPooling(3, 2)", (2, 8, 7)),
    ("SpatialAdaptiveAveragePooling(3, 2)", (2, 8, 7)),
    ("SpatialZeroPadding(1, 2, -1, 3)", (2, 5, 5)),
    ("SpatialCrossMapLRN(3, 0.5, 0.75, 2)", (5, 4, 4)),
    ("SpatialBatchNormalization(3, 1e-3)", (3, 4, 4)),
    ("SpatialBatchNormalization(3, 1e-3, 0.2, false)", (3, 4, 4)),
    ("Linear(10, 4)", (10,)),
    ("Linear(10, 4, false)", (10,)),
    ("BatchNormalization(6)", (6,)),
    ("TemporalConvolution(5, 7, 3, 2)", (9, 5)),
    ("TemporalMaxPooling(3, 2)", (9, 5)),
    ("Transpose({2, 4}, {3, 4})", (2, 3, 4)),
    ("Narrow(2, 2, 3)", (6, 3, 3)),
    ("Narrow(3, 2, -2)", (2, 6, 3)),
    ("Select(2, -1)", (4, 3, 3)),
    ("View(3, -1):setNumInputDims(3)", (6, 2, 2)),
    ("Reshape(4, 6)", (6, 2, 2)),
    ("Squeeze()", (5, 1, 1)),
    ("Unsqueeze(1, 1)", (5,)),
    ("Threshold(30, 2)", (2, 3, 3)),
    ("LeakyReLU(0.2)", (2, 3, 3)),
    ("LeakyReLU(true)", (2, 3, 3)),
    ("SoftSign()", (2, 3, 3)),
    ("LogSigmoid()", (2, 3, 3)),
    ("Log()", (2, 3, 3)),
    ("PReLU(2)", (2, 3, 3)),
    ("ELU(0.7)", (2, 3, 3)),
    ("HardTanh()", (2, 3, 3)),
    ("SoftPlus()", (2, 3, 3)),
    ("Tanh()", (2, 3, 3)),
    ("Sqrt()", (2, 3, 3)),
    ("SpatialSoftMax()", (3, 2, 2)),
    ("OneHot(300)", (7,)),
    ("LookupTable(300, 4)", (7,)),
]


@pytest.mark.parametrize(("text", "shape"), MODULES, ids=[each[0] for each in MODULES])
def test_a_module_gives_what_torch_defined(tmp_path, text, shape):
    # Two modules, so that the one in question is not the end, where a softmax is left out.
    found = converted(tmp_path, f"return nn.Sequential():add(nn.{text}):add(nn.AddConstant(1))", shape)
    report = parity(found, run_network)
    assert report["largest_difference"] < 1e-6


@pytest.mark.parametrize(
    ("text", "shape"),
    [(LENET, (1, 28, 28)), (ALEXNET, (3, 64, 64)), (SIAMESE, (2, 8, 8)), (SEGMENTATION, (3, 12, 12)), (TEXT, (30,)),
     (GRAPH, (3, 8, 8))],
    ids=["lenet", "alexnet", "siamese", "segmentation", "text", "graph"],
)  # fmt: skip
def test_a_network_gives_what_torch_defined(tmp_path, text, shape):
    report = parity(converted(tmp_path, text, shape), run_network)
    assert report["holds"], report


def test_googlenet_takes_the_crop_of_the_images_of_its_file(tmp_path):
    found = converted(tmp_path, GOOGLENET, None, classes=5)
    assert found.graph.shapes[found.graph.image] == (3, 64, 64)
    assert found.fields["preprocessing"] == {"crop": 64, "channels": 3}
    report = parity(found, run_network)
    assert report["holds"], report
    assert [found.graph.shapes[number] for number in found.graph.outputs] == [(5,)]
    assert found.graph.heads == {"fc1"}


def test_rows_of_a_table_are_images_of_one_pixel(tmp_path):
    found = converted(tmp_path, "return nn.Sequential():add(nn.Linear(9, 4)):add(nn.Tanh()):add(nn.Linear(4, 3))", None)
    assert found.graph.shapes[found.graph.image] == (9, 1, 1)
    assert parity(found, run_network)["holds"]


def test_a_flat_view_tells_the_size_of_the_images(tmp_path):
    text = "return nn.Sequential():add(nn.Reshape(1728)):add(nn.Linear(1728, 4))"
    found = converted(tmp_path, text, None)
    assert found.graph.shapes[found.graph.image] == (3, 24, 24)


def test_containers_join_and_split(tmp_path):
    text = """
    local net = nn.Sequential()
    net:add(nn.ConcatTable():add(nn.Identity()):add(nn.MulConstant(2)):add(nn.Identity()))
    net:add(nn.NarrowTable(1, 2)):add(nn.ParallelTable():add(nn.Identity()):add(nn.AddConstant(1)))
    net:add(nn.ConcatTable():add(nn.CSubTable()):add(nn.JoinTable(1, 3)):add(nn.SelectTable(-1)))
    net:add(nn.FlattenTable()):add(nn.SelectTable(2)):add(nn.Parallel(2, 2):add(nn.Unsqueeze(2)):add(nn.Unsqueeze(2)))
    return net
    """
    found = converted(tmp_path, text, (1, 2, 3))
    x = np.random.default_rng(0).uniform(0, 1, (2, 1, 2, 3)).astype(np.float32)
    [output], _ = run_network(found.file.text, {}, x)
    np.testing.assert_allclose(output, np.concatenate([x, 2 * x + 1], 1), rtol=1e-6)


def module(found, classes=None, shape=(1, 8, 8)):
    torch.manual_seed(0)
    return load_network(found.file.text, "network.py")(classes, list(shape))


def test_weights_begin_as_torch_began_them(tmp_path):
    text = "return nn.Sequential():add(nn.SpatialConvolution(50, 40, 3, 3)):add(nn.SpatialBatchNormalization(40))"
    text += ":add(nn.SpatialFullConvolution(40, 30, 2, 2))"
    net = module(converted(tmp_path, text, (50, 8, 8)), shape=(50, 8, 8))
    for name, limit in (("conv1.weight", 450**-0.5), ("conv1.bias", 450**-0.5), ("up1.weight", 160**-0.5)):
        values = net.get_parameter(name).detach()
        assert float(values.abs().max()) <= limit
        assert float(values.std()) == pytest.approx(limit / 3**0.5, rel=0.3)
    net.requires_grad_(False)
    assert 0 <= float(net.bn1.weight.min()) < float(net.bn1.weight.max()) <= 1
    assert float(net.bn1.bias.abs().max()) == 0


def test_weights_that_a_file_fills(tmp_path):
    text = """
    local net = nn.Sequential():add(nn.SpatialConvolution(50, 40, 3, 3)):add(nn.View(40 * 36))
    net:add(nn.Linear(40 * 36, 20))
    for _, conv in ipairs(net:findModules('nn.SpatialConvolution')) do
      conv.weight:normal(0, math.sqrt(2 / (conv.kW * conv.kH * conv.nOutputPlane)))
      conv.bias:zero()
    end
    net:get(3).weight:uniform(-1, 1):mul(0.1)
    net:get(3).bias:fill(0.5)
    return net
    """
    net = module(converted(tmp_path, text, (50, 8, 8)), shape=(50, 8, 8)).requires_grad_(False)
    assert float(net.conv1.weight.std()) == pytest.approx((2 / 360) ** 0.5, rel=0.05)
    assert float(net.conv1.bias.abs().max()) == 0
    assert 0.09 < float(net.fc1.weight.abs().max()) <= 0.1
    assert net.fc1.bias.tolist() == [0.5] * 20
    flat = "local net = nn.Linear(64, 20) local w = net:getParameters() w:normal():mul(0.01)"
    flat += " return nn.Sequential():add(nn.View(64)):add(net)"
    assert float(module(converted(tmp_path, flat, (1, 8, 8))).fc1.weight.detach().std()) == pytest.approx(0.01, rel=0.1)


def test_losses_are_those_of_torch(tmp_path):
    net = module(converted(tmp_path, SIAMESE, (2, 8, 8)), shape=(2, 8, 8))
    first, second = net(torch.rand(3, 2, 8, 8))
    y = torch.tensor([1, 0, 1])
    cosine = torch.cosine_similarity(first, second)
    expected = torch.where(y == 1, 1 - cosine, (cosine - 0.5).clamp(min=0)).mean()
    torch.testing.assert_close(net.loss([first, second], y), expected)
    assert len(list(net.parameters())) == 4
    net = module(converted(tmp_path, SEGMENTATION, (3, 12, 12)), shape=(3, 12, 12))
    output, masks = net(torch.rand(2, 3, 12, 12)), torch.rand(2, 12, 12)
    torch.testing.assert_close(net.loss(output, masks), ((output[:, 0] - masks / 2) ** 2).mean())


def test_an_autoencoder_learns_its_images(tmp_path):
    text = "return {model = nn.Sequential():add(nn.MulConstant(1/256)):add(nn.Tanh()), loss = nn.MSECriterion(),"
    text += " labelHook = function(input, label) return input end}"
    net = module(converted(tmp_path, text, (1, 4, 4)))
    x = torch.rand(2, 1, 4, 4)
    torch.testing.assert_close(net.loss(net(x), torch.tensor([0, 1])), ((torch.tanh(x / 256) - x) ** 2).mean())
