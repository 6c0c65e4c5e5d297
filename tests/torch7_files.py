"""Files of Torch written by tests: networks in Lua, and ``.t7`` by a writer that shares nothing with the reader."""

import struct

import numpy as np

KINDS = {
    "<f4": "Float", "<f8": "Double", "<i8": "Long", "<i4": "Int", "<i2": "Short", "|u1": "Byte",
    "|i1": "Char", "<f2": "Half",
}  # fmt: skip


class Object:
    """An object of a class of Torch, with its fields."""

    def __init__(self, kind, **fields):
        self.kind, self.fields = kind, fields


class View:
    """A tensor over a storage that others may share: sizes, steps and first element, from 1."""

    def __init__(self, storage, sizes, strides, first=1):
        self.storage, self.sizes, self.strides, self.first = storage, sizes, strides, first


class Storage:
    """A storage that stands for itself, as the sizes of a View."""

    def __init__(self, values):
        self.values = values


class Function:
    """A function, as Torch writes one: dumped code, and what it is closed over."""


class Writer:
    """Writes values; ``text`` for the form that people can read."""

    def __init__(self, text=False):
        self.text, self.parts, self.known, self.kept = text, [], {}, []

    def integer(self, value, code="<i"):
        self.parts.append(f"{value}\n".encode() if self.text else struct.pack(code, value))

    def string(self, value):
        raw = value.encode()
        self.integer(len(raw))
        self.parts.append(raw + (b"\n" if self.text else b""))

    def begun(self, value):
        """Write the number of an object; return whether it was written before."""
        is_known = id(value) in self.known
        self.known.setdefault(id(value), len(self.known) + 1)
        self.kept.append(value)
        self.integer(self.known[id(value)])
        return is_known

    def value(self, value):
        if value is None:
            self.integer(0)
        elif isinstance(value, bool):
            self.integer(5)
            self.integer(int(value))
        elif isinstance(value, int | float):
            self.integer(1)
            self.parts.append(f"{value!r}\n".encode() if self.text else struct.pack("<d", value))
        elif isinstance(value, str):
            self.integer(2)
            self.string(value)
        elif isinstance(value, dict | list):
            self.integer(3)
            if not self.begun(value):
                pairs = value.items() if isinstance(value, dict) else enumerate(value, start=1)
                self.integer(len(value))
                for key, each in pairs:
                    self.value(key)
                    self.value(each)
        elif isinstance(value, Function):
            self.integer(8)
            if not self.begun(value):
                self.string("dumped")
                self.value([1])
        else:
            if isinstance(value, np.ndarray):
                flat = value.reshape(-1).copy()
                value = View(
                    flat, list(value.shape), [step // flat.itemsize for step in np.empty_like(value, order="C").strides]
                )
            self.integer(4)
            if not self.begun(value):
                self.integer(3)
                self.parts.append(b"V 1\n" if self.text else b"V 1")
                self.object(value)
        return self

    def object(self, value):
        if isinstance(value, Object):
            self.string(value.kind)
            self.value(value.fields)
        elif isinstance(value, Storage):
            self.storage(value.values)
        else:
            self.string(f"torch.{KINDS[value.storage.dtype.str]}Tensor")
            self.integer(len(value.sizes))
            for number in (*value.sizes, *value.strides, value.first):
                self.integer(number, "<q")
            self.integer(4)
            if not self.begun(value.storage):
                self.integer(3)
                self.parts.append(b"V 1\n" if self.text else b"V 1")
                self.storage(value.storage)

    def storage(self, values):
        self.string(f"torch.{KINDS[values.dtype.str]}Storage")
        self.integer(values.size, "<q")
        if self.text and values.dtype.itemsize > 1:
            self.parts.append((" ".join(repr(each) for each in values.tolist()) + "\n").encode())
        else:
            self.parts.append(values.tobytes() + (b"\n" if self.text else b""))


def t7(value, *, text=False):
    """Return a value as the bytes of a file."""
    return b"".join(Writer(text).value(value).parts)


def module(kind, *inside, **fields):
    """Return a saved module of nn."""
    return Object(f"nn.{kind}", modules=list(inside), train=True, **fields)


def linear(weight, bias):
    """Return a saved fully connected layer."""
    return module("Linear", weight=weight, bias=bias, gradWeight=np.zeros_like(weight))


def convolution(weight, bias, kind="SpatialConvolution", stride=1, pad=0):
    """Return a saved convolution; weights (given, taken, height, width)."""
    given, taken, high, wide = weight.shape
    kept = weight.reshape(given, -1) if kind == "SpatialConvolutionMM" else weight
    sizes = {"nInputPlane": taken, "nOutputPlane": given, "kW": wide, "kH": high, "dW": stride, "dH": stride}
    return module(kind, weight=kept, bias=bias, padW=pad, padH=pad, **sizes)


LENET = """\
require 'nn'

-- LeNet, in the form of a network file of DIGITS
return function(params)
  local channels = 1
  if params.inputShape then
    assert(#params.inputShape == 3, 'images expected')
    channels = params.inputShape[1]
  end
  local lib = nn
  if pcall(function() require('cudnn') end) then lib = cudnn end
  local net = nn.Sequential()
  net:add(nn.MulConstant(0.00390625))
  net:add(lib.SpatialConvolution(channels, 20, 5, 5, 1, 1, 0))
  net:add(lib.SpatialMaxPooling(2, 2, 2, 2))
  net:add(lib.SpatialConvolution(20, 50, 5, 5, 1, 1, 0))
  net:add(lib.SpatialMaxPooling(2, 2, 2, 2))
  net:add(nn.View(-1):setNumInputDims(3))
  net:add(nn.Linear(800, 500))
  net:add(lib.ReLU())
  net:add(nn.Linear(500, params.nclasses or 10))
  net:add(nn.LogSoftMax())
  return {
    model = net, loss = nn.ClassNLLCriterion(), trainBatchSize = 64, validationBatchSize = 32,
    fineTuneHook = function(net)
      net:get(2).accGradParameters = function() end
      net:remove(9)
      net:insert(nn.Linear(500, 3), 9)
      return net
    end,
  }
end
"""

GRAY = LENET.replace("5, 5, 1, 1, 0", "3, 3, 1, 1, 1").replace("800, 500", "200, 500")
"""LeNet for the small digits, 8 x 8."""

ALEXNET = """\
local function block(taken, given, kernel, stride, pad)
  return nn.Sequential()
    :add(nn.SpatialConvolution(taken, given, kernel, kernel, stride, stride, pad, pad)):add(nn.ReLU(true))
end
local net = nn.Sequential()
net:add(block(3, 12, 11, 4, 2)):add(nn.SpatialCrossMapLRN(5, 1e-4, 0.75, 2)):add(nn.SpatialMaxPooling(3, 3, 2, 2))
local two = nn.Concat(2)
two:add(nn.Sequential():add(nn.Narrow(2, 1, 6)):add(block(6, 16, 5, 1, 2)))
two:add(nn.Sequential():add(nn.Narrow(2, 7, 6)):add(block(6, 16, 5, 1, 2)))
net:add(two):add(nn.SpatialMaxPooling(3, 3, 2, 2)):add(block(32, 24, 3, 1, 1)):add(nn.SpatialBatchNormalization(24))
net:add(nn.SpatialMaxPooling(3, 3, 2, 2)):add(nn.View(24 * 1 * 1)):add(nn.Dropout(0.5))
net:add(nn.Linear(24, 30)):add(nn.Threshold(0, 0)):add(nn.Linear(30, 7)):add(nn.LogSoftMax())
return net
"""

GOOGLENET = """\
local function conv(taken, given, side, step, pad)
  local net = nn.Sequential():add(nn.SpatialConvolution(taken, given, side, side, step, step, pad, pad))
  return net:add(nn.SpatialBatchNormalization(given, 1e-3)):add(nn.ReLU(true))
end
local function inception(join, taken, sizes)
  local parts = join(2)
  parts:add(conv(taken, sizes[1], 1, 1, 0))
  parts:add(nn.Sequential():add(conv(taken, sizes[2], 1, 1, 0)):add(conv(sizes[2], sizes[3], 3, 1, 1)))
  parts:add(nn.Sequential():add(conv(taken, sizes[4], 1, 1, 0)):add(conv(sizes[4], sizes[5], 5, 1, 2)))
  local pool = nn.Sequential():add(nn.SpatialZeroPadding(1, 1, 1, 1)):add(nn.SpatialMaxPooling(3, 3, 1, 1):ceil())
  return parts:add(pool:add(conv(taken, sizes[6], 1, 1, 0)))
end
return function(params)
  if params.inputShape then
    assert(params.inputShape[2] == 256 and params.inputShape[3] == 256, 'images of 256x256 expected')
  end
  local classes = params.nclasses or 10
  local features = nn.Sequential():add(conv(3, 8, 7, 2, 3)):add(nn.SpatialMaxPooling(3, 3, 2, 2):ceil())
  features:add(nn.SpatialCrossMapLRN(5, 1e-4, 0.75)):add(conv(8, 12, 3, 1, 1))
  features:add(inception(nn.Concat, 12, {6, 4, 8, 2, 4, 6})):add(nn.SpatialMaxPooling(3, 3, 2, 2):ceil())
  features:add(inception(nn.DepthConcat, 24, {8, 6, 12, 4, 6, 6}))
  -- a second classifier, which is made and not used
  local second = nn.Sequential():add(nn.SpatialAveragePooling(5, 5, 3, 3)):add(nn.View(128):setNumInputDims(3))
  second:add(nn.Linear(128, classes)):add(nn.LogSoftMax())
  local net = nn.Sequential():add(features):add(nn.SpatialAveragePooling(8, 8, 1, 1))
  net:add(nn.View(32):setNumInputDims(3)):add(nn.Dropout(0.4)):add(nn.Linear(32, classes)):add(nn.LogSoftMax())
  return { model = net, croplen = 64, trainBatchSize = 32 }
end
"""
"""GoogLeNet in the form of DIGITS: images of 256 x 256, of which it takes parts of 64 x 64."""

SIAMESE = """\
return function(params)
  local branch = nn.Sequential():add(nn.View(-1):setNumInputDims(3)):add(nn.Linear(64, 16))
  branch:add(nn.Tanh()):add(nn.Linear(16, 4))
  local pair = nn.ParallelTable():add(branch):add(branch:clone('weight', 'bias', 'gradWeight', 'gradBias'))
  local parts = nn.ConcatTable():add(nn.Narrow(2, 1, 1)):add(nn.Narrow(2, 2, 1))
  return {
    model = nn.Sequential():add(parts):add(pair), loss = nn.CosineEmbeddingCriterion(0.5),
    labelHook = function(input, label) label[label:eq(0)] = -1 return label end,
  }
end
"""

SEGMENTATION = """\
return function(params)
  local net = nn.Sequential():add(nn.AddConstant(-127)):add(nn.SpatialConvolution(3, 8, 4, 4, 2, 2, 1, 1))
  net:add(nn.ReLU(true)):add(nn.SpatialConvolution(8, 12, 3, 3, 1, 1, 1, 1)):add(nn.LeakyReLU(0.1))
  net:add(nn.SpatialFullConvolution(12, 1, 4, 4, 2, 2, 1, 1))
  return { model = net, loss = nn.MSECriterion(), labelHook = function(input, label) return label:mul(0.5) end }
end
"""

TEXT = """\
return function(params)
  local net = nn.Sequential():add(nn.OneHot(20)):add(nn.TemporalConvolution(20, 8, 5)):add(nn.Threshold())
  net:add(nn.TemporalMaxPooling(3, 3)):add(nn.Reshape(8 * 8))
  net:add(nn.Linear(8 * 8, params.nclasses or 4)):add(nn.LogSoftMax())
  return { model = net }
end
"""

GRAPH = """\
require 'nngraph'
local input = nn.Identity()()
local first = input - nn.SpatialConvolution(3, 6, 3, 3, 1, 1, 1, 1) - nn.ReLU(true)
local second = nn.SpatialConvolution(6, 6, 3, 3, 1, 1, 1, 1)(first)
local sum = nn.CAddTable()({first, second})
local score = nn.Linear(6 * 8 * 8, 5)(nn.View(-1):setNumInputDims(3)(sum))
return nn.gModule({input}, {nn.LogSoftMax()(score)})
"""
