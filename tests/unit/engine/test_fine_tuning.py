"""Head, stages and rates of fine-tuning by the names of weights, on either framework."""

import pytest

from ziggurat.engine.fine_tuning import FineTuningRequest, head_of, rate_factors, rates_of, stages_of
from ziggurat.errors import ConfigurationError

RESNET = {
    "model/conv1.weight": (64, 3, 7, 7),
    "model/bn1.weight": (64,),
    "model/bn1.bias": (64,),
    "model/layer1.0.conv1.weight": (64, 64, 3, 3),
    "model/layer1.1.bn2.weight": (64,),
    "model/layer2.0.conv1.weight": (128, 64, 3, 3),
    "model/fc.weight": (10, 512),
    "model/fc.bias": (10,),
}


def on_tensorflow(names):
    return {f"model/{name.removeprefix('model/').replace('.', '/')}": shape for name, shape in names.items()}


def test_a_stage_ends_with_the_first_part_that_has_a_number():
    names = ["model/conv1.weight", "model/features.7.block.0.weight", "model/features.7.block.1.bias", "blocks/3/w"]
    assert list(stages_of(names).values()) == [0, 1, 1, 2]


def test_names_without_numbers_side_by_side_are_one_stage():
    # timm registers its tokens first, TensorFlow makes them when they are used: the stages are the same.
    torch = ["cls_token", "pos_embed", "patch_embed.proj.weight", "blocks.0.norm1.weight", "norm.weight"]
    tensorflow = ["patch_embed/proj/weight", "cls_token", "pos_embed", "blocks/0/norm1/weight", "norm/weight"]
    one, other = stages_of(torch), stages_of(tensorflow)
    assert {name.replace(".", "/"): stage for name, stage in one.items()} == other
    assert one == dict.fromkeys(torch[:3], 0) | {torch[3]: 1, torch[4]: 2}


def test_a_stage_that_comes_again_keeps_its_place():
    assert list(stages_of(["conv1/weights", "conv2/weights", "conv1/biases"]).values()) == [0, 1, 0]


def test_each_stage_has_the_rate_of_the_next_one_times_decay():
    factors = rate_factors(list(RESNET), ["model/fc.weight", "model/fc.bias"], 0.1, 0.5)
    by_stage = [0.1 * 0.5**n for n in (4, 3, 3, 2, 2, 1)]
    assert list(factors.values()) == pytest.approx([each * 2 for each in by_stage] + [1, 1])
    assert factors["model/layer2.0.conv1.weight"] == 0.1


def test_both_frameworks_have_the_same_rates():
    request = FineTuningRequest(head="fc.", backbone_rate=0.3, layer_decay=0.7)
    one, other = rates_of(request, RESNET), rates_of(request, on_tensorflow(RESNET))
    assert list(one.values()) == list(other.values())
    assert one["model/fc.bias"] is None


def test_the_head_is_the_last_layer_with_all_that_lies_in_it():
    names = {"model/conv1/weights": (3, 3, 1, 4), "model/fc2/weights": (4, 2), "model/fc2/BatchNorm/beta": (2,)}
    assert head_of(names) == ("model/fc2/weights", "model/fc2/BatchNorm/beta")
    assert head_of({**names, "model/scale": (1,)}) == ("model/fc2/weights", "model/fc2/BatchNorm/beta")


def test_a_published_head_counts_where_it_is_not_last():
    names = {"fc.weight": (2, 4), "fc.bias": (2,), "extra.weight": (4, 4)}
    assert head_of(names, "fc.") == ("fc.weight", "fc.bias")
    assert head_of(names, "classifier.1.") == ("extra.weight",)


def test_weights_without_a_layer_have_the_last_one_as_head():
    assert head_of({"w1": (2, 2), "b1": (2,), "w2": (2, 2), "b2": (2,)}) == ("w2", "b2")


@pytest.mark.parametrize("names", [{}, {"scale": (3,)}, {"fc.weight": (2, 2), "fc.bias": (2,)}])
def test_a_network_without_head_or_backbone_is_refused(names):
    with pytest.raises(
        ConfigurationError, match=r"needs a network with a last layer and layers before it \(received: "
    ):
        rates_of(FineTuningRequest(), names)
