"""Layers of a ``.prototxt``: old forms, phases and stages, what is an input, what is left out, and errors."""

import pytest

from tests.caffe_files import LENET, conv, layer, relu, siamese, with_input
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.layers import read_network, select

V1 = """
input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 blobs_lr: 2 weight_decay: 1 weight_decay: 0
  param: "shared_w" convolution_param { num_output: 4 kernel_size: 3 } }
layers { name: "r" type: RELU bottom: "c" top: "c" }
layers { name: "p" type: SOFTMAX bottom: "c" top: "p" }
"""
V0 = """
input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layers { layer { name: "pad" type: "padding" pad: 1 } bottom: "data" top: "padded" }
layers { layer { name: "c" type: "conv" num_output: 4 kernelsize: 3 stride: 2 biasterm: false blobs_lr: 1. }
  bottom: "padded" top: "c" }
layers { layer { name: "m" type: "pool" pool: AVE kernelsize: 2 stride: 2 } bottom: "c" top: "m" }
layers { layer { name: "f" type: "innerproduct" num_output: 5 } bottom: "m" top: "f" }
"""


def kinds(graph):
    return [node.layer.kind for node in graph.nodes]


def failure(text, **options):
    with pytest.raises(CaffeError) as caught:
        build_graph(read_network(text), options.pop("shape", None), **options)
    return str(caught.value)


def test_layers_of_the_form_v1_are_those_of_today():
    network = read_network(V1)
    first = network.layers[0]
    assert (first.kind, first.options.integer("num_output", 0)) == ("Convolution", 4)
    assert [(rule.name, rule.rate, rule.decay) for rule in first.rules] == [("shared_w", 1, 1), ("", 2, 0)]
    graph = build_graph(network, None)
    assert kinds(graph) == ["Convolution", "ReLU"]
    assert graph.shapes[graph.outputs[0]] == (4, 6, 6)


def test_layers_of_the_oldest_form_are_those_of_today():
    graph = build_graph(read_network(V0), None)
    assert kinds(graph) == ["Convolution", "Pooling", "InnerProduct"]
    assert [graph.shapes[node.outputs[0]] for node in graph.nodes] == [(4, 4, 4), (4, 2, 2), (5,)]
    assert graph.nodes[0].layer.options.integer("pad", 0) == 1
    assert not graph.nodes[0].layer.options.flag("bias_term", True)


def test_phases_and_stages_choose_layers():
    network = read_network(LENET)
    assert len(select(network, "TRAIN").layers) == 9
    assert len(select(network, "TEST").layers) == 10
    staged = read_network(
        layer("a", "ReLU", "data", more='include { stage: "train" not_stage: "fast" }')
        + layer("b", "ReLU", "data", more='exclude { stage: "deploy" phase: TRAIN }')
        + layer("c", "ReLU", "data", more="include { min_level: 1 }")
    )
    names = {
        stages: [each.name for each in select(staged, "TRAIN", stages).layers]
        for stages in ((), ("train",), ("train", "fast"), ("deploy",))
    }
    assert names == {(): ["b"], ("train",): ["a", "b"], ("train", "fast"): ["b"], ("deploy",): []}


def test_stages_of_digits_give_the_training():
    text = with_input((1, 8, 8), conv("c", "data", "num_output: 2 kernel_size: 3"))
    text += 'layer { name: "l" type: "Data" top: "label" include { stage: "train" } }'
    text += layer("loss", "SoftmaxWithLoss", "c label", more='exclude { stage: "deploy" }')
    text += layer("prob", "Softmax", "c", more='include { stage: "deploy" }')
    graph = build_graph(read_network(text), None)
    assert [loss.layer.name for loss in graph.losses] == ["loss"]
    assert kinds(graph) == ["Convolution"]


def test_the_head_of_a_training_is_found():
    graph = build_graph(read_network(LENET), (1, 28, 28))
    assert (graph.heads, graph.class_count) == ({"ip2"}, 10)
    assert [loss.weight for loss in graph.losses] == [1.0]
    assert [note for note in graph.notes if "Accuracy" in note] == []


def test_until_takes_the_part_before_what_is_not_known():
    text = with_input((3, 8, 8), conv("c", "data", "num_output: 2 kernel_size: 3"), layer("own", "Python", "c"))
    assert "Line 3: The layer `own` is written in Python" in failure(text)
    graph = build_graph(read_network(text), None, until="c")
    assert kinds(graph) == ["Convolution"]
    assert "Known: `c`, `own`" in failure(text, until="nothing")


def test_until_takes_several_layers():
    text = with_input((3, 8, 8), conv("c", "data", "num_output: 2 kernel_size: 3"), relu("r", "c"))
    text += conv("a/b", "c", "num_output: 1 kernel_size: 1") + layer("own", "Python", "c a/b")
    graph = build_graph(read_network(text), None, until="r, a/b")
    assert [graph.names[number] for number in graph.outputs] == ["c", "a/b"]
    assert "The layer `q` of --until" in failure(text, until="r,q")


def test_a_python_layer_that_reads_is_the_dataset():
    text = 'layer { name: "read" type: "Python" top: "data" top: "label" }'
    text += conv("c", "data", "num_output: 2 kernel_size: 3") + layer("loss", "SoftmaxWithLoss", "c label")
    graph = build_graph(read_network(text), (3, 8, 8))
    assert [each.name for each in graph.sources] == ["read"]


