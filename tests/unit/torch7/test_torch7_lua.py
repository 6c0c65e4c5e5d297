"""Network files in Lua: what they record, errors at their line, and what hostile ones come to."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch7_files import GRAY, LENET, SEGMENTATION, SIAMESE
from ziggurat.compat.torch7.errors import TorchError
from ziggurat.compat.torch7.lua import run_lua
from ziggurat.compat.torch7.modules import build_torch_graph

pytest.importorskip("lupa")

ROOT = Path(__file__).parents[3]


def graph(text, shape=(1, 8, 8), **options):
    return build_torch_graph(run_lua(text, shape=shape, **options), shape)[0]


def error(text, shape=(1, 8, 8)):
    with pytest.raises(TorchError) as caught:
        graph(text, shape)
    return caught.value


def test_a_file_of_digits_is_recorded():
    record = run_lua(LENET, classes=7, shape=(1, 28, 28))
    assert record["is_function"]
    assert record["trainBatchSize"] == 64
    assert [each["kind"] for each in record["model"]["modules"]][1:4] == [
        "SpatialConvolution", "SpatialMaxPooling", "SpatialConvolution",
    ]  # fmt: skip
    assert record["model"]["modules"][8]["args"] == [500, 7]
    assert record["model"]["modules"][8]["line"] == 21
    assert record["loss"]["kind"] == "ClassNLLCriterion"
    size = "return function(p) local n = 1 p.inputShape:apply(function(x) n = n * x end) return nn.View(n) end"
    assert run_lua(size, shape=(1, 8, 8))["model"]["args"] == [64]


def test_a_file_may_return_the_network_itself():
    found = graph("return nn.Sequential():add(nn.View(64)):add(nn.Linear(64, 3)):add(nn.LogSoftMax())")
    assert [node.layer.kind for node in found.nodes] == ["Flatten", "InnerProduct"]
    assert [loss.layer.kind for loss in found.losses] == ["SoftmaxWithLoss"]
    assert found.heads == {"fc1"}
    assert found.class_count == 3


def test_the_hook_for_fine_tuning_changes_the_record():
    record = run_lua(GRAY, classes=10, shape=(1, 8, 8), hook=True)
    assert record["model"]["modules"][8]["args"] == [500, 3]
    found = build_torch_graph(record, (1, 8, 8))[0]
    assert [node.layer.rule(0).rate for node in found.nodes if node.layer.rules] == [0, 1, 1, 1]


def test_modules_that_are_cloned_share():
    nodes = [node for node in graph(SIAMESE, (2, 8, 8)).nodes if node.layer.kind == "InnerProduct"]
    names = [node.layer.rule(0).name for node in nodes]
    assert len(set(names)) == 2
    assert names[:2] == names[2:]


def test_hooks_for_labels_become_expressions():
    assert graph(SIAMESE, (2, 8, 8)).label == "torch.where(y == 0, -1, y)"
    assert graph(SEGMENTATION, (3, 8, 8)).label == "(y * 0.5)"
    chosen = SIAMESE.replace("label[label:eq(0)] = -1", "label[torch.eq(label, 0)] = torch.eq(label, 0):fill(-1)")
    assert graph(chosen, (2, 8, 8)).label == "torch.where(y == 0, -1, y)"
    images = SEGMENTATION.replace("return label:mul(0.5)", "return input").replace("12, 1, 4", "12, 3, 4")
    assert graph(images, (3, 8, 8)).label == "self.target"


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("local n = nn.Sequential()\nn:add(nn.SpatialContrastive(3))", 2, "`SpatialContrastive` is not a function or"),
        ("local net = nn.Sequential()\nnet:bogus()", 2, "`bogus` is not a method that an import knows"),
        ("x = = 3", 1, "Unexpected symbol near '='"),
        ("return 7", 0, "and not a number"),
        ("", 0, "The file returns nothing, and not a network"),
        ("function createModel(n) end", 0, "such as `return createModel(...)`"),
        ("model = nn.Sequential()", 0, "such as `return model`"),
        ("\npaths.dofile('utils.lua')", 2, "The file reads another file"),
        ("return function(p)\n return p.dataset .. 'x' end", 2, "`dataset` has no value here"),
        ("local s = require('socket')", 1, "`require 'socket'` asks for a module that an import does not have"),
        ("return nn.Linear(3)", 1, "nn.Linear has the number `outputSize` as argument 2"),
        ("\nreturn nn.Linear(65, 3)", 2, "nn.Linear takes rows of 65 numbers"),
        ("return nn.SpatialConvolution(3, 4, 3, 3)", 1, "takes images of 3 channels"),
        ("return nn.View(-1)", 1, "joins the images of a batch"),
        ("return nn.View(63)", 1, "keeps the 64 numbers"),
        ("return nn.Sequential():add(nn.View(64)):add(nn.CAddTable())", 1, "takes a table, and gets a tensor"),
        ("return {model = nn.View(64), loss = nn.ClassNLLCriterion()}", 1, "takes logarithms of probabilities"),
        ("return {model = nn.View(64), loss = nn.Tanh()}", 1, "`nn.Tanh` is not a criterion"),
        ("return {model = nn.View(64), labelHook = function(x, y) return x:nope() end}", 1, "`nope`"),
        ("os.execute('true')", 1, "`os` has no value here"),
        ("torch.load('/etc/passwd')", 1, "The file calls torch.load"),
        ("local n = nn.Sequential()\nn:get(true)", 2, "Attempt to compare"),
        ("error({})", 0, "raises an error without a text"),
        ("\x1bLua", 0, "compiled"),
        ("local m = nn.Linear(2, 2) m.weight:copy(3)", 1, "`copy` is not a method"),
        ("local m = nn.Sequential() m.modules = 3 return m", 0, ""),
        ("local m = nn.Sequential() m.modules = {3} return m", 0, ""),
        ("local m = nn.Sequential() m.kind = {} return m", 0, ""),
    ],
)  # fmt: skip
def test_errors_name_their_line(text, line, part):
    found = error(text)
    assert part in str(found)
    assert found.line == line or not part


def test_nothing_of_python_or_the_machine_is_reached():
    for name in (
        "python",
        "io",
        "package",
        "debug",
        "ffi",
        "loadstring",
        "load",
        "dofile",
        "getfenv",
        "setfenv",
        "newproxy",
    ):
        assert graph(f"assert({name} == nil) assert(_G['{name}'] == nil) return nn.View(64)").nodes
    assert "no value" in str(error("return string.dump.x"))
    assert graph("assert(getmetatable == nil) return nn.View(64)").nodes


@pytest.mark.parametrize(
    "text",
    [
        "return string.rep('x', 1e9)",
        "local s = 'x' while true do s = s .. s end",
        "return ('%99999999d'):format(1)",
        "local function f() return 1 + f() end return f()",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local t = setmetatable({}, {__index = function(t, k) return t[k] end}) return t.x",
        "unpack({}, 1, 1e7)",
        "for i = 1, 1e6 do nn.Tanh() end",
        "local n = nn.Sequential() n:add(n) return n",
        "local n = nn.Sequential() for i = 1, 4000 do n = nn.Sequential():add(n) end return n",
        "local x = nn.Identity()() for i = 1, 4000 do x = nn.Tanh()(x) end return nn.gModule({x}, {x})",
        "return nn.Concat(" + "{" * 150 + "}" * 150 + ")",
        "return nn.SpatialConvolution(1, 1e9, 3, 3)",
        "return nn.SpatialZeroPadding(1e8, 1e8, 1e8, 1e8)",
        "return nn.Sequential():add(nn.Linear(64, 0/0))",
        "return nn.SpatialMaxPooling(1/0, 1, 1, 1)",
        "return nn.JoinTable(1/0)",
    ],
    ids=range(17),
)
@pytest.mark.timeout(60)
def test_a_hostile_text_is_an_error(text):
    assert str(error(text)).count(". ") < 6


@pytest.mark.nightly
@pytest.mark.parametrize(
    "text",
    [
        "while true do end",
        "while true do pcall(error) end",
        "local s = string.rep('a', 30000) return s:find(string.rep('a?', 30000) .. 'b')",
        "return string.find(string.rep('a', 5000), string.rep('.-', 20) .. 'b')",
    ],
    ids=range(4),
)
@pytest.mark.timeout(120)
def test_an_endless_text_is_ended(text):
    assert "longer than 4 seconds of processor time" in str(error(text))


def run(first, count):
    words = [sys.executable, "-m", "tests.unit.torch7.mutated_program", str(first), str(count)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=1700, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    return ast.literal_eval(done.stdout.splitlines()[-1])


@pytest.mark.timeout(300)
def test_mutated_texts_give_an_error_or_a_result():
    answers = run(0, 300)
    assert sum(answers.values()) == 300
    assert answers["error"] > 60
    assert answers["result"] > 20


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_ten_thousand_mutated_texts():
    assert sum(run(1000, 10_000).values()) == 10_000


AUXILIARY = """
local function head(count) return nn.Sequential():add(nn.View(count)):add(nn.Linear(count, 10)):add(nn.LogSoftMax()) end
local input = nn.Identity()()
local maps = nn.SpatialConvolution(1, 2, 3, 3, 1, 1, 1, 1)(input)
local pooled = nn.SpatialMaxPooling(2, 2, 2, 2)(maps)
local criterion = nn.ClassNLLCriterion()
return {
  model = nn.gModule({ input }, { head(32)(pooled), head(128)(maps) }),
  loss = nn.ParallelCriterion(true):add(criterion):add(nn.CrossEntropyCriterion(), 0.3),
}
"""


def test_outputs_with_a_criterion_each_learn_one_label():
    found = graph(AUXILIARY)
    assert [(loss.layer.kind, loss.weight) for loss in found.losses] == [
        ("SoftmaxWithLoss", 1.0), ("SoftmaxWithLoss", 0.3),
    ]  # fmt: skip
    assert [loss.inputs[0] for loss in found.losses] == found.outputs
    assert "LogSoftMax" not in [node.layer.kind for node in found.nodes]
    assert (len(found.heads), found.class_count) == (2, 10)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(true)", "()", "gets a label for each output, and a dataset has one"),
        ("(criterion)", "(criterion):add(criterion)", "has 3 criterion(s) for 2 output(s)"),
        ("(criterion)", "(nn.MSECriterion())", "`nn.MSECriterion` in `nn.ParallelCriterion` does not fit output 1"),
    ],
)
def test_criterions_that_do_not_fit_are_named(old, new, message):
    refused = error(AUXILIARY.replace(old, new, 1))
    assert message in str(refused)
    assert str(refused).startswith("Line 9: ")


def test_files_beside_a_network_are_named():
    for name in ("ccn2", "lib/my-layers"):
        assert str(error(f"require 'nn'\nrequire '{name}'\n")).startswith(
            f"Line 2: `require '{name}'` asks for a module that an import does not have."
        )
    assert str(error("local w = torch.load('w.t7')")).startswith("Line 1: The file calls torch.load: ")