def test_weights_tell_the_size_of_the_images():
    graph = build_graph(read_network(LENET), None, sizes={"conv1": (20, 1, 5, 5), "ip1": (500, 800), "ip2": (10, 500)})
    assert graph.shapes[graph.image] == (1, 28, 28)
    assert "The file does not say how large its images are." in failure(LENET)


def test_a_last_layer_without_num_output_has_the_classes():
    text = LENET.replace("num_output: 10 ", "")
    graph = build_graph(read_network(text), (1, 28, 28), classes=7)
    assert (graph.heads, graph.class_count) == ({"ip2"}, 7)
    assert "`ip2` has no `num_output`: it has as many as the data has classes." in graph.notes
    assert build_graph(read_network(text), (1, 28, 28)).class_count == 10
    assert build_graph(read_network(text), (1, 28, 28), sizes={"ip2": (4, 500)}, classes=7).class_count == 4
    assert "`InnerProduct` of the layer `ip1` has no `num_output`." in failure(
        LENET.replace("num_output: 500 ", ""), shape=(1, 28, 28)
    )


def test_data_without_a_layer_is_that_of_the_dataset():
    text = conv("c", "data", "num_output: 2 kernel_size: 3") + layer("loss", "SoftmaxWithLoss", "c label")
    graph = build_graph(read_network(text), (3, 8, 8))
    assert graph.names[graph.image] == "data"
    assert [note.split(":")[0] for note in graph.notes] == ["No layer gives `data`", "No layer gives `label`"]


def test_a_layer_of_another_caffe_that_reads_is_the_dataset():
    text = 'layer { name: "read" type: "DenseImageData" top: "data" top: "mask" dense_image_data_param { height: 8 } }'
    text += conv("c", "data", "num_output: 2 kernel_size: 3") + layer("loss", "SoftmaxWithLoss", "c mask")
    graph = build_graph(read_network(text), (3, 8, 8))
    assert [each.name for each in graph.sources] == ["read"]
    assert kinds(graph) == ["Convolution"]


def test_a_pair_is_cut_from_the_channels():
    graph = build_graph(read_network(siamese()), None)
    assert graph.shapes[graph.image] == (2, 28, 28)
    assert [graph.names[number] for number in graph.outputs] == ["feat", "feat_p"]


INPUT = with_input((3, 9, 9), "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            INPUT + layer("x", "Mystery", "data"),
            "Line 2: `Mystery` is not a type of layer that an import knows (received",
        ),
        (
            INPUT + conv("x", "nothing", "num_output: 1 kernel_size: 1"),
            "takes `nothing`, which no layer before it gives",
        ),
        (INPUT + conv("x", "data", "num_output: 1 kernel_size: 10"), "The kernel fits into what the layer takes"),
        (INPUT + conv("x", "data", "num_output: 4 kernel_size: 1 group: 2"), "`group` divides the 3 channels"),
        (INPUT + conv("x", "data", "kernel_size: 1"), "Line 2: `Convolution` of the layer `x` has no `num_output`."),
        (INPUT + layer("s", "Scale", "data data"), "has `axis: 0`"),
        (INPUT + conv("x", "data", "num_output: 4"), "has a `kernel_size`"),
        (
            INPUT + conv("x", "data", "num_output: 4 kernel_size: 3 kernal: 1"),
            "`kernal` is not a field of `convolution_param`",
        ),
        (INPUT + layer("x", "Pooling", "data", "pool: STOCHASTIC kernel_size: 2"), "A pooling is `MAX` or `AVE`"),
        (INPUT + layer("x", "Pooling", "data", "kernel_size: 2 pad: 2"), "at most half of its kernel"),
        (
            INPUT + layer("x", "InnerProduct", "data", "num_output: 2000000"),
            "488,000,000 weights and 2,000,000 numbers of an image, where 268,435,456",
        ),
        (
            INPUT + conv("x", "data", "num_output: 900000 kernel_size: 1"),
            "gives 72,900,000 numbers of an image; 67,108,864 is the most",
        ),
        (
            INPUT + layer("x", "Pooling", "data", "kernel_size: 1 stride: 3"),
            "Each window of a pooling lies in the image",
        ),
        (INPUT + layer("x", "Slice", "data", "slice_point: 5", "a b"), "`slice_point` has rising places within 3"),
        (INPUT + layer("x", "Reshape", "data", "shape { dim: 10 dim: -1 }"), "A reshape keeps the batch"),
        (INPUT + layer("x", "Reshape", "data", "shape { dim: 0 dim: 7 }"), "A reshape keeps the 243 numbers"),
        (INPUT + layer("x", "Concat", "data", "axis: 0"), "is an axis behind the batch"),
        (INPUT + layer("x", "LRN", "data", "local_size: 4"), "`local_size` is odd"),
        (INPUT + layer("x", "ReLU", "data", more="rleu_param { }"), "`rleu_param` is not a field of the layer `x`"),
        (INPUT + layer("x", "ReLU", "data", more="quantized: 1"), "`quantized` is not a field of the layer `x`"),
        (INPUT + layer("x", "ReLU", "data", more="include { phase: TEST } exclude { phase: TRAIN }"), "not both"),
        (LENET.replace("SoftmaxWithLoss", "HingeLoss"), "`HingeLoss` of the layer `loss` is not a loss"),
        ("net: 'x' base_lr: 0.1", "The file has no layers (received: a solver)."),
        (INPUT, "A network gives something"),
    ],
)
def test_what_does_not_fit_is_an_error_with_its_line(text, words):
    assert words in failure(text, shape=(1, 28, 28) if text.startswith("\nname") else None)
